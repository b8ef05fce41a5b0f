"""Public parameters from public facts: never from the data."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.ranking.law import NoiseLaw
from heldout.kernel.ranking.metric import ranking_metric
from heldout.kernel.ranking.piecewise_laplace import PiecewiseLaplace
from heldout.kernel.ranking.polynomial_tail import PolynomialTail
from heldout.kernel.ranking.published import Cauchy, CauchyBoyd2015, LaplaceBoyd2015
from heldout.kernel.ranking.sensitivity import RungSensitivity

__all__ = ["METHODS", "choose", "choose_polynomial_tail", "guessed_rung", "sensitivity_for"]

METHODS = (
    "piecewise-laplace",
    "polynomial-tail",
    "cauchy",
    "boyd-2015-cauchy",
    "boyd-2015-laplace",
)
_UNKNOWN_ROWS = 2**16  # what a plan assumes if the row count is not public and nobody guesses


def sensitivity_for(
    metric: str, *, protection: Protection, method: str = "piecewise-laplace"
) -> RungSensitivity:
    """The sensitivity bound of a metric by its name, as a method uses it."""
    kind = ranking_metric(metric)
    bound = kind.published_bound if method.startswith("boyd-2015") else kind.bound
    return bound(protection=protection)


def guessed_rung(
    local: RungSensitivity, *, rows: int | None, smaller_class: int | None = None
) -> int:
    """The rung that public parameters aim at.

    Without a public guess of the smaller class (for average precision: of the positives) it is a
    quarter of the rows: wrong by a factor of two at most for shares between 1/8 and 1/2. A wrong
    guess costs accuracy and never privacy.
    """
    size = smaller_class if smaller_class is not None else (rows or _UNKNOWN_ROWS) // 4
    return max(2, size // local.protection.rows_per_unit)


def choose(
    method: str,
    *,
    epsilon: Fraction,
    local: RungSensitivity,
    rows: int | None,
    smaller_class: int | None = None,
    delta: Fraction | None = None,
) -> NoiseLaw:
    """The noise law of a method, with parameters from public facts.

    >>> from heldout.kernel import price
    >>> from heldout.kernel.neighbours import Protection
    >>> local = sensitivity_for("auc", protection=Protection(neighbours="replace-one"))
    >>> law = choose("polynomial-tail", epsilon=Fraction(1), local=local, rows=2000)
    >>> print(price(law.event()))
    epsilon 1
    """
    if (method == "boyd-2015-laplace") != (delta is not None):
        raise ArgumentError(
            f"delta must be given for 'boyd-2015-laplace' and for no other method, got {delta} "
            f"with {method!r}. Every other method here is pure."
        )
    if method == "piecewise-laplace":
        known = (
            max(rows or _UNKNOWN_ROWS, 4 * (smaller_class or 0)) // local.protection.rows_per_unit
        )
        return PiecewiseLaplace(epsilon=epsilon, local=local, top=_power_of_two(known))
    if method == "polynomial-tail":
        rung = guessed_rung(local, rows=rows, smaller_class=smaller_class)
        return choose_polynomial_tail(epsilon=epsilon, local=local, rung=rung)
    if method == "cauchy":
        return Cauchy(local=local, a=epsilon / 2, beta=epsilon / 2)
    if method == "boyd-2015-cauchy":
        return CauchyBoyd2015(local=local, epsilon=epsilon)
    if delta is not None:
        return LaplaceBoyd2015(local=local, epsilon=epsilon, delta=delta)
    raise ArgumentError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")


@lru_cache(maxsize=256)
def choose_polynomial_tail(
    *, epsilon: Fraction, local: RungSensitivity, rung: int
) -> PolynomialTail:
    """a, beta and nu that minimise the expected error, at most 1, on the guessed rung.

    Claim:       a + max(1, nu - 1) beta = epsilon, exactly.    [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: not used for privacy here: every choice has the same price.
    Numerics:    a search in doubles; its result is rounded to rationals and a is what is left.
    Refuses:     nothing.
    Reference:   none.
    Cost:        a few milliseconds, then cached.
    """
    nus = np.concatenate([np.linspace(2.05, 6, 40), np.geomspace(6.2, 60, 40)])[:, None]
    shares = np.geomspace(2e-3, 0.9, 120)[None, :]  # of epsilon, for the smoothing
    for _ in range(2):  # a coarse search, then a finer one about its best
        errors = _expected_error(float(epsilon), local, rung, nus, shares)
        i, j = np.unravel_index(int(np.argmin(errors)), errors.shape)
        best_nu, best_share = float(nus[i, 0]), float(shares[0, j])
        nus = best_nu * np.linspace(0.93, 1.07, 41)[:, None]
        nus = np.maximum(nus, 2.02)
        shares = np.minimum(best_share * np.linspace(0.93, 1.07, 41)[None, :], 0.95)
    nu = Fraction(round(best_nu * 1000), 1000)
    share = Fraction(round(best_share * 10**6), 10**6)
    beta = epsilon * share / max(Fraction(1), nu - 1)
    return PolynomialTail(local=local, a=epsilon - epsilon * share, beta=beta, nu=nu)


def _expected_error(
    epsilon: float, local: RungSensitivity, rung: int, nus: Any, shares: Any
) -> Any:
    """E min(1, |noise|) over a grid of parameters."""
    beta = epsilon * shares / np.maximum(1.0, nus - 1)
    smooth = np.full(beta.shape, local.upper(rung))
    for low in range(1, min(local.settles + 2, rung)):
        smooth = np.maximum(smooth, np.exp(-beta * (rung - low)) * local.upper(low))
    scale = smooth / (epsilon * (1 - shares))
    return scale * _mean_below(nus, 1 / scale)


def _mean_below(nu: Any, cap: Any) -> Any:
    """E min(|Z|, cap), in closed form: the integral of the tail from 0 to cap."""
    lift = np.exp(-nu) / (nu - 1)
    inner = np.minimum(cap, nu)
    core = -np.expm1(-inner) + lift * inner
    ratio = np.maximum(cap / nu, 1.0)
    beyond = lift * nu * nu * (1 - ratio ** (2 - nu)) / (nu - 2)
    return (core + beyond) / (1 + lift)


def _power_of_two(number: int) -> int:
    return int(2 ** max(8, math.ceil(math.log2(max(number, 2)))))
