"""The options that describe a request, the same for every command that takes one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from services.cli.names import PriorityName, TaskName, parse_task

_UINT32_MAX = 2**32 - 1
_INT64_MAX = 2**63 - 1
_TASKS = f"What it is for: {', '.join(TaskName)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """A request as the command line gives it; None takes the server's default."""

    prompt: Annotated[
        str | None,
        typer.Argument(help="Text to continue or answer; '-' or nothing reads standard input."),
    ] = None
    task: Annotated[
        TaskName | None,
        typer.Option("--task", "-t", parser=parse_task, metavar="TASK", help=_TASKS),
    ] = None
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="Model; else the policy's.")
    ] = ""
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Infill: text before the gap.")
    ] = None
    suffix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Infill: text after the gap.")
    ] = None
    edit_text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Edit: the text to change.")
    ] = None
    instruction: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Edit: what to change.")
    ] = None
    schema: Annotated[
        str | None, typer.Option(metavar="FILE|JSON", help="JSON Schema that the answer must meet.")
    ] = None
    regex: Annotated[
        str | None,
        typer.Option(metavar="EXPRESSION", help="Expression that the whole answer must match."),
    ] = None
    choice: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A possible answer; give several.")
    ] = None
    template: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Text with gaps to fill: {{gap:N}}, N tokens at most."),
    ] = None
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=0, max=_UINT32_MAX, metavar="N", help="Most tokens to generate."),
    ] = None
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="0 (always the likeliest token) to 2.")
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=_INT64_MAX, metavar="N", help="The same seed gives the same text."),
    ] = None
    stop: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Text that ends the answer.")
    ] = None
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=0, max=_UINT32_MAX, metavar="N", help="Diffusion: most denoising steps per block."
        ),
    ] = None
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Diffusion: what a step commits.")
    ] = None
    threshold: Annotated[
        float | None, typer.Option(metavar="P", help="Diffusion: probability that commits a token.")
    ] = None
    think: Annotated[
        bool | None, typer.Option("--think/--no-think", help="Reason before the answer.")
    ] = None
    priority: Annotated[PriorityName | None, typer.Option(help="Place in queues.")] = None
    latency_budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time within which to answer.")
    ] = None
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Signal for routing rules.")
    ] = None


def takes_request(command: Callable[..., None]) -> Callable[..., None]:
    """Gives ``command``, whose first parameter is a RequestOptions, its fields as options."""
    names = [field.name for field in fields(RequestOptions)]

    @functools.wraps(command)
    def spread(**values: Any) -> None:
        command(RequestOptions(**{name: values.pop(name) for name in names}), **values)

    spread.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*_parameters(RequestOptions), *_own_parameters(command)]
    )
    spread.__annotations__ = {}
    return spread


def _parameters(options: type[RequestOptions]) -> list[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(options)
    ]


def _own_parameters(command: Callable[..., None]) -> list[inspect.Parameter]:
    signature = inspect.signature(command, eval_str=True)
    own = list(signature.parameters.values())[1:]
    return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
