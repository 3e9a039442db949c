import datetime

from braid.inference.v1 import inference_pb2 as _inference_pb2
from braid.routing.v1 import routing_pb2 as _routing_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_CALLER: _ClassVar[Role]
    ROLE_OPERATOR: _ClassVar[Role]

class RolloutState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLLOUT_STATE_UNSPECIFIED: _ClassVar[RolloutState]
    ROLLOUT_STATE_SMOKE: _ClassVar[RolloutState]
    ROLLOUT_STATE_RUNNING: _ClassVar[RolloutState]
    ROLLOUT_STATE_PAUSED: _ClassVar[RolloutState]
    ROLLOUT_STATE_DONE: _ClassVar[RolloutState]
    ROLLOUT_STATE_ABORTED: _ClassVar[RolloutState]
ROLE_UNSPECIFIED: Role
ROLE_CALLER: Role
ROLE_OPERATOR: Role
ROLLOUT_STATE_UNSPECIFIED: RolloutState
ROLLOUT_STATE_SMOKE: RolloutState
ROLLOUT_STATE_RUNNING: RolloutState
ROLLOUT_STATE_PAUSED: RolloutState
ROLLOUT_STATE_DONE: RolloutState
ROLLOUT_STATE_ABORTED: RolloutState

class ModelVersion(_message.Message):
    __slots__ = ("model", "version", "uri", "files", "family", "paradigm", "parameters_total", "parameters_active", "max_context", "defaults", "parents")
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
    PARENTS_FIELD_NUMBER: _ClassVar[int]
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
    parents: _containers.RepeatedCompositeFieldContainer[ModelParent]
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., uri: _Optional[str] = ..., files: _Optional[_Iterable[_Union[ModelFile, _Mapping]]] = ..., family: _Optional[str] = ..., paradigm: _Optional[_Union[_inference_pb2.Paradigm, str]] = ..., parameters_total: _Optional[int] = ..., parameters_active: _Optional[int] = ..., max_context: _Optional[int] = ..., defaults: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., parents: _Optional[_Iterable[_Union[ModelParent, _Mapping]]] = ...) -> None: ...

class ModelParent(_message.Message):
    __slots__ = ("model", "version", "relation")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    relation: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., relation: _Optional[str] = ...) -> None: ...

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

class Caller(_message.Message):
    __slots__ = ("caller_id", "role", "disabled", "keys", "certificate_names", "allowed", "quota")
    CALLER_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DISABLED_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_NAMES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    caller_id: str
    role: Role
    disabled: bool
    keys: _containers.RepeatedCompositeFieldContainer[ApiKey]
    certificate_names: _containers.RepeatedScalarFieldContainer[str]
    allowed: Allowed
    quota: Quota
    def __init__(self, caller_id: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., disabled: _Optional[bool] = ..., keys: _Optional[_Iterable[_Union[ApiKey, _Mapping]]] = ..., certificate_names: _Optional[_Iterable[str]] = ..., allowed: _Optional[_Union[Allowed, _Mapping]] = ..., quota: _Optional[_Union[Quota, _Mapping]] = ...) -> None: ...

class ApiKey(_message.Message):
    __slots__ = ("key_id", "salt", "hash", "created_at", "expires_at")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    salt: str
    hash: str
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, key_id: _Optional[str] = ..., salt: _Optional[str] = ..., hash: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Allowed(_message.Message):
    __slots__ = ("tasks", "models", "groups", "networks")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedScalarFieldContainer[_inference_pb2.Task]
    models: _containers.RepeatedScalarFieldContainer[str]
    groups: _containers.RepeatedScalarFieldContainer[str]
    networks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tasks: _Optional[_Iterable[_Union[_inference_pb2.Task, str]]] = ..., models: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ..., networks: _Optional[_Iterable[str]] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ("requests_per_second", "concurrency", "tokens_per_minute")
    REQUESTS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    requests_per_second: float
    concurrency: int
    tokens_per_minute: int
    def __init__(self, requests_per_second: _Optional[float] = ..., concurrency: _Optional[int] = ..., tokens_per_minute: _Optional[int] = ...) -> None: ...

