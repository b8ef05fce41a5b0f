"""The private separability: what one row can move, what it costs, and what it finds."""

import itertools
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from heldout.data.two_tables import Table, Truth
from heldout.errors import ArgumentError, BudgetExceeded, MissingColumn
from heldout.kernel import Budget, Ledger, Loss, price
from heldout.kernel.noise.disjoint import Disjoint
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import Sealed, compute
from heldout.questions.separability import questions as question
from heldout.questions.separability.questions import ridge_for
from heldout.questions.separability.score import private_separability
from heldout.questions.separability.separator import Recipe, Separator, called_true

PRIVATIZED = np.array([[0, 1], [1, 0], [2, 2], [3, 0], [0, 0], [1, 1], [4, 2], [2, 0]], dtype=float)
EXTREME = np.array([[0.0, 0.0], [100.0, -100.0], [-100.0, 100.0], [1.0, np.nan], [3.0, 0.0]])


def statistic(*, expected: int, ridge: Fraction = Fraction(1, 8), rows=PRIVATIZED) -> Separator:
    table = Table({"0": rows[:, 0], "1": rows[:, 1]}, {}, {}, rows=len(rows))
    recipe = Recipe.of(table)
    vectors, out = recipe.vectors(table)
    return Separator(
        recipe=recipe, numbers=("0", "1"), texts=(), public=vectors[~out], expected=expected,
        ridge=ridge,
    )  # fmt: skip


def content(separator: Separator, rows, keys=None):
    """Coefficients on the lattice, and the rows held out."""
    rows = np.asarray(rows, dtype=float).reshape(-1, 2)
    none = np.ma.masked_all(len(rows), dtype=object) if keys is None else np.array(keys)
    return separator.read({"c0": rows[:, 0], "c1": rows[:, 1], "split_key": none})


def moved_between(first, second):
    """How many rows left or arrived between two tables of vectors."""
    left = Counter(row.tobytes() for row in first)
    left.subtract(row.tobytes() for row in second)
    return sum(map(abs, left.values()))


@pytest.mark.parametrize("change", ["replace", "add"])
def test_a_row_moves_the_coefficients_or_the_count_and_never_more_than_claimed(change):
    separator = statistic(expected=2)
    moved = 2 if change == "replace" else 1
    largest = 0.0
    for base in itertools.combinations_with_replacement(range(len(EXTREME)), 3):
        here = content(separator, EXTREME[list(base)])
        for new in range(len(EXTREME)):
            rows = [*base[:-1], new] if change == "replace" else [*base, new]
            there = content(separator, EXTREME[rows])
            first = int(np.abs(here[0] - there[0]).sum())
            held = moved_between(here[1], there[1])
            # a rows of the training half and b of the other: each moves its own part alone.
            assert first <= (moved - held) * separator.row + separator.slack
            if held == moved:
                assert first <= separator.slack
            largest = max(largest, first / separator.row / moved)
    assert largest > 0.15  # a bound a seventh as large would fail


def test_a_unit_that_leaves_and_another_that_arrives_move_no_more_than_their_rows():
    separator, rng = statistic(expected=4), np.random.default_rng(7)
    for _ in range(40):
        stay = EXTREME[rng.integers(0, 5, 4)]
        sides = []
        for person in ("left", "arrived"):
            count = int(rng.integers(0, 4))
            own = EXTREME[rng.integers(0, 5, count)]
            keys = ["one", "one", "two", "two", *[f"{person}{_}"] * count]
            sides.append((content(separator, np.vstack([stay, own]), keys), count))
        (here, gone), (there, come) = sides
        held = moved_between(here[1], there[1])
        most = (gone + come - held) * separator.row + separator.slack
        assert np.abs(here[0] - there[0]).sum() <= most


def test_the_solver_reaches_the_minimum_that_the_proof_needs():
    separator = statistic(expected=2)
    rng = np.random.default_rng(1)
    for rows in (np.empty((0, 4)), rng.normal(size=(500, 4))):
        true = rows / np.maximum(1, np.sqrt((rows**2).sum(axis=1)))[:, None]
        found = separator.minimum(true)
        assert np.linalg.norm(separator.gradient(true, found)) <= float(separator.tolerance)
        near = found + 1e-3 * rng.normal(size=(20, 4))
        assert all(
            _objective(separator, true, found) < _objective(separator, true, n) for n in near
        )


def _objective(separator, true, at):
    loss = np.log1p(np.exp(-(true @ at))).sum() / (2 * separator.expected)
    loss += np.log1p(np.exp(separator.public @ at)).mean() / 2
    return loss + float(separator.ridge) / 2 * at @ at


def test_vectors_stay_in_the_unit_ball_and_follow_from_their_row_alone():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(300, 2)) * 10.0 ** rng.integers(-300, 300, (300, 2))
    recipe = statistic(expected=2).recipe
    table = Table({"0": rows[:, 0], "1": rows[:, 1]}, {}, {}, rows=300)
    vectors, _ = recipe.vectors(table)
    assert np.all((vectors**2).sum(axis=1) <= 1)
    for start in (1, 7, 100):
        part = Table({"0": rows[start:, 0], "1": rows[start:, 1]}, {}, {}, rows=300 - start)
        assert recipe.vectors(part)[0].tobytes() == vectors[start:].tobytes()


