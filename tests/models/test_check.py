"""Scoring of outputs."""

import pytest

from deploy.models.check import Score, check_output

SCHEMA = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'


def test_key_order_and_spaces_do_not_matter() -> None:
    """JSON is compared as a value."""
    assert check_output("json", '{ "b":2, "a":1 }', '{"a":1,"b":2}').right


def test_text_that_is_no_json_is_invalid() -> None:
    """An open document is neither right nor valid."""
    assert check_output("json", '{"a":1', '{"a":1}') == Score(right=False, valid=False)


def test_a_document_outside_its_schema_is_invalid() -> None:
    """The schema is part of the form."""
    assert not check_output("json", '{"a":"1"}', '{"a":1}', SCHEMA).valid


def test_a_wrong_value_is_valid_but_not_right() -> None:
    """Form and content are told apart."""
    assert check_output("json", '{"a":2}', '{"a":1}', SCHEMA) == Score(right=False, valid=True)


def test_only_what_follows_the_chain_is_the_answer() -> None:
    """A number inside the chain does not count."""
    assert check_output("answer", "<think>3+4=7</think>7", "7").right
    assert not check_output("answer", "<think>3+4=7</think>8", "7").right


def test_a_chain_that_never_ends_has_no_valid_answer() -> None:
    """Without the closing token there is no number to read."""
    assert not check_output("answer", "<think>3+4=7", "7").valid


@pytest.mark.parametrize(
    ("output", "right"), [("[x+2][grip]", True), ("[x+3][grip]", True), ("[x+4][grip]", False)]
)
def test_a_move_may_differ_by_one(output: str, right: bool) -> None:
    """Within one step of the controller is near enough."""
    assert check_output("action", output, "[x+2][grip]").right is right


def test_a_chunk_of_other_length_is_invalid() -> None:
    """A chunk has a fixed form."""
    assert not check_output("action", "[x+2]", "[x+2][grip]").valid


def test_words_among_actions_are_invalid() -> None:
    """A controller must be able to read all of it."""
    assert not check_output("action", "go [x+2]", "[x+2]").valid


def test_exact_takes_no_near_miss() -> None:
    """A missing newline is a miss."""
    assert not check_output("exact", "return a", "return a\n").right


def test_unknown_checks_are_refused() -> None:
    """A typo in a golden set does not pass as a score."""
    with pytest.raises(ValueError, match="unknown check"):
        check_output("vibes", "a", "a")
