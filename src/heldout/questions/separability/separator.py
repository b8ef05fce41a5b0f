"""A separator of true from privatized rows, as a statistic of the truth on a public lattice."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arrays import Bools, Floats, Ints
from heldout.data.sql import Columns
from heldout.data.two_tables import MOST_TIMES, Table, number_array, text_array
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.ratio import NoisyCounts, Ratio
from heldout.kernel.door import Drawn
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.disjoint import Disjoint
from heldout.kernel.statistic import Statistic
from heldout.questions.features.plans import logistic
from heldout.questions.separability.tuned import (
    CUT,
    FARTHEST,
    LOUDEST,
    MOST_CATEGORIES,
    MOST_COLUMNS,
)

COLUMNS, PAIRS = "columns", "pairs"
"""What a separator sees."""
OTHER, MISSING = "other", "missing"
INSIDE = 1 - 2.0**-30  # so that rounding cannot put a vector outside the ball


@dataclass(frozen=True, eq=False)
class Number:
    """Centres, scales and fills a numeric column."""

    centre: float
    scale: float
    fill: float

    @classmethod
    def of(cls, values: Floats) -> "Number":
        known = values[~np.isnan(values)]
        if not len(known):
            return cls(0.0, 0.0, 0.0)
        # Divided by the largest first: the square of 1e300 is no number.
        largest = float(np.abs(known).max()) or 1.0
        shrunk = known / largest
        deviation = float(shrunk.std()) * largest
        return cls(float(shrunk.mean()) * largest, deviation, float(np.median(known)))

    def __call__(self, values: Floats) -> Floats:
        filled = np.where(np.isnan(values), self.fill, values)
        scaled: Floats = (filled / self.scale) - self.centre / self.scale
        return scaled


@dataclass(frozen=True, eq=False)
class Recipe:
    """A function of one row alone: numbers scaled and held to 3 deviations, categories, a one.

    Categories that the privatized data does not have are a feature of their own, and so are
    missing numbers: one for each column where privatized numbers are missing, and one for all
    other columns together. Vectors longer than the median privatized one are cut to its length.
    """

    numbers: dict[str, Number]
    gaps: frozenset[str]
    """Columns of numbers some of which are missing in the privatized data."""
    levels: dict[str, tuple[str, ...]]
    radius: float

    @classmethod
    def of(cls, privatized: Table) -> "Recipe":
        columns, texts = privatized.numbers.items(), privatized.texts.items()
        numbers = {name: _scaled(Number.of(values)) for name, values in columns}
        levels = {name: frequent(values, MOST_CATEGORIES) for name, values in texts}
        gaps = frozenset(name for name, values in columns if np.isnan(values).any())
        plain = cls(numbers, gaps, levels, radius=1.0)._raw(privatized)
        return cls(numbers, gaps, levels, radius=float(np.median(_lengths(plain))))

    @property
    def features(self) -> tuple[str, ...]:
        """Return what each entry of the vector stands for; the last is the constant."""
        names = list(self.numbers)
        names += [f"{name} = {MISSING}" for name in self.numbers if name in self.gaps]
        names += ["a number is missing elsewhere"] if len(self.gaps) < len(self.numbers) else []
        names += [
            f"{name} = {level}"
            for name, levels in self.levels.items()
            for level in (*levels, MISSING, OTHER)
        ]
        return (*names, "constant")

    def vectors(
        self, table: Table, keys: Sequence[object] | NDArray[Any] | None = None
    ) -> tuple[Floats, Bools]:
        """Return a vector for each row, of Euclidean length at most 1, and which are held out.

        Operations on single numbers only, each rounded as IEEE 754 says: a row's vector and half
        follow from that row to the last bit, wherever in the table it stands.
        """
        raw = self._raw(table)
        shrunk = INSIDE / np.maximum(_lengths(raw), self.radius)
        return raw * shrunk[:, None], held_out([None] * table.rows if keys is None else keys, raw)

    def _raw(self, table: Table) -> Floats:
        columns: list[NDArray[Any]] = []
        gaps = {name: np.isnan(values) for name, values in table.numbers.items()}
        for name, number in self.numbers.items():
            values, missing = table.numbers[name], gaps[name]
            with np.errstate(over="ignore", invalid="ignore"):
                away = number(np.where(missing, number.centre, values))
            columns.append(np.clip(np.nan_to_num(away), -FARTHEST, FARTHEST))
        columns += [gaps[name] for name in self.numbers if name in self.gaps]
        elsewhere = [gaps[name] for name in self.numbers if name not in self.gaps]
        columns += [np.any(elsewhere, axis=0)] if elsewhere else []
        for name, levels in self.levels.items():
            values = table.texts[name]
            columns += [values == level for level in levels]
            columns.append(np.array([value is None for value in values], dtype=bool))
            known = {None, *levels}
            columns.append(np.array([value not in known for value in values], dtype=bool))
        columns.append(np.ones(table.rows))
        return np.ascontiguousarray(np.array(columns, dtype=np.float64).T)


def held_out(keys: Sequence[object] | NDArray[Any], raw: Floats) -> Bools:
    """Choose half of the rows, by a hash of each row's key; without keys, of its content and copy.

    The n-th row of the same content has the content and n for a key. When one of c such rows
    leaves, copies 1 to c - 1 stay where they were, and only copy c is gone from its half.
    """
    seen: dict[bytes, int] = {}
    chosen = np.zeros(len(raw), dtype=bool)
    for index in range(len(raw)):
        if keys[index] is not None:
            text = str(keys[index]).encode()
        else:
            content = raw[index].tobytes()
            seen[content] = seen.get(content, 0) + 1
            text = content + str(seen[content]).encode()
        chosen[index] = hashlib.md5(text, usedforsecurity=False).digest()[0] % 2 == 1
    return chosen


def frequent(values: NDArray[np.object_], most: int) -> tuple[str, ...]:
    """Return the categories that occur most, in the order of their names."""
    names, counts = np.unique([value for value in values if value is not None], return_counts=True)
    if len(names) <= most:
        return tuple(str(name) for name in names)
    first = np.argsort(-counts, kind="stable")[:most]
    # A category that occurs once in both tables together can only be learnt by heart.
    return tuple(sorted(str(names[index]) for index in first if counts[index] > 1))


def _lengths(raw: Floats) -> Floats:
    return np.sqrt(row_products(raw, raw))


def row_products(rows: Floats, other: Floats) -> Floats:
    """Return each row's inner product, summed from left to right whatever the other rows are."""
    total = np.zeros(len(rows))
    for index in range(rows.shape[1]):
        total += rows[:, index] * other[..., index]
    return total