def test_units_stay_together_and_keep_at_most_their_rows():
    rows = {
        "0": np.arange(60.0) % 4,
        "1": np.arange(60.0) % 3,
        "who": [f"p{i % 6}" for i in range(60)],
    }
    separator = statistic(expected=20)
    truth = Truth(rows, numbers=("0", "1"), texts=(), expected_rows=60, unit="who", rows_per_unit=3)
    _, held = unseal(compute(separator, truth))
    assert len(held) % 3 == 0
    assert len(held) <= 18
    assert truth.public_rows is None


def test_both_answers_cost_epsilon_once_and_the_ledger_says_so(tmp_path):
    rng = np.random.default_rng(3)
    truth, noisy = rng.poisson(1, (500, 3)), rng.poisson(3, (500, 3))
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    release = private_separability(
        truth, noisy, epsilon="1/2", ledger=ledger, budget=Budget(epsilon=1)
    )
    assert price(release._drawn.request.event()) == release.loss == Loss.pure(Fraction(1, 2))
    assert str(release.receipt.charge) == "epsilon 0.5"
    private_separability(truth, noisy, epsilon="1/2", ledger=ledger)
    with pytest.raises(BudgetExceeded):
        private_separability(truth, noisy, epsilon="1/2", ledger=ledger)


def test_however_the_rows_that_move_are_split_the_losses_add_up_to_epsilon():
    for moved, row, slack in itertools.product((1, 2, 8), (7, 1000), (0, 3, 50)):
        both = Disjoint(
            epsilon=Fraction(1, 2), moved=moved, first_row=row, first_slack=slack,
            dimensions=(3, 2), then=lambda a, b: b,
        )  # fmt: skip
        losses = [
            (a * row + slack) / both.first.scale + (moved - a) / both.second.scale
            for a in range(moved + 1)
        ]
        assert max(losses) == both.epsilon == price(both.event()).epsilon


@pytest.mark.chance(1.1e-06, "gamma tails of 4,000 draws at 8%, twice")
def test_the_drawn_noise_has_the_law_of_the_two_parts():
    zeros = np.zeros(4000, dtype=np.int64)
    both = Disjoint(
        epsilon=Fraction(1), moved=2, first_row=4, first_slack=1, dimensions=(4000, 4000),
        then=lambda a, b: b,
    )  # fmt: skip
    first, second = both.sample(Sealed((zeros, zeros)))
    for drawn, scale in ((first, 10), (second, 20 / 9)):
        ratio = np.exp(-1 / scale)
        mean = 2 * ratio / (1 - ratio**2)
        assert np.abs(drawn).mean() == pytest.approx(mean, rel=0.08)


@pytest.mark.chance(1e-7)
def test_a_separator_finds_noise_on_empty_cells_and_nothing_where_there_is_none():
    rng = np.random.default_rng(5)
    truth = rng.poisson(0.3, (6000, 4))
    noisy = truth + rng.laplace(0, 2, truth.shape).clip(0)
    found = private_separability(truth, noisy, epsilon="4")
    low, high = found.interval()
    assert 0 < low < found.value < high  # about .55, and now and then .2
    again = rng.poisson(0.3, (5000, 4))
    alike = private_separability(truth, again, epsilon="1", neighbours="add-remove")
    low, high = alike.interval(0.9999999)
    assert low < 0 < high
    assert set(alike.as_dict()["coefficients"]) >= {"0", "1", "2", "3", "constant"}


def test_true_cells_of_another_kind_count_as_missing_and_nothing_fails():
    truth = {"a": ["x", None, "1"] * 40, "b": ["new", "p", None] * 40, "extra": [1] * 120}
    public = {"a": [1.0, 2.0, 3.0, 4.0] * 30, "b": ["p", "q"] * 60}
    assert -1 <= private_separability(truth, public, epsilon="1").value <= 1
    with pytest.raises(MissingColumn):
        private_separability({"a": [1.0]}, public, epsilon="1")


def test_the_count_is_of_rows_called_true_and_of_the_others():
    rows = np.array([[1.0, 0], [0, 1], [-1, 0]])
    assert called_true(np.array([1.0, -1.0]), rows).tolist() == [1, 2]


def test_the_ridge_is_made_of_public_numbers():
    assert ridge_for(Fraction(1), moved=2, expected=10**9, dimension=9) == question.FLATTEST
    assert ridge_for(Fraction(1, 10**6), moved=2, expected=5, dimension=9) == question.STEEPEST


def test_a_smaller_copy_makes_no_row_heavier_than_the_proof_allows():
    """The truth may have 16 rows for each row that it was opened beside, not for each asked of."""
    truth = {"a": np.arange(40.0), "u": [f"p{row}" for row in range(40)]}
    dataset = Truth(truth, numbers=("a",), texts=(), expected_rows=30, unit="u")
    for rows, expected in ((2, 15), (30, 15), (50, 25)):
        asked = question.Separability(
            epsilon="1", privatized={"numbers": {"a": np.linspace(0, 1, rows).tolist()}}
        )
        assert asked.request(dataset.description).statistic.expected == expected


def test_words_that_a_server_reads_open_no_file(tmp_path: Path) -> None:
    from heldout.questions.separability.questions import Columns

    file = tmp_path / "copy.csv"
    file.write_text("a\n1\n2\n", encoding="ascii")
    assert Columns().from_command([str(file)], "privatized")["numbers"] == {"a": (1.0, 2.0)}
    with pytest.raises(ArgumentError):
        Columns().from_words([str(file)], "privatized")
