"""Scores: their range, a map for those without one, and the public grid that they are counted on.

A table of a hundred million rows is read in about a second, so what counts is how often. Rows are
counted by label and score cell once, and everything that is ranked on the grid is computed from it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from heldout.arguments import as_number, pair, shown
from heldout.data.engine import Unshown
from heldout.data.sql import Array, Columns, double
from heldout.errors import ArgumentError

FURTHEST: Final = 1e150
"""Scores beyond this count as this; so no engine's arithmetic can overflow."""

_LEAST, _MOST = 1e-100, 1e100
MOST_VALUES: Final = 64  # of declared scores: of more, each holds few rows


@dataclass(frozen=True)
class ScoreMap:
    """The image of a score x: z / (1 + |z|) with z = (x - centre) / scale, between -1 and 1.

    Both numbers are public: choose them from what the model is, not from the rows. For a
    logistic model's linear score 0 and 1 will do; half of the grid is then spent on scores
    between -1 and 1, three quarters on those between -3 and 3.

    Only sums, quotients and a comparison of doubles are taken, which IEEE 754 fixes to the last
    bit, so that every engine gives the same image; a logistic function would differ between
    libraries. Each of these operations is monotone, rounding included, so the order of scores is
    kept; scores whose images round to the same double become ties.

    >>> linear = ScoreMap(centre=0, scale=2)
    >>> linear.image(-2.0), linear.image(0.0), linear.image(6.0)
    (-0.5, 0.0, 0.75)
    >>> linear.score(0.75)
    6.0
    >>> f"{linear.resolution(0.0, cells=2**16):.2g}, {linear.resolution(20.0, cells=2**16):.2g}"
    '6.1e-05, 0.0074'
    """

    centre: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        centre, scale = as_number(self.centre), as_number(self.scale)
        if not (abs(centre) <= _MOST and _LEAST <= scale <= _MOST):
            raise ArgumentError(
                f"score_map must be a centre of at most {_MOST:g} either way and a scale of "
                f"{_LEAST:g} to {_MOST:g}, got ({shown(self.centre)}, {shown(self.scale)}). Try "
                "(0, 1)."
            )
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "scale", scale)

    @classmethod
    def parse(cls, given: Any) -> "ScoreMap":
        """A map from itself or from (centre, scale)."""
        if isinstance(given, cls):
            return given
        both = pair(given)
        if both is None:
            raise ArgumentError(
                f"score_map must be two numbers, (centre, scale), got a {type(given).__name__}. "
                "Try (0, 1)."
            )
        return cls(*both)

    def expression(self, number: str) -> str:
        """The image of a finite or infinite double, in DuckDB's dialect."""
        bounded = f"least(greatest({number}, {double(-FURTHEST)}), {double(FURTHEST)})"
        distance = f"({bounded} - {double(self.centre)})"
        scale = double(self.scale)
        # z / (1 + |z|) would underflow for tiny z, which PostgreSQL refuses; this cannot.
        return (
            f"CASE WHEN {distance} < 0 THEN {scale} / ({scale} - {distance}) - 1"
            f" ELSE 1 - {scale} / ({scale} + {distance}) END"
        )

    def image(self, score: float) -> float:
        """The same double that `expression` gives."""
        distance = min(max(_number(score, "score"), -FURTHEST), FURTHEST) - self.centre
        if distance < 0:
            return self.scale / (self.scale - distance) - 1
        return 1 - self.scale / (self.scale + distance)

    def score(self, image: float) -> float:
        """The score of an image, as nearly as a double says it."""
        image = _number(image, "image")
        if abs(image) >= 1:
            return math.copysign(FURTHEST, image)
        return min(max(self.centre + self.scale * (image / (1 - abs(image))), -FURTHEST), FURTHEST)

    def resolution(self, score: float, *, cells: int) -> float:
        """Return how far scores near this one may lie apart and share a cell of the grid."""
        z = abs(_number(score, "score") - self.centre) / self.scale
        return 2 * self.scale * (1 + z) ** 2 / cells

    def describe(self) -> str:
        return f"z / (1 + |z|) of z = (score - {self.centre:g}) / {self.scale:g}"


def _number(value: Any, name: str) -> float:
    number = as_number(value)
    if math.isnan(number):
        raise ArgumentError(f"{name} must be a number, got {shown(value)}.")
    return number


Scale = tuple[float, float] | ScoreMap
"""The scale of a column of scores: its range, or the map that gives it one."""

