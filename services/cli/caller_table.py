"""Callers as a table."""

from __future__ import annotations

from datetime import UTC

from rich.table import Table
from rich.text import Text

from braid.config.v1 import config_pb2 as config
from services.cli.names import task_name


def caller_table(found: list[config.Caller]) -> Table:
    """One row a caller."""
    table = Table("caller", "role", "state", "keys", "allowed", "quota")
    for record in found:
        table.add_row(
            Text(record.caller_id),
            "operator" if record.role == config.ROLE_OPERATOR else "caller",
            "disabled" if record.disabled else "enabled",
            Text("\n".join(map(_key_line, record.keys)) or "none"),
            Text(_allowed_lines(record.allowed) or "everything"),
            _quota_lines(record.quota) or "no limit",
        )
    return table


def _key_line(key: config.ApiKey) -> str:
    if not key.HasField("expires_at"):
        return key.key_id
    return f"{key.key_id} until {key.expires_at.ToDatetime(UTC):%Y-%m-%d %H:%M} UTC"


def _allowed_lines(allowed: config.Allowed) -> str:
    lists = {
        "tasks": [task_name(task) for task in allowed.tasks],
        "models": allowed.models,
        "groups": allowed.groups,
        "from": allowed.networks,
    }
    return "\n".join(f"{name}: {', '.join(items)}" for name, items in lists.items() if items)


def _quota_lines(quota: config.Quota) -> str:
    words = {
        "requests_per_second": "calls/s",
        "concurrency": "at once",
        "tokens_per_minute": "tokens/min",
    }
    fields = [field for field in words if quota.HasField(field)]
    return "\n".join(f"{getattr(quota, field):g} {words[field]}" for field in fields)
