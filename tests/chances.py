"""How often a right program fails a test of chance, exactly."""

from scipy import stats


def improbability(seen: int, runs: int, probability: float) -> float:
    """Return twice the smaller tail of the binomial law: below `rate` with that chance at most.

    A bound of so many standard deviations is wrong for what is rare: an outcome that is expected
    once in a hundred series comes twice more often than 5.5 deviations allow.
    """
    law = stats.binom(runs, probability)
    return float(2 * min(law.cdf(seen), law.sf(seen - 1)))
