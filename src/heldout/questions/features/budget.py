"""Split one budget over selection and training, and choose how many features to take.

Every rule here is of public facts: the number of rows (or a public guess of it), of features, the
privacy price and how many rows tell neighbours apart. None looks at a row.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.questions.features.tuned import FEW_WORDS, PLAIN_ODDS, PLAIN_TO_SEE, TABLE

_GRID = 64  # shares are whole sixty-fourths, which read well and keep prices short

PAPER_SPLITS = {"score-perturbation": Fraction(1, 2), "cluster": Fraction(1, 5)}
"""What Stoddard, Chen and Machanavajjhala 2014 (section 5.1) give to the selection."""


@dataclass(frozen=True)
class Shares:
    """Divides the epsilon of a naive Bayes model."""

    sizes: Fraction
    """Of the counts' budget: the cells of row sizes."""
    cut: Fraction
    """Of epsilon: the choice of the cut."""


@dataclass(frozen=True)
class Rules:
    """Says which rules a model was planned and read by, so that stored answers stay what they are.

    An answer is read by the rules that it was drawn by: its noise has the scale of that split, and
    its cut was chosen for those weights.
    """

    most_sizes: Fraction
    """The largest share of row sizes, where features are those of texts."""
    most_cut: Fraction
    """The largest share of the cut, there."""
    shared: bool
    """Whether many features share sums."""
    centred: bool
    """Whether log-odds that little is known of are drawn to nothing."""
    plain: float = 0.0
    """The log-odds beyond which a feature of naive Bayes counts as selected: 0, so any weight."""


RULES = {
    1: Rules(Fraction(2, 5), Fraction(1, 5), shared=False, centred=False, plain=PLAIN_ODDS),
    2: Rules(Fraction(3, 5), Fraction(7, 20), shared=True, centred=True, plain=PLAIN_ODDS),
    3: Rules(Fraction(3, 5), Fraction(7, 20), shared=True, centred=True),
}
"""By number: an answer is read by the rules that it was drawn by."""
LATEST = 3
ORDER_DRAWN = 2
"""Up to these rules a sparse vector asked features in an order that was drawn and not stored."""


def strength(epsilon: Fraction, *, rows: int, protection: Protection) -> Fraction:
    """Rows times epsilon over the rows that tell neighbours apart: how much can be seen at all."""
    return rows * epsilon / protection.rows_moved


def shares_for(
    epsilon: Fraction,
    *,
    rows: int,
    protection: Protection,
    features: int,
    rules: Rules = RULES[LATEST],
) -> Shares:
    """The fewer rows, the more goes to the few numbers that are seen well: sizes and the cut.

    Rows of a table, which has few features, set about as many each, so their sizes say little.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> one_row = Protection(neighbours=Neighbours.ADD_REMOVE)
    >>> shares_for(Fraction(1), rows=5000, protection=one_row, features=8000)
    Shares(sizes=Fraction(1, 8), cut=Fraction(1, 16))
    >>> shares_for(Fraction(1, 10), rows=5000, protection=one_row, features=8000)
    Shares(sizes=Fraction(25, 64), cut=Fraction(3, 16))
    >>> shares_for(Fraction(1, 10), rows=5000, protection=one_row, features=80)
    Shares(sizes=Fraction(13, 64), cut=Fraction(1, 16))
    """
    seen = strength(epsilon, rows=rows, protection=protection)
    if features <= TABLE:
        sizes, cut = min(Fraction(2, 5), Fraction(1, 16) + 75 / seen), Fraction(1, 16)
    else:
        sizes = min(rules.most_sizes, Fraction(1, 10) + 150 / seen)
        cut = min(rules.most_cut, Fraction(1, 20) + 75 / seen)
    return Shares(sizes=_rounded(sizes), cut=_rounded(cut))


def places_for(
    features: int, *, epsilon: Fraction, rows: int, protection: Protection
) -> int | None:
    """Return how many sums the counts of many features share where little can be seen, or None.

    A quarter of the features or an eighth, as a power of two. Chosen on SMS (8,444 words), TWITTER
    (14,642) and REUTERS (25,235), where 1/16 to 1 of the features were tried.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> by_row = Protection(neighbours=Neighbours.REPLACE_ONE)
    >>> [places_for(8444, epsilon=Fraction(e), rows=5000, protection=by_row)
    ...  for e in ("1/2", 1, 2)]
    [1024, 2048, None]
    """
    seen = strength(epsilon, rows=rows, protection=protection)
    if features <= FEW_WORDS or seen >= PLAIN_TO_SEE:
        return None
    return 1 << round(math.log2(features / (4 if 2 * seen >= PLAIN_TO_SEE else 8)))


def features_to_take(epsilon: Fraction, *, rows: int, features: int, protection: Protection) -> int:
    """k for a selection of k names: as many as noise that grows with k lets through.

    The noise on a score is about k/epsilon rows, and the k-th most frequent word of a text is in
    about rows/(2 k) of them (Zipf's law). k is where the count is three times the noise.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> one_row = Protection(neighbours=Neighbours.ADD_REMOVE)
    >>> [features_to_take(Fraction(e), rows=5000, features=8000, protection=one_row)
    ...  for e in ("0.1", "0.5", "1")]
    [9, 20, 28]
    """
    most = math.isqrt(int(strength(epsilon, rows=rows, protection=protection) / 6))
    return max(1, min(most, features))


def selection_share(split: "str | Fraction | float | None", *, method: str) -> Fraction:
    """The part of epsilon that a selection gets before the training.

    >>> selection_share("paper", method="cluster")
    Fraction(1, 5)
    """
    from heldout.kernel import exact

    if split is None:
        return Fraction(1, 2)
    if split == "paper":
        return PAPER_SPLITS.get(method, Fraction(1, 2))
    share = exact(split, name="split")
    if not 0 < share < 1:
        raise ArgumentError(
            f"split must lie between 0 and 1, got {split!r}. It is the part that selection gets."
        )
    return share


def _rounded(share: Fraction) -> Fraction:
    return Fraction(max(1, math.floor(share * _GRID)), _GRID)
