"""Free ports on loopback."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from services.cli.mesh_failure import NoFreePorts
from services.cli.ports import choose_base, first_taken, free_base


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_free_base_is_free() -> None:
    """Nothing listens on any of the ports that are found."""
    assert first_taken(free_base(5), 5) is None


def test_taken_port_is_found(taken: int) -> None:
    """The first port in use is told."""
    assert first_taken(taken - 1, 3) in (taken - 1, taken)


def test_wanted_base_with_a_taken_port_is_refused(taken: int) -> None:
    """A base whose range holds a port in use is refused, naming a port."""
    with pytest.raises(NoFreePorts, match=r"port \d+ is in use"):
        choose_base(2, taken)


def test_base_at_the_end_of_all_ports_is_refused() -> None:
    """A range past the last port is refused."""
    with pytest.raises(NoFreePorts, match="too few"):
        choose_base(10, 65530)
