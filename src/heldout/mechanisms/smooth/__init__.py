"""Noise for statistics whose sensitivity depends on the data. Exact, on a public lattice."""

from heldout.mechanisms.smooth.choose import METHODS, choose, sensitivity_for
from heldout.mechanisms.smooth.exact import LATTICE, draw_on_lattice
from heldout.mechanisms.smooth.law import NoiseLaw, error_quantile, mean_absolute_error
from heldout.mechanisms.smooth.piecewise_laplace import PiecewiseLaplace
from heldout.mechanisms.smooth.polynomial_tail import PolynomialTail
from heldout.mechanisms.smooth.published import Cauchy, CauchyBoyd2015, LaplaceBoyd2015

__all__ = [
    "LATTICE",
    "METHODS",
    "Cauchy",
    "CauchyBoyd2015",
    "LaplaceBoyd2015",
    "NoiseLaw",
    "PiecewiseLaplace",
    "PolynomialTail",
    "choose",
    "draw_on_lattice",
    "error_quantile",
    "mean_absolute_error",
    "sensitivity_for",
]
