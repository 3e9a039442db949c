import datetime

from google.protobuf import any_pb2 as _any_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Task(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_UNSPECIFIED: _ClassVar[Task]
    TASK_CODE_COMPLETION: _ClassVar[Task]
    TASK_STRUCTURED_OUTPUT: _ClassVar[Task]
    TASK_TEXT_EDITING: _ClassVar[Task]
    TASK_ACTION_CONTROL: _ClassVar[Task]
    TASK_REASONING: _ClassVar[Task]
    TASK_MATH: _ClassVar[Task]
    TASK_CHAT: _ClassVar[Task]
    TASK_TEXT_GENERATION: _ClassVar[Task]

class Paradigm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARADIGM_UNSPECIFIED: _ClassVar[Paradigm]
    PARADIGM_DIFFUSION: _ClassVar[Paradigm]
    PARADIGM_AUTOREGRESSIVE: _ClassVar[Paradigm]

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_INTERACTIVE: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_BATCH: _ClassVar[Priority]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_STOP: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH: _ClassVar[FinishReason]
    FINISH_REASON_DEADLINE: _ClassVar[FinishReason]
TASK_UNSPECIFIED: Task
TASK_CODE_COMPLETION: Task
TASK_STRUCTURED_OUTPUT: Task
TASK_TEXT_EDITING: Task
TASK_ACTION_CONTROL: Task
TASK_REASONING: Task
TASK_MATH: Task
TASK_CHAT: Task
TASK_TEXT_GENERATION: Task
PARADIGM_UNSPECIFIED: Paradigm
PARADIGM_DIFFUSION: Paradigm
PARADIGM_AUTOREGRESSIVE: Paradigm
PRIORITY_UNSPECIFIED: Priority
PRIORITY_INTERACTIVE: Priority
PRIORITY_NORMAL: Priority
PRIORITY_BATCH: Priority
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_STOP: FinishReason
FINISH_REASON_LENGTH: FinishReason
FINISH_REASON_DEADLINE: FinishReason

class Chat(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[ChatMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[ChatMessage, _Mapping]]] = ...) -> None: ...

class ChatMessage(_message.Message):
    __slots__ = ("role", "content")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class Infill(_message.Message):
    __slots__ = ("prefix", "suffix")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    SUFFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    suffix: str
    def __init__(self, prefix: _Optional[str] = ..., suffix: _Optional[str] = ...) -> None: ...

class Edit(_message.Message):
    __slots__ = ("text", "instruction", "spans")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    text: str
    instruction: str
    spans: _containers.RepeatedCompositeFieldContainer[Span]
    def __init__(self, text: _Optional[str] = ..., instruction: _Optional[str] = ..., spans: _Optional[_Iterable[_Union[Span, _Mapping]]] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class Choice(_message.Message):
    __slots__ = ("options",)
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    options: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, options: _Optional[_Iterable[str]] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("max_new_tokens", "temperature", "top_p", "top_k", "seed", "stop")
    MAX_NEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    max_new_tokens: int
    temperature: float
    top_p: float
    top_k: int
    seed: int
    stop: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, max_new_tokens: _Optional[int] = ..., temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ..., seed: _Optional[int] = ..., stop: _Optional[_Iterable[str]] = ...) -> None: ...

class Diffusion(_message.Message):
    __slots__ = ("max_steps", "block_length", "confidence_threshold", "strategy", "factor", "entropy_bound", "drafts")
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    BLOCK_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_BOUND_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    max_steps: int
    block_length: int
    confidence_threshold: float
    strategy: str
    factor: float
    entropy_bound: float
    drafts: bool
    def __init__(self, max_steps: _Optional[int] = ..., block_length: _Optional[int] = ..., confidence_threshold: _Optional[float] = ..., strategy: _Optional[str] = ..., factor: _Optional[float] = ..., entropy_bound: _Optional[float] = ..., drafts: _Optional[bool] = ...) -> None: ...

class Constraint(_message.Message):
    __slots__ = ("json_schema", "regex", "choice", "template")
    JSON_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    json_schema: str
    regex: str
    choice: Choice
    template: str
    def __init__(self, json_schema: _Optional[str] = ..., regex: _Optional[str] = ..., choice: _Optional[_Union[Choice, _Mapping]] = ..., template: _Optional[str] = ...) -> None: ...

class Thinking(_message.Message):
    __slots__ = ("enabled", "max_tokens", "include")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    max_tokens: int
    include: bool
    def __init__(self, enabled: _Optional[bool] = ..., max_tokens: _Optional[int] = ..., include: _Optional[bool] = ...) -> None: ...

class GenerateRequest(_message.Message):
    __slots__ = ("request_id", "task", "model", "labels", "prompt", "chat", "infill", "edit", "sampling", "diffusion", "constraint", "thinking", "priority", "latency_budget", "retry_safe")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    CHAT_FIELD_NUMBER: _ClassVar[int]
    INFILL_FIELD_NUMBER: _ClassVar[int]
    EDIT_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    DIFFUSION_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LATENCY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    RETRY_SAFE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    task: Task
    model: str
    labels: _containers.ScalarMap[str, str]
    prompt: str
    chat: Chat
    infill: Infill
    edit: Edit
    sampling: Sampling
    diffusion: Diffusion
    constraint: Constraint
    thinking: Thinking
    priority: Priority
    latency_budget: _duration_pb2.Duration
    retry_safe: bool
    def __init__(self, request_id: _Optional[str] = ..., task: _Optional[_Union[Task, str]] = ..., model: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., prompt: _Optional[str] = ..., chat: _Optional[_Union[Chat, _Mapping]] = ..., infill: _Optional[_Union[Infill, _Mapping]] = ..., edit: _Optional[_Union[Edit, _Mapping]] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., diffusion: _Optional[_Union[Diffusion, _Mapping]] = ..., constraint: _Optional[_Union[Constraint, _Mapping]] = ..., thinking: _Optional[_Union[Thinking, _Mapping]] = ..., priority: _Optional[_Union[Priority, str]] = ..., latency_budget: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., retry_safe: _Optional[bool] = ...) -> None: ...

