"""The tuned constants of linear models: what each is for, since when, and what chose it.

Whoever changes one runs that again. "No record" says that nobody wrote down what chose it.
Constants of numerics stay beside the code that they serve. `conclusions` is
benchmarks/conclusions.py.
"""

from fractions import Fraction
from typing import Final

# --- verdicts by parts ---------------------------------------------------------------------------

COUNT_SHARE: Final = Fraction(1, 20)
"""Of epsilon, for the number of rows where it is not public. Since 2026-11-18; no record."""
ROWS_PER_COLUMN: Final = 10
"""Rows of a part for each column of the model, at least. Since 2026-11-18; measured by
`conclusions`."""
ROOTS: Final = 4
"""Square roots of the number of rows that a part has. The t statistic of a part of m rows leans by
about skewness/(2 sqrt m), and a sum over n/m parts by sqrt(n)/m times that: parts must grow. With
ten rows for each column, as is usual, 95% of false claims about real pay held at 20,000 rows. Since
2026-11-18; measured by `conclusions`."""
EXTRA: Final = 0.2
"""Variance of the summed t statistics beyond that of normal ones: errors of parts with few rows are
a little too small. Since 2026-11-18; measured by `conclusions`."""

# --- fits ----------------------------------------------------------------------------------------

SPREAD_SHARE: Final = Fraction(1, 10)
"""Of epsilon (or of rho), for how far rows move the fit: the sampling error without the assumption
that the residuals spread alike everywhere. Chosen 2026-11-18, as the four below, on three sets
(adult, March CPS, one that was made up), 3 to 8 terms, by `conclusions`."""
IDENTIFIED: Final = 1.5
"""Norms of the noise that the smallest eigenvalue must reach for intervals to have an end. Chosen
2026-11-18."""
LEAST_FACTOR, MOST_FACTOR = 0.9, 4.0
"""Between which the sampling variance is held, in parts of the one that assumes equal spread.
Chosen 2026-11-18."""
FACTOR_NOISE: Final = 0.12
"""The deviation of noise in that factor which is aimed at. Chosen 2026-11-18."""
FEWEST_TIMES, MOST_TIMES = 10.0, 300.0
"""Times the mean at which a row's squared influence may be held. Chosen 2026-11-18."""
MOST_PEAKED: Final = 24
"""Mean fourth power of rows' influences beside their squared variance that verdicts allow for: 3 if
they are normal, 6 if they are Laplace. Where few people make up a group, their rows pull most, and
5,000 rows hid a third of the variance: false claims then held in 8%. Since 2026-11-19; measured by
`conclusions`."""
