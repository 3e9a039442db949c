"""`braid callers`: who may call the mesh, and how much."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from braid.config.v1 import config_pb2 as config
from braid.config.v1.config_pb2_grpc import ConfigServiceStub
from services.cli import rpc
from services.cli.addresses import (
    DEFAULT_STATE_DIR,
    AsJson,
    ConfigCenterAddress,
    StateDir,
    Target,
    locate,
)
from services.cli.caller_table import caller_table
from services.cli.failure import fail
from services.cli.json_output import as_json
from services.cli.names import TaskName, parse_task
from services.cli.screen import screen

callers = typer.Typer(no_args_is_help=True, help="Who may call, and how much.")

CallerId = Annotated[str, typer.Argument(metavar="CALLER", help="Id of the caller.")]


@callers.command("create")
def create_caller(
    caller: CallerId,
    operator: Annotated[bool, typer.Option("--operator", help="May use admin ports.")] = False,
    task: Annotated[
        list[TaskName] | None, typer.Option(parser=parse_task, help="A task it may ask for.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="A model it may use.")] = None,
    group: Annotated[list[str] | None, typer.Option(help="A node group it may use.")] = None,
    network: Annotated[
        list[str] | None, typer.Option(help="A network it may call from, e.g. 10.1.0.0/16.")
    ] = None,
    certificate_name: Annotated[
        list[str] | None, typer.Option(help="A name in client certificates that stands for it.")
    ] = None,
    requests_per_second: Annotated[float | None, typer.Option(help="Calls per second.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Calls at once.")] = None,
    tokens_per_minute: Annotated[int | None, typer.Option(min=1, help="Tokens.")] = None,
    no_key: Annotated[bool, typer.Option("--no-key", help="For a caller by certificate.")] = False,
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Create a caller and print its key, which is shown only now.

    Options of lists can be given more than once; without one everything is allowed.
    """
    record = config.Caller(
        caller_id=caller,
        role=config.ROLE_OPERATOR if operator else config.ROLE_CALLER,
        certificate_names=certificate_name or (),
        allowed=config.Allowed(
            tasks=[one.number for one in task or ()],
            models=model or (),
            groups=group or (),
            networks=network or (),
        ),
        quota=config.Quota(
            requests_per_second=requests_per_second,
            concurrency=concurrency,
            tokens_per_minute=tokens_per_minute,
        ),
    )
    request = config.PutCallerRequest(caller=record, new_key=not no_key, expected_revision=0)
    _put(locate("config_center", config_center, state_dir), request, json)


@callers.command("rotate")
def rotate_key(
    caller: CallerId,
    overlap: Annotated[
        int, typer.Option(min=0, metavar="SECONDS", help="How long the old key stays valid.")
    ] = 24 * 3600,
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Make a new key and print it; the old one stays valid for a while."""
    target = locate("config_center", config_center, state_dir)
    request = _change(target, caller, lambda record: None)
    request.new_key = True
    request.old_keys_valid_for.FromSeconds(overlap)
    _put(target, request, json)


def _switch(disabled: bool, doc: str) -> Callable[..., None]:
    """A command that sets whether a caller is disabled."""

    def switch(
        caller: CallerId,
        json: AsJson = False,
        config_center: ConfigCenterAddress = None,
        state_dir: StateDir = DEFAULT_STATE_DIR,
    ) -> None:
        def change(record: config.Caller) -> None:
            record.disabled = disabled

        target = locate("config_center", config_center, state_dir)
        _put(target, _change(target, caller, change), json)

    switch.__doc__ = doc
    return switch


callers.command("disable")(
    _switch(True, "Refuse every call of a caller, at once and until it is enabled.")
)
callers.command("enable")(_switch(False, "Serve a disabled caller again."))


@callers.command("list")
def list_callers(
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """List the callers; keys are not stored, so they cannot be shown."""
    answer = _listed(locate("config_center", config_center, state_dir))
    if json:
        print(as_json(answer))
    else:
        screen().print(caller_table(list(answer.callers)))


@callers.command("delete")
def delete_caller(
    caller: CallerId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Remove a caller; its keys end at once."""
    if not yes:
        typer.confirm(f"Remove {caller} with all its keys?", abort=True)
    answer = rpc.call(
        locate("config_center", config_center, state_dir),
        lambda channel: ConfigServiceStub(channel).DeleteCaller(
            config.DeleteCallerRequest(caller_id=caller), timeout=rpc.TIMEOUT_S
        ),
    )
    print(as_json(answer) if json else f"{caller}: removed at revision {answer.revision}")


def _change(
    target: Target, caller: str, change: Callable[[config.Caller], None]
) -> config.PutCallerRequest:
    """A request that changes a stored caller, unless somebody else does meanwhile."""
    answer = _listed(target)
    found = [record for record in answer.callers if record.caller_id == caller]
    if not found:
        fail(f"there is no caller {caller}")
    record = found[0]
    record.ClearField("keys")
    change(record)
    return config.PutCallerRequest(caller=record, expected_revision=answer.revisions[caller])


def _listed(target: Target) -> config.ListCallersResponse:
    answer: config.ListCallersResponse = rpc.call(
        target,
        lambda channel: ConfigServiceStub(channel).ListCallers(
            config.ListCallersRequest(), timeout=rpc.TIMEOUT_S
        ),
    )
    return answer


def _put(target: Target, request: config.PutCallerRequest, json: bool) -> None:
    """Stores a caller. A new key is all that goes to standard output, for scripts."""
    answer = rpc.call(
        target, lambda channel: ConfigServiceStub(channel).PutCaller(request, timeout=rpc.TIMEOUT_S)
    )
    if json:
        print(as_json(answer))
        return
    print(f"{request.caller.caller_id}: stored at revision {answer.revision}", file=sys.stderr)
    if answer.api_key:
        print("its new key, shown only now:", file=sys.stderr)
        print(answer.api_key)
