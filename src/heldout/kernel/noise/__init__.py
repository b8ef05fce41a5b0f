"""Noise: a sealed statistic and a budget in, a noisy statistic out. No rows here."""

from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.mechanism import Mechanism

__all__ = ["DiscreteLaplace", "Mechanism"]
