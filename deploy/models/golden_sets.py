"""The golden sets: held-out items of each task, and a second half nothing is chosen by."""

import json
from pathlib import Path
from typing import Any

from deploy.models.corpus.example import Example, input_message
from deploy.models.corpus.mixture import examples

KINDS = ("json", "json_new_names", "edit", "edit_new_names", "chain", "action", "infill")
ITEMS = 150
GOLDEN_SEED = 77
GOLDEN_FOLDER = Path(__file__).parent / "golden"


def as_item(example: Example, identity: str) -> dict[str, Any]:
    """One golden line."""
    item: dict[str, Any] = {
        "id": identity,
        "task": example.task,
        "input": input_message(example.input),
    }
    if example.schema:
        item["schema"] = example.schema
    return item | {"expect": example.answer, "check": example.check}


def golden_items(kind: str, split: str, count: int = ITEMS) -> list[dict[str, Any]]:
    """Distinct inputs of one kind, drawn from a split that training never sees."""
    seen: set[str] = set()
    items: list[dict[str, Any]] = []
    for example in examples(GOLDEN_SEED, split, shares={kind: 1}):
        key = json.dumps(input_message(example.input), sort_keys=True)
        if key in seen or example.thinking_off:
            continue
        seen.add(key)
        items.append(as_item(example, f"{kind}-{split}-{len(items):03d}"))
        if len(items) == count:
            return items
    raise AssertionError("the stream of examples is endless")


def write_golden_sets(folder: Path = GOLDEN_FOLDER) -> None:
    """`{kind}.jsonl` and `{kind}_holdout.jsonl`."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        for split, suffix in (("golden", ""), ("holdout", "_holdout")):
            lines = [json.dumps(item, ensure_ascii=False) for item in golden_items(kind, split)]
            (folder / f"{kind}{suffix}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_golden_set(
    kind: str, holdout: bool = False, folder: Path = GOLDEN_FOLDER
) -> list[dict[str, Any]]:
    """The items of one set."""
    path = folder / f"{kind}{'_holdout' if holdout else ''}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
