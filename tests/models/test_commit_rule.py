"""Which tokens a step commits and replaces."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from deploy.models.commit_rule import commits, replacements

EOS = 1


def _commit(
    confidence: list[float], best: list[int], hidden: list[bool], threshold: float = 0.9
) -> list[bool]:
    chosen: list[bool] = commits(
        torch.tensor(confidence), torch.tensor(best), torch.tensor(hidden), EOS, threshold, 0.9
    ).tolist()
    return chosen


def test_confident_tokens_are_committed_together() -> None:
    """All positions above their threshold go in one step."""
    assert _commit([0.9, 0.99, 0.99], [5, 6, 7], [False, True, True]) == [False, True, True]


def test_the_likeliest_is_committed_when_none_is_confident() -> None:
    """A step always makes progress."""
    assert _commit([0.9, 0.3, 0.6], [5, 6, 7], [False, True, True]) == [False, False, True]


def test_distance_raises_the_threshold() -> None:
    """What is enough at the frontier is not enough further right."""
    assert _commit([0.0, 0.91, 0.91, 0.905], [5, 6, 7, 8], [False, True, True, True]) == [
        False,
        True,
        True,
        False,
    ]


def test_the_first_token_of_a_block_is_committed_at_once() -> None:
    """Its logits come from the block before, so waiting teaches nothing."""
    assert _commit([0.2, 0.95, 0.1], [5, 6, 7], [True, True, True])[0]


def test_an_end_token_waits_for_what_is_left_of_it() -> None:
    """The answer's length is not decided before its content."""
    assert _commit([0.9, 0.4, 0.99], [5, 6, EOS], [False, True, True]) == [False, True, False]


@given(data=st.data(), size=st.integers(1, 16))
def test_every_step_commits_something(data: st.DataObject, size: int) -> None:
    """Whatever the model says, a masked block becomes less masked."""
    confidence = data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    best = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    hidden = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    chosen = _commit(confidence, best, hidden)
    assert any(chosen) is any(hidden)
    assert all(masked for masked, taken in zip(hidden, chosen, strict=True) if taken)


def _replace(confidence: list[float], best: list[int], shown: list[int]) -> list[bool]:
    committed: Tensor = torch.ones(len(shown), dtype=torch.bool)
    return replacements(
        torch.tensor(confidence), torch.tensor(best), torch.tensor(shown), committed, 0.7
    ).tolist()


def test_a_beaten_token_is_replaced() -> None:
    """Another token above the threshold takes the place."""
    assert _replace([0.9, 0.8, 0.6], [5, 6, 7], [5, 9, 9]) == [False, True, False]


def test_the_first_token_is_never_rescored_in_its_block() -> None:
    """No forward of its block has logits for it."""
    assert _replace([0.99, 0.1], [6, 6], [5, 6]) == [False, False]
