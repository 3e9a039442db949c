"""API keys: how they are made, stored and checked.

A key is ``braid_<key id>_<secret>``. The id finds the record, the secret has 256
random bits. Because nobody can guess that, one fast hash under a salt is enough: a
slow one protects passwords that people choose, and would let anyone keep a router
busy with wrong keys.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from braid.config.v1 import config_pb2

_FORM = re.compile(r"braid_([0-9a-f]{16})_([A-Za-z0-9_-]{43})\Z", re.ASCII)
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class ApiKeyText:
    """A key as its caller has it, taken apart."""

    key_id: str
    secret: str


def new_key() -> tuple[str, config_pb2.ApiKey]:
    """A key for its caller, and the record of it."""
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    salt = secrets.token_bytes(_SALT_BYTES)
    record = config_pb2.ApiKey(key_id=key_id, salt=salt.hex(), hash=_hash(secret, salt))
    record.created_at.GetCurrentTime()
    return f"braid_{key_id}_{secret}", record


def parse_key(text: str) -> ApiKeyText | None:
    """The parts of a key; None for anything else."""
    found = _FORM.match(text)
    return ApiKeyText(*found.groups()) if found else None


def matches(key: ApiKeyText, record: config_pb2.ApiKey) -> bool:
    """Whether the record is this key's; takes as long for a wrong one."""
    return hmac.compare_digest(_hash(key.secret, bytes.fromhex(record.salt)), record.hash)


def same_text(one: str, other: str) -> bool:
    """Whether two secrets are the same; says nothing of either by the time it takes."""
    return hmac.compare_digest(one.encode(), other.encode())


def _hash(secret: str, salt: bytes) -> str:
    return hashlib.blake2b(secret.encode(), salt=salt, digest_size=32).hexdigest()
