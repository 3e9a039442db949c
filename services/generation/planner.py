"""From a request to the job that the engine is asked for: every default filled in."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TypeVar

from services.chassis.errors import LimitExceeded, UnsupportedParameter
from services.generation.card import ModelCard
from services.generation.checkpoint import Checkpoint
from services.generation.denoising import plan_denoising
from services.generation.echo import echoes
from services.generation.grammar.compiler import Check, Form, FormCompiler
from services.generation.grammar.spans import MAX_SPANS, SpanForms
from services.generation.limits import Limits
from services.generation.prompt import PromptEncoder
from services.generation.template import read_template
from services.generation.types import (
    Constraint,
    Denoising,
    Edit,
    Infill,
    Input,
    Job,
    Paradigm,
    Prompt,
    Request,
    Thinking,
)

T = TypeVar("T")

MAX_SEED = 2**63 - 1
RESERVE = 0.05
"""Share of a call's time kept for the answer's way back, where what was measured is less."""
STEERED = ("autoregressive", "masked_block_diffusion")
"""Families whose sequences keep to an automaton; answers of others are judged when whole."""
RUNS = ("distance_threshold", "frontier_run", "static_quota")
"""Strategies of answers that are kept to a form: all settle it from the left."""
_ANSWER_SHARE = 4
"""An infill without max_new_tokens leaves a quarter of the context to its answer."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one request is answered.

    ``job`` is the first, often the only, sequence; an edit of spans goes on from
    it with ``edit``. ``check`` judges the whole answer, which it always passes if ``exact``.
    """

    job: Job
    truncated: bool = False
    check: Check | None = None
    edit: Edit | None = None
    shares: tuple[int, ...] = ()
    """Tokens for each span of ``edit``; an even share where there are none."""
    exact: bool = False
    """Whether automata alone keep the answer to its form."""
    spans: SpanForms | None = None
    """What the spans of ``edit`` are kept to, so that the whole has its form."""


class Planner:
    """Judges requests by one model's abilities and writes them as jobs."""

    def __init__(self, card: ModelCard, prompts: PromptEncoder, forms: FormCompiler) -> None:
        self._card = card
        self._prompts = prompts
        self._forms = forms

    def plan(self, request: Request, limits: Limits) -> Plan:
        """The plan under ``limits``.

        Raises UnsupportedParameter and LimitExceeded naming the field, before
        anything is computed.
        """
        self._refuse_unsupported(request)
        if request.constraint is not None and request.constraint.kind == "template":
            return self._template(request, request.constraint.value, limits)
        form = self._form(request.constraint)
        source, shares = request.input, tuple[int, ...]()
        edit = source if isinstance(source, Edit) and source.spans else None
        if edit:
            start, end = edit.spans[0]
            source = gap_of(edit, edit.text[:start], end)
            shares = self._lengths(request, edit, limits)
        self._refuse_unmeasured(request)
        job, truncated = self._job(_with_tokens(request, shares), source, limits)
        if edit and not shares and job.max_new_tokens < len(edit.spans):
            raise LimitExceeded.field("edit.spans", "are more than max_new_tokens")
        if form is None:
            return Plan(job, truncated, None, edit, shares)
        spans: SpanForms | None = None
        if self._card.family in STEERED and not job.thinking:
            _refuse_beside_form(job, request.denoising)
            if edit:
                spans = self._span_forms(request.constraint, form, edit, job)
            else:
                job = _kept_to(form, job)
        exact = form.exact and (job.automaton is not None or spans is not None)
        if job.drafts and not exact:
            raise UnsupportedParameter.field(
                "diffusion.drafts", "is not supported where the answer is judged before it is sent"
            )
        return Plan(job, truncated, form.check, edit, shares, exact, spans)

    def _template(self, request: Request, value: str, limits: Limits) -> Plan:
        """Every gap as an infill of its own, in order."""
        template = read_template(value)
        if not isinstance(request.input, Prompt):
            raise UnsupportedParameter.field(
                "constraint.template", "is only supported with a prompt: what to fill the gaps by"
            )
        tokens, asked = sum(template.tokens), request.sampling.max_new_tokens
        most = limits.max_new_tokens if asked is None else min(asked, limits.max_new_tokens)
        if tokens > most:
            raise _over("constraint.template", tokens, most)
        edit = template.as_edit(request.input.text)
        place = template.places[0]
        gap = gap_of(edit, edit.text[:place], place)
        job, truncated = self._job(_with_tokens(request, template.tokens), gap, limits)
        return Plan(job, truncated, None, edit, template.tokens)

    def gap(
        self, job: Job, source: Infill, max_new_tokens: int, limits: Limits
    ) -> tuple[Job, bool]:
        """``job`` for another gap of the same request, and whether its ends were cut."""
        room = limits.max_context - max_new_tokens
        encoded = self._prompts.encode(source, Thinking(), room)
        job = replace(
            job,
            echoes=echoes(source.suffix),
            prompt_ids=encoded.ids,
            suffix_ids=encoded.suffix,
            max_new_tokens=max_new_tokens,
        )
        return job, encoded.truncated

    def _span_forms(
        self, constraint: Constraint | None, form: Form, edit: Edit, job: Job
    ) -> SpanForms | None:
        """What the spans may hold; None where whole answers are judged instead.

        That is where there are many, and for documents that are not written as this
        service would write them. Raises LimitExceeded where no filling has the form.
        """
        tokens = job.max_new_tokens // len(edit.spans)
        spans = self._forms.spans(form, kept_texts(edit), tokens)
        judged = len(edit.spans) > MAX_SPANS or (constraint and constraint.kind == "json_schema")
        if spans is None and not judged:
            raise LimitExceeded.field(
                "edit.spans", f"no filling with {tokens} tokens each has the form asked for"
            )
        return spans

    def _lengths(self, request: Request, edit: Edit, limits: Limits) -> tuple[int, ...]:
        """Tokens for each span, where a span's length stands: as many as it had, unless told.

        Raises LimitExceeded where that is more than the limit.
        """
        if not self._card.sees_right or request.sampling.max_new_tokens is not None:
            return ()
        lengths = tuple(
            max(1, self._prompts.length(edit.text[start:end])) for start, end in edit.spans
        )
        if sum(lengths) > limits.max_new_tokens:
            raise _over("edit.spans", sum(lengths), limits.max_new_tokens)
        return lengths

    def _refuse_unmeasured(self, request: Request) -> None:
        """A gap before a suffix that stands where it stands needs a length."""
        source, given = request.input, request.sampling.max_new_tokens
        gap = isinstance(source, Infill) and bool(source.suffix)
        if self._card.sees_right and gap and given is None:
            raise UnsupportedParameter.field(
                "sampling.max_new_tokens",
                "must be set: this model fills a gap of just so many tokens before a suffix",
            )

    def _job(self, request: Request, source: Input, limits: Limits) -> tuple[Job, bool]:
        sampling = request.sampling
        most = _most_new_tokens(request, limits)
        encoded = self._prompts.encode(source, request.thinking, _room(source, most, limits))
        left = limits.max_context - len(encoded)
        if most is not None and most > left:
            raise LimitExceeded.field(
                "sampling.max_new_tokens",
                f"{most} and a prompt of {len(encoded)} tokens are over the context of "
                f"{limits.max_context}",
            )
        job = Job(
            request_id=request.request_id,
            prompt_ids=encoded.ids,
            suffix_ids=encoded.suffix,
            max_new_tokens=most or min(limits.max_new_tokens, left),
            temperature=_or(sampling.temperature, 0.0),
            top_p=_or(sampling.top_p, 1.0),
            top_k=_or(sampling.top_k, 0),
            seed=secrets.randbelow(MAX_SEED) if sampling.seed is None else sampling.seed,
            stop=sampling.stop,
            echoes=echoes(source.suffix) if isinstance(source, Infill) else (),
            priority=request.priority,
            arrived=request.arrived,
            deadline=request.deadline,
            answer_by=self._answer_by(request),
            thinking=encoded.thinking,
            max_thinking_tokens=_thinking_tokens(request, limits),
            denoising=plan_denoising(request.denoising, self._card, limits),
            drafts=request.denoising is not None and request.denoising.drafts,
        )
        return job, encoded.truncated

    def _answer_by(self, request: Request) -> float | None:
        """When what there is becomes the answer: early enough to reach its caller in time.

        For a model that can answer at any time the call's deadline counts as well.
        """
        by_deadline = self._card.paradigm is Paradigm.DIFFUSION
        ends = (request.answer_by, request.deadline if by_deadline else None)
        end = min((end for end in ends if end is not None), default=None)
        if end is None:
            return None
        return end - max(request.way_back_s, RESERVE * (end - request.arrived))

    def _form(self, constraint: Constraint | None) -> Form | None:
        return None if constraint is None else self._forms.compile(constraint)

    def _refuse_unsupported(self, request: Request) -> None:
        kind = request.constraint.kind if request.constraint else None
        if kind is not None and kind not in self._card.capabilities:
            raise UnsupportedParameter.field(f"constraint.{kind}", "is not supported by this model")
        if isinstance(request.input, Edit) and request.input.spans and not self._card.fills_gaps:
            raise UnsupportedParameter.field("edit.spans", "this model fills no gaps in a text")
        if self._card.self_driven:
            _refuse_steering(request)
        if request.thinking.enabled:
            fits = not isinstance(request.input, Infill | Edit)
            if self._card.thinking is None or not fits:
                raise UnsupportedParameter.field(
                    "thinking.enabled", "this model does not reason before such an answer"
                )


