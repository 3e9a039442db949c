"""What a checkpoint says of itself: the braid.json beside its weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from services.chassis.strategies import MAX_ENTROPY_BOUND, MAX_FACTOR, PARAMETER_OF
from services.generation.slots import GRAIN
from services.generation.types import Paradigm

FILE = "braid.json"

GREEDY = "greedy"
"""What an autoregressive model has for a strategy."""

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Ability = Literal[
    "infill", "edit", "template", "json_schema", "regex", "choice", "thinking", "seed"
]


class CheckpointError(ValueError):
    """A checkpoint that cannot be served; the message names the file and what is wrong in it."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TurnTemplates(_Part):
    """One template per role; each holds {content}."""

    system: Text
    user: Text
    assistant: Text


class Templates(_Part):
    """How an input is written for the model.

    Text in braces is replaced by the caller's, which can never become a special
    token; special tokens spelled outside braces are special tokens.
    """

    plain: Text
    turns: TurnTemplates
    open: Text
    infill: Text | None = None
    edit: Text | None = None

    @model_validator(mode="after")
    def _holds_its_places(self) -> Self:
        places = {
            "plain": (self.plain, ("{prompt}",)),
            "turns.system": (self.turns.system, ("{content}",)),
            "turns.user": (self.turns.user, ("{content}",)),
            "turns.assistant": (self.turns.assistant, ("{content}",)),
            "infill": (self.infill, ("{prefix}", "{suffix}")),
            "edit": (self.edit, ("{instruction}", "{text}")),
        }
        for name, (template, wanted) in places.items():
            for place in wanted:
                if template is not None and template.count(place) != 1:
                    raise ValueError(f"{name} must hold {place} once")
        return self


class ThinkingMarks(_Part):
    """Special tokens around the reasoning."""

    open: Text
    close: Text


class DecodingDefaults(_Part):
    """Decoding parameters where neither call nor group names one.

    All but ``strategy`` are for diffusion; an autoregressive model is "greedy".
    Each strategy has its parameter here, whichever is the default.
    """

    strategy: str = "distance_threshold"
    confidence_threshold: Share = 0.9
    factor: Annotated[float, Field(gt=0, le=MAX_FACTOR)] = 1.0
    entropy_bound: Annotated[float, Field(ge=0, le=MAX_ENTROPY_BOUND)] = 0.1
    distance_decay: Share = 0.9
    edit_threshold: Share = 1.0
    max_steps: Count = 16

    @field_validator("strategy")
    @classmethod
    def _is_known(cls, strategy: str) -> str:
        known = (*PARAMETER_OF, GREEDY)
        if strategy not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return strategy


class GoldenPrompt(_Part):
    """A prompt whose answer is known; answered greedily before the model serves."""

    prompt: Text
    answer: str
    max_new_tokens: Count = 64


class ModelCard(_Part):
    """Everything that a worker must know of a model beside its weights and tokenizer."""

    family: Literal[
        "autoregressive", "masked_block_diffusion", "masked_diffusion", "diffusion_gemma"
    ]
    parameters_total: Count
    parameters_active: Count
    max_context: Count
    eos_token: Text
    pad_token: Text | None = None
    mask_token: Text | None = None
    block_length: Count = 1
    """The one of ``block_lengths`` that is taken where a call names none."""
    block_lengths: tuple[Count, ...] = ()
    """All that the model was trained for; empty: that one alone."""
    block_origin: Literal["document"] = "document"
    logit_shift: bool = True
    prefix_cache: bool = False
    """For masked_diffusion: text left of the open block is computed once a block."""
    prompt: Templates
    thinking: ThinkingMarks | None = None
    defaults: DecodingDefaults = DecodingDefaults()
    capabilities: tuple[Ability, ...] = ()
    warmup: Annotated[tuple[Text, ...], Field(min_length=1)]
    self_test: tuple[GoldenPrompt, ...] = ()
    tasks: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        masks = self.paradigm is Paradigm.DIFFUSION and not self.self_driven
        if masks and self.mask_token is None:
            raise ValueError("mask_token is required by a masked diffusion family")
        if self.paradigm is Paradigm.DIFFUSION and self.defaults.strategy == GREEDY:
            raise ValueError("defaults.strategy greedy is none of a diffusion family")
        if self.block_length not in self.trained_block_lengths:
            raise ValueError("block_lengths does not hold block_length")
        if masks and any(GRAIN % length for length in self.trained_block_lengths):
            raise ValueError(f"block_length and block_lengths must divide {GRAIN}")
        if self.parameters_active > self.parameters_total:
            raise ValueError("parameters_active is more than parameters_total")
        if self.prefix_cache and not self.sees_right:
            raise ValueError("prefix_cache is for family masked_diffusion alone")
        needs = {
            "infill": self.fills_gaps,
            "edit": self.prompt.edit,
            "thinking": self.thinking,
        }
        for ability, need in needs.items():
            if ability in self.capabilities and not need:
                raise ValueError(f"capability {ability} has no template or marks")
        return self

    @model_validator(mode="after")
    def _asks_of_generate_what_it_offers(self) -> Self:
        if not self.self_driven:
            return self
        faults = {
            "mask_token": self.mask_token is not None,
            "block_lengths": self.trained_block_lengths != (self.block_length,),
            "prompt.infill": self.prompt.infill is not None,
            "prompt.edit": self.prompt.edit is not None,
            "defaults.strategy": self.defaults.strategy not in self.strategies,
            "capabilities": not {"thinking", "seed"}.issuperset(self.capabilities),
        }
        wrong = [name for name, fault in faults.items() if fault]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: not offered by family {self.family}")
        return self

    @property
    def paradigm(self) -> Paradigm:
        """How the model generates."""
        autoregressive = self.family == "autoregressive"
        return Paradigm.AUTOREGRESSIVE if autoregressive else Paradigm.DIFFUSION

    @property
    def trained_block_lengths(self) -> tuple[int, ...]:
        """Block lengths that a call may ask for."""
        return self.block_lengths or (self.block_length,)

    @property
    def self_driven(self) -> bool:
        """Whether the model comes with a generate of its own that runs it."""
        return self.family == "diffusion_gemma"

    @property
    def strategies(self) -> tuple[str, ...]:
        """Decoding strategies that a call may ask for."""
        return ("entropy_bound",) if self.self_driven else tuple(PARAMETER_OF)

    @property
    def sees_right(self) -> bool:
        """Whether the model sees what stands right of the answer."""
        return self.family == "masked_diffusion"

    @property
    def fills_gaps(self) -> bool:
        """Whether it can be asked for what stands between two texts."""
        return self.sees_right or self.prompt.infill is not None

    @property
    def control_tokens(self) -> tuple[str, ...]:
        """Tokens that no text of a caller may become."""
        marks = (self.thinking.open, self.thinking.close) if self.thinking else ()
        named = (self.eos_token, self.pad_token, self.mask_token, *marks)
        return tuple(token for token in named if token)


def read_card(folder: Path) -> ModelCard:
    """The card in ``folder``. Raises CheckpointError naming the file and each bad field."""
    path = folder / FILE
    try:
        return ModelCard.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        raise CheckpointError(f"{path}: {_faults(error)}") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON: {error}") from None


def _faults(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'card'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)
    )
