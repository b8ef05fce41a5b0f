"""The monotone cubic is scipy's."""

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from heldout.kernel.curves.published import monotone_cubic


@pytest.mark.parametrize("seed", range(30))
def test_it_is_scipys_monotone_cubic_to_rounding(seed: int) -> None:
    draw = np.random.default_rng(seed)
    x = np.cumsum(draw.exponential(size=draw.integers(2, 40)) + 1e-3)
    y = np.round(draw.normal(size=len(x)), 1 if seed % 2 else 6)  # ties, too
    at = np.sort(draw.uniform(x[0], x[-1], size=300))
    at[0], at[-1] = x[0], x[-1]
    expected = PchipInterpolator(x, y)(at)
    assert np.allclose(monotone_cubic(x, y, at), expected, rtol=0, atol=1e-12 * np.ptp(y) + 1e-15)