def _refuse_steering(request: Request) -> None:
    """A model that runs itself draws by a schedule, and reasons for as long, as it will."""
    for name in ("temperature", "top_p", "top_k"):
        if getattr(request.sampling, name) is not None:
            raise UnsupportedParameter.field(
                f"sampling.{name}", "this model draws by a schedule of its own"
            )
    if request.thinking.max_tokens is not None:
        raise UnsupportedParameter.field(
            "thinking.max_tokens", "this model ends its reasoning by itself"
        )


def planner_of(checkpoint: Checkpoint) -> Planner:
    """The planner of a model that has been read."""
    forms = FormCompiler(checkpoint.vocabulary, checkpoint.codec.encode)
    return Planner(checkpoint.card, PromptEncoder(checkpoint.card, checkpoint.codec), forms)


def _refuse_beside_form(job: Job, asked: Denoising | None) -> None:
    if asked and asked.strategy is not None and asked.strategy not in RUNS:
        raise UnsupportedParameter.field(
            "diffusion.strategy", f"must be one of {', '.join(RUNS)} beside a constraint"
        )
    if job.stop:
        raise UnsupportedParameter.field("sampling.stop", "is not supported beside a constraint")


def _kept_to(form: Form, job: Job) -> Job:
    shortest = form.automaton.shortest
    if shortest > job.max_new_tokens:
        raise LimitExceeded.field(
            "sampling.max_new_tokens",
            f"{job.max_new_tokens} do not hold the shortest answer of {shortest} tokens",
        )
    return replace(job, automaton=form.automaton, echoes=())


