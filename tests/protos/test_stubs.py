"""The committed stubs are what the protos say."""

from __future__ import annotations

from pathlib import Path

from protos.generate import ROOT, generate


def _stubs(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("braid/**/*_pb2*")
        if "__pycache__" not in path.parts
    }


def test_committed_stubs_match_the_protos(tmp_path: Path) -> None:
    """Generating anew gives byte for byte what is committed."""
    generate(tmp_path)
    assert _stubs(tmp_path) == _stubs(ROOT)
