"""Settings that say where etcd is."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.chassis.settings import EtcdSettings, SettingError


def test_defaults() -> None:
    """Without any variable etcd is on this machine, in the clear, without a login."""
    settings = EtcdSettings.from_env({})
    assert settings.etcd_endpoints == ("127.0.0.1:2379",)
    assert not settings.etcd_tls
    assert settings.lease_ttl_s == 10


def test_several_endpoints() -> None:
    """Endpoints may be names, IPv6 addresses and URLs."""
    settings = EtcdSettings.from_env({"BRAID_ETCD": "etcd-0:2379, http://10.0.0.1:1/,[::1]:2379"})
    assert settings.etcd_endpoints == ("etcd-0:2379", "10.0.0.1:1", "[::1]:2379")


def test_tls(tmp_path: Path) -> None:
    """A CA, or an https endpoint, turns TLS on."""
    authority = tmp_path / "ca.crt"
    authority.touch()
    assert EtcdSettings.from_env({"BRAID_ETCD_CA": str(authority)}).etcd_tls
    assert EtcdSettings.from_env({"BRAID_ETCD": "https://etcd:2379"}).etcd_tls


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"BRAID_ETCD": "etcd"}, "BRAID_ETCD:"),
        ({"BRAID_ETCD": "etcd:0"}, "BRAID_ETCD:"),
        ({"BRAID_ETCD": "etcd:2379,"}, "BRAID_ETCD:"),
        ({"BRAID_ETCD": "etcd:99999"}, "BRAID_ETCD:"),
        ({"BRAID_ETCD_USER": "braid"}, "BRAID_ETCD_PASSWORD:"),
        ({"BRAID_ETCD_PASSWORD": "secret"}, "BRAID_ETCD_PASSWORD:"),
        ({"BRAID_ETCD_CA": "/no/such/file"}, "BRAID_ETCD_CA:"),
        ({"BRAID_ETCD_CERT": __file__}, "BRAID_ETCD_KEY:"),
        ({"BRAID_ETCD_KEY": __file__}, "BRAID_ETCD_KEY:"),
        ({"BRAID_LEASE_TTL_S": "1"}, "BRAID_LEASE_TTL_S:"),
    ],
)
def test_bad_settings(variables: dict[str, str], named: str) -> None:
    """What is wrong or lacks its other half is named, and no secret is shown."""
    with pytest.raises(SettingError, match=named) as caught:
        EtcdSettings.from_env(variables)
    assert "secret" not in str(caught.value)


def test_password_is_not_shown() -> None:
    """The password stays out of whatever prints the settings."""
    settings = EtcdSettings.from_env(
        {"BRAID_ETCD_USER": "braid", "BRAID_ETCD_PASSWORD": "s3cret-word"}
    )
    assert "s3cret-word" not in repr(settings) + str(settings.model_dump())
