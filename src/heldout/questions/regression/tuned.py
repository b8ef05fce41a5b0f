"""The tuned constants of this family: what each is for, since when, and what chose or measures it.

Whoever changes one runs that again. Where no trial is noted, none was kept. Constants of numerics
(lattices, largest sizes, tolerances) stay beside the code that they serve. `residual_plot` and
`accuracy` are in benchmarks/, tests are those of tests/questions/regression/. Those of the search
for bounds are in kernel/regression.py.
"""

from fractions import Fraction
from typing import Final

# --- what a price buys ---------------------------------------------------------------------------

COUNT_SHARE: Final = Fraction(1, 20)
"""Of the price, for a noisy row count where the number of rows is not public. Since 2026-11-15."""
ENOUGH: Final = 400
"""Rows times epsilon that the searches for bounds need, together; plots and metrics alike. Since
2026-11-15; measured by residual_plot and test_bounds.py."""
PLOT_LEAST_SHARE, PLOT_MOST_SHARE = Fraction(3, 20), Fraction(1, 2)
"""Of a plot's price: what its searches for bounds get, at least and at most. Since 2026-11-15;
measured by residual_plot."""
PLOT_UNKNOWN_SHARE: Final = Fraction(3, 10)
"""The same where nobody knows about how many rows there are. Since 2026-11-15."""
RESIDUAL_PART: Final = Fraction(2, 5)
"""Of the searches' price, for the residuals; the rest is for the predictions. Since 2026-11-15."""
RESIDUAL_SLACK, PREDICTED_SLACK = 5, 4
"""How many rows less than the coverage will do, in units of 1/epsilon, for bounds of residuals and
of predictions: without it noise on the threshold sends a search past the last row. Since
2026-11-15; measured by test_bounds.py."""
METRICS_LEAST_SHARE, METRICS_MOST_SHARE = Fraction(1, 20), Fraction(3, 10)
"""Of the price of error measures: what their search gets, at least and at most. Since 2026-11-16;
measured by accuracy."""
METRICS_UNKNOWN_SHARE: Final = Fraction(1, 5)
"""The same where nobody knows about how many rows there are. Since 2026-11-16."""
THRIFT: Final = 4
"""How many times fewer rows than a plot's a cell must hold to be kept for error measures: what is
clipped biases a variance more than a picture. Since 2026-11-16; measured by accuracy."""
METRICS_PARTS: Final = {"errors": 2, "quantiles": 1}
"""Parts of the price of error measures. Since 2026-11-16; measured by accuracy."""
PARTS_WITH_OUTCOME: Final = {"errors": 4, "centre": 1, "outcome": 3, "quantiles": 2}
"""Where R squared is wanted. Chosen 2026-11-16 on normal, skewed and uniform outcomes at 1,000
rows, epsilon 0.5; the mean needs little, as an error of it enters R squared only squared."""
FEW_VISIBLE: Final = 2000
"""Rows times epsilon: with fewer, and if only some measures are wanted, the fourth powers of errors
are not summed. Chosen 2026-11-18 by arithmetic: with a bound of five deviations the noise of a mean
square is then larger than its sampling error; measured by accuracy."""
SPREAD_PART: Final = Fraction(1, 11)
"""Of the errors' price, for the squares of what is averaged where either MAE or RMSE is wanted and
not both: the mean then has 1.1 of the noise that all of the price would give it. Set 2026-11-18 by
that; measured by accuracy."""
WIDER: Final = 2
"""Bounds are so many times wider than where the search stops: it leaves a few per cent of the rows
outside. Since 2026-11-16; measured by accuracy."""
FEW_CELLS, MANY_CELLS = 30, 119
"""Cells of the residuals for few and for many rows; two more hold the rows beyond the bounds. 32
and 121 = 11^2 fill a tree. Since 2026-11-16."""

# --- error measures ------------------------------------------------------------------------------

SQUARED_BEYOND, ABSOLUTE_BEYOND = (1.2, 3.2), (0.4, 0.7)
"""What residuals beyond a searched bound may add to the mean square and to the mean size, in units
of the bound: so many times the fourth moment within it, or the share of clipped rows. Chosen
2026-11-16 on normal, Laplace, lognormal and t residuals; a tail as heavy as a cubic power law can
add more."""
SEARCHED: Final = 2.0
"""How much wider R squared's interval is where bounds were searched: what they clip takes from the
outcome's variance and from the errors, unequally. Chosen 2026-11-16 on the same residuals."""
USUAL: Final = 0.8
"""How surely a noisy second moment is not higher. Since 2026-11-16; measured by accuracy."""

