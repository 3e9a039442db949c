"""Runs every benchmark, one process each: ``python -m tests.benchmarks [NAME ...]``.

Benchmarks print ratios between things measured in the same run; they assert
nothing, since the machine's speed is nobody's fault.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main(names: list[str]) -> int:
    """Runs the named benchmarks, or all; the first exit code that is not 0, else 0."""
    modules = sorted(path.stem for path in FOLDER.glob("bench_*.py"))
    unknown = [name for name in names if f"bench_{name}" not in modules]
    if unknown:
        known = ", ".join(module.removeprefix("bench_") for module in modules)
        print(f"no benchmark {', '.join(unknown)}; there are: {known}", file=sys.stderr)
        return 2
    chosen = [f"bench_{name}" for name in names] or modules
    codes = []
    for module in chosen:
        print(f"== {module.removeprefix('bench_')}", flush=True)
        codes.append(subprocess.run([sys.executable, "-m", f"{__package__}.{module}"]).returncode)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
