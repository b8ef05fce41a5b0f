"""What is left of a trend or a bend if the rows beyond the bounds lean the other way.

Residuals whose mean is right everywhere sum up to 0 against any function A of the prediction, but
only over all rows. Where the long tail at one end of the predictions is cut off, the rest leans:
log income of a census falls within bounds that hold 97% of it, and has no trend at all.

Nothing tells where the rows beyond are, nor how far out. They are taken to lean like the outermost
rows within the bounds, at whichever end leans more against the sum, as far as noise leaves that
open. The constants were chosen on simulated residuals (`benchmarks/residual_plot.py`).
"""

from typing import Any, Final

import numpy as np

from heldout.questions.regression.readings_noise import Sum
from heldout.questions.regression.table import ResidualTable, laplace_deviation

__all__ = ["unexplained"]

OUTER: Final = 0.03
"""The share of the rows that is the outermost, at either end."""
FARTHER: Final = 2.0
"""A row beyond the bounds weighs as much as so many at the bound that lean like the outermost, and
never more than one with A a deviation off."""
DOUBT: Final = 2.5
"""Deviations of the outermost rows' lean that noise and sampling may have added."""

SHARP: Final = 0.05
"""Deviation of a correlation that is known well enough to be judged alone."""


def unexplained(
    table: ResidualTable, *, across: Any, down: Any, whole: Any, largest: float
) -> float:
    """How many deviations of the sum of A B are left, if any.

    `across` is A by predicted cell, `whole` the residual less its mean by cell, `down` the same
    with a weight by which cells that hold mostly noise count less. The sum without weights is
    judged alone if noise leaves it sharp, else either will do, and what the weights take off pulls
    like the rows beyond. `largest` is a correlation that no cut makes.
    """
    density = table.density
    scale = table.outside_scale if table.scale is None else table.scale
    beyond = max(table.outside, 0.0) + (2 * laplace_deviation(scale) if scale is not None else 0.0)
    cut = beyond * float(np.abs(whole).max())
    weighed = float((density * np.abs(whole - down)).sum())
    squares = float((across**2 * density.sum(axis=0)).sum())
    deviation = (squares / max(float(density.sum()), 1e-9)) ** 0.5
    found = []
    for values, hidden in ((whole, cut), (down, cut + weighed)):
        seen = Sum(table, across[None, :] * values)
        size = (squares * float((values**2 * density).sum())) ** 0.5
        lean = max(_against(table, across, end, seen.value) for end in _ends(density, whole))
        pull = min(min(FARTHER * lean, deviation) * hidden, largest * size)
        spread = seen.variance(noise_only=False) ** 0.5
        found.append((abs(seen.value) - pull) / spread if spread > 0 else 0.0)
        if spread <= SHARP * size:
            break
    return max(found)


def _ends(density: Any, whole: Any) -> list[Any]:
    """Residuals of the cells at the lower and at the upper end that hold OUTER of the rows."""
    found = []
    for sizes in (-whole, whole):
        order = np.unique(sizes)[::-1]
        held = np.array([float(density[sizes >= each].sum()) for each in order])
        least = order[int(np.argmax(held >= OUTER * held[-1]))]
        found.append(np.where(sizes >= least, whole, 0.0))
    return found


def _against(table: ResidualTable, across: Any, end: Any, value: float) -> float:
    """How far A of some rows, weighed by their residuals, may lie on the other side of a sum."""
    lean = Sum(table, across[None, :] * end)
    doubt: float = DOUBT * lean.variance(noise_only=False) ** 0.5
    weight = float((table.density * np.abs(end)).sum())
    return max(doubt - float(np.sign(value)) * lean.value, 0.0) / max(weight, 1e-9)
