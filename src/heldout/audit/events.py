"""Events that may tell two neighbours apart: learned and chosen on samples that test nothing.

Every outcome is a row of numbers. From each we make features that an attacker would look at: the
numbers themselves, how far out they are, their lowest bit (floating-point noise shows its grid
there), the outcome as a whole, and learned scores. An event is a feature above, below or at a
value. Which one is best is decided on samples that test nothing; others test that one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from heldout.audit.bounds import epsilon_bound, lower, upper
from heldout.audit.learned import laplace_ratio, learned_score, telling

__all__ = ["Event", "Features", "as_table", "best_event", "learn", "stacked"]

Feature = Callable[[Any], Any]
_ATOMS = 512  # a feature with no more values than this is taken value by value
_BINS = 32
_MOST_PLAIN = 96  # numbers of an outcome that are looked at one by one
_MISSING = -1e300
_RIDGES = (0.003, 0.03)
_CAUTION = 0.02


@dataclass(frozen=True)
class Event:
    """A feature compared with a value."""

    feature: str
    relation: str
    value: float

    def __str__(self) -> str:
        return f"{self.feature} {self.relation} {self.value:.6g}"

    def holds(self, found: Any) -> Any:
        if self.relation == ">=":
            return found >= self.value
        return found <= self.value if self.relation == "<=" else found == self.value


@dataclass
class Features:
    """Named functions from outcomes to one number each."""

    functions: dict[str, Feature] = field(default_factory=dict)

    def hits(self, event: Event, outcomes: Any) -> int:
        return int(np.count_nonzero(event.holds(self.functions[event.feature](outcomes))))


def as_table(outcomes: Any) -> Any:
    """Outcomes as rows of finite doubles; what is missing has a number of its own."""
    table = np.asarray(outcomes, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    return np.nan_to_num(table, nan=_MISSING, posinf=1e308, neginf=-1e308) + 0.0


def stacked(rows: Sequence[Any]) -> Any:
    """Rows, or tables, of any length under one another; what a shorter one lacks is NaN.

    >>> stacked([[1, 2], [3]]).tolist()
    [[1.0, 2.0], [3.0, nan]]
    """
    tables = [np.asarray(each, dtype=np.float64) for each in rows]
    tables = [each[None, :] if each.ndim == 1 else each for each in tables]
    width = max(each.shape[1] for each in tables)
    if all(each.shape[1] == width for each in tables):
        return np.concatenate(tables)
    return np.concatenate(
        [
            np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=np.nan)
            for each in tables
        ]
    )


def learn(first: Any, second: Any) -> Features:
    """Features for outcomes of two neighbours, learned on these samples."""
    found = Features()
    columns = range(min(first.shape[1], _MOST_PLAIN))
    for j in columns:
        both = np.concatenate([first[:, j], second[:, j]])
        if (both == both[0]).all():
            continue
        found.functions[f"number {j + 1}"] = _column(j)
        found.functions[f"distance of number {j + 1}"] = _distance(j, float(np.median(both)))
        if (both != np.rint(both)).any():
            found.functions[f"lowest bit of number {j + 1}"] = _lowest_bit_of(j)
    found.functions["whole outcome"] = _fingerprint
    learned = [_log_ratio(_column(j), first, second) for j in columns]
    found.functions["log ratio of the numbers"] = lambda rows: sum(each(rows) for each in learned)
    found.functions["log ratio of the outcome"] = _log_ratio(_fingerprint, first, second)
    if first.shape[1] > 1:
        found.functions["direction"] = _direction(first, second)
        found.functions["Laplace ratio"] = laplace_ratio(first, second)
    best = telling(first, second)
    for name, numbers in (("learned score", best), ("learned score of the most telling", best[:3])):
        for ridge in _RIDGES:
            score = learned_score(first, second, numbers, ridge=ridge)
            found.functions[f"{name} ({ridge:g})"] = score
    return found


def best_event(
    features: Features,
    first: Any,
    second: Any,
    *,
    error: float,
    delta: float,
    trials: int | None = None,
) -> tuple[Event, float]:
    """The event that would show most in so many trials, and how much.

    More likely under the first neighbour. Its chances are guessed with caution: the best of very
    many events looks better than it is, a rare one most of all.
    """
    best, most, furthest = Event("whole outcome", "==", 0.0), 0.0, -np.inf
    size = len(first)
    trials = trials or size
    for name, function in features.functions.items():
        here, there = np.sort(function(first)), np.sort(function(second))
        exact = name == "whole outcome"
        for relation in ("==",) if exact else (">=", "<=", "=="):
            values = _candidates(here, there, relation)
            if not values.size:
                continue
            hits, others = (_count(each, values, relation) for each in (here, there))
            likely, unlikely = lower(hits, size, _CAUTION), upper(others, size, _CAUTION)
            bounds = epsilon_bound(
                likely * trials, unlikely * trials, trials, error=error, delta=delta
            )
            # Without a positive bound, what is furthest apart.
            apart = (hits - others) / np.sqrt(hits + others + 1.0)
            place = int(np.argmax(bounds if bounds.max() > 0 else apart))
            if (bounds[place], apart[place]) > (most, furthest):
                best = Event(name, relation, float(values[place]))
                most, furthest = float(bounds[place]), float(apart[place])
    return best, most


def _candidates(here: Any, there: Any, relation: str) -> Any:
    both = np.concatenate([here, there])
    if relation == "==":
        values, counts = np.unique(here, return_counts=True)
        common = np.argsort(counts)[::-1][:_ATOMS]
        return values[common][counts[common] > 1]
    tails = 2.0 ** -np.arange(2, np.log2(len(both)) - 3)
    levels = np.concatenate([np.linspace(0.02, 0.98, 97), tails, 1 - tails])
    return np.unique(np.quantile(both, levels, method="nearest"))


def _count(ordered: Any, values: Any, relation: str) -> Any:
    below = np.searchsorted(ordered, values, side="left")
    not_above = np.searchsorted(ordered, values, side="right")
    if relation == ">=":
        return len(ordered) - below
    return not_above if relation == "<=" else not_above - below


def _column(j: int) -> Feature:
    return lambda rows: rows[:, j]


def _distance(j: int, centre: float) -> Feature:
    return lambda rows: np.abs(rows[:, j] - centre)


def _lowest_bit_of(j: int) -> Feature:
    return lambda rows: lowest_bit(rows[:, j])


def lowest_bit(numbers: Any) -> Any:
    """The exponent of the lowest bit that is set: -1 for 0.5 and 0.75 - 0.25, 0 for 3, 1 for 6.

    >>> lowest_bit(np.array([0.5, 3.0, 6.0, 0.1])).tolist()
    [-1.0, 0.0, 1.0, -55.0]
    """
    mantissa, exponent = np.frexp(np.where(numbers == 0, 1.0, numbers))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64))
    return np.where(numbers == 0, 1024.0, exponent - 53 + lowest)


def _fingerprint(rows: Any) -> Any:
    """A number that is the same for the same outcome and for hardly any other."""
    words = np.ascontiguousarray(rows).view(np.uint64)
    total = np.zeros(len(rows), dtype=np.uint64)
    for j in range(words.shape[1]):
        total = (total ^ (words[:, j] >> np.uint64(29)) ^ words[:, j]) * np.uint64(
            0x9E3779B97F4A7C15
        )
        total ^= total >> np.uint64(32)
    return (total >> np.uint64(12)).astype(np.float64)


def _log_ratio(feature: Feature, first: Any, second: Any) -> Feature:
    """The logarithm of how much more often a value is seen under the first neighbour."""
    here, there = feature(first), feature(second)
    values = np.unique(np.concatenate([here, there]))
    if values.size > _ATOMS and feature is _fingerprint:
        # Outcomes that hardly come twice: only those that do are told apart.
        seen, counts = np.unique(np.concatenate([here, there]), return_counts=True)
        values = np.sort(seen[np.argsort(counts)[::-1][:_ATOMS]])
    elif values.size > _ATOMS:
        levels = np.linspace(0, 1, _BINS + 1)[1:-1]
        values = np.unique(np.quantile(np.concatenate([here, there]), levels))
    atoms = feature is _fingerprint

    def place(found: Any) -> Any:
        at = np.searchsorted(values, found, side="right")
        if not atoms:
            return at
        known = values[np.minimum(np.maximum(at, 1), values.size) - 1] == found
        return np.where(known, at, 0)

    size = values.size + 1
    ratio = np.log(
        (np.bincount(place(here), minlength=size) + 1.0)
        / (np.bincount(place(there), minlength=size) + 1.0)
    )
    return lambda rows: ratio[place(feature(rows))]


def _direction(first: Any, second: Any) -> Feature:
    """Fisher's linear discriminant on clipped numbers: noise with a long tail must not rule it."""
    both = np.concatenate([first, second])
    low, high = np.quantile(both, [0.02, 0.98], axis=0)

    width = np.where(high > low, high - low, 1.0)

    def clipped(rows: Any) -> Any:
        return (np.clip(rows, low, high) - low) / width

    spread = np.cov(clipped(both), rowvar=False)
    spread += np.eye(len(spread)) * (1e-9 + 1e-6 * np.trace(spread))
    apart = clipped(first).mean(axis=0) - clipped(second).mean(axis=0)
    weights = np.linalg.solve(spread, apart)
    return lambda rows: clipped(rows) @ weights
