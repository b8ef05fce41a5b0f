"""The tuned constants of this family: what each is for, since when, and what chose or measures it.

Whoever changes one runs that again. Where no trial is noted, none was kept. Constants of numerics
(lattices, largest sizes, tolerances) stay beside the code that they serve, and the papers' own
numbers beside their methods.
"""

from fractions import Fraction
from typing import Final

FEATURES_PER_ROW: Final = 10
"""How many features a row keeps if nobody says: the r of Stoddard et al. 2014. Since 2026-11-15;
measured by benchmarks/feature_selection.py."""
FEW_FEATURES: Final = 20
"""How many features a method that needs a number picks if none is given. Since 2026-11-15."""
SPURIOUS: Final = 10
"""How many features without any row a default threshold lets through by chance, about. Since
2026-11-15; measured by tests/questions/features/test_selection.py."""
MORE: Final = 8
"""Where a training follows, methods whose noise does not grow with k take so many times as many
features: the training can tell noise by itself. Since 2026-11-16."""
GUESSED_ROWS: Final = 4096
"""About how many rows there are, if their number is not public and nobody guesses. Since
2026-11-16."""
TABLE: Final = 256
"""At most so many features are those of a table, more are those of texts. Since 2026-11-16."""
FEW_WORDS, PLAIN_TO_SEE = 4096, 4000
"""Features up to so many, and rows times epsilon from so many on, are counted each by itself.
Since 2026-11-17; measured by tests/questions/features/test_naive_bayes.py."""
WEIGHT: Final = 5
"""How many features a row may set before their weights shrink, if nobody says. Since 2026-11-16."""
EVEN: Final = 0.02
"""Of the prior of the log-odds stays spread evenly. Since 2026-11-16."""
ODDS_WIDTH: Final = 1.5
"""The standard deviation of log-odds before anything is seen. Since 2026-11-16."""
FAINT: Final = 0.05
"""Log-odds below this are taken for nothing. Since 2026-11-16."""
PLAIN_ODDS: Final = 0.5
"""A feature with log-odds from here on counted as selected up to the second rules; since then any
weight does. Since 2026-11-16."""
TYPICAL, FEW_TIMES = 10, 5
"""By default, a row of a table is taken to set 10 features; a table with 5 times
as many features in all has few. On tables of 38 to 55 features both kinds of noise did as well.
Since 2026-11-16."""
BENT_FROM: Final = 64
"""Rows times epsilon, over the rows that tell neighbours apart and over what the coefficients need,
from which a number in a regression bends. Chosen on adult, March CPS and ACS; since 2026-11-18;
measured by benchmarks/learning.py."""
BENDS_NEED, KINDS_NEED = Fraction(3, 4), Fraction(9, 4)
"""The noise of bends beside that of as many slopes, and that of a column of kinds
beside that of one slope: cube roots of 0.2/0.5 (a bend matters less) and of 2/(1/6), by theory.
Since 2026-11-19; measured by benchmarks/learning.py."""
CODED_RIDGE: Final = 3
"""The penalty of coded columns in deviations of a coefficient's noise, before it is rounded up to
a power of two. 1 to 8 were tried on the same sets. Since 2026-11-18."""
