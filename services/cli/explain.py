"""`braid explain`: where a request would go, and why, without sending it."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from braid.routing.v1 import routing_pb2 as routing
from braid.routing.v1.routing_pb2_grpc import RouterServiceStub
from services.cli import rpc
from services.cli.addresses import (
    DEFAULT_STATE_DIR,
    AsJson,
    RouterAdminAddress,
    StateDir,
    locate,
)
from services.cli.json_output import as_json
from services.cli.names import task_name
from services.cli.request import build_request
from services.cli.request_options import RequestOptions, takes_request
from services.cli.screen import screen
from services.cli.stdin import read_stdin


@takes_request
def explain(
    options: RequestOptions,
    json: AsJson = False,
    router_admin: RouterAdminAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Show how a request would be routed."""
    question = routing.ExplainRequest(request=build_request(options, read_stdin))
    answer = rpc.call(
        locate("router_admin", router_admin, state_dir),
        lambda channel: RouterServiceStub(channel).Explain(question, timeout=rpc.TIMEOUT_S),
    )
    if json:
        print(as_json(answer))
        return
    console = screen()
    console.print(Text(summary(answer)))
    console.print(candidate_table(answer))


def summary(answer: routing.ExplainResponse) -> str:
    """The decision in a few lines."""
    lines = [f"task     {task_name(answer.task)}", f"rule     {answer.rule}"]
    if answer.passed_rules:
        passed = ", ".join(f"{it.rule} ({it.condition})" for it in answer.passed_rules)
        lines.append(f"passed   {passed}")
    if answer.failure:
        return "\n".join([*lines, f"failure  {answer.failure}"])
    shares = ", ".join(
        f"{version} {share:.0%}" for version, share in sorted(answer.version_shares.items())
    )
    return "\n".join(
        [
            *lines,
            f"group    {answer.group} ({answer.reason})",
            f"version  {answer.model} {answer.version} (of {shares})",
            f"node     {answer.node_id}",
            *shape(answer),
        ]
    )


def shape(answer: routing.ExplainResponse) -> list[str]:
    """What the rule does to the call on its way, a line each."""
    lines = []
    if answer.HasField("timeout"):
        lines.append(f"timeout  {answer.timeout.ToTimedelta().total_seconds():g} s")
    for field, value in answer.overrides.ListFields():
        lines.append(f"at most  {field.name} {value}")
    return lines


def candidate_table(answer: routing.ExplainResponse) -> Table:
    """Every node that the rule's groups hold."""
    table = Table("node", "group", "version", "weight", "drain", "score", "eligible", "reason")
    for candidate in answer.candidates:
        table.add_row(
            Text(candidate.node_id),
            Text(candidate.group),
            Text(candidate.version),
            str(candidate.weight),
            f"{candidate.drain_seconds:.3f} s",
            f"{candidate.score:.3f}",
            "yes" if candidate.eligible else "no",
            Text(candidate.reason),
        )
    return table
