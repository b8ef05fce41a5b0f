"""Events that may tell two neighbours apart: learned and chosen on samples that test nothing.

Every outcome is a row of numbers. From each we make features that an attacker would look at: the
numbers themselves, how far out they are, their lowest bit (floating-point noise shows its grid
there), the outcome as a whole, and learned scores. An event is a feature above, below or at a
value. Which one is best is decided on samples that test nothing; others test that one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from heldout.kernel.loss import Loss

# Turn counts of an event on two neighbours into a lower bound on epsilon: an audit's result.
Floats = npt.NDArray[np.float64]


def lower(hits: npt.ArrayLike, trials: int, error: float) -> Floats:
    """A chance that is below the true one, but for one time in 1/error.

    >>> round(float(lower(30, 100, 0.025)), 4)
    0.2124
    """
    from scipy.special import betaincinv

    counts = np.asarray(hits, dtype=np.float64)
    chances = betaincinv(np.maximum(counts, 1), trials - counts + 1, error)
    return np.where(counts > 0, chances, 0.0)


def upper(hits: npt.ArrayLike, trials: int, error: float) -> Floats:
    """A chance that is above the true one, but for one time in 1/error.

    >>> round(float(upper(30, 100, 0.025)), 4)
    0.3998
    """
    from scipy.special import betaincinv

    counts = np.asarray(hits, dtype=np.float64)
    chances = betaincinv(counts + 1, np.maximum(trials - counts, 1), 1 - error)
    return np.where(counts < trials, chances, 1.0)


def epsilon_bound(
    hits: npt.ArrayLike,
    hits_of_neighbour: npt.ArrayLike,
    trials: int,
    *,
    error: float,
    delta: float = 0.0,
) -> Floats:
    """The epsilon that the mechanism surely has at least, but for one time in 1/error.

    Claim:       with chance 1 - error the true epsilon at this delta is not below it.
    Numerics:    doubles; the chances are exact tails of the binomial law.
    Reference:   Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020, section 3.

    >>> round(float(epsilon_bound(50_000, 18_394, 100_000, error=1e-3)), 2)  # ln 2.718 is 1
    0.97
    >>> float(epsilon_bound(10, 30, 100, error=1e-3))
    0.0
    """
    above = lower(hits, trials, error / 2) - delta
    below = upper(hits_of_neighbour, trials, error / 2)
    return np.asarray(np.maximum(0.0, np.log(np.maximum(above, 1e-300)) - np.log(below)))


@dataclass(frozen=True)
class Finding:
    """The best event on one pair of neighbours, tested on samples that did not choose it."""

    pair: str
    towards: str  # which neighbour the event is more likely on
    event: str
    hits: int
    hits_of_neighbour: int
    trials: int
    epsilon: float
    """The epsilon that the mechanism has at least, with the result's confidence."""

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class AuditResult:
    """An empirical lower bound on epsilon. All findings hold together at `confidence`."""

    subject: str
    kind: str
    claimed: Loss
    findings: Sequence[Finding]
    samples: int
    confidence: float
    door: str
    seconds: float

    @property
    def worst(self) -> Finding:
        return max(self.findings, key=lambda finding: finding.epsilon)

    @property
    def epsilon(self) -> float:
        """The true epsilon is at least this, at the claimed delta, with the confidence."""
        return self.worst.epsilon

    @property
    def violated(self) -> bool:
        """Return whether more was measured than claimed."""
        limit = self.claimed.epsilon
        return limit is not None and self.epsilon > float(limit)

    @property
    def share(self) -> float:
        """The bound as a part of what is claimed."""
        return self.epsilon / float(self.claimed.epsilon or 1)

    def __str__(self) -> str:
        verdict = "NOT AS CLAIMED" if self.violated else "nothing found against the claim"
        return (
            f"{self.subject}: epsilon is at least {self.epsilon:.3f} with confidence "
            f"{self.confidence * 100:g}% (worst pair: {self.worst.pair}); claimed {self.claimed}; "
            f"{verdict}"
        )

    def __repr__(self) -> str:
        return str(self)

    def as_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "kind": self.kind,
            "claimed": self.claimed.as_dict(),
            "epsilon_at_least": self.epsilon,
            "violated": self.violated,
            "confidence": self.confidence,
            "samples": self.samples,
            "door": self.door,
            "seconds": round(self.seconds, 1),
            "findings": [finding.as_dict() for finding in self.findings],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "AuditResult":
        """Read what `as_dict` wrote."""
        same = ("subject", "kind", "samples", "confidence", "door", "seconds")
        return cls(
            claimed=Loss.from_dict(content["claimed"]),
            findings=[Finding(**finding) for finding in content["findings"]],
            **{name: content[name] for name in same},
        )


