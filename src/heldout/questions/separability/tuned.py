"""The tuned constants of separability: what each is for, since when, and what chose or measures it.

Whoever changes one runs that again. "No record" says that nobody wrote down what chose it. Sizes of
pictures and lists stay in page.py and deep_dive.py.
"""

from fractions import Fraction
from typing import Final

# --- what a separator sees -----------------------------------------------------------------------

MOST_CATEGORIES: Final = 200
"""Categories of a column, the most frequent ones. Since 2026-11-15; no record."""
FARTHEST: Final = 3.0
"""Standard deviations to which a number is held. Since 2026-11-15; no record."""
FLATTEST, STEEPEST = Fraction(1, 2**12), Fraction(1)
"""Ends of the ridge of a released separator. Since 2026-11-15; no record."""
MOST_COLUMNS: Final = 16
"""Columns that are looked at in pairs, at most. Since 2026-11-18; all of 8, 12, 16 and 24 were
tried on the sets of `LOUDEST`."""
LOUDEST: Final = 0.25
"""The noise of a mean product of signs, which is 1 at most, has at most this deviation; so many
columns are taken. Chosen 2026-11-18 on adult, diabetes130 and acs2018_gov_census; measured by
benchmarks/accuracy.py."""
CUT: Final = 0.65
"""The share of privatized training rows that is called privatized. Chosen 2026-11-18: of .5, .65
and .8 it distinguished best on the same sets."""

# --- classifiers without noise -------------------------------------------------------------------

FOLDS, DEPTH = 5, 5
"""Folds of rows held out, and levels of the tree. Since 2026-11-15; by custom."""
TREES, LEAF = 100, 3
"""Of the forest: its trees, and the rows of a leaf at least. Since 2026-11-16; no record."""
MOST_ROWS: Final = 20_000
"""Of both tables together; a forest takes more at random, so that it takes seconds. Since
2026-11-16; by time."""
LEAST_P_VALUE: Final = 1e-6
"""Further out the normal law of a rank sum is not believed. Since 2026-11-18; no record."""
SEEN: Final = 0.025
"""Of the forest's p-value: with the 2.5% of the ratio's interval, alike tables are distinguished by
chance in at most one of twenty pairs. Since 2026-11-18; by arithmetic."""
