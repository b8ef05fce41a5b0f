"""How often a right program fails a test of chance, exactly or at most."""

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
from scipy import stats

from heldout.intervals.noise import falls_to
from heldout.kernel.ranking.ladder import NoiseLaw

Outcome = TypeVar("Outcome", bound=Hashable)


def improbability(seen: int, runs: int, probability: float) -> float:
    """Return twice the smaller tail of the binomial law: below `rate` with that chance at most.

    A bound of so many standard deviations is wrong for what is rare: an outcome that is expected
    once in a hundred series comes twice more often than 5.5 deviations allow.
    """
    law = stats.binom(runs, probability)
    return float(2 * min(law.cdf(seen), law.sf(seen - 1)))


def is_likelier(
    seen: Mapping[Outcome, int], law: Mapping[Outcome, float], other: Mapping[Outcome, float]
) -> bool:
    """Return whether what was seen is likelier under `law` than under `other`."""
    return sum(seen[one] * math.log(law[one] / other[one]) for one in law if seen[one]) > 0


def overlooked(law: Mapping[Outcome, float], other: Mapping[Outcome, float], runs: int) -> float:
    """Return how often draws from `law` are likelier under `other`, at most (Chernoff's bound)."""
    return sum(math.sqrt(law[one] * other[one]) for one in law) ** runs


def louder(failed: int, runs: int, times: int) -> float:
    """Return the rate of a test that failed so many runs at so many times the noise.

    What noise does with the chance p it does with p^(1/times) there (`conftest.py`). The share of
    failures is taken at the upper end of its interval, which 5 percent of series exceed; a test
    that many draws must fail together, or that one of many can fail, has a smaller rate than this.
    `tools/rates.py` counts the runs.
    """
    share = 1.0 if failed == runs else stats.beta.ppf(0.95, failed + 1, runs - failed)
    return float(share**times)


def mean_absolute_error(law: NoiseLaw, *, rung: int, cap: float = 1.0) -> float:
    """Return the expected size of the noise, where an error counts at most `cap`."""
    edges = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 4000)]) * cap
    tails = np.asarray(law.survival(np.full(edges.shape, rung), edges))
    return float(np.trapezoid(tails, edges))


def error_quantile(law: NoiseLaw, *, rung: int, level: float) -> float:
    """Return the t with P(|noise| <= t) = level for a data set on this rung."""
    return falls_to(lambda size: float(law.survival(rung, size)), 1 - level, start=1e-12)