Feature = Callable[[Floats], Floats]
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

    def holds(self, numbers: Floats) -> npt.NDArray[np.bool_]:
        if self.relation == ">=":
            return numbers >= self.value
        return numbers <= self.value if self.relation == "<=" else numbers == self.value


@dataclass
class Features:
    """Named functions from outcomes to one number each."""

    functions: dict[str, Feature] = field(default_factory=dict)

    def hits(self, event: Event, outcomes: Floats) -> int:
        return int(np.count_nonzero(event.holds(self.functions[event.feature](outcomes))))


def as_table(outcomes: npt.ArrayLike) -> Floats:
    """Outcomes as rows of finite doubles; what is missing has a number of its own."""
    table = np.asarray(outcomes, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    return np.nan_to_num(table, nan=_MISSING, posinf=1e308, neginf=-1e308) + 0.0


def stack(rows: Sequence[npt.ArrayLike]) -> Floats:
    """Rows, or tables, of any length under one another; what a shorter one lacks is NaN.

    >>> stack([[1, 2], [3]]).tolist()
    [[1.0, 2.0], [3.0, nan]]
    """
    tables = [np.atleast_2d(np.asarray(table, dtype=np.float64)) for table in rows]
    width = max(table.shape[1] for table in tables)
    lacking = [((0, 0), (0, width - table.shape[1])) for table in tables]
    return np.concatenate(
        [
            np.pad(table, pad, constant_values=np.nan)
            for table, pad in zip(tables, lacking, strict=True)
        ]
    )


def learn(first: Floats, second: Floats) -> Features:
    """Features for outcomes of two neighbours, learned on these samples."""
    features = Features()
    columns = range(min(first.shape[1], _MOST_PLAIN))
    for j in columns:
        both = np.concatenate([first[:, j], second[:, j]])
        if (both == both[0]).all():
            continue
        features.functions[f"number {j + 1}"] = _column(j)
        features.functions[f"distance of number {j + 1}"] = _distance(j, float(np.median(both)))
        if (both != np.rint(both)).any():
            features.functions[f"lowest bit of number {j + 1}"] = _lowest_bit_of(j)
    features.functions["whole outcome"] = _fingerprint
    learned = [_log_ratio(_column(j), first, second) for j in columns]
    features.functions["log ratio of the numbers"] = lambda rows: np.sum(
        [ratio(rows) for ratio in learned], axis=0
    )
    features.functions["log ratio of the outcome"] = _log_ratio(_fingerprint, first, second)
    if first.shape[1] > 1:
        features.functions["direction"] = _direction(first, second)
        features.functions["Laplace ratio"] = laplace_ratio(first, second)
    best = telling(first, second)
    for name, numbers in (("learned score", best), ("learned score of the most telling", best[:3])):
        for ridge in _RIDGES:
            score = learned_score(first, second, numbers, ridge=ridge)
            features.functions[f"{name} ({ridge:g})"] = score
    return features


def best_event(
    features: Features,
    first: Floats,
    second: Floats,
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
            hits, others = (_count(side, values, relation) for side in (here, there))
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


def _candidates(here: Floats, there: Floats, relation: str) -> Floats:
    both = np.concatenate([here, there])
    if relation == "==":
        values, counts = np.unique(here, return_counts=True)
        common = np.argsort(counts)[::-1][:_ATOMS]
        return values[common][counts[common] > 1]
    tails = 2.0 ** -np.arange(2, np.log2(len(both)) - 3)
    levels = np.concatenate([np.linspace(0.02, 0.98, 97), tails, 1 - tails])
    return np.unique(np.quantile(both, levels, method="nearest"))


def _count(ordered: Floats, values: Floats, relation: str) -> npt.NDArray[np.intp]:
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


def lowest_bit(numbers: Floats) -> Floats:
    """The exponent of the lowest bit that is set: -1 for 0.5 and 0.75 - 0.25, 0 for 3, 1 for 6.

    >>> lowest_bit(np.array([0.5, 3.0, 6.0, 0.1])).tolist()
    [-1.0, 0.0, 1.0, -55.0]
    """
    mantissa, exponent = np.frexp(np.where(numbers == 0, 1.0, numbers))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64))
    return np.where(numbers == 0, 1024.0, exponent - 53 + lowest)


