"""Adding up a golden set."""

from deploy.models.evaluate import Answer, figures, table

ITEMS = [{"check": "exact", "expect": "a"}, {"check": "exact", "expect": "b"}]


def test_shares_are_over_all_items() -> None:
    """One of two right is a half."""
    answers = [Answer("a", 1, 4, 0.5), Answer("x", 1, 2, 0.5)]
    row = figures("set", ITEMS, answers)
    assert (row.right, row.tokens_per_forward, row.tokens_per_second) == (0.5, 3.0, 6.0)


def test_empty_answers_have_their_own_column() -> None:
    """What an empty answer would score is shown beside the score."""
    row = figures("set", [{"check": "exact", "expect": ""}], [Answer("x", 1, 1, 1.0)])
    assert (row.right, row.empty_right) == (0.0, 1.0)


def test_table_has_a_line_for_each_set() -> None:
    """Head, rule and one line a set."""
    row = figures("set", ITEMS, [Answer("a", 1, 4, 0.5)] * 2)
    assert len(list(table([row, row]))) == 4
