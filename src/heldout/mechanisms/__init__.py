"""Noise: a sealed statistic and a budget in, a noisy statistic out. No rows here."""

from heldout.mechanisms.base import Mechanism
from heldout.mechanisms.discrete_laplace import DiscreteLaplace

__all__ = ["DiscreteLaplace", "Mechanism"]
