from braid.inference.v1 import inference_pb2 as _inference_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_STATE_UNSPECIFIED: _ClassVar[NodeState]
    NODE_STATE_FETCHING: _ClassVar[NodeState]
    NODE_STATE_VERIFYING: _ClassVar[NodeState]
    NODE_STATE_LOADING: _ClassVar[NodeState]
    NODE_STATE_WARMING: _ClassVar[NodeState]
    NODE_STATE_READY: _ClassVar[NodeState]
    NODE_STATE_DRAINING: _ClassVar[NodeState]
    NODE_STATE_STOPPED: _ClassVar[NodeState]
    NODE_STATE_FAILED: _ClassVar[NodeState]
NODE_STATE_UNSPECIFIED: NodeState
NODE_STATE_FETCHING: NodeState
NODE_STATE_VERIFYING: NodeState
NODE_STATE_LOADING: NodeState
NODE_STATE_WARMING: NodeState
NODE_STATE_READY: NodeState
NODE_STATE_DRAINING: NodeState
NODE_STATE_STOPPED: NodeState
NODE_STATE_FAILED: NodeState

class Node(_message.Message):
    __slots__ = ("node_id", "group", "address", "admin_address", "ops_address", "paradigm", "model", "version", "weight", "labels", "capabilities", "max_context", "epoch")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ADMIN_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    OPS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PARADIGM_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    group: str
    address: str
    admin_address: str
    ops_address: str
    paradigm: _inference_pb2.Paradigm
    model: str
    version: str
    weight: int
    labels: _containers.ScalarMap[str, str]
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    max_context: int
    epoch: int
    def __init__(self, node_id: _Optional[str] = ..., group: _Optional[str] = ..., address: _Optional[str] = ..., admin_address: _Optional[str] = ..., ops_address: _Optional[str] = ..., paradigm: _Optional[_Union[_inference_pb2.Paradigm, str]] = ..., model: _Optional[str] = ..., version: _Optional[str] = ..., weight: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., capabilities: _Optional[_Iterable[str]] = ..., max_context: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class NodeStatus(_message.Message):
    __slots__ = ("state", "reason", "model_loaded", "memory_ok", "accepting", "running", "queued", "pending_forwards", "step_seconds", "slots", "memory_bytes", "memory_limit_bytes")
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MODEL_LOADED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_OK_FIELD_NUMBER: _ClassVar[int]
    ACCEPTING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FORWARDS_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    state: NodeState
    reason: str
    model_loaded: bool
    memory_ok: bool
    accepting: bool
    running: int
    queued: int
    pending_forwards: float
    step_seconds: float
    slots: int
    memory_bytes: int
    memory_limit_bytes: int
    def __init__(self, state: _Optional[_Union[NodeState, str]] = ..., reason: _Optional[str] = ..., model_loaded: _Optional[bool] = ..., memory_ok: _Optional[bool] = ..., accepting: _Optional[bool] = ..., running: _Optional[int] = ..., queued: _Optional[int] = ..., pending_forwards: _Optional[float] = ..., step_seconds: _Optional[float] = ..., slots: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., memory_limit_bytes: _Optional[int] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("node", "status", "weights_uri", "parameters_total", "parameters_active", "family", "limits")
    NODE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_URI_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    node: Node
    status: NodeStatus
    weights_uri: str
    parameters_total: int
    parameters_active: int
    family: str
    limits: RuntimeLimits
    def __init__(self, node: _Optional[_Union[Node, _Mapping]] = ..., status: _Optional[_Union[NodeStatus, _Mapping]] = ..., weights_uri: _Optional[str] = ..., parameters_total: _Optional[int] = ..., parameters_active: _Optional[int] = ..., family: _Optional[str] = ..., limits: _Optional[_Union[RuntimeLimits, _Mapping]] = ...) -> None: ...

class RuntimeLimits(_message.Message):
    __slots__ = ("max_steps", "max_batch_size", "max_concurrency", "queue_length", "max_new_tokens", "max_context", "confidence_threshold", "strategy", "factor", "entropy_bound")
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_NEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_BOUND_FIELD_NUMBER: _ClassVar[int]
    max_steps: int
    max_batch_size: int
    max_concurrency: int
    queue_length: int
    max_new_tokens: int
    max_context: int
    confidence_threshold: float
    strategy: str
    factor: float
    entropy_bound: float
    def __init__(self, max_steps: _Optional[int] = ..., max_batch_size: _Optional[int] = ..., max_concurrency: _Optional[int] = ..., queue_length: _Optional[int] = ..., max_new_tokens: _Optional[int] = ..., max_context: _Optional[int] = ..., confidence_threshold: _Optional[float] = ..., strategy: _Optional[str] = ..., factor: _Optional[float] = ..., entropy_bound: _Optional[float] = ...) -> None: ...

class WatchStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchStatusResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: NodeStatus
    def __init__(self, status: _Optional[_Union[NodeStatus, _Mapping]] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ("grace_seconds",)
    GRACE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    grace_seconds: int
    def __init__(self, grace_seconds: _Optional[int] = ...) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: NodeStatus
    def __init__(self, status: _Optional[_Union[NodeStatus, _Mapping]] = ...) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: NodeStatus
    def __init__(self, status: _Optional[_Union[NodeStatus, _Mapping]] = ...) -> None: ...

class LoadModelRequest(_message.Message):
    __slots__ = ("model", "version")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class LoadModelResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: NodeStatus
    def __init__(self, status: _Optional[_Union[NodeStatus, _Mapping]] = ...) -> None: ...

class UnloadModelRequest(_message.Message):
    __slots__ = ("model", "version")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class UnloadModelResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: NodeStatus
    def __init__(self, status: _Optional[_Union[NodeStatus, _Mapping]] = ...) -> None: ...
