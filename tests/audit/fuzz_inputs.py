# ruff: noqa: E501 - tables of inputs, read as tables
"""Awkward input by kind: what a cell, a column, a matrix, a table, a name or an argument may be.

Every private cell that can hold one holds a canary. `CATALOGUES` is what the corpus goes through
in order, and what the fuzzers pick from besides what they make up.
"""

import datetime
import decimal
import fractions
import math
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

T = TypeVar("T")
# Of fifteen digits: seven come up by chance in the digits of noisy answers.
CANARY, CANARY_NUMBER = "Canaria", 867530912345678
CANARIES = (CANARY, str(CANARY_NUMBER))
NAN, INF = math.nan, math.inf
SUBNORMAL, LARGEST = 5e-324, 1.7976931348623157e308
NFC, NFD = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
ROWS = 4


class Choices(Protocol):
    """Where decisions come from: atheris' bytes, or hypothesis."""

    def whole(self, low: int, high: int) -> int: ...
    def number(self) -> float: ...
    def text(self, most: int) -> str: ...
    def octets(self, most: int) -> bytes: ...


class Odd:
    """An object of no use: it refuses to be compared, counted or turned into anything."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]

    def __float__(self) -> float:
        raise OverflowError("no")

    def __len__(self) -> int:
        raise TypeError("no")


NUMBERS: list[Any] = [
    NAN, INF, -INF, SUBNORMAL, -SUBNORMAL, -0.0, LARGEST, -1, 0, 1, 2, 3.5, 10**30, -(10**30), 2**63,
    10**5000, True, False, "1", "0", "nan", "inf", "1e400", "1e-400", "1/0", "1/3", "-0", "0.5",
    "0,5", "1_0", "٠", "١", " 1 ", "1\x00", "9" * 5000, "1/" + "9" * 5000, "", "x",
    fractions.Fraction(1, 3), decimal.Decimal("NaN"), decimal.Decimal("sNaN"),
    decimal.Decimal("1e999999"), np.float64(0.5), np.float32("nan"), np.int64(3), np.uint8(1),
    np.bool_(True), np.array(0.5), np.array([0.5]), np.array([]), np.ma.masked, np.datetime64("NaT"),
    pd.NA, pd.NaT, 1j, b"1", None, (), [], {}, [1], (0.5, 0.25), ("a", "b"), {"a": 1}, Odd(), object, print,
]  # fmt: skip

NAMES: list[Any] = [
    "", " ", "y", "Y", "nowhere", NFC, NFD, "\u202eרישום", "a\0b", "../../etc/passwd", "/dev/null",
    'a"; DROP TABLE held; --', "'", "p" * 5000, "a\nb", "evaluated", "label", "select", "rowid",
    "{score}", "%s", "\ud800", "\x1b[31m", "postgresql://me:secret@127.0.0.1:1/db", "a,b", None, 0,
    b"y", [], ["y"], ["y", "y"], {"y": 1}, NAN, Odd(), ("y", 1),
]  # fmt: skip


def _column(values: Sequence[Any], dtype: Any = None) -> Any:
    return np.array(values, dtype=dtype) if dtype is not None else list(values)


def _read_only() -> Any:
    found = np.array([0.0, 1.0, 0.5, 1.0])
    found.flags.writeable = False
    return found


def _objects(*values: Any) -> Any:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


COLUMNS: dict[str, Any] = {
    "booleans": [True, False, True, False],
    "digits": ["0.5", "1", "0", "0.25"],
    "odd digits": ["٠", "1e400", "0x1p-1", "1_0"],
    "canaries": [CANARY] * 4,
    "one canary": [0, 1, CANARY, 1],
    "canary numbers": [CANARY_NUMBER] * 4,
    "a canary among numbers": [0.5, CANARY_NUMBER, 0.25, 1.0],
    "NaN": [0.5, NAN, 0.1, 0.2],
    "infinities": [0.5, INF, -INF, 0.2],
    "subnormals": [SUBNORMAL, 0.0, 1.0, -SUBNORMAL],
    "minus zero": [-0.0, 0.0, 1.0, -0.0],
    "largest": [LARGEST, -LARGEST, 0.0, 1.0],
    "huge integers": [2**62, -(2**62), 1, 0],
    "beyond 64 bits": [2**64, -(2**70), 1, 0],
    "beyond 128 bits": [10**40, 1, 0, 1],
    "beyond doubles": [10**400, 1, 0, 1],
    "missing": [None, 1, 0, 1],
    "all missing": [None] * 4,
    "decimals": [decimal.Decimal("0.5"), decimal.Decimal(1), decimal.Decimal(0), decimal.Decimal("NaN")],
    "fractions": [fractions.Fraction(1, 3)] * 4,
    "complex": np.array([1j, 1, 0, 1]),
    "bytes": [b"0.5", b"\x00", b"1", CANARY.encode()],
    "NUL": ["a\0", "b", CANARY + "\0", "b"],
    "surrogates": ["\ud800", "1", CANARY, "1"],
    "right to left": ["\u202eרישום", "a", NFC, NFD],
    "lists in cells": [[1], [0, 1], [CANARY], []],
    "dicts in cells": [{"a": 0.5}, {"a": CANARY}, {}, {"b": 1}],
    "mixed": [1, "0", 0.5, None],
    "objects": _objects(1, CANARY, None, [CANARY]),
    "strange objects": [Odd(), Odd(), 1, 0],
    "read-only": _read_only(),
    "0-d": np.array(1.0),
    "2-d": np.array([[1.0, 0.0], [0.0, 1.0]]),
    "column of a matrix": np.array([[1.0], [0.0], [0.5], [1.0]]),
    "reversed view": np.array([1.0, 0.0, 0.5, 1.0])[::-1],
    "masked": np.ma.masked_array([0.5, 1.0, 0.0, 1.0], mask=[True, False, False, False]),
    "half floats": np.array([0.5, 1, 0, 0.25], dtype=np.float16),
    "long doubles": np.array([0.5, 1, 0, 0.25], dtype=np.longdouble),
    "big-endian": np.array([0.5, 1, 0, 0.25], dtype=">f8"),
    "unsigned": np.array([1, 0, 1, 2**63], dtype=np.uint64),
    "structured": np.array([(1, 2.0)] * 4, dtype=[("a", "i4"), ("b", "f8")]),
    "fixed texts": np.array(["1", "0", CANARY, "0"]),
    "times": np.array(["2020-01-01", "NaT", "1970-01-01", "2262-04-11"], dtype="datetime64[ns]"),
    "durations": np.array([1, 2, 3, 4], dtype="timedelta64[s]"),
    "dates": [datetime.date(2020, 1, 1), datetime.date.min, datetime.date.max, None],
    "times with zones": pd.date_range("2020", periods=4, tz="UTC").to_list(),
    "pandas nullable integers": pd.array([1, 0, None, 1], dtype="Int64"),
    "pandas nullable floats": pd.array([0.5, 0.25, None, 1], dtype="Float64"),
    "pandas nullable booleans": pd.array([True, False, None, True], dtype="boolean"),
    "pandas texts": pd.array(["1", CANARY, None, "0"], dtype="string"),
    "pandas categories": pd.Categorical([1, 0, 1, CANARY]),
    "pandas numbers as categories": pd.Series(pd.Categorical([1, 0, 1, 0])),
    "pandas intervals": pd.interval_range(0, 4),
    "pandas periods": pd.period_range("2020", periods=4),
    "pandas sparse": pd.arrays.SparseArray([0.0, 1.0, 0.0, 1.0]),
    "pandas index": pd.Series([1, 0, 1, 0], index=[9, 9, 7, 1]),
    "polars": pl.Series([1, 0, None, 1]),
    "arrow dictionary": pa.array(["0.5", "1", CANARY, "1"]).dictionary_encode(),
    "arrow decimals": pa.array([0, 1, 0, 1]).cast(pa.decimal128(38, 10)),
    "arrow nulls": pa.nulls(4),
    "arrow chunks": pa.chunked_array([[1, 0], [1, 0]]),
    "arrow nested": pa.array([[1], [0], [CANARY_NUMBER], None]),
    "too short": [1, 0],
    "too long": [1, 0] * 4,
    "empty": [],
    "one": [1],
    "a set": {0, 1},
    "a range": range(4),
    "a text": CANARY,
    "bytes alone": b"1010",
    "a generator": (i % 2 for i in range(4)),
    "a dict": {"a": 1},
    "a number": 7,
    "nothing": None,
    "ragged": [[1], [1, 0], 1, 0],
    "sparse": sp.csr_array(np.array([[1, 0, 1, 0]])),
}  # fmt: skip


def _sparse(data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
    """A sparse matrix with whatever is in it, unchecked."""
    found = sp.csr_array(shape, dtype=np.asarray(data).dtype)
    found.data, found.indices, found.indptr = (np.asarray(each) for each in (data, indices, indptr))
    return found


def _square(*cells: Any, dtype: Any = None) -> Any:
    return np.array(cells, dtype=dtype).reshape(ROWS, 2)


MATRICES: dict[str, Any] = {
    "explicit zeros": _sparse([1.0, 0.0, 0.0, 1.0], [0, 1, 0, 1], [0, 1, 2, 3, 4], (4, 2)),
    "explicit NaN": _sparse([1.0, NAN, INF, 1.0], [0, 1, 0, 1], [0, 1, 2, 3, 4], (4, 2)),
    "unsorted indices": _sparse([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0], [0, 2, 4, 4, 4], (4, 2)),
    "duplicates": _sparse([1.0, -1.0, 3.0, 4.0], [1, 1, 0, 0], [0, 2, 4, 4, 4], (4, 2)),
    "indices beyond": _sparse([1.0, 1.0], [7, 0], [0, 1, 2, 2, 2], (4, 2)),
    "indices below": _sparse([1.0, 1.0], [-1, 0], [0, 1, 2, 2, 2], (4, 2)),
    "pointers that lie": _sparse([1.0, 1.0], [0, 1], [0, 9, 9, 9, 9], (4, 2)),
    "pointers that fall": _sparse([1.0, 1.0], [0, 1], [0, 2, 0, 1, 2], (4, 2)),
    "too few pointers": _sparse([1.0, 1.0], [0, 1], [0, 2], (4, 2)),
    "sparse booleans": sp.csr_array(_square(1, 0, 0, 1, 1, 1, 0, 0, dtype=bool)),
    "sparse complex": sp.csr_array(_square(1j, 0, 0, 1, 1, 1, 0, 0)),
    "columns first": sp.csc_array(_square(1, 0, 0, 1, 1, 1, 0, 0)),
    "coordinates twice": sp.coo_array(([1.0, 1.0], ([0, 0], [0, 0])), shape=(4, 2)),
    "dictionary of keys": sp.dok_array((4, 2)),
    "lists of lists": sp.lil_array((4, 2)),
    "diagonal": sp.eye_array(4),
    "old matrix": sp.csr_matrix(_square(1, 0, 0, 1, 1, 1, 0, 0)),
    "sparse without columns": sp.csr_array((4, 0)),
    "sparse and very wide": sp.csr_array((4, 2**40)),
    "sparse, a row": sp.coo_array(np.array([1, 0, 1, 0])),
    "NaN": _square(1, 0, NAN, 1, 0, 0, 1, 1),
    "infinity": _square(1, 0, INF, 1, 0, 0, 1, 1),
    "subnormals": _square(SUBNORMAL, 0, -0.0, 1, 0, 0, 1, 1),
    "canary": _square(1, 0, CANARY, 1, 0, 0, 1, 1, dtype=object),
    "canaries": [[CANARY, CANARY]] * 4,
    "canary numbers": [[CANARY_NUMBER, 0]] * 4,
    "digits": [["1", "0"]] * 4,
    "booleans": _square(1, 0, 0, 1, 1, 1, 0, 0, dtype=bool),
    "huge integers": [[10**40, 1]] * 4,
    "beyond doubles": [[10**400, 1]] * 4,
    "complex": _square(1j, 0, 0, 1, 1, 1, 0, 0),
    "lists in cells": [[[1], [0]], [[1], [CANARY]], [[1], [0]], [[1], [0]]],
    "ragged": [[1, 0], [1], [0], [1, 1]],
    "objects": _square(1, None, [CANARY], 1, {}, 0, 1, 1, dtype=object),
    "strange objects": [[Odd(), Odd()]] * 4,
    "times": _square(*["2020-01-01"] * 8, dtype="datetime64[s]"),
    "read-only": np.broadcast_to(np.array([1.0, 0.0]), (4, 2)),
    "columns first, dense": np.asfortranarray(_square(1, 0, 0, 1, 1, 1, 0, 0)),
    "masked": np.ma.masked_array(_square(1, 0, 0, 1, 1, 1, 0, 0), mask=True),
    "matrix class": np.asmatrix(_square(1, 0, 0, 1, 1, 1, 0, 0)),
    "0-d": np.array(1.0),
    "1-d": np.array([1.0, 0.0, 1.0, 0.0]),
    "3-d": np.zeros((4, 2, 2)),
    "no rows": np.zeros((0, 2)),
    "no columns": np.zeros((4, 0)),
    "other rows": np.ones((3, 2)),
    "other columns": np.ones((4, 5)),
    "one row": np.ones((1, 2)),
    "pandas": pd.DataFrame({"a": [1, 0, 1, 0], "b": [CANARY] * 4}),
    "pandas nullable": pd.DataFrame({"a": pd.array([1, None, 0, 1], dtype="Int64"), "b": [1, 0, 1, 0]}),
    "pandas categories": pd.DataFrame({"a": pd.Categorical([1, 0, 1, 0]), "b": [1, 0, 1, 0]}),
    "pandas copies": pd.DataFrame(np.ones((4, 2)), columns=["a", "a"]),
    "pandas numbers for names": pd.DataFrame(np.ones((4, 2)), columns=[0, "a"]),
    "pandas sparse": pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(np.eye(4)[:, :2])),
    "pandas times": pd.DataFrame({"a": pd.date_range("2020", periods=4), "b": [1, 0, 1, 0]}),
    "pandas levels": pd.DataFrame(np.ones((4, 2)), columns=pd.MultiIndex.from_tuples([(1, 2), (1, 3)])),
    "polars": pl.DataFrame({"a": [1, None, 0, 1], "b": [1, 0, 1, 0]}),
    "polars texts": pl.DataFrame({"a": [CANARY] * 4, "b": [1, 0, 1, 0]}),
    "arrow": pa.table({"a": [1, 0, 1, 0], "b": [CANARY] * 4}),
    "a dict": {"a": [1, 0, 1, 0]},
    "a text": CANARY,
    "a path": "/dev/null",
    "nothing": None,
    "a number": 7,
    "strange": Odd(),
}  # fmt: skip

TEXTS: dict[str, Any] = {
    "texts": [CANARY, "a\0b", "\u202eרישום " + NFC + NFD, ""],
    "long": ["w" * 100_000, "a " * 5_000, CANARY, "\n\t"],
    "surrogates": ["\ud800", CANARY, "a", "b"],
    "not texts": [1, None, NAN, [CANARY]],
    "bytes": [b"\xff\xfe", CANARY.encode(), b"", b"cash"],
    "dicts": [{"cash": 1}, {}, {CANARY: 1}, {"cash": 0}],
    "one text": CANARY,
    "nothing": None,
    "strange": [Odd()] * 4,
    "empty": [],
}


def whole(low: int, high: int) -> Callable[[Choices], int]:
    return lambda choices: choices.whole(low, high)


def pick(choices: Choices, options: Sequence[T]) -> T:
    return options[choices.whole(0, len(options) - 1)]


def flag(choices: Choices) -> bool:
    return choices.whole(0, 1) == 1


def anything(choices: Choices) -> Any:
    """A value of any kind, made up."""
    kind = choices.whole(0, 5)
    if kind == 0:
        return pick(choices, NUMBERS)
    if kind == 1:
        return choices.whole(-(2**70), 2**70)
    if kind == 2:
        return choices.number()
    if kind == 3:
        return choices.text(8)
    if kind == 4:
        return choices.octets(6)
    return [anything(choices) for _ in range(choices.whole(0, 3))]


def cells(choices: Choices) -> Any:
    return [CANARY if choices.whole(0, 9) == 0 else anything(choices) for _ in range(ROWS)]


def _table(choices: Choices) -> Any:
    names = ["y", "p", "q", "u", "k", "t", "a", "b"]
    found = {name: cells(choices) for name in names if flag(choices)}
    return {**found, choices.text(6): cells(choices)} if flag(choices) else found


def _rectangle(choices: Choices) -> Any:
    wide = choices.whole(0, 3)
    return [[anything(choices) for _ in range(wide)] for _ in range(ROWS)]


CATALOGUES: dict[str, list[Any]] = {
    "number": NUMBERS,
    "name": NAMES,
    "column": list(COLUMNS.values()),
    "matrix": list(MATRICES.values()),
    "texts": list(TEXTS.values()),
}
MADE_UP: dict[str, Callable[[Choices], Any]] = {
    "number": anything,
    "name": lambda choices: choices.text(8),
    "column": cells,
    "matrix": _rectangle,
    "texts": lambda choices: [choices.text(20) for _ in range(ROWS)],
    "table": _table,
}


def good_table() -> dict[str, Any]:
    """Rows that every workflow can read."""
    return {
        "y": [1, 0, 1, 0],
        "p": [0.75, 0.25, 0.5, 0.25],
        "q": [0.5, 0.5, 0.25, 1.0],
        "u": ["a", "b", "a", "c"],
        "k": [1, 2, 3, 4],
        "t": ["cash now", "see you", f"cash {CANARY}", ""],
        "a": [1, 0, 1, 1],
        "b": [0, 0, 1, 0],
        "who": [CANARY] * 4,
        "n": [CANARY_NUMBER] * 4,
    }


def _tables() -> list[Any]:
    """Good tables with one column of each awkward kind, and things that are no tables."""
    roles = ("y", "p", "u", "k", "t", "a")
    found: list[Any] = []
    for index, column in enumerate(COLUMNS.values()):
        found += [{**good_table(), role: column} for role in {roles[index % 6], roles[index % 2]}]
    good = good_table()
    frame = pd.DataFrame(good)
    found += [
        pd.DataFrame([[1, 0.5, 2]], columns=["y", "p", "p"]),
        frame.iloc[:0], frame.iloc[:1], frame.set_index("k"), frame.convert_dtypes(),
        frame.astype({"u": "category", "y": "category"}), frame.astype(object), pl.DataFrame(good),
        pl.LazyFrame(good), pa.table(good), pa.table(good).to_batches()[0],
        pa.table(good).to_reader(), {**good, "Y": good["y"]}, {**good, NFC: good["y"], NFD: good["p"]},
        {**good, "a\0b": good["y"]}, {**good, 7: good["y"]}, {**good, None: good["y"]}, {},
        {"y": []}, [good], [[1, 0.5], [0, 0.2]], "nowhere", "nowhere.csv", "", "a\0.csv", "/", "/dev/null",
        "\ud800.csv", "p" * 5000 + ".csv", b"a.csv", np.zeros((4, 2)), np.array(1.0), None, 7, NAN, Odd(), dict, print,
        {name: values for name, values in good.items() if name != "y"}, frame.to_records(), frame["y"],
        "postgresql://me:secret@127.0.0.1:1/db", "SELECT 1", "http://127.0.0.1:1/a.csv",
    ]  # fmt: skip
    return found


CATALOGUES["table"] = _tables()


def spoilt(entry: Any, choices: Choices) -> dict[str, Any]:
    """An entry's good arguments with one to three of them awkward."""
    arguments = entry.good()
    names = list(arguments)
    for _ in range(choices.whole(1, 3) if names else 0):
        name = pick(choices, names)
        kind = entry.arguments[name][0]
        way = choices.whole(0, 7)
        if way == 0:
            arguments[name] = anything(choices)
        elif way < 4 and kind in MADE_UP:
            arguments[name] = MADE_UP[kind](choices)
        else:
            arguments[name] = pick(choices, CATALOGUES[kind])
    return arguments


def waits(seconds: Any) -> bool:
    """Whether a tick is valid and long: a test does not wait for it."""
    try:
        return float(seconds) > 0.01
    except Exception:
        return False
