"""Synthetic public data; no private row passes here.

Numbers that look random and are the same on every machine and with every version of NumPy: a
counter, scrambled by the finaliser of SplitMix64 (Steele, Lea and Flood 2014). Good enough for an
example; never a source of privacy noise, which comes from the operating system.
"""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
_GOLDEN = 0x9E3779B97F4A7C15


def uniform(column: int, size: int) -> Numbers:
    """Numbers in (0, 1), a different sequence for each column.

    >>> uniform(1, 3).round(4).tolist()
    [0.0985, 0.0454, 0.2483]
    """
    counter = np.arange(1, size + 1, dtype=np.uint64) + np.uint64(column << 40)
    mixed = counter * np.uint64(_GOLDEN)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def normal(column: int, size: int) -> Numbers:
    """Standard normal numbers (Box and Muller 1958); takes up two columns."""
    radius = np.sqrt(-2 * np.log(uniform(column, size)))
    return np.asarray(radius * np.cos(2 * np.pi * uniform(column + 1, size)))
