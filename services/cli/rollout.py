"""`braid rollout`: a version's way into traffic, step by step."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from rich.table import Table
from rich.text import Text

from braid.config.v1 import config_pb2 as config
from braid.config.v1.config_pb2_grpc import ConfigServiceStub
from services.cli import rpc
from services.cli.addresses import (
    DEFAULT_STATE_DIR,
    AsJson,
    ConfigCenterAddress,
    StateDir,
    locate,
)
from services.cli.json_output import as_json
from services.cli.screen import screen

rollout = typer.Typer(no_args_is_help=True, help="Bring a version into traffic.")

Model = Annotated[str, typer.Argument(help="Name of the model.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="What for; shown in the changes.")]


Move = (
    config.PromoteRolloutRequest
    | config.PauseRolloutRequest
    | config.ResumeRolloutRequest
    | config.AbortRolloutRequest
)


@rollout.command("start")
def start(
    model: Model,
    version: Annotated[str, typer.Argument(help="Version to bring in.")],
    stable: Annotated[
        str, typer.Option(metavar="VERSION", help="Compare with it; else with the largest share.")
    ] = "",
    steps: Annotated[
        str, typer.Option(metavar="PERCENT,...", help="Shares of the steps.")
    ] = "1,5,25,50,100",
    hold: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Least time of each.")] = 60,
    min_sample: Annotated[int, typer.Option(min=1, help="Calls that each step needs.")] = 100,
    reason: Reason = "",
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Start with smoke tests, then step by step; a bad version is taken back by itself."""
    plan = config.RolloutPlan(steps=parse_steps(steps, hold))
    plan.guards.min_sample = min_sample
    request = config.StartRolloutRequest(
        model=model, candidate=version, stable=stable, plan=plan, reason=reason
    )
    _show_one(_call("StartRollout", request, config_center, state_dir), json)


@rollout.command("status")
def status(
    model: Annotated[str, typer.Argument(help="Only this model's.")] = "",
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Show where rollouts stand."""
    if model:
        request = config.GetRolloutRequest(model=model)
        _show_one(_call("GetRollout", request, config_center, state_dir), json)
        return
    answer = _call("ListRollouts", config.ListRolloutsRequest(), config_center, state_dir)
    if json:
        print(as_json(answer))
    else:
        screen().print(rollout_table(list(answer.rollouts)))


def _add_move(name: str, meaning: str, request_type: type[Move]) -> None:
    def move(
        model: Model,
        reason: Reason = "",
        json: AsJson = False,
        config_center: ConfigCenterAddress = None,
        state_dir: StateDir = DEFAULT_STATE_DIR,
    ) -> None:
        request = request_type(model=model, reason=reason)
        _show_one(_call(f"{name.title()}Rollout", request, config_center, state_dir), json)

    rollout.command(name, help=meaning)(move)


_add_move("promote", "Go to the next step, whatever the evidence.", config.PromoteRolloutRequest)
_add_move("pause", "Keep the shares as they are.", config.PauseRolloutRequest)
_add_move("resume", "Go on after a pause.", config.ResumeRolloutRequest)
_add_move("abort", "Put the old shares back.", config.AbortRolloutRequest)


def _call(method: str, request: Message, config_center: str | None, state_dir: Any) -> Any:
    return rpc.call(
        locate("config_center", config_center, state_dir),
        lambda channel: getattr(ConfigServiceStub(channel), method)(request, timeout=rpc.TIMEOUT_S),
    )


def _show_one(answer: Any, json: bool) -> None:
    if json:
        print(as_json(answer))
    else:
        screen().print(rollout_table([answer.rollout]))


def parse_steps(text: str, hold_s: float) -> list[config.RolloutStep]:
    """``"5,100"`` as steps of so many percent. Raises BadParameter."""
    hold = Duration()
    hold.FromMicroseconds(round(hold_s * 1e6))
    steps = []
    for part in text.split(","):
        if not (part.isascii() and part.isdigit() and 0 < int(part) <= 100):
            raise typer.BadParameter(f"{part!r} is not 1 to 100", param_hint="--steps")
        steps.append(config.RolloutStep(percent=int(part), hold=hold))
    return steps


def rollout_table(rollouts: list[config.Rollout]) -> Table:
    """One row a rollout."""
    table = Table("model", "candidate", "stable", "state", "step", "share", "since", "why")
    for it in rollouts:
        percent = it.plan.steps[it.step - 1].percent if it.step else 0
        table.add_row(
            Text(it.model),
            Text(it.candidate),
            Text(it.stable),
            config.RolloutState.Name(it.state).removeprefix("ROLLOUT_STATE_").lower(),
            f"{it.step} of {len(it.plan.steps)}",
            "0 %" if it.state == config.ROLLOUT_STATE_ABORTED else f"{percent} %",
            it.step_started.ToDatetime().strftime("%Y-%m-%d %H:%M:%S"),
            Text(it.reason),
        )
    return table
