"""Noise once for all sites against pooled releases: widths of a count's 95% noise interval.

    python -m benchmarks.shares [draws]

Draws the noise of both through the library's own mechanisms, at epsilon 1 under replace-one.
"""

import sys
from fractions import Fraction

import numpy as np

from benchmarks.figure import judge
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import NoiseShare
from heldout.kernel.statistic import Sealed

SITES = (2, 5, 20)
SCALE = Fraction(2)


def width(noise: np.ndarray) -> float:
    return float(np.quantile(np.abs(noise), 0.95))


def pooled(sites: int, draws: int) -> np.ndarray:
    zeros = Sealed(np.zeros(sites * draws, dtype=np.int64))
    return DiscreteLaplace(SCALE, 2, sites * draws).sample(zeros).reshape(sites, draws).sum(axis=0)


def once(sites: int, draws: int) -> np.ndarray:
    handed: list[list[int]] = []
    share = NoiseShare(SCALE, 2, draws, sites, handed.append)
    for _ in range(sites):
        share.sample(Sealed(np.zeros(draws, dtype=np.int64)))
    return np.array(handed).sum(axis=0)


def main(draws: int = 4000) -> bool:
    figures = []
    for sites in SITES:
        ours, theirs = width(once(sites, draws)), width(pooled(sites, draws))
        print(f"{sites} sites: pooled ±{theirs:.1f}, noise once ±{ours:.1f}")
        figures.append(
            judge(
                f"noise once / pooled, {sites} sites, times sqrt(sites)",
                ours / theirs * sites**0.5,
                1.25,
            )
        )
    return all(figures)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
