"""The arrays that this package counts and computes in."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "IntVector"]

IntVector = NDArray[np.int64]
"""Counts or sums of whole numbers, as most statistics are and as most noise is added to."""
Floats = NDArray[np.float64]