# --- readings of a plot --------------------------------------------------------------------------

FEWEST_BANDS, MOST_BANDS = 4, 12
"""Into so many bands of predictions a plot is read. Since 2026-11-15."""
SHARP: Final = 0.2
"""Bands are as wide as it takes to know a mean to this part of the residuals' spread, and their
variance to this part of itself. Since 2026-11-15; measured by test_readings.py."""
SURE: Final = 0.999
"""So that a fourth look adds at most 1 plot in 1,000 to those that show a fault without one. Since
2026-11-15."""
PLAIN_OFFSET: Final = 0.25
"""A mean residual is plainly not 0 from this part of the spread on. Since 2026-11-15."""
FARTHER: Final = 5.0
"""A row beyond the bounds is taken to lie up to so many times as far out as the bound. Chosen
2026-11-16 on normal, Laplace, t, lognormal and Pareto residuals of which up to 10% are cut."""
OUTER: Final = 0.03
"""The share of the rows that is the outermost, at either end. Since 2026-11-16."""
OUTLYING: Final = 3.0
"""Deviations from the mean beyond which rows that strengthen a lean need not be counted. Chosen
2026-11-19 of 2, 2.5, 3 and 3.5 on normal and t residuals; measured by points."""
CAPS: Final = (2.0, 2.5, 3.0, 3.5, 4.0)
"""Deviations from the mean at which rows stop to pull harder, of which the one that leaves most of
a lean is taken. Chosen 2026-11-19 on 240 plots of each of nine laws: false alarms .006, .025 of the
worst law; a bend of .15 within declared bounds of five deviations was seen in .63 (.48 before)."""
CUT_FARTHER: Final = 2.0
"""A row beyond the bounds weighs as much as so many at the bound that lean like the outermost, and
never more than one with A a deviation off. Since 2026-11-18; measured by test_diagnostics.py."""
DOUBT: Final = 2.5
"""Deviations of the outermost rows' lean that noise and sampling may have added. Since
2026-11-16."""
CUT_SHARP: Final = 0.05
"""Deviation of a correlation that is known well enough to be judged alone. Since 2026-11-18."""

# --- verdicts ------------------------------------------------------------------------------------

NOISE_MARGIN: Final = 1.08
"""Weights are read off the same noise, which makes errors a little larger than they look. Since
2026-11-15; measured by residual_plot."""
CUT_TREND, CUT_BEND = 0.45, 0.15
"""A score beyond this is no work of the bounds: the largest that cut tails made in simulations.
Chosen 2026-11-16."""
INVISIBLE: Final = 2.0
"""With fewer rows than so many deviations of all cells' noise, nothing is said to be seen. Since
2026-11-16; measured by test_diagnostics.py."""
VISIBLE: Final = 5.0
"""With fewer rows than so many deviations of all cells' noise, a few full cells may be noise. Since
2026-11-16; measured by test_diagnostics.py."""
PLAIN_FAN: Final = 0.15
"""Beside a bend a fan must be so large: coarse cells make a small one out of any bend. Since
2026-11-15."""
TELLING: Final = 0.25
"""A score whose interval is wider than this on either side could hide a fault that anybody sees.
Since 2026-11-15; measured by residual_plot."""
SLIGHT: Final = 0.1
"""Many rows show faults that matter little: below this they are called slight. Since 2026-11-16."""
FEWEST_CELLS: Final = 2.5
"""With fewer cells that hold rows, by predicted value or by residual, no shape can be seen. Since
2026-11-16."""

LEAST_CHANCE: Final = 4.0
"""Decimal places of the least p-value of a plot: further out nobody has measured the law of its
sums. Since 2026-11-18."""
TAIL_PLACE, TAIL_DOUBT = 1 / 4, 1 / 8
"""Where rows a little beyond the bounds stand within their cell, as a share of it, and how far they
may be off on average. Chosen 2026-11-18, of doubts of 1/4, 1/8 and 1/16, on 840 plots without a
fault and skewed, fanning or long-tailed residuals: no false alarm with any of them; a bend of .15
at 5,000 rows and epsilon 0.5 was seen in .68, .80 and .80 (.15 before, .93 if no cut is feared)."""
