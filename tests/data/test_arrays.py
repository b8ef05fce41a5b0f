"""A few arrays need no engine, and nobody can tell from the integers or the refusals."""

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import heldout as ho
from heldout.data.duckdb import (
    _NUMBERS,
    FEW_ROWS,
    TYPES,
    ArraysEngine,
    DuckDBEngine,
    _arrow_numbers,
    arrays_of,
    open_local,
)
from heldout.errors import HeldoutError
from heldout.kernel.noise.additive import unseal
from heldout.kernel.ranking.statistic import RankedRows, RankedTable, ScoreTable
from heldout.kernel.statistic import BoundedSum, Statistic, compute
from heldout.questions.counts import ThresholdCounts

RANGES = [(0.0, 1.0), (-1.0, 3.0), (0.1, 0.7)]


def columns(score_range: tuple[float, float] = (0.0, 1.0), *, count: int = 500) -> dict[str, Any]:
    generator = np.random.default_rng(12)
    low, high = score_range
    scores = np.round(low + (high - low) * generator.random(count), 3)
    ends = np.array([low, high, low, high])
    return {
        "y": generator.integers(0, 2, count + 4),
        "p": np.clip(np.append(ends, scores), low, high),
        "q": generator.random(count + 4),
    }


def asked(score_range: tuple[float, float]) -> list[Statistic]:
    table = ScoreTable(score_range=score_range)
    rest = [BoundedSum(error="squared", score_range=score_range, with_rest=True)]
    ranked = [RankedRows(each) for each in ("auc", "average-precision")]
    on_grid = [RankedTable("auc", table), ScoreTable(score_range=score_range, cells=64)]
    return [table, ThresholdCounts(thresholds=(0.2, 0.5)), *rest, *ranked, *on_grid]


def plain(found: Any) -> Any:
    return found.tolist() if hasattr(found, "tolist") else found


@pytest.mark.parametrize("score_range", RANGES, ids=str)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_arrays_give_the_integers_that_the_engine_gives(
    score_range: tuple[float, float], neighbours: str
) -> None:
    held = columns(score_range)
    declared: dict[str, Any] = {
        "label": "y",
        "score": "p",
        "score_range": score_range,
        "neighbours": neighbours,
    }
    here, there = (ho.Dataset(each, **declared) for each in (held, pa.table(held)))
    assert isinstance(here._engine, ArraysEngine)
    assert isinstance(there._engine, DuckDBEngine)
    for statistic in asked(score_range):
        first, second = (unseal(compute(statistic, each)) for each in (here, there))
        assert plain(first) == plain(second), statistic
    rivals = RankedRows("auc-difference")
    declared |= {"rivals": ["q"], "score_range": {"p": score_range, "q": (0, 1)}}
    here, there = (ho.Dataset(each, **declared) for each in (held, pa.table(held)))
    first, second = (unseal(compute(rivals, each.with_rival("q"))) for each in (here, there))
    assert first == second
    assert here.public_rows == there.public_rows
    assert here._fingerprints == there._fingerprints
    assert repr(here) == repr(there)


SPOILT: dict[str, dict[str, Any]] = {
    "third label": {"y": 2},
    "label below": {"y": -1},
    "NaN": {"p": math.nan},
    "infinite": {"p": math.inf},
    "above": {"p": math.nextafter(1, 2)},
    "below": {"p": -5e-324},
}


