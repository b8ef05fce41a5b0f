"""Scores that do not lie in [0, 1]: a declared range, a public map, refused or clipped."""

import itertools
import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heldout as ho
from heldout.data import sql
from heldout.data.scores import FURTHEST, ScoreMap
from heldout.errors import ArgumentError, InfiniteScore, MissingScore, ScoreOutOfRange
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.statistic import ScoreTable
from heldout.kernel.statistic import compute
from heldout.questions.counts import ThresholdCounts

AWKWARD = [
    *(-math.inf, -1.7976931348623157e308, -1e200, -1e16, -7.5, -1.0, -(2.0**-30), -5e-324, -0.0),
    *(0.0, 5e-324, 2.2250738585072014e-308, 1e-20, 0.1, 0.5, 1.0, 3.0, 1e15, 1e155, math.inf),
]
MAPS = [ScoreMap(), ScoreMap(0.5, 0.25), ScoreMap(-3, 1e100), ScoreMap(1e100, 1e-100)]


def dataset(scores: list[float], **options: Any) -> ho.Dataset:
    labels = [each % 2 for each in range(len(scores))]
    return ho.Dataset({"y": labels, "x": scores}, label="y", score="x", **options)


def counted(rows: ho.Dataset) -> list[float]:
    return [float(each) for each in rows._fetch("SELECT score FROM evaluated")["score"]]


@pytest.mark.parametrize("chosen", MAPS, ids=str)
def test_the_engine_gives_the_very_doubles_that_python_gives(chosen: ScoreMap) -> None:
    rows = dataset(AWKWARD, score_map=chosen, out_of_range="clip")
    assert counted(rows) == [chosen.image(each) for each in AWKWARD]


finite = st.floats(allow_nan=False, allow_infinity=False)
maps = st.builds(ScoreMap, st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))


@given(maps, finite, finite)
def test_the_map_keeps_the_order_and_stays_in_its_range(
    chosen: ScoreMap, a: float, b: float
) -> None:
    low, high = sorted((chosen.image(a), chosen.image(b)))
    assert -1 <= low <= high <= 1
    assert (a < b and chosen.image(a) <= chosen.image(b)) or a >= b


@given(maps, st.floats(-1e9, 1e9))
def test_the_map_is_z_over_one_plus_z_to_a_few_roundings(chosen: ScoreMap, x: float) -> None:
    z = (Fraction(x) - Fraction(chosen.centre)) / Fraction(chosen.scale)
    exact = z / (1 + abs(z))
    # One rounding of x - centre, relative to the larger of the two, and three of about 1.
    lost = Fraction(2) ** -52 * (
        1 + (abs(Fraction(x)) + abs(Fraction(chosen.centre))) / Fraction(chosen.scale)
    )
    assert abs(Fraction(chosen.image(x)) - exact) <= min(lost, 2) + Fraction(2) ** -51


@given(maps, st.floats(-1e3, 1e3))
def test_a_threshold_found_on_the_map_is_told_in_the_scores_unit(
    chosen: ScoreMap, z: float
) -> None:
    x = chosen.centre + z * chosen.scale
    near = 1e-9 * chosen.scale * (1 + abs(z)) ** 2 + 1e-9 * abs(chosen.centre)
    assert chosen.score(chosen.image(x)) == pytest.approx(x, abs=near)


def test_resolution_is_the_width_of_a_cell_in_the_scores_unit() -> None:
    chosen, cells = ScoreMap(2, 5), 2**16
    for x in (-300.0, -1.0, 2.0, 9.0, 700.0):
        step = chosen.resolution(x, cells=cells)
        image = chosen.image(x)
        assert abs(chosen.image(x + step) - image) == pytest.approx(2 / cells, rel=0.01)


def test_beyond_the_furthest_everything_is_one_score() -> None:
    chosen = ScoreMap(0, 1e100)
    assert chosen.image(FURTHEST) == chosen.image(1e308) == chosen.image(math.inf)
    assert chosen.score(1.0) == FURTHEST
    assert chosen.score(-1.00001) == -FURTHEST


def test_a_confusion_matrix_is_that_of_the_raw_scores() -> None:
    generator = np.random.default_rng(3)
    scores = np.round(generator.normal(0, 4, 500), 1).tolist()
    rows = dataset(scores, score_map=(0.3, 2))
    labels = np.arange(500) % 2
    for threshold in (-6.0, -0.1, 0.0, 0.3, 2.7):
        about = rows.description
        counted = about.counted_threshold(about.threshold(threshold))
        table = ThresholdCounts(thresholds=(counted,))
        called = np.array(scores) >= threshold
        expected = [
            int(np.sum((labels == label) & (called == above)))
            for label, above in itertools.product((0, 1), (False, True))
        ]
        assert unseal(compute(table, rows)).tolist() == expected