def _scaled(number: Number) -> Number:
    """A privatized column that is the same everywhere has the scale 1."""
    fine = np.isfinite(number.scale) and number.scale > 1e-150
    return number if fine else Number(number.centre, 1.0, number.fill)


TOLERANCE = Fraction(1, 2**30)  # of the gradient's length at the minimum that is found, at least
HEAVIEST = 2 * MOST_TIMES  # all rows weigh at most so much together
CHUNK = 4096  # rows that are added up in one product
UNIT_ROUNDOFF = Fraction(1, 2**53)
LATTICE = 64  # how much finer the lattice is than what one row moves


@dataclass(frozen=True, eq=False)
class OfTrueRows(Statistic[tuple[Ints, Floats]]):
    """Reads the columns of the privatized table off the true rows, and the key that splits them."""

    numbers: tuple[str, ...]
    texts: tuple[str, ...]

    def body(self) -> str:
        columns = [f"c{index}" for index in range(len(self.numbers) + len(self.texts))]
        return f"SELECT {', '.join([*columns, 'split_key'])}\nFROM evaluated"

    def rows_of(self, columns: Columns) -> tuple[Table, NDArray[Any]]:
        """Return the rows as a table, and the key of each."""
        count = len(self.numbers)
        arrays = [columns[f"c{index}"] for index in range(count + len(self.texts))]
        keys: NDArray[Any] = text_array(columns["split_key"])
        table = Table(
            {n: number_array(a) for n, a in zip(self.numbers, arrays, strict=False)},
            {n: text_array(a) for n, a in zip(self.texts, arrays[count:], strict=True)},
            {},
            rows=len(keys),
        )
        return table, keys


