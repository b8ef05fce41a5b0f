"""Bad rows are refused by every engine with the same error, and no name or text is code."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import heldout as ho
from heldout import errors
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import compute
from heldout.questions.counts import ThresholdCounts

CANARY = 0.8675309


def table(**columns: Any) -> pa.Table:
    plain = {"visit": pa.array([1, 2, 3]), "y": pa.array([1, 0, 1]),
             "p": pa.array([0.5, CANARY, 0.25])}  # fmt: skip
    return pa.table(plain | {name: pa.array(values) for name, values in columns.items()})


BAD: dict[str, tuple[pa.Table, dict[str, Any], type[errors.HeldoutError]]] = {
    "no such column": (table(), {"score": "z"}, errors.MissingColumn),
    "case counts": (table(), {"label": "Y"}, errors.MissingColumn),
    "NULL label": (table(y=[1, None, 0]), {}, errors.MissingLabel),
    "NaN label": (table(y=[1.0, math.nan, 0.0]), {}, errors.UnknownLabel),
    "third label": (table(y=[1, 8675309, 0]), {}, errors.UnknownLabel),
    "text label": (table(y=["1", "x8675309", "0"]), {}, errors.UnknownLabel),
    "a space more": (
        table(y=["yes", "yes ", "no"]),
        {"positive": "yes", "negative": "no"},
        errors.UnknownLabel,
    ),
    "NULL score": (table(p=[0.5, None, CANARY]), {}, errors.MissingScore),
    "NaN score": (table(p=[0.5, math.nan, CANARY]), {}, errors.MissingScore),
    "text score": (table(p=["0.5", "x8675309", "1"]), {}, errors.MissingScore),
    "number of Java": (table(p=["0.5", "1d", "0x1p3"]), {}, errors.MissingScore),
    "long text score": (table(p=["0.5", "9" * 5000, "1"]), {}, errors.HeldoutError),
    "infinite score": (table(p=[0.5, math.inf, CANARY]), {}, errors.InfiniteScore),
    "infinite text": (table(p=["0.5", "-inf", "1"]), {}, errors.InfiniteScore),
    "text beyond doubles": (table(p=["0.5", "1e999", "1"]), {}, errors.InfiniteScore),
    "score above": (table(p=[0.5, math.nextafter(1, 2), 1]), {}, errors.ScoreOutOfRange),
    "score below": (table(p=[0.5, -5e-324, 1]), {}, errors.ScoreOutOfRange),
    "decimal above": (
        table(p=[Decimal("0.50"), Decimal("1.01"), Decimal("0.00")]),
        {},
        errors.ScoreOutOfRange,
    ),
    "NULL score, clipped": (
        table(p=[0.5, None, CANARY]),
        {"out_of_range": "clip"},
        errors.MissingScore,
    ),
    "NULL unit": (table(u=["a", None, "b"]), {"unit": "u"}, errors.MissingUnit),
    "NULL key": (table(visit=[1, None, 3]), {}, errors.MissingUnit),
    "copied key": (table(visit=["8675309", "8675309", "2"]), {}, errors.DuplicateRowKey),
    "no rows": (table().slice(0, 0), {}, errors.EmptyTable),
    "two names": (
        pa.table([[1], [1], [0.5], [0.5]], names=["visit", "y", "p", "P"]),
        {},
        errors.UnreadableTable,
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_refused_with_the_same_error(any_engine: Any, name: str) -> None:
    rows, options, error = BAD[name]
    source = any_engine.hold(rows)
    with pytest.raises(errors.HeldoutError) as caught:
        ho.Dataset(source, **({"label": "y", "score": "p", "row_key": "visit"} | options))
    assert issubclass(type(caught.value), error)
    assert caught.value.__context__ is None
    assert "8675309" not in str(caught.value)


@pytest.mark.parametrize(
    ("rival", "error"),
    [
        ([0.5, None, 0.5], errors.MissingScore),
        ([0.5, math.nan, 0.5], errors.MissingScore),
        ([0.5, math.inf, 0.5], errors.InfiniteScore),
        ([0.5, 1.5, 0.5], errors.ScoreOutOfRange),
        (["0.5", "high", "0.5"], errors.MissingScore),
    ],
    ids=str,
)
def test_a_declared_rival_is_validated_like_the_first_score(
    any_engine: Any, rival: list[Any], error: type[errors.DataError]
) -> None:
    source = any_engine.hold(table(sound=pa.array([0.5] * 3), rival=pa.array(rival)))
    declared = {"label": "y", "score": "p", "row_key": "visit"}
    with pytest.raises(error, match="'rival'"):
        ho.Dataset(source, **declared, rivals=["sound", "rival"])
    with pytest.raises(errors.MissingColumn):
        ho.Dataset(source, **declared, rivals=["elsewhere"])
    session = ho.Session(
        ho.Dataset(source, **declared, rivals=["sound"]), budget=ho.Budget(epsilon=1)
    )
    assert -1 <= session.compare(score="sound", epsilon=1).value <= 1


@pytest.mark.parametrize("rivals", ["p", ["p", "p"], [3], 7, [["p"]]], ids=str)
def test_rivals_are_a_list_of_columns(rivals: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="rivals must be a list"):
        ho.Dataset({"y": [0, 1], "p": [0.1, 0.2]}, label="y", score="p", rivals=rivals)


def test_one_class_alone_is_no_error(any_engine: Any) -> None:
    dataset = ho.Dataset(any_engine.hold(table(y=[1, 1, 1])), label="y", score="p", row_key="visit")
    assert unseal(compute(ThresholdCounts(thresholds=(2.0,)), dataset)).tolist() == [0, 0, 3, 0]


HOSTILE = [
    *('a"b; DROP TABLE x--', "a'b", "a`b", "SELECT", " ", "-", "?", "%s", "{name}", "a.b", "*"),
    *("a\\b", "\\", "$1", "${spark.app.name}", "label", "evaluated", "held", "drawn", "年龄"),
    *("\u202eevil", "🙂", "a\nb", "a--b", "a/*b*/", ":a", "p); --", "heldout_query"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_column_may_have_any_name(any_engine: Any, name: str) -> None:
    names = [f"{name}k", name, f"{name}.", f"{name}_"]
    columns = [pa.array([1, 2, 3, 4]), pa.array([1, 0, 0, 1]), pa.array([0.9, 0.2, 0.6, 0.4]),
               pa.array(["u", "v", "w", "w"])]  # fmt: skip
    source = any_engine.hold(pa.table(columns, names=names))
    key, label, score, unit = names
    dataset = ho.Dataset(source, label=label, score=score, row_key=key, unit=unit, rows_per_unit=2)
    assert unseal(compute(ThresholdCounts(thresholds=(0.5,)), dataset)).tolist() == [1, 1, 1, 1]


TEXTS = [
    *(
        "it's",
        'a"b',
        "a\\b",
        "\\",
        "\\'",
        "'; DROP TABLE x; --",
        "${spark.app.name}",
        "${env:HOME}",
    ),
    *("%s", "%(a)s", "$1", "\n", "\\n", "' OR '1'='1", "--", "/*", "\u2019", "🙂", "{a}", ":a", ""),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_label_may_be_any_text(any_engine: Any, text: str) -> None:
    rows = table(y=[text, "other", text])
    dataset = ho.Dataset(any_engine.hold(rows), label="y", score="p", row_key="visit",
                         positive=text, negative="other")  # fmt: skip
    assert unseal(compute(ThresholdCounts(thresholds=(2.0,)), dataset)).tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_column_can_hold_is_refused(any_engine: Any, text: str) -> None:
    """A server would read a statement only up to the zero."""
    source = any_engine.hold(table(y=["a", "b", "a"]))
    with pytest.raises(errors.HeldoutError):
        ho.Dataset(source, label="y", score="p", row_key="visit", positive=text, negative="b")
    with pytest.raises(errors.HeldoutError):
        ho.Dataset(source, label="y", score=text, row_key="visit", positive="a", negative="b")
