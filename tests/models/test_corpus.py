"""The generators and the split between training and golden sets."""

import json
import re
from itertools import islice

import jsonschema
import pytest

from deploy.models.check import check_output
from deploy.models.corpus import words
from deploy.models.corpus.action import axis_speed, controller_chunk
from deploy.models.corpus.example import input_from_message, input_message, split_of
from deploy.models.corpus.mixture import ALWAYS_TRAINED, DRAWS, examples
from deploy.models.golden_sets import KINDS, golden_items, read_golden_set


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("holdout", [False, True])
def test_golden_inputs_are_not_trained_on(kind: str, holdout: bool) -> None:
    """Every golden input falls into a split that the training stream leaves out."""
    splits = {split_of(input_from_message(i["input"])) for i in read_golden_set(kind, holdout)}
    assert splits == {"holdout" if holdout else "golden"}


def test_training_stream_leaves_golden_inputs_out() -> None:
    """What the training stream yields belongs to the training split."""
    drawn = [e for e in islice(examples(5), 2000) if e.kind not in ALWAYS_TRAINED]
    assert {split_of(e.input) for e in drawn} == {"train"}


def test_equal_seeds_give_equal_examples() -> None:
    """The corpus can be drawn again from its seed."""
    assert list(islice(examples(9), 50)) == list(islice(examples(9), 50))


def test_golden_sets_are_reproducible() -> None:
    """The files are what the generator writes."""
    assert golden_items("json", "golden", 20) == read_golden_set("json")[:20]


@pytest.mark.parametrize("kind", DRAWS)
def test_inputs_survive_the_contract_shape(kind: str) -> None:
    """An input written as a message reads back the same."""
    for example in islice(examples(3, shares={kind: 1}), 20):
        assert input_from_message(input_message(example.input)) == example.input


@pytest.mark.parametrize("kind", ["json", "json_new_names"])
def test_expected_documents_match_their_schemas(kind: str) -> None:
    """Every JSON answer validates against the schema that goes with it."""
    for example in islice(examples(4, shares={kind: 1}), 100):
        jsonschema.validate(json.loads(example.answer), json.loads(example.schema))


@pytest.mark.parametrize("kind", KINDS)
def test_the_expected_output_scores_right(kind: str) -> None:
    """Each golden item accepts its own expected output."""
    items = read_golden_set(kind)
    scores = [
        check_output(i["check"], i["expect"], i["expect"], i.get("schema", "")) for i in items
    ]
    assert all(s.right and s.valid for s in scores)


@pytest.mark.parametrize("kind", ["json_new_names", "edit_new_names"])
def test_new_names_are_in_no_pool(kind: str) -> None:
    """Neither input nor answer holds a name that the other kinds are made of."""
    known = {*words.FIRST_NAMES, *words.LAST_NAMES, *words.CITIES}
    for example in islice(examples(8, shares={kind: 1}), 100):
        text = f"{input_message(example.input)} {example.answer}"
        assert known.isdisjoint(re.findall(r"\w+", text))


def test_chains_compute_what_they_claim() -> None:
    """Each written step of a chain is true."""
    for example in islice(examples(6, shares={"chain": 1}), 100):
        for step in example.thinking.split("; "):
            left, right = step.split("=")
            assert eval(left) == int(right)


@pytest.mark.parametrize(("remaining", "speed"), [(0, 0), (1, 1), (3, 2), (-3, -2), (20, 4)])
def test_controller_halves_the_way_within_its_speed(remaining: int, speed: int) -> None:
    """Half the way that remains, at most the top speed."""
    assert axis_speed(remaining) == speed


def test_controller_grips_only_at_the_target() -> None:
    """The last action closes the gripper if the target was reached."""
    near, far = controller_chunk((0, 0, 0), (2, 0, 1)), controller_chunk((0, 0, 0), (30, 0, 0))
    assert (near[-1], far[-1]) == ("[grip]", "[open]")