class Rollout(_message.Message):
    __slots__ = ("model", "candidate", "stable", "plan", "state", "step", "step_started", "old_shares", "reason", "baseline", "started")
    class OldSharesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    STABLE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STEP_STARTED_FIELD_NUMBER: _ClassVar[int]
    OLD_SHARES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    model: str
    candidate: str
    stable: str
    plan: RolloutPlan
    state: RolloutState
    step: int
    step_started: _timestamp_pb2.Timestamp
    old_shares: _containers.ScalarMap[str, int]
    reason: str
    baseline: VersionSample
    started: _timestamp_pb2.Timestamp
    def __init__(self, model: _Optional[str] = ..., candidate: _Optional[str] = ..., stable: _Optional[str] = ..., plan: _Optional[_Union[RolloutPlan, _Mapping]] = ..., state: _Optional[_Union[RolloutState, str]] = ..., step: _Optional[int] = ..., step_started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., old_shares: _Optional[_Mapping[str, int]] = ..., reason: _Optional[str] = ..., baseline: _Optional[_Union[VersionSample, _Mapping]] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RolloutPlan(_message.Message):
    __slots__ = ("steps", "guards", "smoke", "smoke_timeout")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    SMOKE_FIELD_NUMBER: _ClassVar[int]
    SMOKE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[RolloutStep]
    guards: RolloutGuards
    smoke: _containers.RepeatedCompositeFieldContainer[SmokeRequest]
    smoke_timeout: _duration_pb2.Duration
    def __init__(self, steps: _Optional[_Iterable[_Union[RolloutStep, _Mapping]]] = ..., guards: _Optional[_Union[RolloutGuards, _Mapping]] = ..., smoke: _Optional[_Iterable[_Union[SmokeRequest, _Mapping]]] = ..., smoke_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RolloutStep(_message.Message):
    __slots__ = ("percent", "hold")
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    percent: int
    hold: _duration_pb2.Duration
    def __init__(self, percent: _Optional[int] = ..., hold: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RolloutGuards(_message.Message):
    __slots__ = ("error_rate_increase", "invalid_rate_increase", "latency_ratio", "min_sample")
    ERROR_RATE_INCREASE_FIELD_NUMBER: _ClassVar[int]
    INVALID_RATE_INCREASE_FIELD_NUMBER: _ClassVar[int]
    LATENCY_RATIO_FIELD_NUMBER: _ClassVar[int]
    MIN_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    error_rate_increase: float
    invalid_rate_increase: float
    latency_ratio: float
    min_sample: int
    def __init__(self, error_rate_increase: _Optional[float] = ..., invalid_rate_increase: _Optional[float] = ..., latency_ratio: _Optional[float] = ..., min_sample: _Optional[int] = ...) -> None: ...

class SmokeRequest(_message.Message):
    __slots__ = ("request", "answer")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    request: _inference_pb2.GenerateRequest
    answer: str
    def __init__(self, request: _Optional[_Union[_inference_pb2.GenerateRequest, _Mapping]] = ..., answer: _Optional[str] = ...) -> None: ...

class VersionSample(_message.Message):
    __slots__ = ("count", "errors", "judged", "invalid", "p95_seconds")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    JUDGED_FIELD_NUMBER: _ClassVar[int]
    INVALID_FIELD_NUMBER: _ClassVar[int]
    P95_SECONDS_FIELD_NUMBER: _ClassVar[int]
    count: int
    errors: int
    judged: int
    invalid: int
    p95_seconds: float
    def __init__(self, count: _Optional[int] = ..., errors: _Optional[int] = ..., judged: _Optional[int] = ..., invalid: _Optional[int] = ..., p95_seconds: _Optional[float] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("revision", "time", "who", "reason", "keys", "rolled_back")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    ROLLED_BACK_FIELD_NUMBER: _ClassVar[int]
    revision: int
    time: _timestamp_pb2.Timestamp
    who: str
    reason: str
    keys: _containers.RepeatedCompositeFieldContainer[KeyChange]
    rolled_back: str
    def __init__(self, revision: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., who: _Optional[str] = ..., reason: _Optional[str] = ..., keys: _Optional[_Iterable[_Union[KeyChange, _Mapping]]] = ..., rolled_back: _Optional[str] = ...) -> None: ...

class KeyChange(_message.Message):
    __slots__ = ("key", "before", "after", "rejected")
    KEY_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    key: str
    before: str
    after: str
    rejected: str
    def __init__(self, key: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ..., rejected: _Optional[str] = ...) -> None: ...

class RegisterModelRequest(_message.Message):
    __slots__ = ("model", "version", "uri", "expected_files", "reason", "parents")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FILES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    uri: str
    expected_files: _containers.RepeatedCompositeFieldContainer[ModelFile]
    reason: str
    parents: _containers.RepeatedCompositeFieldContainer[ModelParent]
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., uri: _Optional[str] = ..., expected_files: _Optional[_Iterable[_Union[ModelFile, _Mapping]]] = ..., reason: _Optional[str] = ..., parents: _Optional[_Iterable[_Union[ModelParent, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("policy", "expected_revision", "reason")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    policy: _routing_pb2.Policy
    expected_revision: int
    reason: str
    def __init__(self, policy: _Optional[_Union[_routing_pb2.Policy, _Mapping]] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("model", "shares", "expected_revision", "reason")
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
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    shares: _containers.ScalarMap[str, int]
    expected_revision: int
    reason: str
    def __init__(self, model: _Optional[str] = ..., shares: _Optional[_Mapping[str, int]] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("group", "expected_revision", "reason")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    group: Group
    expected_revision: int
    reason: str
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

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

class ListChangesRequest(_message.Message):
    __slots__ = ("after_revision", "limit", "key_prefix")
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    KEY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    after_revision: int
    limit: int
    key_prefix: str
    def __init__(self, after_revision: _Optional[int] = ..., limit: _Optional[int] = ..., key_prefix: _Optional[str] = ...) -> None: ...

class ListChangesResponse(_message.Message):
    __slots__ = ("changes", "revision")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    revision: int
    def __init__(self, changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class WatchChangesRequest(_message.Message):
    __slots__ = ("after_revision",)
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    after_revision: int
    def __init__(self, after_revision: _Optional[int] = ...) -> None: ...

class WatchChangesResponse(_message.Message):
    __slots__ = ("change",)
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    change: Change
    def __init__(self, change: _Optional[_Union[Change, _Mapping]] = ...) -> None: ...

class PutCallerRequest(_message.Message):
    __slots__ = ("caller", "new_key", "old_keys_valid_for", "expected_revision", "reason")
    CALLER_FIELD_NUMBER: _ClassVar[int]
    NEW_KEY_FIELD_NUMBER: _ClassVar[int]
    OLD_KEYS_VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    caller: Caller
    new_key: bool
    old_keys_valid_for: _duration_pb2.Duration
    expected_revision: int
    reason: str
    def __init__(self, caller: _Optional[_Union[Caller, _Mapping]] = ..., new_key: _Optional[bool] = ..., old_keys_valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class PutCallerResponse(_message.Message):
    __slots__ = ("caller", "api_key", "revision")
    CALLER_FIELD_NUMBER: _ClassVar[int]
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    caller: Caller
    api_key: str
    revision: int
    def __init__(self, caller: _Optional[_Union[Caller, _Mapping]] = ..., api_key: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class ListCallersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListCallersResponse(_message.Message):
    __slots__ = ("callers", "revision", "revisions")
    class RevisionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CALLERS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REVISIONS_FIELD_NUMBER: _ClassVar[int]
    callers: _containers.RepeatedCompositeFieldContainer[Caller]
    revision: int
    revisions: _containers.ScalarMap[str, int]
    def __init__(self, callers: _Optional[_Iterable[_Union[Caller, _Mapping]]] = ..., revision: _Optional[int] = ..., revisions: _Optional[_Mapping[str, int]] = ...) -> None: ...

class DeleteCallerRequest(_message.Message):
    __slots__ = ("caller_id", "reason")
    CALLER_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    caller_id: str
    reason: str
    def __init__(self, caller_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class DeleteCallerResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class StartRolloutRequest(_message.Message):
    __slots__ = ("model", "candidate", "stable", "plan", "reason")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    STABLE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    candidate: str
    stable: str
    plan: RolloutPlan
    reason: str
    def __init__(self, model: _Optional[str] = ..., candidate: _Optional[str] = ..., stable: _Optional[str] = ..., plan: _Optional[_Union[RolloutPlan, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class StartRolloutResponse(_message.Message):
    __slots__ = ("rollout", "revision")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    rollout: Rollout
    revision: int
    def __init__(self, rollout: _Optional[_Union[Rollout, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class GetRolloutRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class GetRolloutResponse(_message.Message):
    __slots__ = ("rollout", "revision")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    rollout: Rollout
    revision: int
    def __init__(self, rollout: _Optional[_Union[Rollout, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class ListRolloutsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRolloutsResponse(_message.Message):
    __slots__ = ("rollouts", "revision")
    ROLLOUTS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    rollouts: _containers.RepeatedCompositeFieldContainer[Rollout]
    revision: int
    def __init__(self, rollouts: _Optional[_Iterable[_Union[Rollout, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class PromoteRolloutRequest(_message.Message):
    __slots__ = ("model", "expected_revision", "reason")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    expected_revision: int
    reason: str
    def __init__(self, model: _Optional[str] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class PromoteRolloutResponse(_message.Message):
    __slots__ = ("rollout", "revision")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    rollout: Rollout
    revision: int
    def __init__(self, rollout: _Optional[_Union[Rollout, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class PauseRolloutRequest(_message.Message):
    __slots__ = ("model", "expected_revision", "reason")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    expected_revision: int
    reason: str
    def __init__(self, model: _Optional[str] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class PauseRolloutResponse(_message.Message):
    __slots__ = ("rollout", "revision")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    rollout: Rollout
    revision: int
    def __init__(self, rollout: _Optional[_Union[Rollout, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class ResumeRolloutRequest(_message.Message):
    __slots__ = ("model", "expected_revision", "reason")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    expected_revision: int
    reason: str
    def __init__(self, model: _Optional[str] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class ResumeRolloutResponse(_message.Message):
    __slots__ = ("rollout", "revision")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    rollout: Rollout
    revision: int
    def __init__(self, rollout: _Optional[_Union[Rollout, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class AbortRolloutRequest(_message.Message):
    __slots__ = ("model", "expected_revision", "reason")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    expected_revision: int
    reason: str
    def __init__(self, model: _Optional[str] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class AbortRolloutResponse(_message.Message):
    __slots__ = ("rollout", "revision")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    rollout: Rollout
    revision: int
    def __init__(self, rollout: _Optional[_Union[Rollout, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class RetireModelRequest(_message.Message):
    __slots__ = ("model", "version", "reason")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    reason: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class RetireModelResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class RollbackRequest(_message.Message):
    __slots__ = ("model", "version", "dry_run", "expected_revision", "reason")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    dry_run: bool
    expected_revision: int
    reason: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ..., dry_run: _Optional[bool] = ..., expected_revision: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class RollbackResponse(_message.Message):
    __slots__ = ("from_version", "to_version", "differences", "revision")
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    from_version: str
    to_version: str
    differences: _containers.RepeatedCompositeFieldContainer[Difference]
    revision: int
    def __init__(self, from_version: _Optional[str] = ..., to_version: _Optional[str] = ..., differences: _Optional[_Iterable[_Union[Difference, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ("path", "before", "after")
    PATH_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    path: str
    before: str
    after: str
    def __init__(self, path: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...
