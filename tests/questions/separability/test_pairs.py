"""The separator of pairs of columns: what one row can move, what it costs, and what it finds."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.chances import louder

from heldout.data.two_tables import Table
from heldout.errors import ArgumentError
from heldout.kernel import Loss
from heldout.kernel.neighbours import Protection
from heldout.questions.separability.questions import Separability
from heldout.questions.separability.score import private_separability
from heldout.questions.separability.separator import SignProducts, Signs, columns_for

COPY = np.array([[0, 1, 0], [1, 0, 1], [2, 2, 2], [3, 0, 1], [0, 0, 3], [1, 1, 0]], dtype=float)
EXTREME = np.array([[9.0, 9.0, 9.0], [9.0, -9.0, 9.0], [-9.0, -9.0, -9.0], [np.nan, 9.0, 0.0]])


def table(rows) -> Table:
    rows = np.asarray(rows, dtype=float).reshape(-1, 3)
    return Table({str(i): rows[:, i] for i in range(3)}, {}, {}, rows=len(rows))


def statistic() -> SignProducts:
    signs = Signs.of(table(COPY), most=3)
    public = signs.products(signs.vectors(table(COPY)))
    return SignProducts(signs=signs, numbers=("0", "1", "2"), texts=(), public=public, expected=3)


def content(products: SignProducts, rows):
    rows = np.asarray(rows, dtype=float).reshape(-1, 3)
    none = np.ma.masked_all(len(rows), dtype=object)
    return products.read({**{f"c{i}": rows[:, i] for i in range(3)}, "split_key": none})


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_row_moves_the_sums_or_the_count_and_never_more_than_claimed(neighbours):
    products = statistic()
    moved = Protection(neighbours=neighbours).rows_moved
    attained = 0
    for base in itertools.combinations_with_replacement(range(len(EXTREME)), 4):
        here = content(products, EXTREME[list(base)])
        for new in range(len(EXTREME)):
            rows = [*base[:-1], new] if neighbours == "replace-one" else [*base, new]
            there = content(products, EXTREME[rows])
            left = Counter(row.tobytes() for row in here[1])
            left.subtract(row.tobytes() for row in there[1])
            held = sum(map(abs, left.values()))
            first = int(np.abs(here[0] - there[0]).sum())
            assert first <= (moved - held) * products.row
            attained = max(attained, first)
    assert attained >= (2 * 2 if neighbours == "replace-one" else products.row)
    assert attained <= products.sensitivity(Protection(neighbours=neighbours))


def test_signs_follow_from_their_row_alone():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 3))
    rows[rng.random((200, 3)) < 0.1] = np.nan
    signs = statistic().signs
    whole = signs.vectors(table(rows))
    assert set(np.unique(whole)) == {-1, 1}
    for start in (1, 7, 100):
        assert (signs.vectors(table(rows[start:])) == whole[start:]).all()


def test_a_column_is_cut_where_the_copy_divides_most_evenly():
    texts = np.array(["a"] * 5 + ["b"] * 3 + ["c"] * 2, dtype=object)
    copy = Table(
        {"mostly zero": np.array([0.0] * 6 + [1.0] * 4), "constant": np.ones(10)},
        {"t": texts},
        {},
        rows=10,
    )
    signs = Signs.of(copy, most=3)
    assert signs.columns == ("mostly zero", "t")  # what never varies has no pair
    assert signs.above == {"mostly zero": 0.0}
    assert signs.levels == {"t": frozenset({"a"})}


def test_the_number_of_columns_is_made_of_public_numbers():
    counts = [columns_for(Fraction(price), moved=2, expected=1500) for price in (0.01, 0.5, 100)]
    assert counts == [2, 12, 16]


def test_both_separators_cost_epsilon_once():
    rng = np.random.default_rng(3)
    truth, copy = rng.normal(size=(400, 3)), rng.normal(size=(400, 3))
    release = private_separability(truth, copy, epsilon="1/2")
    assert release.loss == Loss.pure(Fraction(1, 2))
    assert [part["first_scale"] for part in release.mechanism.values()][1] == "24"
    assert {"separability by columns", "separability by pairs"} < set(release.measures)
    content = release.as_dict()
    assert content["lower_bound"] is True
    assert "lower bound" in content["sees"]
    assert "lower bound" in str(release)
    assert "lower bound" in release._repr_html_()


def test_a_single_column_has_no_pairs_and_pays_for_none():
    rng = np.random.default_rng(4)
    truth, copy = ({"a": rng.normal(size=200)} for _ in range(2))
    release = private_separability(truth, copy, epsilon="1")
    assert "cannot see" in release.sees
    with pytest.raises(ArgumentError):
        private_separability(truth, copy, epsilon="1", sees="pairs")


def test_an_answer_by_the_first_rules_is_read_by_them():
    copy = {"numbers": {"a": [0.0, 1.0, 2.0] * 4, "b": [1.0, 0.0, 2.0] * 4}}
    question = Separability(epsilon="1", privatized=copy)
    from heldout.data.two_tables import Truth

    rows = {"a": [0.0, 1.0] * 30, "b": [1.0, 0.0] * 30}
    about = Truth(rows, numbers=("a", "b"), texts=(), expected_rows=60).description
    assert question.under(1).request(about).claim == "separability"
    assert question.request(about).claim == "joint-separability"


@pytest.mark.chance(louder(0, 3, 40))
def test_a_copy_with_shuffled_columns_is_told_from_the_truth():
    rng = np.random.default_rng(5)
    shared = rng.normal(size=(4000, 1))
    truth = shared + rng.normal(size=(4000, 5))
    copy = np.column_stack([rng.permutation(column) for column in truth.T])
    found = private_separability(truth, copy, epsilon="4")
    assert found.interval(0.9999)[0] > 0.1
    assert found.measures["separability by columns"].interval(1 - 1e-9)[0] < 0
