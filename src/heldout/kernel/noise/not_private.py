"""For published algorithms that are not private: what opens a statistic without protecting it.

Nothing here makes a claim. It is called by `heldout.features` alone, and only after the caller
said `not_private=True`; what comes out is marked as such and no ledger is charged.
"""

import math
from fractions import Fraction

import numpy as np

from heldout.arrays import Floats
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import Content, unseal
from heldout.kernel.statistic import Sealed


def shown_as_it_is(sealed: Sealed[Content]) -> Content:
    """The exact statistic. Not private."""
    return unseal(sealed)


def baseline_noise(scale: float, shape: tuple[int, ...]) -> Floats:
    """Laplace noise of the published scale, on a fine lattice."""
    count = math.prod(shape)
    law = DiscreteLaplace(scale=Fraction(scale) * 1024, l1_sensitivity=1, dimension=count)
    return (law.sample(Sealed(np.zeros(count, dtype=np.int64))) / 1024).reshape(shape)
