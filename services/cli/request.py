"""From the options of a command to the request that is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer
from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2 as inference
from services.cli.request_options import RequestOptions

FROM_STDIN = "-"


def build_request(
    options: RequestOptions, read_stdin: Callable[[], str]
) -> inference.GenerateRequest:
    """The request that ``options`` describe. Raises BadParameter naming the option.

    Values are left to the server to judge; only what cannot be put into a
    request is refused here. ``read_stdin`` is called if the text is to come from
    there.
    """
    try:
        request = _input(options, read_stdin)
        request.model = options.model
        _add_choice_of_node(request, options)
        _add_sampling(request, options)
        _add_diffusion(request, options)
        _add_constraint(request, options)
        if options.think is not None:
            request.thinking.enabled = options.think
            request.thinking.include = options.think
    except UnicodeEncodeError:
        raise typer.BadParameter("the text is not valid UTF-8") from None
    return request


def read_schema(given: str) -> str:
    """The schema itself, whether ``given`` is it or names its file."""
    if given.lstrip()[:1] in ("{", "[") or given.strip() in ("true", "false"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise typer.BadParameter(f"{given}: {reason}", param_hint="--schema") from None


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """``["a=1", "b=2"]`` as a dict. Raises BadParameter naming ``option``."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint=option)
        if key in parsed:
            raise typer.BadParameter(f"{key!r} is given twice", param_hint=option)
        parsed[key] = value
    return parsed


def _input(options: RequestOptions, read_stdin: Callable[[], str]) -> inference.GenerateRequest:
    infill = options.prefix is not None or options.suffix is not None
    edit = options.edit_text is not None or options.instruction is not None
    if (options.prompt is not None) + infill + edit > 1:
        raise typer.BadParameter("give a prompt, or --prefix/--suffix, or --edit-text; not several")
    if infill:
        gap = inference.Infill(prefix=options.prefix or "", suffix=options.suffix or "")
        return inference.GenerateRequest(infill=gap)
    if edit:
        return inference.GenerateRequest(edit=_edit(options))
    if options.prompt is None or options.prompt == FROM_STDIN:
        return inference.GenerateRequest(prompt=read_stdin())
    return inference.GenerateRequest(prompt=options.prompt)


def _edit(options: RequestOptions) -> inference.Edit:
    if options.edit_text is None:
        raise typer.BadParameter("needs --edit-text", param_hint="--instruction")
    if options.instruction is None:
        raise typer.BadParameter("needs --instruction", param_hint="--edit-text")
    return inference.Edit(text=options.edit_text, instruction=options.instruction)


def _add_choice_of_node(request: inference.GenerateRequest, options: RequestOptions) -> None:
    """What routing and queues go by."""
    if options.task is not None:
        request.task = options.task.number
    if options.priority is not None:
        request.priority = options.priority.number
    if options.latency_budget is not None:
        request.latency_budget.CopyFrom(_duration(options.latency_budget))
    request.labels.update(parse_pairs(options.label or [], "--label"))


def _add_sampling(request: inference.GenerateRequest, options: RequestOptions) -> None:
    if options.max_new_tokens is not None:
        request.sampling.max_new_tokens = options.max_new_tokens
    if options.temperature is not None:
        request.sampling.temperature = options.temperature
    if options.seed is not None:
        request.sampling.seed = options.seed
    if options.stop:
        request.sampling.stop.extend(options.stop)


def _add_constraint(request: inference.GenerateRequest, options: RequestOptions) -> None:
    given = (options.schema, options.regex, options.choice or None, options.template)
    if sum(form is not None for form in given) > 1:
        raise typer.BadParameter("give one of --schema, --regex, --choice and --template")
    if options.schema is not None:
        request.constraint.json_schema = read_schema(options.schema)
    if options.regex is not None:
        request.constraint.regex = options.regex
    if options.choice:
        request.constraint.choice.options.extend(options.choice)
    if options.template is not None:
        request.constraint.template = options.template


def _add_diffusion(request: inference.GenerateRequest, options: RequestOptions) -> None:
    if options.max_steps is not None:
        request.diffusion.max_steps = options.max_steps
    if options.strategy is not None:
        request.diffusion.strategy = options.strategy
    if options.threshold is not None:
        request.diffusion.confidence_threshold = options.threshold


def _duration(seconds: float) -> Duration:
    duration = Duration()
    try:
        duration.FromNanoseconds(round(seconds * 1e9))
    except (ValueError, OverflowError):
        raise typer.BadParameter("is not a time", param_hint="--latency-budget") from None
    return duration