def _fingerprint(rows: Floats) -> Floats:
    """A number that is the same for the same outcome and for hardly any other."""
    words = np.ascontiguousarray(rows).view(np.uint64)
    total = np.zeros(len(rows), dtype=np.uint64)
    for j in range(words.shape[1]):
        total = (total ^ (words[:, j] >> np.uint64(29)) ^ words[:, j]) * np.uint64(
            0x9E3779B97F4A7C15
        )
        total ^= total >> np.uint64(32)
    return (total >> np.uint64(12)).astype(np.float64)


def _log_ratio(feature: Feature, first: Floats, second: Floats) -> Feature:
    """The logarithm of how much more often a value is seen under the first neighbour."""
    here, there = feature(first), feature(second)
    values = np.unique(np.concatenate([here, there]))
    if values.size > _ATOMS and feature is _fingerprint:
        # Outcomes that hardly come twice: only those that do are counted singly.
        seen, counts = np.unique(np.concatenate([here, there]), return_counts=True)
        values = np.sort(seen[np.argsort(counts)[::-1][:_ATOMS]])
    elif values.size > _ATOMS:
        levels = np.linspace(0, 1, _BINS + 1)[1:-1]
        values = np.unique(np.quantile(np.concatenate([here, there]), levels))
    atoms = feature is _fingerprint

    def place(numbers: Floats) -> npt.NDArray[np.intp]:
        at = np.searchsorted(values, numbers, side="right")
        if not atoms:
            return at
        known = values[np.minimum(np.maximum(at, 1), values.size) - 1] == numbers
        return np.where(known, at, 0)

    size = values.size + 1
    ratio = np.log(
        (np.bincount(place(here), minlength=size) + 1.0)
        / (np.bincount(place(there), minlength=size) + 1.0)
    )
    return lambda rows: ratio[place(feature(rows))]


def _direction(first: Floats, second: Floats) -> Feature:
    """Fisher's linear discriminant on clipped numbers: noise with a long tail must not rule it."""
    both = np.concatenate([first, second])
    low, high = np.quantile(both, [0.02, 0.98], axis=0)

    width = np.where(high > low, high - low, 1.0)

    def clipped(rows: Floats) -> Floats:
        return np.asarray((np.clip(rows, low, high) - low) / width)

    spread = np.cov(clipped(both), rowvar=False)
    spread += np.eye(len(spread)) * (1e-9 + 1e-6 * np.trace(spread))
    apart = clipped(first).mean(axis=0) - clipped(second).mean(axis=0)
    weights = np.linalg.solve(spread, apart)
    return lambda rows: clipped(rows) @ weights


_MOST = 10  # numbers that take part
_LEVELS = (0.03, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.97)
_STEPS = 8
_CLEAR = 2.0  # standard errors that two medians must be apart to count