def kept_texts(edit: Edit) -> list[str]:
    """What is before, between and behind the spans."""
    borders = [0, *(border for span in edit.spans for border in span), len(edit.text)]
    return [edit.text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True)]


def _with_tokens(request: Request, shares: tuple[int, ...]) -> Request:
    """``request`` for the first of several gaps, whose tokens are given."""
    if not shares:
        return request
    return replace(request, sampling=replace(request.sampling, max_new_tokens=shares[0]))


def gap_of(edit: Edit, written: str, end: int) -> Infill:
    """The gap between ``written`` and the text from ``end`` on.

    What the caller asked for leads the text before the gap.
    """
    asked = f"{edit.instruction}\n" if edit.instruction else ""
    return Infill(asked + written, edit.text[end:])


def _most_new_tokens(request: Request, limits: Limits) -> int | None:
    asked = request.sampling.max_new_tokens
    if asked is not None and asked > limits.max_new_tokens:
        raise _over("sampling.max_new_tokens", asked, limits.max_new_tokens)
    return asked


def _thinking_tokens(request: Request, limits: Limits) -> int | None:
    asked = request.thinking.max_tokens
    if asked is not None and asked > limits.max_new_tokens:
        raise _over("thinking.max_tokens", asked, limits.max_new_tokens)
    return asked


def _room(source: Input, most: int | None, limits: Limits) -> int:
    """Tokens that the prompt may take: at least one is left to the answer."""
    if not isinstance(source, Infill):
        return limits.max_context - 1
    spare = min(limits.max_new_tokens, max(limits.max_context // _ANSWER_SHARE, 1))
    return limits.max_context - (most or spare)


def _over(field: str, asked: int, limit: int) -> LimitExceeded:
    return LimitExceeded.field(field, f"{asked} is over the limit of {limit}")


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
