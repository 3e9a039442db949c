"""Open only where nobody else can connect, or on purpose."""

from __future__ import annotations

import pytest

from services.chassis.security.access import AccessSettings
from services.chassis.settings import SettingError
from services.generation.settings import WorkerSettings

TLS = {"BRAID_TLS_CERTIFICATE": __file__, "BRAID_TLS_KEY": __file__}
WORKER = {"BRAID_GROUP": "g", "BRAID_MODEL": "m", "BRAID_VERSION": "v1"}
OUTSIDE = {"BRAID_HOST": "0.0.0.0"}
CALLERS = {"BRAID_ACCESS": "callers"}


@pytest.mark.parametrize(
    ("environ", "restricted"),
    [
        ({}, False),
        ({"BRAID_HOST": "::1"}, False),
        ({"BRAID_HOST": "localhost"}, False),
        (CALLERS, True),
        ({**OUTSIDE, "BRAID_ACCESS": "open"}, False),
        ({**OUTSIDE, **CALLERS, **TLS}, True),
        ({**OUTSIDE, **CALLERS, "BRAID_PLAINTEXT": "true"}, True),
    ],
)
def test_deliberate_access(environ: dict[str, str], restricted: bool) -> None:
    """Loopback is open unless told otherwise; elsewhere it has to be said."""
    assert AccessSettings.from_env(environ).restricted is restricted


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        (OUTSIDE, "BRAID_ACCESS"),
        ({"BRAID_HOST": "10.0.0.1", **TLS}, "BRAID_ACCESS"),
        ({"BRAID_HOST": "mesh.example"}, "BRAID_ACCESS"),
        ({**OUTSIDE, **CALLERS}, "BRAID_TLS_CERTIFICATE"),
        ({"BRAID_OPERATOR_KEY": "guessable"}, "BRAID_OPERATOR_KEY"),
    ],
)
def test_accidental_access(environ: dict[str, str], named: str) -> None:
    """A process that others could reach does not start open, nor with keys in plain text."""
    with pytest.raises(SettingError, match=named) as caught:
        AccessSettings.from_env(environ)
    assert "guessable" not in str(caught.value)


def test_worker_needs_mutual_tls() -> None:
    """A worker checks no callers, so that only certificates can keep them out."""
    environ = {**WORKER, **OUTSIDE, **CALLERS, **TLS}
    with pytest.raises(SettingError, match="BRAID_TLS_REQUIRE_CLIENT_CERTIFICATE"):
        WorkerSettings.from_env(environ)
    required = {"BRAID_TLS_REQUIRE_CLIENT_CERTIFICATE": "true", "BRAID_TLS_AUTHORITY": __file__}
    assert WorkerSettings.from_env({**environ, **required}).restricted
