import datetime

from braid.inference.v1 import inference_pb2 as _inference_pb2
from braid.worker.v1 import worker_pb2 as _worker_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Policy(_message.Message):
    __slots__ = ("rules", "default")
    RULES_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[Rule]
    default: Route
    def __init__(self, rules: _Optional[_Iterable[_Union[Rule, _Mapping]]] = ..., default: _Optional[_Union[Route, _Mapping]] = ...) -> None: ...

class Rule(_message.Message):
    __slots__ = ("name", "match", "route")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    match: Match
    route: Route
    def __init__(self, name: _Optional[str] = ..., match: _Optional[_Union[Match, _Mapping]] = ..., route: _Optional[_Union[Route, _Mapping]] = ...) -> None: ...

class Match(_message.Message):
    __slots__ = ("tasks", "models", "labels", "callers", "latency_budget_at_most", "constraints", "min_prompt_bytes", "max_prompt_bytes", "min_new_tokens", "max_new_tokens", "priorities")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TASKS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CALLERS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_BUDGET_AT_MOST_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    MIN_PROMPT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PROMPT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_NEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_NEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PRIORITIES_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedScalarFieldContainer[_inference_pb2.Task]
    models: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    callers: _containers.RepeatedScalarFieldContainer[str]
    latency_budget_at_most: _duration_pb2.Duration
    constraints: _containers.RepeatedScalarFieldContainer[str]
    min_prompt_bytes: int
    max_prompt_bytes: int
    min_new_tokens: int
    max_new_tokens: int
    priorities: _containers.RepeatedScalarFieldContainer[_inference_pb2.Priority]
    def __init__(self, tasks: _Optional[_Iterable[_Union[_inference_pb2.Task, str]]] = ..., models: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., callers: _Optional[_Iterable[str]] = ..., latency_budget_at_most: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., constraints: _Optional[_Iterable[str]] = ..., min_prompt_bytes: _Optional[int] = ..., max_prompt_bytes: _Optional[int] = ..., min_new_tokens: _Optional[int] = ..., max_new_tokens: _Optional[int] = ..., priorities: _Optional[_Iterable[_Union[_inference_pb2.Priority, str]]] = ...) -> None: ...

class Route(_message.Message):
    __slots__ = ("groups", "fallback", "timeout", "overrides", "hedge_after", "queue_share", "mirror", "overload")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    HEDGE_AFTER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_SHARE_FIELD_NUMBER: _ClassVar[int]
    MIRROR_FIELD_NUMBER: _ClassVar[int]
    OVERLOAD_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupShare]
    fallback: _containers.RepeatedScalarFieldContainer[str]
    timeout: _duration_pb2.Duration
    overrides: Overrides
    hedge_after: _duration_pb2.Duration
    queue_share: int
    mirror: Mirror
    overload: Overload
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupShare, _Mapping]]] = ..., fallback: _Optional[_Iterable[str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., overrides: _Optional[_Union[Overrides, _Mapping]] = ..., hedge_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., queue_share: _Optional[int] = ..., mirror: _Optional[_Union[Mirror, _Mapping]] = ..., overload: _Optional[_Union[Overload, _Mapping]] = ...) -> None: ...

class Mirror(_message.Message):
    __slots__ = ("group", "version", "percent")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    group: str
    version: str
    percent: int
    def __init__(self, group: _Optional[str] = ..., version: _Optional[str] = ..., percent: _Optional[int] = ...) -> None: ...

class Overload(_message.Message):
    __slots__ = ("overrides", "groups")
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    overrides: Overrides
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, overrides: _Optional[_Union[Overrides, _Mapping]] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class Overrides(_message.Message):
    __slots__ = ("max_steps", "max_new_tokens")
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_NEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    max_steps: int
    max_new_tokens: int
    def __init__(self, max_steps: _Optional[int] = ..., max_new_tokens: _Optional[int] = ...) -> None: ...

class GroupShare(_message.Message):
    __slots__ = ("group", "share")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    group: str
    share: int
    def __init__(self, group: _Optional[str] = ..., share: _Optional[int] = ...) -> None: ...

class Router(_message.Message):
    __slots__ = ("node_id", "address", "admin_address", "ops_address", "epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ADMIN_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    OPS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    address: str
    admin_address: str
    ops_address: str
    epoch: int
    def __init__(self, node_id: _Optional[str] = ..., address: _Optional[str] = ..., admin_address: _Optional[str] = ..., ops_address: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class Traffic(_message.Message):
    __slots__ = ("shares",)
    class SharesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SHARES_FIELD_NUMBER: _ClassVar[int]
    shares: _containers.ScalarMap[str, int]
    def __init__(self, shares: _Optional[_Mapping[str, int]] = ...) -> None: ...

class GetRoutingTableRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetRoutingTableResponse(_message.Message):
    __slots__ = ("revision", "age", "stale", "nodes", "policy", "traffic", "rejected", "policy_built_in", "findings", "groups")
    class TrafficEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Traffic
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Traffic, _Mapping]] = ...) -> None: ...
    REVISION_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    POLICY_BUILT_IN_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    revision: int
    age: _duration_pb2.Duration
    stale: bool
    nodes: _containers.RepeatedCompositeFieldContainer[TableNode]
    policy: Policy
    traffic: _containers.MessageMap[str, Traffic]
    rejected: _containers.RepeatedCompositeFieldContainer[RejectedValue]
    policy_built_in: bool
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    groups: _containers.RepeatedCompositeFieldContainer[GroupLoad]
    def __init__(self, revision: _Optional[int] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., stale: _Optional[bool] = ..., nodes: _Optional[_Iterable[_Union[TableNode, _Mapping]]] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., traffic: _Optional[_Mapping[str, Traffic]] = ..., rejected: _Optional[_Iterable[_Union[RejectedValue, _Mapping]]] = ..., policy_built_in: _Optional[bool] = ..., findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[GroupLoad, _Mapping]]] = ...) -> None: ...

