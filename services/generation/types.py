"""What a request asks for and what comes back, free of protobuf and of torch.

``wire`` builds a Request from the message, ``prompt`` and the limits in force
turn it into a Job for the engine, and the engine answers with Events.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.generation.grammar.token_automaton import TokenAutomaton


class Priority(enum.IntEnum):
    """Place in queues; the smaller the sooner."""

    INTERACTIVE = 0
    NORMAL = 1
    BATCH = 2


class Paradigm(enum.Enum):
    """How a model generates."""

    DIFFUSION = "diffusion"
    AUTOREGRESSIVE = "autoregressive"


class FinishReason(enum.Enum):
    """Why a generation ended."""

    STOP = "stop"
    LENGTH = "length"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Plain text that the model continues or answers."""

    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a chat; role is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, oldest turn first."""

    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Infill:
    """Text on both sides of a gap."""

    prefix: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A text, what to change and where; spans are (start, end) in characters."""

    text: str
    instruction: str
    spans: tuple[tuple[int, int], ...] = ()


Input = Prompt | Chat | Infill | Edit


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; None takes the default in force."""

    max_new_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Denoising:
    """How a block is denoised; None takes the default in force."""

    max_steps: int | None = None
    block_length: int | None = None
    confidence_threshold: float | None = None
    strategy: str | None = None
    factor: float | None = None
    entropy_bound: float | None = None
    drafts: bool = False
    """Whether the open block is shown as it changes."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A form the whole answer must have.

    ``kind`` is json_schema, regex, choice or template; ``value`` the text of it,
    ``options`` the list of a choice.
    """

    kind: str
    value: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning before the answer; None leaves it to the model."""

    enabled: bool | None = None
    max_tokens: int | None = None
    include: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One validated call. Times are seconds of time.monotonic()."""

    request_id: str
    task: str
    input: Input
    arrived: float
    sampling: Sampling = Sampling()
    denoising: Denoising | None = None
    constraint: Constraint | None = None
    thinking: Thinking = Thinking()
    priority: Priority = Priority.NORMAL
    deadline: float | None = None
    """When the gRPC call itself ends: later work is of no use to anybody."""
    answer_by: float | None = None
    """arrived + latency_budget: what there is by then is the answer."""
    way_back_s: float = 0.0
    """What an answer needs to reach its caller, as measured of late."""
    model: str = ""
    """Name of the model asked for; empty takes whichever there is."""


@dataclass(frozen=True, slots=True)
class DenoisingPlan:
    """A Denoising with every default filled in."""

    max_steps: int
    block_length: int
    strategy: str
    confidence_threshold: float
    factor: float
    entropy_bound: float
    """Nats."""
    distance_decay: float
    edit_threshold: float
    """Probability above which a committed token of the open block is replaced; 1 never."""


@dataclass(frozen=True, slots=True)
class Job:
    """One sequence for the engine: everything resolved, nothing optional left.

    ``prompt_ids`` hold whatever opens the answer (e.g. a thinking mark);
    ``thinking`` says that generation starts inside the reasoning. ``suffix_ids``
    stand behind the answer, for models that see what is right of it. ``automaton``
    is what the answer is kept to.
    """

    request_id: str
    prompt_ids: tuple[int, ...]
    max_new_tokens: int
    temperature: float
    top_p: float
    top_k: int
    seed: int
    stop: tuple[str, ...]
    priority: Priority
    arrived: float
    deadline: float | None
    answer_by: float | None
    thinking: bool = False
    max_thinking_tokens: int | None = None
    denoising: DenoisingPlan | None = None
    suffix_ids: tuple[int, ...] = ()
    automaton: TokenAutomaton | None = field(default=None, repr=False, compare=False)
    echoes: tuple[str, ...] = ()
    """Texts that end the answer because they would repeat what stands behind it."""
    drafts: bool = False
    """Whether the open block is shown as it changes."""

    @property
    def given(self) -> int:
        """Tokens that the request brings along."""
        return len(self.prompt_ids) + len(self.suffix_ids)

    @property
    def expires(self) -> float:
        """When an answer that has not begun is of no more use, on the monotonic clock."""
        times = (self.deadline, self.answer_by)
        return min((time for time in times if time is not None), default=math.inf)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and forward passes of one answer; names as in the contract."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    thinking_tokens: int = 0
    denoise_steps: int = 0
    forward_passes: int = 0
    tokens_per_forward: float = 0.0
    input_truncated: bool = False
    blocks: int = 0
    forced_commits: int = 0
    discarded_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; names as in the contract."""

    queue: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    first_output: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Delta:
    """Final text to append, whole characters only."""

    text: str
    block_index: int = 0
    denoise_steps: int = 1


@dataclass(frozen=True, slots=True)
class Draft:
    """What would follow the deltas if the open block stood; holds until the next event."""

    text: str
    block_index: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a sequence that ended well."""

    finish_reason: FinishReason
    usage: Usage = field(default_factory=Usage)
    timing: Timing = field(default_factory=Timing)
    thinking: str = ""
    seed: int = 0
    best_effort: bool = False
    repairs: int = 0


Event = Delta | Draft | Finished


@dataclass(frozen=True, slots=True)
class VersionName:
    """One version of one model."""

    model: str
    version: str

    def __str__(self) -> str:
        return f"{self.model} {self.version}"


@dataclass(frozen=True, slots=True)
class ServedBy:
    """The node that answers and what it serves."""

    node_id: str
    group: str
    model: str
    version: str
    paradigm: Paradigm

    @property
    def name(self) -> VersionName:
        """What it serves."""
        return VersionName(self.model, self.version)
