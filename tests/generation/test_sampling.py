"""From logits to tokens: greedy, by chance, filtered, and the same in any company."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from services.generation.sampling import Draw, predict, uniform

WORDS = st.integers(min_value=0, max_value=2**63 - 1)


def random_logits(rows: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, 50, generator=torch.Generator().manual_seed(seed)) * 3


def draws(rows: int, temperature: float = 1.0, top_p: float = 1.0, top_k: int = 0) -> list[Draw]:
    return [Draw(temperature, top_p, top_k, uniform(1, 2, 3, row)) for row in range(rows)]


@given(seed=WORDS, block=WORDS, step=WORDS, position=WORDS)
def test_uniform_is_in_range_and_repeats(seed: int, block: int, step: int, position: int) -> None:
    """Luck is a function of its counters, from 0 to below 1."""
    luck = uniform(seed, block, step, position)
    assert 0 <= luck < 1
    assert luck == uniform(seed, block, step, position)


def test_uniform_is_even() -> None:
    """Neighbouring counters give numbers spread evenly over the range."""
    values = [
        uniform(seed, 0, step, p) for seed in range(10) for step in range(10) for p in range(100)
    ]
    counts = [sum(int(value * 10) == tenth for value in values) for tenth in range(10)]
    assert all(900 < count < 1100 for count in counts)


def test_greedy_takes_the_likeliest_token() -> None:
    """Without a draw the token is the argmax and its confidence its probability."""
    logits = random_logits(4)
    predictions = predict(logits.clone(), [None] * 4)
    assert predictions.drawn == predictions.best == logits.argmax(-1).tolist()
    assert predictions.drawn_confidence == pytest.approx(logits.softmax(-1).amax(-1).tolist())


def test_banned_tokens_are_never_chosen() -> None:
    """A banned token is taken neither by argmax nor by chance, be it ever so likely."""
    logits = random_logits(200)
    logits[:, 7] = 50.0
    predictions = predict(logits, [*[None] * 100, *draws(100, temperature=2.0)], banned=[7])
    assert 7 not in predictions.drawn + predictions.best


def test_a_row_is_drawn_the_same_in_any_company() -> None:
    """Tokens and their figures do not depend on the other rows or on their parameters."""
    logits, wishes = random_logits(6), [*draws(2), None, *draws(3, temperature=0.5, top_k=3)]
    wishes = [wish and Draw(wish.temperature, 0.9, wish.top_k, wish.uniform) for wish in wishes]
    spread = [True, True, True, False, True, True]
    together = predict(logits.clone(), wishes, spread=spread)
    for row in range(6):
        alone = predict(logits[row : row + 1].clone(), [wishes[row]], spread=[True])
        mine = together.part(row, row + 1)
        assert (alone.drawn, alone.drawn_confidence) == (mine.drawn, mine.drawn_confidence)
        if spread[row]:
            assert (alone.entropy, alone.rival) == (mine.entropy, mine.rival)
        else:
            assert math.isnan(mine.entropy[0])
            assert math.isnan(mine.rival[0])


def test_spread_is_the_entropy_and_the_likeliest_other_token() -> None:
    """Entropy in nats, banned tokens left out; the rival of a drawn token may be the likeliest."""
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125, 0.0]]).log().repeat(99, 1)
    logits[:, 4] = 50.0
    wishes = [None, *draws(98)]
    predictions = predict(logits, wishes, banned=[4], spread=[True] * 99)
    assert predictions.entropy == pytest.approx([1.75 * math.log(2)] * 99)
    assert predictions.rival[0] == pytest.approx(0.25)
    assert set(predictions.drawn) == {0, 1, 2, 3}
    for token, rival in zip(predictions.drawn, predictions.rival, strict=True):
        assert rival == pytest.approx(0.25 if token == 0 else 0.5)


def test_tokens_come_as_often_as_they_are_likely() -> None:
    """Frequencies over many positions follow the probabilities at that temperature."""
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).repeat(20_000, 1)
    drawn = predict(logits.clone(), draws(20_000, temperature=2.0)).drawn
    expected = (logits[0] / 2.0).softmax(-1)
    for token in range(4):
        assert drawn.count(token) / 20_000 == pytest.approx(expected[token].item(), abs=0.02)


def test_top_k_and_top_p_cut_the_tail() -> None:
    """top_k keeps so many tokens, top_p the fewest that reach the mass, at least one."""
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]]).repeat(500, 1)
    assert set(predict(logits.clone(), draws(500, 5.0, top_k=2)).drawn) == {0, 1}
    assert set(predict(logits.clone(), draws(500, 1.0, top_p=0.7)).drawn) == {0, 1}
    assert set(predict(logits.clone(), draws(500, 1.0, top_p=1e-6)).drawn) == {0}


def test_confidence_ignores_the_temperature() -> None:
    """The confidence of a drawn token is the model's own probability of it."""
    logits = random_logits(50)
    predictions = predict(logits.clone(), draws(50, temperature=2.0, top_p=0.8))
    expected = logits.softmax(-1)[range(50), predictions.drawn]
    assert predictions.drawn_confidence == pytest.approx(expected.tolist())


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_a_row_that_is_not_finite_says_so(poison: float) -> None:
    """Its confidence is NaN; the other rows do not notice."""
    logits = random_logits(3)
    expected = predict(logits.clone(), [None, *draws(2)])
    logits[1, 5] = poison
    predictions = predict(logits, [None, *draws(2)], spread=[True] * 3)
    assert math.isnan(predictions.best_confidence[1])
    assert math.isnan(predictions.entropy[1])
    assert math.isnan(predictions.rival[1])
    assert predictions.drawn[::2] == expected.drawn[::2]
