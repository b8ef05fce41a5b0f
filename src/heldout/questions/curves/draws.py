"""Draws of rows, the numbers that drive them, and the intervals that hold most of them.

The numbers are the same at each call, and on every machine: whole-numbered hashes of counters. None
of this is a privacy mechanism; all of it is arithmetic on released numbers.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.arrays import Floats
from heldout.intervals.noise import normal_quantile
from heldout.questions.curves.tuned import EDGE, TAIL

__all__ = [
    "Draws",
    "ends_of",
    "gamma",
    "interval_of",
    "nearly_normal",
    "normal",
    "normal_deviations",
    "uniform",
]


def _hashes(stream: int, size: int) -> NDArray[np.unsignedinteger[Any]]:
    """Whole numbers of 64 bits that look random: SplitMix64 (Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        mixed = np.arange(1, size + 1, dtype=np.uint64) + np.uint64(stream << 40)
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def uniform(stream: int, *shape: int) -> Floats:
    """Numbers in (0, 1).

    >>> uniform(1, 3).round(4).tolist()
    [0.0985, 0.0454, 0.2483]
    """
    halves = (_hashes(stream, math.prod(shape)) >> np.uint64(11)) + 0.5
    return np.asarray(halves.reshape(shape) * 2.0**-53, dtype=np.float64)


@lru_cache(maxsize=4)
def normal(stream: int, *shape: int) -> Floats:
    """Numbers of a standard normal law."""
    drawn = normal_quantile(uniform(stream, *shape))
    drawn.setflags(write=False)
    return drawn


def nearly_normal(stream: int, *shape: int) -> Floats:
    """Sums of four uniform numbers, of mean 0 and variance 1: for scatter, where tails are moot."""
    quarters = _hashes(stream, math.prod(shape)).view(np.uint16).reshape(-1, 4)
    drawn: Floats = (quarters.sum(axis=1, dtype=np.int64) - 131070.0) * (math.sqrt(3) / 65536)
    return drawn.reshape(shape)


def gamma(stream: int, shape: Floats) -> Floats:
    """Gamma numbers of these shapes: the cube of a normal one (Wilson and Hilferty 1931).

    Of a shape below 1, that of one more times a power of a uniform number.
    """
    small = shape < 1
    whole = np.where(small, shape + 1, shape)
    root = 1 / (3 * np.sqrt(whole))
    cube = np.maximum(1 - root * root + root * nearly_normal(stream, *shape.shape), 0.01)
    drawn = whole * cube**3
    if small.any():
        places = np.nonzero(small)
        chance = uniform(stream + 1, *shape.shape)[places]
        drawn[places] *= np.exp(np.maximum(np.log(chance) / shape[places], -600.0))
    return np.asarray(drawn)


def interval_of(
    draws: Floats, level: float, *, low: float = 0.0, high: float = 1.0
) -> tuple[float, float]:
    """Where this much of the draws lies, the same share of the rest on either side.

    Beyond `TAIL` it grows as that of a normal law, as draws are few there. One that comes near an
    end of the range goes on to it: no draw lies quite there, and the truth may.
    """
    within = min(level, TAIL)
    ends = np.quantile(draws, [(1 - within) / 2, 0.5, (1 + within) / 2])
    if level > TAIL:
        more = normal_deviations(level) / normal_deviations(TAIL)
        ends = ends[1] + (ends - ends[1]) * more
    first, last = float(ends[0]), float(ends[2])
    room = EDGE * (last - first)
    first = low if first - low <= room else first
    last = high if high - last <= room else last
    return max(first, low), min(last, high)


def normal_deviations(level: float) -> float:
    """Return how many deviations hold so much of a normal law."""
    return float(normal_quantile(np.array([(1 + level) / 2]))[0])


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows of both classes by part of the grid, one table a draw; lowest scores first."""

    negatives: Floats
    positives: Floats

    @cached_property
    def sizes(self) -> tuple[Floats, Floats]:
        return self.negatives.sum(axis=1), self.positives.sum(axis=1)

    @cached_property
    def above(self) -> tuple[Floats, Floats]:
        """Count the rows at or above the start of each part; 0 after the last."""
        false, true = (
            np.pad(np.cumsum(rows[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
            for rows in (self.negatives, self.positives)
        )
        return false, true

    @cached_property
    def rates(self) -> tuple[Floats, Floats]:
        """False and true positive rates from the highest threshold down."""
        false, true = (
            above[:, ::-1] / np.maximum(size, 1e-9)[:, None]
            for above, size in zip(self.above, self.sizes, strict=True)
        )
        return false, true


def ends_of(heights: Floats, level: float) -> tuple[Floats, Floats]:
    """The interval at each place by itself."""
    within = min(level, TAIL)
    low, middle, high = np.quantile(heights, [(1 - within) / 2, 0.5, (1 + within) / 2], axis=0)
    if level > TAIL:
        more = normal_deviations(level) / normal_deviations(TAIL)
        low, high = middle + (low - middle) * more, middle + (high - middle) * more
    return low, high