def test_releases_on_mapped_scores_speak_the_scores_unit() -> None:
    generator = np.random.default_rng(4)
    labels = generator.integers(0, 2, 3000)
    scores = generator.normal(2.0 * labels, 1.0) * 10
    rows = ho.Dataset({"y": labels, "x": scores}, label="y", score="x", score_map=(10, 10))
    session = ho.Session(rows, budget=ho.Budget(epsilon=1000))
    assert 0.89 < float(session.auc(epsilon=90)) < 0.95
    confusion = session.confusion(threshold=10, epsilon=90)
    assert confusion.threshold == 10
    curves = session.curves(epsilon=90)
    found = curves.threshold_for(recall=0.9)
    assert abs(found - np.quantile(scores[labels == 1], 0.1)) < 2
    assert abs(curves.confusion(10.0).recall - confusion.recall) < 0.05
    assert np.all(np.diff(curves.roc.thresholds) <= 0)
    assert confusion.as_dict()["parameters"]["score_map"] == [10.0, 10.0]
    with pytest.raises(ArgumentError, match="score_range"):
        session.brier(epsilon=1)
    with pytest.raises(ArgumentError, match="score_map"):
        session.mean_absolute_error(epsilon=1)


def test_out_of_range_is_refused_unless_it_is_declared_to_be_clipped() -> None:
    for score, error in ((1.5, ScoreOutOfRange), (math.inf, InfiniteScore)):
        with pytest.raises(error):
            dataset([0.5, score])
        assert counted(dataset([0.5, score], out_of_range="clip")) == [0.5, 1.0]
    assert counted(dataset([-9.0, -math.inf], score_range=(-2, 3), out_of_range="clip")) == [-2, -2]


def test_a_number_is_held_to_its_range_whatever_the_cell() -> None:
    cells = "(VALUES (-1.0::DOUBLE), (0.5), (7.0), (NULL), ('NaN'), ('inf')) AS cells(cell)"
    numbers = duckdb.sql(f"SELECT {sql.held_to('cell', 0.0, 1.0)} FROM {cells}").fetchall()
    assert [number for (number,) in numbers] == [0, 0.5, 1, 0, 0, 1]


def test_a_score_that_is_no_number_is_refused_all_the_same() -> None:
    options: tuple[dict[str, Any], ...] = ({"out_of_range": "clip"}, {"score_map": (0, 1)})
    for declared in options:
        with pytest.raises(MissingScore):
            dataset([0.5, math.nan], **declared)


def test_a_map_takes_any_finite_score_and_refuses_an_infinite_one() -> None:
    assert len(counted(dataset([1e308, -1e308], score_map=(0, 1)))) == 2
    with pytest.raises(InfiniteScore):
        dataset([0.5, -math.inf], score_map=(0, 1))


@pytest.mark.parametrize(
    "wrong", [(0,), (0, 0), (0, -1), (math.nan, 1), (0, math.inf), "logistic", (0, "x"), 3]
)
def test_a_map_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="score_map must"):
        dataset([0.5, 0.6], score_map=wrong)


def test_range_and_map_exclude_each_other_and_the_rule_has_two_values() -> None:
    with pytest.raises(ArgumentError, match="not both"):
        dataset([0.5], score_map=(0, 1), score_range=(0, 2))
    with pytest.raises(ArgumentError, match="out_of_range must"):
        dataset([0.5], out_of_range="warn")


def test_the_rows_have_one_budget_with_any_map() -> None:
    plain = dataset([0.1, 0.5, 0.9])
    assert dataset([0.1, 0.5, 0.9], score_map=(0, 1))._fingerprints == plain._fingerprints


def test_a_rival_is_mapped_like_the_score() -> None:
    rows = ho.Dataset(
        {"y": [0, 1, 0], "x": [1.0, 2.0, -3.0], "z": [1.0, -math.inf, math.inf]},
        label="y",
        score="x",
        rivals=["z"],
        score_map=(0, 1),
        out_of_range="clip",
    )
    rival = rows.with_rival("z")._fetch("SELECT rival FROM evaluated")["rival"]
    assert list(rival) == [0.5, -1.0, 1.0]


def test_the_score_table_of_mapped_scores_counts_every_row() -> None:
    rows = dataset(AWKWARD, score_map=(0, 1), out_of_range="clip")
    table = unseal(compute(ScoreTable(score_range=rows.score_range), rows))
    assert table.sum() == len(AWKWARD)
    assert table[: 2**16 + 1][0] >= 2