class GenerateResponse(_message.Message):
    __slots__ = ("request_id", "text", "thinking", "finish_reason", "usage", "timing", "served_by", "seed", "best_effort", "repairs")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    SERVED_BY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    REPAIRS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    text: str
    thinking: str
    finish_reason: FinishReason
    usage: Usage
    timing: Timing
    served_by: ServedBy
    seed: int
    best_effort: bool
    repairs: int
    def __init__(self, request_id: _Optional[str] = ..., text: _Optional[str] = ..., thinking: _Optional[str] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., timing: _Optional[_Union[Timing, _Mapping]] = ..., served_by: _Optional[_Union[ServedBy, _Mapping]] = ..., seed: _Optional[int] = ..., best_effort: _Optional[bool] = ..., repairs: _Optional[int] = ...) -> None: ...

class GenerateStreamResponse(_message.Message):
    __slots__ = ("delta", "draft", "finished")
    DELTA_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    delta: Delta
    draft: Draft
    finished: Finished
    def __init__(self, delta: _Optional[_Union[Delta, _Mapping]] = ..., draft: _Optional[_Union[Draft, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ...) -> None: ...

class GenerateBatchRequest(_message.Message):
    __slots__ = ("item_id", "request")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    request: GenerateRequest
    def __init__(self, item_id: _Optional[str] = ..., request: _Optional[_Union[GenerateRequest, _Mapping]] = ...) -> None: ...

class GenerateBatchResponse(_message.Message):
    __slots__ = ("item_id", "response", "error")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    response: GenerateResponse
    error: ItemError
    def __init__(self, item_id: _Optional[str] = ..., response: _Optional[_Union[GenerateResponse, _Mapping]] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...

class ItemError(_message.Message):
    __slots__ = ("code", "message", "details")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class Delta(_message.Message):
    __slots__ = ("text", "block_index", "denoise_steps")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BLOCK_INDEX_FIELD_NUMBER: _ClassVar[int]
    DENOISE_STEPS_FIELD_NUMBER: _ClassVar[int]
    text: str
    block_index: int
    denoise_steps: int
    def __init__(self, text: _Optional[str] = ..., block_index: _Optional[int] = ..., denoise_steps: _Optional[int] = ...) -> None: ...

class Draft(_message.Message):
    __slots__ = ("text", "block_index")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BLOCK_INDEX_FIELD_NUMBER: _ClassVar[int]
    text: str
    block_index: int
    def __init__(self, text: _Optional[str] = ..., block_index: _Optional[int] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("request_id", "thinking", "finish_reason", "usage", "timing", "served_by", "seed", "best_effort", "repairs")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    SERVED_BY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    REPAIRS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    thinking: str
    finish_reason: FinishReason
    usage: Usage
    timing: Timing
    served_by: ServedBy
    seed: int
    best_effort: bool
    repairs: int
    def __init__(self, request_id: _Optional[str] = ..., thinking: _Optional[str] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., timing: _Optional[_Union[Timing, _Mapping]] = ..., served_by: _Optional[_Union[ServedBy, _Mapping]] = ..., seed: _Optional[int] = ..., best_effort: _Optional[bool] = ..., repairs: _Optional[int] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("prompt_tokens", "completion_tokens", "thinking_tokens", "denoise_steps", "forward_passes", "tokens_per_forward", "input_truncated", "blocks", "forced_commits", "discarded_tokens", "cached_tokens")
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    THINKING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DENOISE_STEPS_FIELD_NUMBER: _ClassVar[int]
    FORWARD_PASSES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_FORWARD_FIELD_NUMBER: _ClassVar[int]
    INPUT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    FORCED_COMMITS_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    prompt_tokens: int
    completion_tokens: int
    thinking_tokens: int
    denoise_steps: int
    forward_passes: int
    tokens_per_forward: float
    input_truncated: bool
    blocks: int
    forced_commits: int
    discarded_tokens: int
    cached_tokens: int
    def __init__(self, prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., thinking_tokens: _Optional[int] = ..., denoise_steps: _Optional[int] = ..., forward_passes: _Optional[int] = ..., tokens_per_forward: _Optional[float] = ..., input_truncated: _Optional[bool] = ..., blocks: _Optional[int] = ..., forced_commits: _Optional[int] = ..., discarded_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ...) -> None: ...

class Timing(_message.Message):
    __slots__ = ("queue", "prefill", "decode", "first_output", "total")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PREFILL_FIELD_NUMBER: _ClassVar[int]
    DECODE_FIELD_NUMBER: _ClassVar[int]
    FIRST_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    queue: _duration_pb2.Duration
    prefill: _duration_pb2.Duration
    decode: _duration_pb2.Duration
    first_output: _duration_pb2.Duration
    total: _duration_pb2.Duration
    def __init__(self, queue: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., prefill: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., decode: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., first_output: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., total: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ServedBy(_message.Message):
    __slots__ = ("node_id", "group", "model", "version", "paradigm")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARADIGM_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    group: str
    model: str
    version: str
    paradigm: Paradigm
    def __init__(self, node_id: _Optional[str] = ..., group: _Optional[str] = ..., model: _Optional[str] = ..., version: _Optional[str] = ..., paradigm: _Optional[_Union[Paradigm, str]] = ...) -> None: ...
