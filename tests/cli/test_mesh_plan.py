"""Which processes a mesh has and where they listen."""

from __future__ import annotations

from services.cli.mesh_plan import plan_mesh, ports_needed
from services.cli.part_environment import inherited
from services.cli.ports import port_of


def test_ports_are_consecutive_and_all_different() -> None:
    """A mesh takes exactly the ports from its base on."""
    nodes = {"diffusion": 2, "ar": 1}
    plan = plan_mesh(nodes, 21000)
    addresses = [
        plan.config_center,
        plan.config_center_ops,
        plan.router,
        plan.router_admin,
        plan.router_ops,
        *(port for worker in plan.workers for port in (worker.address, worker.admin, worker.ops)),
    ]
    ports = {plan.etcd_port, plan.etcd_peer_port, *(int(port_of(one)) for one in addresses)}
    assert ports == set(range(21000, 21000 + ports_needed(nodes)))


def test_workers_are_numbered_within_their_group() -> None:
    """Node ids say the group and the number."""
    plan = plan_mesh({"diffusion": 2, "ar": 1}, 21000)
    assert [worker.node_id for worker in plan.workers] == ["diffusion-1", "diffusion-2", "ar-1"]


def test_group_without_workers() -> None:
    """A count of none leaves the group out."""
    plan = plan_mesh({"diffusion": 0, "ar": 1}, 21000)
    assert [worker.group for worker in plan.workers] == ["ar"]


def test_proxies_and_etcd_settings_stay_behind() -> None:
    """Parts talk over loopback whatever proxy the user has; other variables reach them."""
    env = {
        "http_proxy": "x",
        "HTTPS_PROXY": "x",
        "ETCD_NAME": "x",
        "BRAID_LOG_LEVEL": "debug",
        "PATH": "/bin",
    }
    assert inherited(env).keys() - {"GRPC_VERBOSITY"} == {"BRAID_LOG_LEVEL", "PATH"}
