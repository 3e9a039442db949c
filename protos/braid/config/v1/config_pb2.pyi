from braid.inference.v1 import inference_pb2 as _inference_pb2
from braid.routing.v1 import routing_pb2 as _routing_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ModelVersion(_message.Message):
    __slots__ = ("model", "version", "uri", "files", "family", "paradigm", "parameters_total", "parameters_active", "max_context", "defaults")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    PARADIGM_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    uri: str
    files: _containers.RepeatedCompositeFieldContainer[ModelFile]
    family: str
    paradigm: _inference_pb2.Paradigm
    parameters_total: int
    parameters_active: int
    max_context: int
    defaults: _struct_pb2.Struct
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., uri: _Optional[str] = ..., files: _Optional[_Iterable[_Union[ModelFile, _Mapping]]] = ..., family: _Optional[str] = ..., paradigm: _Optional[_Union[_inference_pb2.Paradigm, str]] = ..., parameters_total: _Optional[int] = ..., parameters_active: _Optional[int] = ..., max_context: _Optional[int] = ..., defaults: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ModelFile(_message.Message):
    __slots__ = ("path", "size_bytes", "sha256")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    path: str
    size_bytes: int
    sha256: str
    def __init__(self, path: _Optional[str] = ..., size_bytes: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("group", "model", "version", "max_steps", "max_batch_size", "max_concurrency", "queue_length", "max_new_tokens", "max_context", "confidence_threshold", "strategy", "factor", "entropy_bound", "log_level")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
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
    LOG_LEVEL_FIELD_NUMBER: _ClassVar[int]
    group: str
    model: str
    version: str
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
    log_level: str
    def __init__(self, group: _Optional[str] = ..., model: _Optional[str] = ..., version: _Optional[str] = ..., max_steps: _Optional[int] = ..., max_batch_size: _Optional[int] = ..., max_concurrency: _Optional[int] = ..., queue_length: _Optional[int] = ..., max_new_tokens: _Optional[int] = ..., max_context: _Optional[int] = ..., confidence_threshold: _Optional[float] = ..., strategy: _Optional[str] = ..., factor: _Optional[float] = ..., entropy_bound: _Optional[float] = ..., log_level: _Optional[str] = ...) -> None: ...

class RegisterModelRequest(_message.Message):
    __slots__ = ("model", "version", "uri", "expected_files")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FILES_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    uri: str
    expected_files: _containers.RepeatedCompositeFieldContainer[ModelFile]
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., uri: _Optional[str] = ..., expected_files: _Optional[_Iterable[_Union[ModelFile, _Mapping]]] = ...) -> None: ...

class RegisterModelResponse(_message.Message):
    __slots__ = ("model_version", "revision")
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    model_version: ModelVersion
    revision: int
    def __init__(self, model_version: _Optional[_Union[ModelVersion, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("model_versions", "revision")
    MODEL_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    model_versions: _containers.RepeatedCompositeFieldContainer[ModelVersion]
    revision: int
    def __init__(self, model_versions: _Optional[_Iterable[_Union[ModelVersion, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("model", "version")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model_version", "revision")
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    model_version: ModelVersion
    revision: int
    def __init__(self, model_version: _Optional[_Union[ModelVersion, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class PutPolicyRequest(_message.Message):
    __slots__ = ("policy", "expected_revision")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    policy: _routing_pb2.Policy
    expected_revision: int
    def __init__(self, policy: _Optional[_Union[_routing_pb2.Policy, _Mapping]] = ..., expected_revision: _Optional[int] = ...) -> None: ...

class PutPolicyResponse(_message.Message):
    __slots__ = ("revision", "warnings")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    revision: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, revision: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class GetPolicyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetPolicyResponse(_message.Message):
    __slots__ = ("policy", "revision")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    policy: _routing_pb2.Policy
    revision: int
    def __init__(self, policy: _Optional[_Union[_routing_pb2.Policy, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class SetTrafficRequest(_message.Message):
    __slots__ = ("model", "shares", "expected_revision")
    class SharesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    model: str
    shares: _containers.ScalarMap[str, int]
    expected_revision: int
    def __init__(self, model: _Optional[str] = ..., shares: _Optional[_Mapping[str, int]] = ..., expected_revision: _Optional[int] = ...) -> None: ...

class SetTrafficResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class GetTrafficRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class GetTrafficResponse(_message.Message):
    __slots__ = ("shares", "revision")
    class SharesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SHARES_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    shares: _containers.ScalarMap[str, int]
    revision: int
    def __init__(self, shares: _Optional[_Mapping[str, int]] = ..., revision: _Optional[int] = ...) -> None: ...

class PutGroupRequest(_message.Message):
    __slots__ = ("group", "expected_revision")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    group: Group
    expected_revision: int
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ..., expected_revision: _Optional[int] = ...) -> None: ...

class PutGroupResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class GetGroupRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class GetGroupResponse(_message.Message):
    __slots__ = ("group", "revision")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    group: Group
    revision: int
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups", "revision")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    revision: int
    def __init__(self, groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...
