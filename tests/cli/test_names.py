"""Names of the contract as the command line writes them."""

from __future__ import annotations

import pytest
import typer

from braid.inference.v1 import inference_pb2 as inference
from services.cli.names import PriorityName, TaskName, paradigm_name, parse_task, task_name


def test_every_task_has_a_name() -> None:
    """The command line knows exactly the contract's tasks."""
    contract = set(inference.Task.values()) - {inference.TASK_UNSPECIFIED}
    assert {task.number for task in TaskName} == contract


def test_every_priority_has_a_name() -> None:
    """The command line knows exactly the contract's priorities."""
    contract = set(inference.Priority.values()) - {inference.PRIORITY_UNSPECIFIED}
    assert {priority.number for priority in PriorityName} == contract


@pytest.mark.parametrize(
    "text", ["text-editing", "text_editing", "TASK_TEXT_EDITING", "Text-Editing"]
)
def test_task_in_either_form(text: str) -> None:
    """A task may be written as the contract writes it."""
    assert parse_task(text) is TaskName.TEXT_EDITING


@pytest.mark.parametrize("text", ["", "editing", "task_unspecified"])
def test_unknown_task_lists_the_known(text: str) -> None:
    """A wrong task is refused with the list of right ones."""
    with pytest.raises(typer.BadParameter, match="code-completion"):
        parse_task(text)


def test_task_name_reads_back() -> None:
    """The name in a table is one that --task takes."""
    assert all(parse_task(task_name(task.number)) is task for task in TaskName)


def test_value_of_a_newer_contract_is_a_number() -> None:
    """An enum value that is not known here shows as its number."""
    assert paradigm_name(77) == "77"
