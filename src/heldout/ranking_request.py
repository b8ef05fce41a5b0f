"""Turns what is asked of a ranking into a request at the door."""

from fractions import Fraction
from typing import Any, Final

from heldout.arguments import as_whole, is_one_of, shown
from heldout.data import Dataset
from heldout.errors import ArgumentError
from heldout.privacy import exact
from heldout.privacy.rational import Rational
from heldout.release import Request
from heldout.statistics import ScoreTable, Statistic
from heldout.statistics.ranking.ranked import LARGEST_EXACT, RankedRows, RankedTable, TiedPairs

_MOST_ROWS: Final = 2**50  # four times it, as the top of a ladder, fits 64 bits
LEAST_EPSILON: Final = Fraction(1, 5000)
MOST_EPSILON: Final = 100
"""What the default noise has a ladder for, whatever share of it the noisy counts take."""


def ranking_request(
    metric: str,
    dataset: Dataset,
    *,
    epsilon: Rational,
    method: str,
    smaller_class: int | None = None,
    delta: Rational | None = None,
    scores: str | None = None,
    **named: str,
) -> Request:
    """One ranking metric, with noise whose parameters come from public facts alone."""
    from heldout.mechanisms.smooth.choose import METHODS
    from heldout.mechanisms.smooth.ranking import RankingMechanism

    if not is_one_of(method, METHODS):
        raise ArgumentError(
            f"method must be one of {', '.join(METHODS)}, got {shown(method)}. Leave it out for "
            "the most accurate."
        )
    mechanism = RankingMechanism(
        metric=metric,
        epsilon=_checked_price(epsilon, method),
        protection=dataset.protection,
        rows=dataset.public_rows,
        smaller_class=_checked_guess(smaller_class),
        method=method,
        delta=None if delta is None else exact(delta, name="delta"),
    )
    resolution = resolution_of(dataset, scores)
    statistic: Statistic = RankedRows(metric)
    if resolution == "grid":
        statistic = RankedTable(metric, ScoreTable(score_range=dataset.score_range))
    parameters: dict[str, Any] = {"score": dataset.score, "scores": resolution, "method": method}
    if smaller_class is not None:
        parameters["smaller_class"] = smaller_class
    return Request(metric, statistic, mechanism, parameters | dataset.scale_parameters | named)


def ties_request(dataset: Dataset, *, epsilon: Rational) -> Request:
    """The share of pairs that the grid ties; it moves like an area, so it has an area's noise."""
    from heldout.mechanisms.smooth.ranking import RankingMechanism

    method = "piecewise-laplace"
    mechanism = RankingMechanism(
        metric="auc",
        epsilon=_checked_price(epsilon, method),
        protection=dataset.protection,
        rows=dataset.public_rows,
        method=method,
    )
    statistic = TiedPairs(ScoreTable(score_range=dataset.score_range))
    parameters = {"score": dataset.score, "scores": "grid", "method": method}
    return Request("grid-ties", statistic, mechanism, parameters | dataset.scale_parameters)


def _checked_price(epsilon: Rational, method: str) -> Fraction:
    """Refused here if any outcome of the first look would leave too little for the value."""
    price = exact(epsilon, name="epsilon", minimum=0)
    if method == "piecewise-laplace" and not LEAST_EPSILON <= price <= MOST_EPSILON:
        raise ArgumentError(
            f"epsilon must lie between {LEAST_EPSILON} and {MOST_EPSILON} for {method!r}, got "
            f"{price}. Pass another one, or method='polynomial-tail'."
        )
    return price


def resolution_of(dataset: Dataset, scores: str | None = None) -> str:
    """Exact scores or the public grid: decided by what is declared or public, never by rows."""
    if scores is None and dataset.remote:
        return "grid"  # so that counts travel, and not rows
    if scores is None:
        rows = dataset.public_rows
        return "exact" if rows is None or rows <= LARGEST_EXACT else "grid"
    if not is_one_of(scores, ("exact", "grid")):
        raise ArgumentError(f"scores must be 'exact' or 'grid', got {shown(scores)}.")
    return scores


def _checked_guess(smaller_class: int | None) -> int | None:
    if smaller_class is None:
        return None
    guess = as_whole(smaller_class, most=_MOST_ROWS)
    if guess is None or guess < 1:
        raise ArgumentError(
            f"smaller_class must be a whole number from 1, got {shown(smaller_class)}. Leave it "
            "out if there is no public guess."
        )
    return guess