NARROWEST, WIDEST = 1e-150, 1e150  # the squared width, and cells over it, stay ordinary doubles


def checked_range(score_range: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in score_range)
    except Exception:
        raise ArgumentError(
            "score_range must be two numbers (lowest, highest). Declare what the model can give."
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ArgumentError(
            f"score_range must be two finite numbers, the lower first, got ({low}, {high})."
        )
    if not NARROWEST <= high - low <= WIDEST:
        raise ArgumentError(
            f"score_range must be {NARROWEST:g} to {WIDEST:g} wide, got ({low:g}, {high:g}). "
            "Rescale the scores."
        )
    return low, high


def ends_of(scale: Scale) -> tuple[float, float]:
    """Return the range of what scores of this scale count as."""
    return (-1.0, 1.0) if isinstance(scale, ScoreMap) else scale


def declared_values(values: Any, scale: Scale) -> tuple[float, ...]:
    """Return the values that scores can take, each once and rising; none where none are declared.

    >>> declared_values([0.5, 0.1, 0.5], (0.0, 1.0))
    (0.1, 0.5)
    """
    if values is None:
        return ()
    if isinstance(scale, ScoreMap):
        raise ArgumentError("score_values needs score_range, not score_map.")
    try:
        distinct = sorted({float(value) for value in values})
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError("score_values must be numbers, such as [0.1, 0.5, 0.9].") from None
    low, high = scale
    if not 2 <= len(distinct) <= MOST_VALUES or not all(low <= value <= high for value in distinct):
        raise ArgumentError(
            f"score_values must be 2 to {MOST_VALUES} different numbers within score_range "
            f"({low:g}, {high:g}). Leave score_values out if the model gives more."
        )
    return tuple(distinct)


def declared_scales(score_range: Any, score_map: Any, names: Sequence[str]) -> dict[str, Scale]:
    """Return the scale of each column of scores; both arguments hold for all, or are by column.

    >>> declared_scales({"decile": (1, 10)}, None, ["risk", "decile"])
    {'risk': (0.0, 1.0), 'decile': (1.0, 10.0)}
    """
    ranges, maps = (
        {name: given[name] for name in given} if isinstance(given, Mapping) else None
        for given in (score_range, score_map)
    )
    for argument, columns in (("score_range", ranges), ("score_map", maps)):
        for name in columns or ():
            if name not in names:
                raise ArgumentError(
                    f"{argument} must name columns of scores, got {shown(name)}. Declare other "
                    f"models' columns: rivals=[{shown(name)}]."
                )
    both = set(ranges or ()) & set(maps or ())
    plain = ranges is None and maps is None and score_map is not None
    if both or (plain and checked_range(score_range) != (0.0, 1.0)):
        raise ArgumentError("Pass either score_range= or score_map= for a column, not both.")
    everywhere: Scale = (0.0, 1.0) if ranges is not None else checked_range(score_range)
    if maps is None and score_map is not None:
        everywhere = ScoreMap.parse(score_map)
    by_name: dict[str, Scale] = {
        name: checked_range(given) for name, given in (ranges or {}).items()
    }
    by_name |= {name: ScoreMap.parse(given) for name, given in (maps or {}).items()}
    return {name: by_name.get(name, everywhere) for name in names}


CELLS: Final = 2**16
NEAR: Final = 2**15
"""Rows that are worked on together: arrays of them are taken from memory that the process has."""
MANY_ROWS: Final = 5_000_000
"""Beyond so many rows, where their number is public, scores are ranked on the grid."""


def grid_point(score: float, *, score_range: tuple[float, float], points: int = CELLS + 1) -> int:
    """Return the grid point that a score is counted at, by the operations that count rows.

    >>> grid_point(0.5, score_range=(0.0, 1.0))
    32768
    """
    low, high = score_range
    return min(round((score - low) * ((points - 1) / (high - low))), points - 1)


def grid_body(score_range: tuple[float, float], cells: int = CELLS) -> str:
    """Rows by label and nearest grid point.

    The cast rounds to the nearest integer, half to even, on DuckDB and PostgreSQL; for Spark,
    whose cast cuts off, `heldout.data.sql` writes RINT into it, which is the same function.
    """
    low, high = score_range
    offset = f"(score - {double(low)})" if low else "score"
    point = f"CAST({offset} * {double(cells / (high - low))} AS INTEGER)"
    return f"SELECT label, {point} AS point, count(*) AS n\nFROM evaluated\nGROUP BY 1, 2"


class GridTally:
    """The columns of `grid_body`, counted here from batches of labels and scores.

    The same two double operations and the same rounding give the same points. A row is counted
    only if its label is 0 or 1 and its score lies within the range; `sound` says that all were.

    >>> import numpy as np
    >>> tally = GridTally((0.0, 1.0), cells=4)
    >>> tally.add({"label": np.array([0, 1, 1]), "score": np.array([0.2, 0.5, 0.6])})
    >>> {name: each.tolist() for name, each in tally.columns().items()}
    {'label': [0, 1], 'point': [1, 2], 'n': [1, 2]}
    >>> tally.add({"label": np.array([1]), "score": np.array([np.nan])})
    >>> tally.rows, tally.sound
    (4, False)
    """

    def __init__(self, score_range: tuple[float, float], cells: int = CELLS) -> None:
        import numpy as np

        self._range, self._points = score_range, cells + 1
        self._factor = cells / (score_range[1] - score_range[0])
        self._counts = np.zeros(2 * self._points, dtype=np.int64)
        self._cells, self._waiting, self.rows = np.empty(8 * NEAR, dtype=np.int64), 0, 0
        self._place = np.empty(NEAR)
        # One rounding may carry the top of an odd range past the last point. No score within the
        # range gets further than its top does: products and roundings keep the order.
        top = np.rint((score_range[1] - score_range[0]) * self._factor)
        self._passes = not top <= cells

    def add(self, columns: Columns) -> None:
        """Count a batch of rows, so many at a time that no step of it needs new memory."""
        label, score = columns["label"], columns["score"]
        self.rows += len(score)
        for start in range(0, len(score), NEAR):
            self._count(label[start : start + NEAR], score[start : start + NEAR])

    def _count(self, label: Array, score: Array) -> None:
        import numpy as np

        low, high = self._range
        if not sound({"label": label, "score": score}, self._range):
            known = ~(np.ma.getmaskarray(label) | np.ma.getmaskarray(score))
            label, score = np.ma.getdata(label), np.ma.getdata(score)
            known &= ((label == 0) | (label == 1)) & (score >= low) & (score <= high)
            label, score = label[known], score[known]
        point = self._place[: len(score)]
        np.multiply(score - low if low else score, self._factor, out=point)
        np.rint(point, out=point)
        if self._passes:
            np.minimum(point, self._points - 1, out=point)
        point += label * float(self._points)
        if self._waiting + len(point) > len(self._cells):
            self._counted()
        self._cells[self._waiting : self._waiting + len(point)] = point
        self._waiting += len(point)

    def _counted(self) -> Array:
        """The counts of all that was added."""
        import numpy as np

        cells, self._waiting = self._cells[: self._waiting], 0
        self._counts += np.bincount(cells, minlength=self._counts.size)
        return self._counts

    @property
    def sound(self) -> bool:
        """Return True if every row had a label and a score that keep the rules."""
        return int(self._counted().sum()) == self.rows

    def columns(self) -> Columns:
        (cells,) = self._counted().nonzero()
        return {
            "label": cells // self._points,
            "point": cells % self._points,
            "n": self._counts[cells],
        }


def sound(columns: Columns, score_range: tuple[float, float]) -> bool:
    """Return True if all labels are 0 or 1, and all scores within the range."""
    return _all_within(columns["label"], 0, 1) and _all_within(columns["score"], *score_range)


def _all_within(values: Array, low: float, high: float) -> bool:
    """Return True if all are; NULL and NaN are not."""
    import numpy as np

    if not len(values):
        return True
    return not np.ma.isMaskedArray(values) and bool(values.min() >= low and values.max() <= high)


def by_class(columns: Columns) -> Columns:
    """Sound labels and scores in another order: of either class from the lowest score on."""
    import numpy as np

    label, score = columns["label"], columns["score"]
    classes = [np.sort(score[label == value]) for value in (0, 1)]
    sizes = [len(scores) for scores in classes]
    return {
        "label": np.repeat(np.array([0, 1], dtype=label.dtype), sizes),
        "score": np.concatenate(classes),
    }


class KeptColumns(Unshown[Columns]):
    """Un-noised counts between two releases, for `_fetch` alone."""

    __slots__ = ()
    what = "un-noised counts"