@dataclass(frozen=True, eq=False)
class Separator(OfTrueRows):
    """Coefficients of a ridge logistic regression on half of the true rows, and the other half.

    The coefficients minimise 1/(2 m) sum over true training rows log(1 + exp(-t x))
    + 1/(2 n) sum over public privatized training rows log(1 + exp(t x)) + ridge/2 |t|^2,
    with m a public number, and are rounded to a public lattice. The other half, the rows held
    out, is sealed beside them for the count that follows (`called_true`).

    Claim:       a rows of the training half that leave or arrive move the coefficients by at most
                 a * row + slack (L1, lattice steps); b rows of the other half move a later count
                 by at most b.                                         [claim: separability]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the minimum of a function with curvature `ridge` moves by the change of gradient,
                 at most 1/(2 m) a row, over `ridge`; L1 is at most sqrt(d) times that. The slack
                 holds the solver's and the doubles' errors and the rounding to the lattice.
    Numerics:    doubles with a proved bound on their error, then exact integers.
    Refuses:     nothing in the rows.
    Reference:   Chaudhuri, Monteleoni and Sarwate 2011, corollary 8 (output perturbation).
    Cost:        a dozen Newton steps, O(rows x d^2) each.
    """

    recipe: Recipe
    public: Floats
    """Vectors of the privatized training rows."""
    expected: int
    """m: about how many true training rows there are. Public."""
    ridge: Fraction
    claim = "separability"
    shown_by = (
        "tests/questions/separability/test_private.py"
        "::test_a_row_moves_the_coefficients_or_the_count_and_never_more_than_claimed"
    )

    @property
    def dimension(self) -> int:
        return int(self.public.shape[1])

    @property
    def features(self) -> tuple[str, ...]:
        return self.recipe.features

    def coefficients(self, answer: Ints) -> Floats:
        """Return the separator of a noisy answer."""
        return np.asarray(answer * float(self.step), dtype=np.float64)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what the booking says of it."""
        return {"ridge": str(self.ridge), "features": self.dimension}

    def read(self, columns: Columns) -> tuple[Ints, Floats]:
        table, keys = self.rows_of(columns)
        vectors, out = self.recipe.vectors(table, keys)
        steps = np.rint(self.minimum(vectors[~out]) / float(self.step))
        return steps.astype(np.int64), vectors[out]

    def sensitivity(self, protection: Protection) -> int:
        """Of the coefficients alone, in lattice steps."""
        return protection.rows_moved * self.row + self.slack

    @cached_property
    def step(self) -> Fraction:
        """The lattice: a power of two, fine against what one row moves."""
        return power_of_two(self._curved(self._gradient) / (LATTICE * self.dimension))

    @cached_property
    def row(self) -> int:
        """Lattice steps, summed over entries, by which one training row moves the minimum."""
        return math.ceil(self._curved(self._gradient) / self.step)

    @cached_property
    def slack(self) -> int:
        """Lattice steps by which errors and rounding may move the coefficients besides."""
        errors = self._curved(2 * (self.tolerance + self.rounding))
        return math.ceil(errors / self.step) + self.dimension

    @property
    def _gradient(self) -> Fraction:
        return Fraction(1, 2 * self.expected)

    def _curved(self, gradient: Fraction) -> Fraction:
        """Return how far a gradient of this length moves the minimum at most, in L1."""
        root = Fraction(math.isqrt(self.dimension << 40) + 1, 1 << 20)
        return root * gradient / self.ridge

    @property
    def tolerance(self) -> Fraction:
        """The gradient's length at which the solver stops; above what doubles can get wrong."""
        return max(TOLERANCE, 4 * self.rounding)

    @property
    def rounding(self) -> Fraction:
        """A bound on the length of the error of a gradient that is computed in doubles."""
        products = self.dimension * HEAVIEST / self.ridge
        return 2 * HEAVIEST * UNIT_ROUNDOFF * (CHUNK + 64 + products)

    def minimum(self, true: Floats) -> Floats:
        """Take Newton's steps, shortened until the gradient shrinks, down to the tolerance."""
        ridge, tolerance = float(self.ridge), float(self.tolerance)
        at = np.zeros(self.dimension)
        slope = self.gradient(true, at)
        while np.sqrt(slope @ slope) > tolerance:
            curved = ridge * np.eye(self.dimension)
            for rows, weight, sign in self._sides(true):
                for part in chunks(rows):
                    share = logistic(sign * (part @ at))
                    curved += weight * (part * (share * (1 - share))[:, None]).T @ part
            move, length = np.linalg.solve(curved, slope), 1.0
            while True:
                tried = at - length * move
                then = self.gradient(true, tried)
                if then @ then < slope @ slope * (1 - length / 2):
                    break
                length /= 2
            at, slope = tried, then
        return at

    def gradient(self, true: Floats, at: Floats) -> Floats:
        """Sum in chunks, so that the error of doubles does not grow with the rows."""
        parts = [float(self.ridge) * at]
        for rows, weight, sign in self._sides(true):
            parts += [
                -sign * weight * (logistic(-sign * (part @ at)) @ part) for part in chunks(rows)
            ]
        return np.array([math.fsum(entry) for entry in np.array(parts).T])

    def _sides(self, true: Floats) -> tuple[tuple[Floats, float, float], ...]:
        return (
            (true, 1 / (2 * self.expected), 1.0),
            (self.public, 1 / (2 * max(len(self.public), 1)), -1.0),
        )


