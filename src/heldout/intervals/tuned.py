"""The tuned constants of this room: what each is for, since when, and what chose or measures it.

Whoever changes one runs that again. Where no trial is noted, none was kept. Constants of numerics
(grids, reaches, series) stay beside the code that they serve.
"""

from typing import Final

CLASS_PRIOR: Final = 2.0
"""A class count of k noise scales gets the weight 1 + CLASS_PRIOR/k beforehand, so that intervals
of areas hold for every true class count and not only on average. Since 2026-11-15; measured by
tests/intervals/test_auc_interval.py."""

MISSING_CLASS: Final = 0.01
"""A class may be missing if no rows explain the counts so well, of the best. Since 2026-11-17;
measured by tests/intervals/test_groups.py and test_classes.py."""

MISPLACED: Final = 0.1
"""How far a variance by placements may be off, as a share, besides its noise. Since 2026-11-16;
measured by benchmarks/accuracy.py."""

FURTHEST: Final = 2.0
"""Placements by two models that differ by more deviations, taken as independent, count as if they
differed by so many. Rows that two models place so differently are few, and bounding them keeps the
noise small. Since 2026-11-16; measured by benchmarks/accuracy.py."""

COUNT_PRIOR: Final = 0.5
"""A cell of k noise scales gets the weight 1 + COUNT_PRIOR/k beforehand: with equal weights, noise
that adds to a count of nearly nothing is believed too often. Chosen 2026-11-17, of 1/2, 1 and 2 on
calibrated scores, 300 and 2,000 rows, a fiftieth and a tenth of them positive."""

NEAR_END: Final = 0.01
"""Of an interval's width: so close to the end of the range it goes on to it. Since 2026-11-16;
measured by tests/intervals/test_contrasts.py."""

DENOMINATOR_SHARE: Final = 0.1
"""Of the error level, spent on an upper bound for an unknown row count. Since 2026-11-15; measured
by tests/intervals/test_coverage.py."""

NO_ROWS: Final = 0.001
"""How often noise alone must make up a denominator for it to be doubted. Since 2026-11-17; measured
by tests/intervals/test_groups.py."""

HEAVY_TAILS: Final = (0.28, 0.07)
"""Degrees of freedom that g groups have more than g - 1 if laws are Laplace's: 0.28 + 0.07 ln(g/2).
Chosen 2026-11-17 by simulation: of 2, 3, 5, 10 and 20 groups .28, .27, .31, .40 and .47."""

LEAST_SHOWN: Final = 0.3
"""Classes that are shown less often than this count as shown so often, where intervals are made for
numbers that are shown: else they would be all of the range wherever a class is near the least that
is shown. Chosen 2026-11-18, of 1, .3, .1 and .03, at 300 rows and epsilon 1, 4 to 25% positive:
noise intervals of shown AUCs held in .92, .93, .93 and .93 at least, widths 1, 1.1, 1.4 and 2."""

LEAST_AT_RISK: Final = 5.0
"""With fewer rows left at risk a survival curve is not shown. Since 2026-11-18; measured by
benchmarks/measures.py."""

RISK_NOISE: Final = 0.25
"""Nor is it where the noise's deviation is more than this share of the rows left: logarithms of
noisy counts would bend. Since 2026-11-18; measured by benchmarks/measures.py."""

USUAL_AREA, USUAL_AGREEMENT = 0.8, 0.25
"""What a forecast takes for two models: their areas, and the variance of the difference over that
of two areas of other rows; placements then correlate by about 3/4. Since 2026-11-18; measured by
benchmarks/quotes.py."""

DIFFERENCE_DEVIATION: Final = (0.05, 1.4)
"""Between which the deviation of a difference lies, over that of two areas of other rows: with
heavy tails it may be more than Hanley and McNeil's formula gives those. Since 2026-11-16; measured
by benchmarks/comparing.py."""

AREA_SPREAD, PRECISION_SPREAD = 0.5, 0.25
"""Of the logarithm of an area's sampling variance over Hanley and McNeil's, before moments are
seen; and of that of average precision over what its table says. Since 2026-11-16; measured by
benchmarks/accuracy.py."""
