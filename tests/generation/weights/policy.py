"""How the tests fetch: in small ranges, with few retries."""

from __future__ import annotations

from services.generation.weights import FetchPolicy

POLICY = FetchPolicy(range_bytes=1024, parallel=4, attempts=3)
