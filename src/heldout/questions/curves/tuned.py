"""Everything that was chosen for reading curves, and since when: what is believed of all scores.

Shares of epsilon and numbers of bins stand with the mechanisms, whose proofs they enter. Figures
that these lead to are those of `benchmarks/curves.py`, on shapes that were looked at and on others
that were not.
"""

from typing import Final

import numpy as np

__all__ = [
    "BENDS", "CHAINS", "EDGE", "ENDS", "EVEN", "FEWEST", "FLOORS", "JUMP", "KEPT", "LEAPS", "LEVEL",
    "LUMPS", "LUMPY", "MARGIN", "MASS", "PARTS", "REACH", "SEEN", "SLOPE", "SOFTNESS", "SWITCHES",
    "TAIL", "TOTAL", "WARM",
]  # fmt: skip

# --- what is believed beforehand, the same for all data ------------------------------------------

MASS: Final = 0.1
"""Dirichlet: how evenly rows lie over cells. Since 2026-11-16."""
SLOPE: Final = (1.5, 1.5)
"""Mean and deviation of how fast log odds rise with the probit of the rank. Since 2026-11-16."""
LEVEL: Final = 3.0
"""Deviation of the log odds of the prevalence around the noisy counts'. Since 2026-11-16."""
TOTAL: Final = 2.0
"""Deviation of the log of an unknown number of rows around its estimate. Since 2026-11-16."""
REACH: Final = 0.8
"""How far a bend of the log odds goes, in probits of the rank. Since 2026-11-16."""
BENDS: Final = ((0.4, 0.55), (0.8, 0.3), (1.6, 0.12), (4.0, 0.03))
"""Deviations of the bend, each with its probability. Since 2026-11-16."""
JUMP: Final = (0.3, 1.5)
"""Deviations of the own jump of a cell and of a heap, over the bend's. Since 2026-11-17."""
ENDS: Final = (1.0, 1.2)
"""Per probit beyond the second, how far the outer cells may leave the law. Since 2026-11-16."""
FLOORS: Final = 3.0
"""Deviation of the log of the share of a class that scores like the other one; beforehand as likely
as not fewer than a row does. Since 2026-11-19."""
SWITCHES: Final = 1.0
"""How often a class begins or ends within a table; 1 of 1, 0.1, 0.01, 0. Since 2026-11-18."""
LUMPY: Final = 0.7
"""Concentration of rows over the parts of a lumpy bin. Since 2026-11-16."""
EVEN: Final = 2.0 ** np.arange(2, 11)
"""The same of even bins, all as likely. Since 2026-11-16."""
LUMPS: Final = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.96])
"""Shares of bins that are lumpy, and of cells that are empty; all as likely. Since 2026-11-16."""

# --- how it is computed --------------------------------------------------------------------------

SEEN: Final = 3.0
"""Deviations of noise by which a heap or a class must stand out. Since 2026-11-16."""
SOFTNESS: Final = 0.6
"""In noise scales: nearer than that the Laplace law is rounded off. Since 2026-11-16."""
PARTS: Final = 6
"""Of a cell, within which rows lie evenly. Since 2026-11-16."""
CHAINS: Final = 64
"""Chains that walk beside each other. Since 2026-11-16."""
WARM: Final = 25
"""Steps of a chain before its points count. Since 2026-11-16."""
KEPT: Final = 16
"""Steps of a chain whose points count. Since 2026-11-16."""
LEAPS: Final = 6
"""Leaps of a step. Since 2026-11-16."""
TOGETHER: Final = 160
"""Cells of the tables that are drawn at once: they fit into the cache. Since 2026-11-19."""
FEWEST: Final = 150
"""So many draws, effectively, must be left when the area weighs them. Since 2026-11-16."""
TAIL: Final = 0.98
"""The furthest level whose quantiles are read off draws as they are. Since 2026-11-16."""
EDGE: Final = 0.25
"""An interval that ends so near 0 or 1, in its own widths, goes on to it. Since 2026-11-17."""
MARGIN: Final = 1.02
"""Of bands at edges, for plugging in estimated rates. Since 2026-11-10."""