@pytest.mark.parametrize("name", SPOILT)
@pytest.mark.parametrize("out_of_range", ["refuse", "clip"])
def test_arrays_are_refused_as_the_engine_refuses(name: str, out_of_range: str) -> None:
    held = columns()
    for column, value in SPOILT[name].items():
        held[column][7] = value
    told = []
    for source in (held, pa.table(held)):
        try:
            ho.Dataset(source, label="y", score="p", out_of_range=out_of_range)
        except HeldoutError as error:
            told.append((type(error), str(error)))
        else:
            told.append((type(None), "taken"))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "declared",
    [
        {"score_map": (0, 1)},
        {"positive": 0},
        {"positive": True},
        {"unit": "q"},
        {"row_key": "p"},
        {"rivals": ["q"]},
        {"label": "p"},
        {"score": "y"},
        {"score": "none"},
    ],
    ids=str,
)
def test_whatever_is_declared_arrays_and_tables_are_one(declared: dict[str, Any]) -> None:
    held = columns()
    told: list[Any] = []
    for source in (held, pa.table(held)):
        try:
            dataset = ho.Dataset(source, **({"label": "y", "score": "p"} | declared))
        except HeldoutError as error:
            told.append((type(error), str(error)))
        else:
            statistic = ScoreTable(score_range=dataset.score_range)
            told.append((repr(dataset), unseal(compute(statistic, dataset)).tolist()))
    assert told[0] == told[1]


@pytest.mark.parametrize("kind", TYPES)
def test_a_type_is_the_one_that_the_engine_says(kind: str) -> None:
    arrays = {"y": np.array([0, 1], dtype=kind)}
    assert ArraysEngine(arrays).columns == open_local(arrays).columns


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"y": [0, 1]},
        {"y": np.array([])},
        {"y": np.array(["a"])},
        {"y": np.array([0]), "Y": np.array([1])},
        {"y": np.array([0]), "p": np.array([1, 2])},
        {"y": np.ma.masked_array([0, 1], mask=[0, 1])},
        {"y": np.zeros((2, 2))},
        {"": np.array([0])},
        {"a\0": np.array([0])},
        {3: np.array([0])},
        {"y": np.array([1.5], dtype=np.float16)},
        {"y": np.array([1], dtype=">i4")},
        {"y": np.zeros(FEW_ROWS + 1, dtype=np.int8)},
        {f"c{i}": np.array([0]) for i in range(64)},
    ],
    ids=lambda each: str(each)[:30],
)
def test_what_is_not_plain_or_not_few_goes_to_the_engine(source: Any) -> None:
    assert arrays_of(source) is None


def test_a_one_off_score_opens_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("an engine was opened")

    monkeypatch.setattr(duckdb, "connect", refuse)
    truth, score = [0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.6, 0.3, 0.9, 0.1]
    for function in (ho.roc_auc_score, ho.average_precision_score):
        assert 0 <= float(function(truth, score, epsilon="1")) <= 1
    assert 0 <= ho.roc_curve(truth, score, epsilon="1").auc <= 1


def test_what_is_done_to_the_arrays_afterwards_changes_nothing() -> None:
    held = columns()
    rows = ho.Dataset(held, label="y", score="p")
    before = unseal(compute(RankedRows("auc"), rows))
    held["y"][:] = 0
    held["p"][:] = 0.5
    assert unseal(compute(RankedRows("auc"), rows)) == before
    assert unseal(compute(ThresholdCounts(thresholds=(0.5,)), rows)).sum() == 504
    assert "array" not in repr(vars(rows)["_cached"])


def test_numbers_are_the_same_columns_as_arrow_makes_of_them() -> None:
    arrays = {name: np.arange(-3, 4).astype(name)[::2] for name in _NUMBERS}
    arrays["nan"] = np.array([np.nan, np.inf, -0.0, 1.0])
    arrays["bool"] = (np.arange(23) % 3 == 0)[::2]
    ours = {name: _arrow_numbers(values) for name, values in arrays.items()}
    assert all(isinstance(column, pa.Array) for column in ours.values())
    for name, values in arrays.items():
        theirs = pa.array(values)
        assert ours[name].type == theirs.type, name
        assert ours[name].null_count == theirs.null_count == 0
        assert ours[name].equals(theirs) or name == "nan"
        np.testing.assert_array_equal(
            *(each.to_numpy(zero_copy_only=False) for each in (ours[name], theirs))
        )
    others = [np.ma.array([1, 2]), np.array(["a"]), np.zeros((2, 2)), [1, 2]]
    others.append(np.arange(3, dtype=">i4"))
    assert all(_arrow_numbers(values) is values for values in others)