def called_true(coefficients: ArrayLike, rows: Floats) -> Ints:
    """Count the rows that a separator calls true, and those that it calls privatized.

    A row's call follows from that row and the public coefficients, to the last bit.
    """
    called = int((row_products(rows, np.asarray(coefficients, dtype=float)) >= 0).sum())
    return np.array([called, len(rows) - called], dtype=np.int64)


def power_of_two(number: Fraction) -> Fraction:
    """Return the largest power of two that is not above the number.

    >>> power_of_two(Fraction(3)), power_of_two(Fraction(1, 3))
    (Fraction(2, 1), Fraction(1, 4))
    """
    power = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length())
    return power if power <= number else power / 2


def chunks(rows: Floats) -> list[Floats]:
    return [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]


class Separated:
    """One released separator, and how well it tells rows apart that it was not trained on."""

    def __init__(
        self, statistic: Any, mechanism: Disjoint, values: tuple[Ints, Ints], public: Floats
    ) -> None:
        answer, counts = values
        coefficients = statistic.coefficients(answer)
        self.statistic, self.values = statistic, values
        self.coefficients = dict(zip(statistic.features, coefficients.tolist(), strict=True))
        wrong, right = (int(count) for count in called_true(coefficients, public))
        self.rows, self.right = wrong + right, right
        self.share = right / max(self.rows, 1)
        self.recall = Ratio(
            counts=NoisyCounts(
                estimate=np.asarray(counts, dtype=float),
                spread=np.eye(2),
                scale=mechanism.second.float_scale,
            ),
            numerator=np.array([1.0, 0.0]),
            denominator=np.array([1.0, 1.0]),
        )

    @property
    def value(self) -> float:
        return self.recall.value + self.share - 1

    def called_privatized(self, level: float) -> Interval:
        return _wilson(self.right, self.rows, level)

    def noise_interval(self, level: float) -> Interval:
        low, high = self.recall.noise_interval(level)
        return (low + self.share - 1, high + self.share - 1)

    def interval(self, level: float) -> Interval:
        # Each side gets half of the error, so that both hold together at the level.
        side = (1 + level) / 2
        (low, high), (least, most) = self.recall.interval(side), self.called_privatized(side)
        return (low + least - 1, high + most - 1)


