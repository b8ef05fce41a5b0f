"""The same integers from every engine, on data where engines are known to differ."""

import math
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import heldout as ho
from heldout import questions
from heldout.data.measured import RegressionTable
from heldout.kernel import Protection
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.statistic import RankedRows, RankedTable, ScoreTable
from heldout.kernel.regression import Axis, GridCounts
from heldout.kernel.statistic import BoundedSum, Statistic, compute, registered
from heldout.questions.classes import CallCounts
from heldout.questions.counts import ThresholdCounts

SMALLEST, SMALL = 5e-324, 2.2250738585072014e-308


def around(*values: float) -> list[float]:
    """Each value and the doubles just below and just above it."""
    found = []
    for value in values:
        found += [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]
    return found


def edges(low: float, high: float, cells: int, most: int = 40) -> list[float]:
    """Points of the grid and the middles between them, where a tie is rounded to even."""
    step = max(1, cells // most)
    points = [low + (high - low) * place / cells for place in range(0, cells + 1, step)]
    middles = [low + (high - low) * (place + 0.5) / cells for place in range(0, cells, step)]
    return around(*points, *middles)


def scores_within(low: float, high: float) -> list[float]:
    drawn = np.random.default_rng(17).uniform(low, high, 200).tolist()
    tiny = [SMALLEST, SMALL, SMALLEST * 3, 1e-300, 1e-170, 1e-160, 1e-150, 1e-20, -0.0, 0.0]
    tiny += [-each for each in tiny]
    found = [*edges(low, high, 4), *edges(low, high, 1000), *edges(low, high, 2**16), *tiny, *drawn]
    return [low, high, *(each for each in found if low <= each <= high)]


RANGES = [(0.0, 1.0), (-1.0, 3.0), (0.1, 0.7), (0.0, 1e150), (-1e-150, 1e-150), (0.0, 3e10)]


@cache
def rows(score_range: tuple[float, float]) -> pa.Table:
    scores = scores_within(*score_range)
    return pa.table(
        {
            "visit": pa.array([7 * place - 1000 for place in range(len(scores))], pa.int64()),
            "y": pa.array([place * place % 3 % 2 for place in range(len(scores))], pa.int32()),
            "p": pa.array(scores, pa.float64()),
        }
    )


def asked(score_range: tuple[float, float]) -> list[Statistic]:
    low, high = score_range
    middle = low + (high - low) / 2
    return [
        ThresholdCounts(thresholds=(middle,)),
        ThresholdCounts(thresholds=tuple(sorted({low, low + (high - low) / 3, middle, high}))),
        *(ScoreTable(score_range=score_range, cells=cells) for cells in (2, 4, 1000, 2**16)),
        *(
            BoundedSum(error=error, score_range=score_range, with_rest=True)
            for error in ("squared", "absolute", "log")
            if error != "log" or score_range == (0.0, 1.0)
        ),
    ]


@cache
def examples() -> list[Statistic]:
    """Of every statistic that the conformance suite takes apart: a new one is among them."""
    protection = Protection(neighbours="add-remove")
    questions.registered()  # families may hold statistics of their own
    return [each for kind in registered() for each in kind.examples(protection)]


def counted(table: Any, statistics: list[Statistic], **declared: Any) -> list[Any]:
    declared = {"label": "y", "score": "p", "row_key": "visit"} | declared
    dataset = ho.Dataset(table, **declared)
    return [unseal(compute(each, dataset)).tolist() for each in statistics]


@pytest.mark.parametrize("score_range", RANGES, ids=str)
def test_counts_and_sums_are_the_same(engine: Any, score_range: tuple[float, float]) -> None:
    table, statistics = rows(score_range), asked(score_range)
    statistics += examples() if score_range == (0.0, 1.0) else []
    declared = {"score_range": score_range}
    here = counted(table, statistics, **declared)
    there = counted(engine.hold(table), statistics, **declared)
    assert there == here


def test_the_tables_are_those_of_numpy() -> None:
    """Not only alike: right. Rounded half to even, as NumPy rounds."""
    table = rows((0.0, 1.0))
    scores, labels = np.array(table["p"]), np.array(table["y"])
    (found,) = counted(table, [ScoreTable(score_range=(0, 1), cells=1000)])
    place = labels * 1001 + np.rint(scores * 1000).astype(int)
    assert found == np.bincount(place, minlength=2002).tolist()


def test_scores_without_a_range_have_the_same_images(engine: Any) -> None:
    scores = [*scores_within(-50, 50), 1e150, -1e150, 1e300, -1e300, math.inf, -math.inf]
    table = pa.table(
        {"visit": range(len(scores)), "y": [i % 2 for i in range(len(scores))], "p": scores}
    )
    statistics: list[Statistic] = [
        ScoreTable(score_range=(-1, 1)),
        BoundedSum(error="squared", score_range=(-1, 1), with_rest=True),
    ]
    for score_map in ((0, 1), (0.1, 3.7), (-1e100, 1e-100)):
        declared = {"score_map": score_map, "out_of_range": "clip"}
        here = counted(table, statistics, **declared)
        assert counted(engine.hold(table), statistics, **declared) == here


def test_counts_of_classes_and_weights_are_the_same(engine: Any) -> None:
    places = range(60)
    table = pa.table(
        {
            "visit": places,
            "y": [("a", "b", "c")[each * each % 3] for each in places],
            "p": [each % 7 / 6 for each in places],
            "q": [each % 5 / 4 for each in places],
            "r": [each % 4 / 3 for each in places],
            "w": [each % 11 / 10 for each in places],
        }
    )
    declared: dict[str, Any] = {
        "score": None,
        "classes": ["a", "b", "c"],
        "scores": ["p", "q", "r"],
    }
    declared |= {"weight": "w", "largest_weight": 1}
    mean: dict[str, Any] = {"score_range": (0, 1), "with_rest": True, "classes": 3}
    statistics: list[Statistic] = [
        CallCounts(classes=3),
        CallCounts(classes=3, axes=("rank",), weighted=True),
        BoundedSum(error="squared", **mean),
        BoundedSum(error="squared", weighted=True, **mean),
        BoundedSum(error="log", weighted=True, **mean),
    ]
    here = counted(table, statistics, **declared)
    assert counted(engine.hold(table), statistics, **declared) == here


# --- columns of any type -------------------------------------------------------------------------

BIG = [2**53 + 1, 2**53 - 1, 2**62 + 1, 2**63 - 1, -(2**63), -(2**53) - 1, 0, 7]
WIDE = ["0.1", "0.3", "123456789012345678.12345678901234567891", "0.12345678901234567891"]
COLUMNS: dict[str, tuple[Any, tuple[float, float]]] = {
    "float32": (pa.array([0.1, 0.3, 0.7, 1e-40, 1.0, 0.5], pa.float32()), (0, 1)),
    "int16": (pa.array([0, 1, 1, 0, 1, 0], pa.int16()), (0, 1)),
    "int64": (pa.array(BIG, pa.int64()), (-1e19, 1e19)),
    "decimal": (
        pa.array([Decimal(each) for each in ("0.1", "0.25", "0.3", "0.9999", "1")]).cast(
            pa.decimal128(10, 4)
        ),
        (0, 1),
    ),
    "wide decimal": (
        pa.array([Decimal(each) for each in WIDE], pa.decimal128(38, 20)),
        (0, 2e17),
    ),
    "boolean": (pa.array([True, False, True, True]), (0, 1)),
    "text": (
        pa.array(["0.1", "1e-3", ".5", "1.", "+0.25", " 0.75 ", "-0", "1e-400", "5E-324"]),
        (0, 1),
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_scores_of_any_type_are_the_same_doubles(engine: Any, name: str) -> None:
    scores, score_range = COLUMNS[name]
    table = pa.table(
        {"visit": range(len(scores)), "y": [i % 2 for i in range(len(scores))], "p": scores}
    )
    declared: dict[str, Any] = {"label": "y", "score": "p", "row_key": "visit"}
    found = []
    for source in (table, engine.hold(table)):
        dataset = ho.Dataset(source, score_range=score_range, **declared)
        columns = dataset._fetch("SELECT score FROM evaluated ORDER BY 1")
        found.append([float(each).hex() for each in columns["score"]])
    here, there = ([each.replace("-0x0.0", "0x0.0") for each in side] for side in found)
    assert here == there


LABELS: dict[str, tuple[Any, Any, Any]] = {
    "boolean": (pa.array([True, False, True]), True, None),
    "boolean declared as a number": (pa.array([True, False, True]), 1, None),
    "double": (pa.array([0.5, -0.5, 0.5]), 0.5, -0.5),
    "decimal": (pa.array([Decimal("1.00"), Decimal("0.00"), Decimal("1.00")]), 1, None),
    "text": (pa.array(["yes", "no", "yes"]), "yes", "no"),
    "text of numbers": (pa.array(["1", "0", "1.0"]), 1, None),
    "text of truth": (pa.array(["TRUE", "false", "true"]), True, None),
    "big": (pa.array([2**62, -(2**62), 2**62], pa.int64()), 2**62, -(2**62)),
    "composed and decomposed": (pa.array(["\u00e9", "e\u0301", "\u00e9"]), "\u00e9", "e\u0301"),
    "beyond the basic plane": (pa.array(["\U0001f642", "\U0001f641", "\U0001f642"]),
                               "\U0001f642", "\U0001f641"),
    "case": (pa.array(["Yes", "yes", "Yes"]), "Yes", "yes"),
    "spaces": (pa.array(["a ", "a", "a "]), "a ", "a"),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_any_type_mean_the_same(any_engine: Any, name: str) -> None:
    labels, positive, negative = LABELS[name]
    table = pa.table({"visit": [1, 2, 3], "y": labels, "p": [0.25, 0.5, 0.75]})
    declared = {"positive": positive, "negative": negative}
    statistics: list[Statistic] = [ThresholdCounts(thresholds=(0.5,))]
    assert counted(any_engine.hold(table), statistics, **declared) == [[0, 1, 1, 1]]


def test_a_declared_rival_of_any_type_is_the_same_on_every_engine(engine: Any) -> None:
    """Whatever the rules let through: text, infinity and underflow among it."""
    rivals: dict[str, Any] = {
        "a": pa.array([0.5, 0.0, -1e308, math.inf, -math.inf, 2.0, 1e-320, 0.75]),
        "b": pa.array(["0.5", "1", "-0", "inf", "-inf", "1e999", "1e-999", "0.75"]),
        "c": pa.array([True, True, False, True, False, True, False, True]),
        "d": pa.array([2**63 - 1, 2, -(2**63), 0, 1, 0, 1, 0], pa.int64()),
        "e": pa.array([*map(Decimal, ("0.2", "0.1", "1e-20", "-3", "9e17", "0", "1", "0.3"))],
                      pa.decimal128(38, 20)),
    }  # fmt: skip
    table = pa.table({"visit": range(8), "y": [0, 1] * 4, "p": [0.1, 0.2, 0.3, 0.4] * 2} | rivals)
    on_grid = RankedTable("auc-difference", ScoreTable(score_range=(0, 1)))
    here, there = (
        ho.Dataset(
            source,
            label="y",
            score="p",
            row_key="visit",
            rivals=list(rivals),
            out_of_range="clip",
        )
        for source in (table, engine.hold(table))
    )
    for name in rivals:
        sides = [each.with_rival(name) for each in (here, there)]
        for statistic in (RankedRows("auc-difference"), on_grid):
            found = [unseal(compute(statistic, each)) for each in sides]
            assert found[0] == found[1], name


def test_two_models_on_the_grid_differ_as_their_exact_scores_do_where_these_lie_on_it() -> None:
    generator = np.random.default_rng(9)
    points = [generator.integers(0, 2**16 + 1, 400) / 2**16 for _ in range(2)]
    table = {"y": generator.integers(0, 2, 400), "p": points[0], "q": points[1]}
    rivals = ho.Dataset(table, label="y", score="p", rivals=["q"]).with_rival("q")
    on_grid = RankedTable("auc-difference", ScoreTable(score_range=(0, 1)))
    exact = unseal(compute(RankedRows("auc-difference"), rivals))
    assert unseal(compute(on_grid, rivals)) == exact


@pytest.mark.parametrize("metric", ["auc", "average-precision"])
def test_a_ranking_of_exact_scores_is_the_same(engine: Any, metric: str) -> None:
    table = rows((0.0, 1.0))
    found = [
        unseal(compute(RankedRows(metric), ho.Dataset(source, label="y", score="p",
                                                      row_key="visit")))
        for source in (table, engine.hold(table))
    ]  # fmt: skip
    assert found[0] == found[1]


def test_the_grid_of_residuals_is_the_same(engine: Any) -> None:
    values = [*edges(-2, 2, 16), SMALLEST, -SMALLEST, -0.0, 1e-300, 1e100, -1e100]
    table = pa.table(
        {
            "visit": range(len(values)),
            "y": pa.array(values),
            "x": pa.array([value * value % 3 for value in values]),
            "whole": pa.array([place % 5 for place in range(len(values))], pa.int32()),
        }
    )
    steps = tuple(place / 4 - 2 for place in range(17))
    grids = [
        GridCounts(axes=(Axis("residual", steps),)),
        GridCounts(axes=(Axis("residual", (0.0, 0.5, 1.0, 9.0), absolute=True),)),
        GridCounts(axes=(Axis("predicted", steps), Axis("residual", steps))),
    ]
    models: list[dict[str, Any]] = [
        {"predicted": "x"},
        {"coefficients": {"intercept": 0.125, "x": 0.1, "whole": -1 / 3}},
    ]
    for model in models:
        found = []
        for source in (table, engine.hold(table)):
            private = RegressionTable(source, observed="y", row_key="visit", **model)
            found.append([unseal(compute(each, private)).tolist() for each in grids])
        assert found[0] == found[1]
