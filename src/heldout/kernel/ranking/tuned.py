"""The tuned constants of this room: what each is for, since when, and what chose or measures it.

Whoever changes one runs that again. "No record" says that nobody wrote down what chose it.
Constants of numerics (ladders, lattices, tolerances) stay beside the code that they serve.
Benchmarks are in benchmarks/.
"""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

# --- looks at the class counts -------------------------------------------------------------------

FIRST_SHARE: Final = Fraction(1, 50)
"""Of epsilon, for the first look at the class counts. Since 2026-11-15; no record, measured by
ranking_error.py."""
SHARES: Final = tuple(Fraction(percent, 100) for percent in (2, 3, 4, 5, 7, 9, 11, 14, 17, 21, 25))
"""Of epsilon, what a second look may have: the first that is enough, or the last. Since 2026-11-15;
no record, measured by ranking_error.py."""
SCALES: Final[Mapping[str, int]] = MappingProxyType({"auc": 11, "average-precision": 9})
"""How many noise scales of the second look the class should measure: intervals are then within a
few percent of those with the true count. For areas more, as the smaller of two is used. Since
2026-11-15; no record, measured by ranking_error.py."""
UNKNOWN_ROWS: Final = 2**16
"""Rows that a plan assumes if their number is not public and nobody guesses. Since 2026-11-15; no
record."""

# --- a value, or counts by score -----------------------------------------------------------------

SECOND_SHARE: Final = Fraction(2, 25)
"""Of epsilon, for the look that decides between a value and counts by score. Chosen 2026-11-18 on
the sets of `FEW`."""
CLEAR: Final = 3
"""Noise scales of the first look: a class that is larger than the crossing by so many needs no
second look. Chosen 2026-11-18 on the sets of `FEW`."""
FEW: Final[Mapping[str, int]] = MappingProxyType({"auc": 22, "average-precision": 60})
"""The crossing: rows of the smaller class (for average precision: positives) times epsilon, under
replace-one; twice as many under add-remove, where counts have half the noise. Chosen 2026-11-18 on
five made-up sets, adult, CPS and ACS at 5 to 160 rows times epsilon; measured on others by
beside.py."""
OUTRIGHT: Final[Mapping[str, int]] = MappingProxyType({"auc": 220, "average-precision": 600})
"""Rows times epsilon, under replace-one, below which looks cost more than they tell: with a public
row count counts are drawn outright. About where both quote the same interval (so that it never
widens there), a quarter of the rows positive; errors cross there for AUC and near 800 for average
precision. Chosen 2026-11-18 on the same sets at 100 to 1,000."""

LEAST_PRECISION: Final = 200
"""Rows times epsilon below which an average precision read off counts is not shown: those that were
would be the few that noise made look clear. Of 640 draws on 16 sets at a product of 100, 125 were,
and on the sets where that was rare none of 5 and 2 of 3 intervals held. Chosen 2026-11-19; measured
by benchmarks/beside.py."""

# --- what is bought beside the value, for its sampling error -------------------------------------

BESIDE: Final[Mapping[str, tuple[Fraction, Fraction]]] = MappingProxyType(
    {
        "auc": (Fraction(1, 20), Fraction(1, 8)),
        # A few rows at the top pull so hard at it that moments with noise for them say nothing: its
        # tables say more alone.
        "average-precision": (Fraction(1, 10), Fraction(0)),
        "auc-difference": (Fraction(1, 20), Fraction(1, 10)),
        "average-precision-difference": (Fraction(0), Fraction(0)),
    }
)
"""Of epsilon, for each score table and for the moments of influence. Since 2026-11-16; no record,
measured by accuracy.py and comparing.py."""
LEAST_VISIBLE, LEAST_VISIBLE_COMPARED = 5_000, 500
"""Rows times epsilon, halved with each row more that neighbours differ in: below it the moments
drown in noise, and what they cost is better spent on the value. Since 2026-11-16; no record,
measured by accuracy.py and comparing.py."""
SLOWLY: Final = 3
"""The power by which what comparisons spend beside the value grows. Chosen 2026-11-18, of 1, 3 and
5, on five made-up sets of 700 to 2,000 rows at epsilon 1; measured by points.py."""
LEAST_EPSILON: Final = Fraction(1, 20)
"""With less of it nothing is bought beside the value. Since 2026-11-16; no record."""
LEVELS: Final = 3
"""Of the score tables' cuts: eight bins, where curves have sixteen. Since 2026-11-16; no record."""
EDGES_SHARE: Final = Fraction(3, 10)
"""Of a score table's epsilon, for its cuts. Since 2026-11-16; no record."""

# --- concordance ---------------------------------------------------------------------------------

SIZE_SHARE, PULL_SHARE = Fraction(1, 10), Fraction(1, 5)
"""Of epsilon, for the comparable pairs of each row and for how hard rows pull: the sampling error.
Since 2026-11-18; no record, measured by measures.py."""
