"""Generates the stubs from the protos: ``python -m protos.generate [OUTPUT]``.

OUTPUT defaults to this folder. The stubs are committed as protoc writes them.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parent


def generate(output: Path) -> None:
    """Writes all stubs below ``output``; raises RuntimeError where protoc refuses."""
    protos = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("braid/**/*.proto"))
    code = protoc.main(
        [
            "protoc",
            f"--proto_path={ROOT}",
            f"--proto_path={files('grpc_tools') / '_proto'}",
            f"--python_out={output}",
            f"--pyi_out={output}",
            f"--grpc_python_out={output}",
            *protos,
        ]
    )
    if code != 0:
        raise RuntimeError(f"protoc ended with {code}")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
