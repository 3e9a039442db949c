"""`braid nodes`: the mesh as its router sees it."""

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
from services.cli.names import paradigm_name, state_name
from services.cli.screen import screen


def nodes(
    json: AsJson = False,
    router_admin: RouterAdminAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """List the nodes, and the values in etcd that were not taken."""
    answer = rpc.call(
        locate("router_admin", router_admin, state_dir),
        lambda channel: RouterServiceStub(channel).GetRoutingTable(
            routing.GetRoutingTableRequest(), timeout=rpc.TIMEOUT_S
        ),
    )
    if json:
        print(as_json(answer))
        return
    console = screen()
    console.print(node_table(answer))
    for line in notices(answer):
        console.print(Text(line))


def node_table(answer: routing.GetRoutingTableResponse) -> Table:
    """One row a node."""
    table = Table("node", "group", "paradigm", "model", "weight", "state", "running", "queued")
    table.add_column("drain", no_wrap=True)
    table.add_column("address", no_wrap=True)
    for entry in answer.nodes:
        table.add_row(
            Text(entry.node.node_id),
            Text(entry.node.group),
            paradigm_name(entry.node.paradigm),
            Text(f"{entry.node.model} {entry.node.version}"),
            str(entry.weight),
            Text(_state(entry)),
            str(entry.status.running),
            str(entry.status.queued),
            f"{entry.drain_seconds:.3f} s",
            Text(entry.node.address),
        )
    return table


def notices(answer: routing.GetRoutingTableResponse) -> list[str]:
    """What an operator should know beside the nodes."""
    lines = []
    if answer.stale:
        age = answer.age.ToTimedelta().total_seconds()
        lines.append(f"stale: etcd last answered {age:.0f} s ago; the last table is used")
    lines += [
        f"not taken: {rejected.key} at revision {rejected.revision}: {rejected.reason}"
        for rejected in answer.rejected
    ]
    lines += [f"doubtful: {finding_line(finding)}" for finding in answer.findings]
    return lines


def finding_line(finding: routing.Finding) -> str:
    """One finding, with the rule it is about where there is one."""
    rule = f" rule {finding.rule}:" if finding.rule else ""
    return f"{finding.key}:{rule} {finding.description}"


def _state(entry: routing.TableNode) -> str:
    state = state_name(entry.status.state) if entry.HasField("status") else "no status"
    return state if entry.routable else f"{state}, not routable: {entry.reason}"
