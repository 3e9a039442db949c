"""Files that run code when they are loaded, by their names."""

from __future__ import annotations

from pathlib import PurePosixPath

_SUFFIXES = frozenset(
    (".bin", ".ckpt", ".dill", ".joblib", ".pickle", ".pkl", ".pt", ".pth", ".pt2")
)


def is_pickle(path: str) -> bool:
    """Whether a file of this name may hold Python objects; case does not matter."""
    return PurePosixPath(path).suffix.lower() in _SUFFIXES