def telling(first: Floats, second: Floats) -> list[int]:
    """The numbers whose place or spread differs most between the two, the most telling first."""
    both = np.concatenate([first, second])
    size, rows = len(first), len(both)
    deviation = np.sqrt(size * (rows - size) * (rows + 1) / 12)
    apart = []
    for j in range(both.shape[1]):
        numbers = both[:, j]
        off = 0.0
        for spread in (numbers, np.abs(numbers - np.median(numbers))):
            ranks = _ranks(spread)
            off = max(off, abs(ranks[:size].sum() - size * (rows + 1) / 2) / deviation)
        apart.append(off)
    order = np.argsort(apart)[::-1][:_MOST]
    return [int(j) for place, j in enumerate(order) if place == 0 or apart[j] > 2.0]


def laplace_ratio(first: Floats, second: Floats) -> Feature:
    """The log likelihood ratio as if each number had Laplace noise about its median.

    Two medians and a width are learned of each number, so that it takes many numbers, each of which
    tells a little, where pieces between quantiles would learn nothing but chance.

    >>> import numpy as np
    >>> noise = np.random.default_rng(0).laplace(size=(2000, 2))
    >>> score = laplace_ratio(noise + [1, 0], noise)
    >>> score(np.array([[9.0, 5.0], [-9.0, 5.0]])).round().tolist()
    [1.0, -1.0]
    """
    both = [np.median(side, axis=0) for side in (first, second)]
    away = [np.abs(side - middle) for side, middle in zip((first, second), both, strict=True)]
    width = np.maximum(np.concatenate(away).mean(axis=0), 1e-300)
    error = width * np.sqrt(1 / len(first) + 1 / len(second))
    used = np.flatnonzero(np.abs(both[0] - both[1]) > _CLEAR * error)
    (here, there), width = (side[used] for side in both), width[used]

    def ratio(rows: Floats) -> Floats:
        # A number that is the same in nearly all answers has a width of nearly nothing.
        apart = np.abs(rows[:, used] - there) - np.abs(rows[:, used] - here)
        with np.errstate(over="ignore"):
            return np.asarray(np.round(np.clip(apart / width, -1e6, 1e6).sum(axis=1), 12))

    return ratio


def _ranks(numbers: Floats) -> Floats:
    """Ranks from 1, the mean of them where numbers are equal."""
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place.reshape(numbers.shape)]


def learned_score(first: Floats, second: Floats, columns: list[int], *, ridge: float) -> Feature:
    """A score of outcomes that is high where the first neighbour is the more likely one."""
    both = np.concatenate([first, second])
    knots = {j: np.unique(np.quantile(both[:, j], _LEVELS, method="nearest")) for j in columns}

    def pieces(rows: Floats) -> Floats:
        columns = []
        for j, places in knots.items():
            numbers = rows[:, j]
            columns += [numbers < places[0], numbers > places[-1]]
            with np.errstate(over="ignore"):
                columns += [
                    np.clip((numbers - low) / (high - low), 0, 1) for low, high in pairwise(places)
                ]
        return np.stack(columns, axis=1).astype(np.float64)

    raw = pieces(both)
    centre, spread = raw.mean(axis=0), raw.std(axis=0) + 1e-3

    def design(rows: Floats) -> Floats:
        return np.column_stack([np.ones(len(rows)), (pieces(rows) - centre) / spread])

    table = design(both)
    labels = np.repeat([1.0, 0.0], [len(first), len(second)])
    penalty = np.full(table.shape[1], ridge * len(both))
    penalty[0] = 1e-9
    weights = np.zeros(table.shape[1])
    for _ in range(_STEPS):  # Newton's method, which the penalty keeps from running away
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (chance - labels) + penalty * weights
        curvature = (table * (chance * (1 - chance))[:, None]).T @ table + np.diag(penalty)
        weights = weights - np.linalg.solve(curvature, slope)
    return lambda rows: np.round(design(rows) @ weights, 12)