class SeparabilityRelease(Release):
    """Noisy separators, and how well the best of them tells rows apart that none was trained on.

    It is a lower bound: a separator that sees more may tell more.
    """

    def __init__(self, drawn: Drawn, *, parts: Mapping[str, Separated]) -> None:
        super().__init__(drawn)
        self._parts = parts
        self._stronger = max(parts.values(), key=lambda part: part.value)

    @property
    def coefficients(self) -> dict[str, float]:
        """The released separator, of single columns if it was asked for; positive speaks for the
        truth. Noisy, and free to use."""
        return next(iter(self._parts.values())).coefficients

    @property
    def sees(self) -> str:
        """Return which differences could be seen, and that there may be others."""
        pairs = self._parts.get(PAIRS)
        seen = []
        if COLUMNS in self._parts:
            seen.append("in single columns")
        if pairs is not None:
            seen.append(f"in which of {len(pairs.statistic.signs.columns)} columns go together")
        blind = "" if pairs is not None else " That columns no longer go together it cannot see."
        return (
            f"A lower bound: it sees differences {' and '.join(seen)}, and another classifier may "
            f"see more.{blind}"
        )

    @cached_property
    def measures(self) -> dict[str, Measure]:
        parts, best = list(self._parts.values()), self._stronger

        def shared(level: float) -> float:
            """With this level for each, all parts hold at the level."""
            return 1 - (1 - level) / len(parts)

        def largest(ends: str) -> Callable[[float], Interval]:
            def interval(level: float) -> Interval:
                intervals = [getattr(part, ends)(shared(level)) for part in parts]
                return max(low for low, _ in intervals), max(high for _, high in intervals)

            return interval

        def halved(make: Callable[[float], Interval]) -> Callable[[float], Interval]:
            def half(level: float) -> Interval:
                low, high = make(level)
                return (1 + low) / 2, (1 + high) / 2

            return half

        def measure(
            name: str, value: float, noise: Callable[[float], Interval], full: Any
        ) -> dict[str, Measure]:
            made = Measure(value, name=name, terms=self.terms, noise_interval=noise, interval=full)
            return {name: made}

        noise, full = largest("noise_interval"), largest("interval")
        recall, share = best.recall, best.share
        measures = {
            **measure("separability", best.value, noise, full),
            **measure("accuracy", (1 + best.value) / 2, halved(noise), halved(full)),
            **measure(
                "true rows called true",
                recall.value,
                lambda level: recall.noise_interval(shared(level)),
                lambda level: recall.interval(shared(level)),
            ),
            **measure(
                "privatized rows called privatized",
                share,
                lambda level: (share, share),
                lambda level: best.called_privatized(shared(level)),
            ),
        }
        if len(parts) > 1:
            for name, part in self._parts.items():
                own = f"separability by {name}"
                measures |= measure(own, part.value, part.noise_interval, part.interval)
        return measures

    def __str__(self) -> str:
        return f"{self.headline}. {self.sees}"

    def _lead(self) -> str:
        return f"{super()._lead()}. {self.sees}"

    def _noisy(self) -> dict[str, Any]:
        drawn = {
            name: dict(
                zip(("coefficients", "called"), (v.tolist() for v in part.values), strict=True)
            )
            for name, part in self._parts.items()
        }
        return drawn if len(drawn) > 1 else next(iter(drawn.values()))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        content = super().as_dict(level)
        content["lower_bound"], content["sees"] = True, self.sees
        first = next(iter(self._parts.values())).statistic
        if isinstance(first, Separator):
            content["lattice"] = str(first.step)
        content["coefficients"] = self.coefficients
        if len(self._parts) > 1:
            content["pairs"] = self._parts[PAIRS].coefficients
        return content


def _wilson(hits: int, rows: int, level: float) -> Interval:
    from scipy.special import ndtri

    if rows == 0:
        return (0.0, 1.0)
    z = float(ndtri((1 + level) / 2))
    centre = (hits + z * z / 2) / (rows + z * z)
    half = z / (rows + z * z) * math.sqrt(hits * (rows - hits) / rows + z * z / 4)
    return (max(0.0, centre - half), min(1.0, centre + half))


# A separator that sees which columns go together: products of signs, as a statistic of the truth.
#
# Shuffle every column of a table by itself and each column is as it was; what is lost is which
# values go together. Here every column is cut in two by the public copy, which makes a row a list
# of signs, and a row's features are the products of two signs each. How much more often two signs
# agree in the truth than in the copy says which rows look true.


