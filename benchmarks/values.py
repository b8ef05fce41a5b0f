"""Declared values: coverage of 95% intervals, and the error beside the simplest Laplace answer.

    python -m benchmarks.values [repetitions]

Rows and noise are simulated; the intervals are those of the releases. The last columns are ratios:
the interval's width over that of the same rows without noise, and the mean error over that of
Laplace noise of the mean's own sensitivity (or, for a median, of a histogram with as many bins
from which one interpolates).
"""

import math
import sys
from itertools import product

import numpy as np

from benchmarks.class_coverage import HIGH, LOW, released
from heldout import questions as q
from heldout.data.description import MeasuredRows, ValueRange
from heldout.kernel import Protection
from heldout.kernel.statistic import STEPS

RANDOM = np.random.default_rng(36)
GRID = tuple(product((300, 2_000, 20_000), ("1/4", "1", "4")))
NORMAL = 1.959964


def described(rows: int) -> MeasuredRows:
    values = {"a": ValueRange(0.0, 1.0), "b": ValueRange(0.0, 1.0)}
    relation = Protection(neighbours="replace-one")
    return MeasuredRows(name="made up", protection=relation, rows=rows, values=values)


def beta(rows: int):
    """Dice scores of a good model: mean .8, skewed."""
    return RANDOM.beta(8, 2, rows)


def costs(rows: int):
    """Costs of which most are small: mean .05."""
    return np.minimum(RANDOM.exponential(0.05, rows), 1.0)


def sums(numbers):
    """Return what `ValueSums` gives of numbers from 0 to 1, where their count is public."""
    steps = np.floor(numbers * STEPS + 0.5).astype(np.int64)
    return np.array([steps.sum(), (steps * (STEPS - steps) // STEPS).sum()])


def cases():
    """Yield a name, a question, and a draw: exact vector, own value, population's, deviation."""

    def mean(draw, truth):
        def of(rows):
            x = draw(rows)
            return sums(x), x.mean(), truth, x.std()

        return of

    def difference(rows):
        first = beta(rows)
        second = np.clip(first + RANDOM.normal(0.02, 0.1, rows), 0, 1)
        return (
            sums((second - first + 1) / 2),
            (second - first).mean(),
            APART,
            (second - first).std(),
        )

    def share(rows):
        x = (beta(rows) >= 0.7).astype(float)
        return sums(x), x.mean(), ABOVE, x.std()

    yield "mean, Dice", lambda e: q.Mean(epsilon=e, column="a"), mean(beta, 0.8), 1
    yield "mean, costs", lambda e: q.Mean(epsilon=e, column="a"), mean(costs, COST), 1
    yield "B minus A", lambda e: q.Mean(epsilon=e, column="b", minus="a"), difference, 2
    yield "share", lambda e: q.ShareAbove(epsilon=e, column="a", at_least=0.7), share, 1


_BIG = RANDOM.beta(8, 2, 4_000_000)
ABOVE = float((_BIG >= 0.7).mean())
MEDIAN = float(np.median(_BIG))
COST = 0.05 * (1 - math.exp(-20))
APART = float((np.clip(_BIG + RANDOM.normal(0.02, 0.1, _BIG.size), 0, 1) - _BIG).mean())


def medians(rows: int, epsilon: str, repetitions: int):
    """Return coverage of the median's interval, the width's ratio and the error's."""
    question, about = q.Histogram(epsilon=epsilon, column="a", bins=40), described(rows)
    covered, widths, errors, simple = [], [], [], []
    edges = np.arange(41) / 40
    for _ in range(repetitions):
        x = beta(rows)
        exact = np.histogram(x, edges)[0]
        found = released(question, about, exact).quantile(0.5)
        low, high = found.interval()
        covered.append(low <= MEDIAN <= high)
        widths.append((high - low) / (2 * NORMAL * 1.2533 * x.std() / math.sqrt(rows)))
        errors.append(abs(found.value - np.median(x)))
        noisy = np.maximum(exact + RANDOM.laplace(0, 2 / float(_number(epsilon)), 40), 0)
        reached = np.concatenate([[0], np.cumsum(noisy) / noisy.sum()])
        simple.append(abs(np.interp(0.5, reached, edges) - np.median(x)))
    return np.mean(covered), np.median(widths), np.mean(errors) / np.mean(simple)


def _number(epsilon: str) -> float:
    top, _, below = epsilon.partition("/")
    return float(top) / float(below or 1)


def main(repetitions: int = 400) -> bool:
    missed = []
    print("| what | rows | epsilon | covers | width / without noise | error / Laplace |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, ask, draw, width in cases():
        for rows, epsilon in GRID:
            question, about = ask(epsilon), described(rows)
            covered, widths, errors = [], [], []
            for _ in range(repetitions):
                exact, own, whole, deviation = draw(rows)
                found = released(question, about, exact)
                low, high = found.interval()
                covered.append(low <= whole <= high)
                widths.append((high - low) / (2 * NORMAL * max(deviation, 1e-9) / math.sqrt(rows)))
                errors.append(abs(found.value - own))
            simple = width / (rows * _number(epsilon))  # the mean size of Laplace noise
            row = np.mean(covered), np.median(widths), np.mean(errors) / simple
            missed += _told(name, rows, epsilon, row)
    for rows, epsilon in GRID:
        missed += _told("median, 40 bins", rows, epsilon, medians(rows, epsilon, repetitions))
    print("outside:", "; ".join(missed) or "none")
    return not missed


def _told(name, rows, epsilon, row) -> list[str]:
    covers, width, error = row
    print(
        f"| {name} | {rows:,} | {epsilon} | {covers:.3f} | {width:.2f} | {error:.2f} |", flush=True
    )
    bad = not LOW <= covers <= HIGH or error > 1.1
    return [f"{name}, {rows:,} rows, epsilon {epsilon}: {covers:.3f}, {error:.2f}"] if bad else []


if __name__ == "__main__":
    raise SystemExit(0 if main(*map(int, sys.argv[1:])) else 1)
