"""What a folder's safetensors files hold, from their headers: not one weight is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from safetensors import SafetensorError, safe_open

from services.generation.card import CheckpointError

INDEX = "model.safetensors.index.json"
_FLOAT_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
_OTHER_BYTES = {"I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as its file's header has it."""

    shape: tuple[int, ...]
    dtype: str
    """safetensors' name: F32, BF16, ..."""
    file: str

    @property
    def count(self) -> int:
        """Numbers in it."""
        return prod(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether a model's dtype changes it."""
        return self.dtype in _FLOAT_BYTES

    @property
    def item_bytes(self) -> int:
        """Bytes of a number as stored; kinds that are none of the usual ones have one."""
        return _FLOAT_BYTES.get(self.dtype) or _OTHER_BYTES.get(self.dtype, 1)


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """By name, everything in the folder's safetensors files.

    Raises CheckpointError naming the file that cannot be read, a tensor that is
    stored twice, or what the index says otherwise.
    """
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise CheckpointError(f"{folder}: holds no .safetensors file")
    tensors: dict[str, StoredTensor] = {}
    for path in paths:
        for name, tensor in _header(path).items():
            if name in tensors:
                raise CheckpointError(f"{path}: {name} is in {tensors[name].file} as well")
            tensors[name] = tensor
    _check_index(folder / INDEX, tensors)
    return tensors


def _header(path: Path) -> dict[str, StoredTensor]:
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: StoredTensor(tuple(part.get_shape()), part.get_dtype(), path.name)
                for name, part in slices.items()
            }
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: {error}") from None


def _check_index(path: Path, tensors: Mapping[str, StoredTensor]) -> None:
    """transformers opens the files that the index names, so it names these and no others."""
    if not path.exists():
        return
    try:
        named = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        astray = [name for name, file in named.items() if _file_of(name, tensors) != file]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: {type(error).__name__}: {error}") from None
    missing = sorted(tensors.keys() - named.keys())
    if astray or missing:
        name = (astray or missing)[0]
        raise CheckpointError(
            f"{path}: {name} is in {_file_of(name, tensors)}, not in {named.get(name)}"
        )


def _file_of(name: str, tensors: Mapping[str, StoredTensor]) -> str:
    return tensors[name].file if name in tensors else "no file"