@dataclass(frozen=True, eq=False)
class Signs:
    """A function of one row alone: for each column of some, on which side of a public cut it is.

    Numbers above the privatized median are +1, and so are the privatized data's most frequent
    categories, as many as come nearest to half of its rows; everything else is -1.
    """

    above: dict[str, float]
    """By column of numbers: what exceeds it is +1."""
    levels: dict[str, frozenset[str]]
    """By column of texts: the categories that are +1."""

    @classmethod
    def of(cls, privatized: Table, *, most: int) -> "Signs":
        """Cut the columns that the privatized data divides most evenly, at most so many."""
        above = {name: _cut_number(values) for name, values in privatized.numbers.items()}
        levels = {name: _cut_text(values) for name, values in privatized.texts.items()}
        whole = cls(above, levels)
        uneven = np.abs(whole.vectors(privatized).mean(axis=0))
        order = np.argsort(uneven, kind="stable")[:most]
        chosen = {whole.columns[index] for index in order if uneven[index] < 1}
        return cls(
            {name: cut for name, cut in above.items() if name in chosen},
            {name: cut for name, cut in levels.items() if name in chosen},
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.above, *self.levels)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Places of columns, two by two."""
        size = len(self.columns)
        return tuple((i, j) for i in range(size) for j in range(i + 1, size))

    def vectors(self, table: Table) -> Ints:
        """Return the signs of each row, from the cells of that row alone."""
        signs = [table.numbers[name] > cut for name, cut in self.above.items()]
        for name, levels in self.levels.items():
            signs.append(np.array([value in levels for value in table.texts[name]], dtype=bool))
        columns = np.array(signs, dtype=bool).reshape(len(self.columns), table.rows)
        result: Ints = np.where(columns.T, 1, -1).astype(np.int64)
        return result

    def products(self, vectors: Ints) -> Ints:
        """Return the product of each pair of signs, by row."""
        first, second = (np.array([pair[i] for pair in self.pairs], dtype=int) for i in (0, 1))
        result: Ints = vectors[:, first] * vectors[:, second]
        return result


def _cut_number(values: Floats) -> float:
    """The median, or the number just below it if that divides the values more evenly."""
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return math.inf
    median = float(known[len(known) // 2])
    below = known[known < median]
    cuts = [median, *([float(below[-1])] if len(below) else [])]
    return min(cuts, key=lambda cut: abs(float((known > cut).mean()) - 0.5))


def _cut_text(values: NDArray[np.object_]) -> frozenset[str]:
    names, counts = np.unique([value for value in values if value is not None], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    if len(order) == 0:
        return frozenset()
    taken = np.abs(np.cumsum(counts[order]) / len(values) - 0.5)
    return frozenset(str(names[index]) for index in order[: int(np.argmin(taken)) + 1])


def columns_for(epsilon: Fraction, *, moved: int, expected: int) -> int:
    """Return how many columns noise leaves something to see of; of public numbers alone.

    >>> columns_for(Fraction(1, 2), moved=2, expected=1500)
    12
    """
    pairs = LOUDEST * float(epsilon) * expected / (math.sqrt(2) * moved)
    columns = math.floor((1 + math.sqrt(1 + 8 * pairs)) / 2)
    return min(max(columns, 2), MOST_COLUMNS)


@dataclass(frozen=True, eq=False)
class SignProducts(OfTrueRows):
    """Sums of the products of two signs over half of the true rows, and the other half's products.

    Claim:       a rows of the training half that leave or arrive move the sums by at most
                 a * pairs (L1); b rows of the other half move a later count by at most b.
                                                                     [claim: joint-separability]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds +1 or -1 to the sum of every pair.
    Numerics:    exact integers.
    Refuses:     nothing in the rows.
    Reference:   proofs/joint-separability.md.
    Cost:        one scan, O(rows x pairs).
    """

    signs: Signs
    public: Ints
    """Products of the privatized training rows."""
    expected: int
    """About how many true training rows there are. Public."""
    claim = "joint-separability"
    shown_by = (
        "tests/questions/separability/test_pairs.py"
        "::test_a_row_moves_the_sums_or_the_count_and_never_more_than_claimed"
    )

    @property
    def row(self) -> int:
        """The pairs: what one training row moves."""
        return len(self.signs.pairs)

    @property
    def slack(self) -> int:
        return 0

    @property
    def features(self) -> tuple[str, ...]:
        names = self.signs.columns
        return (*(f"{names[i]} with {names[j]}" for i, j in self.signs.pairs), "constant")

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what the booking says of it."""
        return {"pairs": self.row}

    def read(self, columns: Columns) -> tuple[Ints, Floats]:
        products, out = self.halves(*self.rows_of(columns))
        return products[~out].sum(axis=0), with_constant(products[out])

    def halves(
        self, table: Table, keys: Sequence[object] | NDArray[Any] | None = None
    ) -> tuple[Ints, Bools]:
        """Return the products of each row, and which rows are held out."""
        vectors = self.signs.vectors(table)
        out = held_out([None] * table.rows if keys is None else keys, vectors.astype(float))
        return self.signs.products(vectors), out

    def sensitivity(self, protection: Protection) -> int:
        """Of the sums alone."""
        return protection.rows_moved * self.row

    @cached_property
    def _usual(self) -> Floats:
        """Mean products of the privatized training rows."""
        result: Floats = self.public.mean(axis=0) if len(self.public) else np.zeros(self.row)
        return result

    def coefficients(self, answer: Ints) -> Floats:
        """Return the separator of noisy sums: a weight for each product, and one for a constant."""
        weights = answer / self.expected - self._usual
        scores = row_products(self.public.astype(float), weights)
        limit = float(np.quantile(scores, CUT)) if len(scores) else 0.0
        return np.append(weights, -limit)


def with_constant(products: Ints) -> Floats:
    """Return the features of rows as `called_true` takes them."""
    return np.column_stack([products.astype(float), np.ones(len(products))])