class GroupLoad(_message.Message):
    __slots__ = ("group", "queued", "expected_wait", "pending_forwards")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_WAIT_FIELD_NUMBER: _ClassVar[int]
    PENDING_FORWARDS_FIELD_NUMBER: _ClassVar[int]
    group: str
    queued: int
    expected_wait: _duration_pb2.Duration
    pending_forwards: float
    def __init__(self, group: _Optional[str] = ..., queued: _Optional[int] = ..., expected_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., pending_forwards: _Optional[float] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("key", "rule", "description")
    KEY_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    key: str
    rule: str
    description: str
    def __init__(self, key: _Optional[str] = ..., rule: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class TableNode(_message.Message):
    __slots__ = ("node", "weight", "routable", "reason", "status", "status_age", "in_flight", "drain_seconds", "lingering")
    NODE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    ROUTABLE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STATUS_AGE_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    DRAIN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LINGERING_FIELD_NUMBER: _ClassVar[int]
    node: _worker_pb2.Node
    weight: int
    routable: bool
    reason: str
    status: _worker_pb2.NodeStatus
    status_age: _duration_pb2.Duration
    in_flight: int
    drain_seconds: float
    lingering: bool
    def __init__(self, node: _Optional[_Union[_worker_pb2.Node, _Mapping]] = ..., weight: _Optional[int] = ..., routable: _Optional[bool] = ..., reason: _Optional[str] = ..., status: _Optional[_Union[_worker_pb2.NodeStatus, _Mapping]] = ..., status_age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., in_flight: _Optional[int] = ..., drain_seconds: _Optional[float] = ..., lingering: _Optional[bool] = ...) -> None: ...

class RejectedValue(_message.Message):
    __slots__ = ("key", "revision", "reason")
    KEY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    key: str
    revision: int
    reason: str
    def __init__(self, key: _Optional[str] = ..., revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("request",)
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: _inference_pb2.GenerateRequest
    def __init__(self, request: _Optional[_Union[_inference_pb2.GenerateRequest, _Mapping]] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("rule", "task", "group", "model", "version", "node_id", "candidates", "failure", "version_shares", "passed_rules", "reason", "timeout", "overrides")
    class VersionSharesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    RULE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    VERSION_SHARES_FIELD_NUMBER: _ClassVar[int]
    PASSED_RULES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    rule: str
    task: _inference_pb2.Task
    group: str
    model: str
    version: str
    node_id: str
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    failure: str
    version_shares: _containers.ScalarMap[str, float]
    passed_rules: _containers.RepeatedCompositeFieldContainer[PassedRule]
    reason: str
    timeout: _duration_pb2.Duration
    overrides: Overrides
    def __init__(self, rule: _Optional[str] = ..., task: _Optional[_Union[_inference_pb2.Task, str]] = ..., group: _Optional[str] = ..., model: _Optional[str] = ..., version: _Optional[str] = ..., node_id: _Optional[str] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., failure: _Optional[str] = ..., version_shares: _Optional[_Mapping[str, float]] = ..., passed_rules: _Optional[_Iterable[_Union[PassedRule, _Mapping]]] = ..., reason: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., overrides: _Optional[_Union[Overrides, _Mapping]] = ...) -> None: ...

class PassedRule(_message.Message):
    __slots__ = ("rule", "condition")
    RULE_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    rule: str
    condition: str
    def __init__(self, rule: _Optional[str] = ..., condition: _Optional[str] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("node_id", "group", "version", "weight", "drain_seconds", "eligible", "reason", "model", "score")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    DRAIN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    group: str
    version: str
    weight: int
    drain_seconds: float
    eligible: bool
    reason: str
    model: str
    score: float
    def __init__(self, node_id: _Optional[str] = ..., group: _Optional[str] = ..., version: _Optional[str] = ..., weight: _Optional[int] = ..., drain_seconds: _Optional[float] = ..., eligible: _Optional[bool] = ..., reason: _Optional[str] = ..., model: _Optional[str] = ..., score: _Optional[float] = ...) -> None: ...

class SmokeTestRequest(_message.Message):
    __slots__ = ("node_id", "request")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    request: _inference_pb2.GenerateRequest
    def __init__(self, node_id: _Optional[str] = ..., request: _Optional[_Union[_inference_pb2.GenerateRequest, _Mapping]] = ...) -> None: ...

class SmokeTestResponse(_message.Message):
    __slots__ = ("response", "latency")
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    response: _inference_pb2.GenerateResponse
    latency: _duration_pb2.Duration
    def __init__(self, response: _Optional[_Union[_inference_pb2.GenerateResponse, _Mapping]] = ..., latency: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetTrafficRequest(_message.Message):
    __slots__ = ("model", "window")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    model: str
    window: _duration_pb2.Duration
    def __init__(self, model: _Optional[str] = ..., window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetTrafficResponse(_message.Message):
    __slots__ = ("versions", "mirrors")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    MIRRORS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[VersionTraffic]
    mirrors: _containers.RepeatedCompositeFieldContainer[MirrorTraffic]
    def __init__(self, versions: _Optional[_Iterable[_Union[VersionTraffic, _Mapping]]] = ..., mirrors: _Optional[_Iterable[_Union[MirrorTraffic, _Mapping]]] = ...) -> None: ...

class VersionTraffic(_message.Message):
    __slots__ = ("model", "version", "count", "errors", "p50", "p95", "p99", "judged", "valid_share")
    class ErrorsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    P50_FIELD_NUMBER: _ClassVar[int]
    P95_FIELD_NUMBER: _ClassVar[int]
    P99_FIELD_NUMBER: _ClassVar[int]
    JUDGED_FIELD_NUMBER: _ClassVar[int]
    VALID_SHARE_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    count: int
    errors: _containers.ScalarMap[str, int]
    p50: _duration_pb2.Duration
    p95: _duration_pb2.Duration
    p99: _duration_pb2.Duration
    judged: int
    valid_share: float
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., count: _Optional[int] = ..., errors: _Optional[_Mapping[str, int]] = ..., p50: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., p95: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., p99: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., judged: _Optional[int] = ..., valid_share: _Optional[float] = ...) -> None: ...

class MirrorTraffic(_message.Message):
    __slots__ = ("group", "copy", "original", "count")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    group: str
    copy: MirrorSide
    original: MirrorSide
    count: int
    def __init__(self, group: _Optional[str] = ..., copy: _Optional[_Union[MirrorSide, _Mapping]] = ..., original: _Optional[_Union[MirrorSide, _Mapping]] = ..., count: _Optional[int] = ...) -> None: ...

class MirrorSide(_message.Message):
    __slots__ = ("model", "version", "errors", "valid_share", "mean_tokens", "p50", "p95")
    class ErrorsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    VALID_SHARE_FIELD_NUMBER: _ClassVar[int]
    MEAN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    P50_FIELD_NUMBER: _ClassVar[int]
    P95_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    errors: _containers.ScalarMap[str, int]
    valid_share: float
    mean_tokens: float
    p50: _duration_pb2.Duration
    p95: _duration_pb2.Duration
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., errors: _Optional[_Mapping[str, int]] = ..., valid_share: _Optional[float] = ..., mean_tokens: _Optional[float] = ..., p50: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., p95: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
