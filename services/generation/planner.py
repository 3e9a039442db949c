"""From a request to the job that the engine is asked for: every default filled in."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TypeVar

from services.chassis.errors import LimitExceeded, UnsupportedParameter
from services.generation.budgets import (
    answer_by,
    most_new_tokens,
    over,
    room,
    thinking_tokens,
)
from services.generation.card import ModelCard
from services.generation.checkpoint import Checkpoint
from services.generation.denoising import plan_denoising
from services.generation.echo import echoes
from services.generation.gaps import gap_of, kept_texts
from services.generation.grammar.compiler import Form, FormCompiler
from services.generation.grammar.spans import MAX_SPANS, SpanForms
from services.generation.limits import Limits
from services.generation.plan import Plan
from services.generation.prompt import PromptEncoder
from services.generation.refusals import (
    refuse_beside_form,
    refuse_unmeasured,
    refuse_unsupported,
)
from services.generation.template import read_template
from services.generation.types import (
    Constraint,
    Edit,
    Infill,
    Input,
    Job,
    Prompt,
    Request,
    Thinking,
)

T = TypeVar("T")

MAX_SEED = 2**63 - 1
STEERED = ("autoregressive", "masked_block_diffusion")
"""Families whose sequences keep to an automaton; answers of others are judged when whole."""


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
        refuse_unsupported(self._card, request)
        if request.constraint is not None and request.constraint.kind == "template":
            return self._template(request, request.constraint.value, limits)
        form = self._form(request.constraint)
        source, shares = request.input, tuple[int, ...]()
        edit = source if isinstance(source, Edit) and source.spans else None
        if edit:
            start, end = edit.spans[0]
            source = gap_of(edit, edit.text[:start], end)
            shares = self._lengths(request, edit, limits)
        refuse_unmeasured(self._card, request)
        job, truncated = self._job(_with_tokens(request, shares), source, limits)
        if edit and not shares and job.max_new_tokens < len(edit.spans):
            raise LimitExceeded.field("edit.spans", "are more than max_new_tokens")
        if form is None:
            return Plan(job, truncated, None, edit, shares)
        spans: SpanForms | None = None
        if self._card.family in STEERED and not job.thinking:
            refuse_beside_form(job, request.denoising)
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
            raise over("constraint.template", tokens, most)
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
            raise over("edit.spans", sum(lengths), limits.max_new_tokens)
        return lengths

    def _job(self, request: Request, source: Input, limits: Limits) -> tuple[Job, bool]:
        sampling = request.sampling
        most = most_new_tokens(request, limits)
        encoded = self._prompts.encode(source, request.thinking, room(source, most, limits))
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
            answer_by=answer_by(self._card, request),
            thinking=encoded.thinking,
            max_thinking_tokens=thinking_tokens(request, limits),
            denoising=plan_denoising(request.denoising, self._card, limits),
            drafts=request.denoising is not None and request.denoising.drafts,
        )
        return job, encoded.truncated

    def _form(self, constraint: Constraint | None) -> Form | None:
        return None if constraint is None else self._forms.compile(constraint)


def planner_of(checkpoint: Checkpoint) -> Planner:
    """The planner of a model that has been read."""
    forms = FormCompiler(checkpoint.vocabulary, checkpoint.codec.encode)
    return Planner(checkpoint.card, PromptEncoder(checkpoint.card, checkpoint.codec), forms)


def _kept_to(form: Form, job: Job) -> Job:
    shortest = form.automaton.shortest
    if shortest > job.max_new_tokens:
        raise LimitExceeded.field(
            "sampling.max_new_tokens",
            f"{job.max_new_tokens} do not hold the shortest answer of {shortest} tokens",
        )
    return replace(job, automaton=form.automaton, echoes=())


def _with_tokens(request: Request, shares: tuple[int, ...]) -> Request:
    """``request`` for the first of several gaps, whose tokens are given."""
    if not shares:
        return request
    return replace(request, sampling=replace(request.sampling, max_new_tokens=shares[0]))


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
