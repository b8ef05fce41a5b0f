"""The steps of private training: counts or a loss, then the cut; one booking for all of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arrays import Floats, Ints
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel.door import Answers, Booked, Staged, Step
from heldout.kernel.events import Event, price
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.fits import Block, ObjectivePerturbation
from heldout.kernel.noise.selection import PermuteAndFlip
from heldout.questions.features.selection import SelectionPlan
from heldout.questions.features.statistics import (
    RESOLUTION,
    SIZES,
    UNIT,
    Coding,
    FeatureStatistic,
    JointCounts,
    RegressionScores,
    RightCalls,
    RowScores,
    SparseRows,
    SummedScores,
    place_of,
    row_units,
    seen_through,
)
from heldout.questions.features.tuned import (
    BENDS_NEED,
    BENT_FROM,
    CODED_RIDGE,
    EVEN,
    FAINT,
    FEW_TIMES,
    FEW_WORDS,
    KINDS_NEED,
    ODDS_WIDTH,
    PLAIN_ODDS,
    PLAIN_TO_SEE,
    TABLE,
    TYPICAL,
)

# Split one budget over selection and training, and choose how many features to take.
#
# Every rule here is of public facts: the number of rows (or a public guess of it), of features,
# the privacy price and how many rows tell neighbours apart. None looks at a row.
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
    blocks: bool = True
    """True if slopes, bends and every column of kinds have noise of their own."""


RULES: Final[dict[int, Rules]] = {
    1: Rules(
        Fraction(2, 5), Fraction(1, 5), shared=False, centred=False, plain=PLAIN_ODDS, blocks=False
    ),
    2: Rules(
        Fraction(3, 5), Fraction(7, 20), shared=True, centred=True, plain=PLAIN_ODDS, blocks=False
    ),
    3: Rules(Fraction(3, 5), Fraction(7, 20), shared=True, centred=True, blocks=False),
    4: Rules(Fraction(3, 5), Fraction(7, 20), shared=True, centred=True),
}
"""By number: an answer is read by the rules that it was drawn by."""
LATEST = 4
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


RATES, ODDS, SPAN = 16, 17, 4.0
ROUNDS = 12
SMALLEST = np.float32(1e-30)


def log_odds(
    noisy: ArrayLike,
    *,
    scale: float,
    rows: ArrayLike,
    learnt: bool = True,
    largest: float = 0.4,
    centred: bool = True,
) -> Floats:
    """Return the mean of ln(p1/p0) given both noisy counts of a feature, for every feature.

    A feature has a rate (how many rows set it) and log-odds, each on a small grid. The count of a
    label is the rate times `rows` of that label, plus Poisson spread and Laplace noise of `scale`.
    With `learnt` the prior over the grid is fitted to all features' noisy counts (empirical Bayes:
    Robbins 1956; Kiefer and Wolfowitz 1956), so that thousands of features that are pure noise are
    recognised as such, and rare strong ones are not. The less a feature's counts narrow the fitted
    prior, the more of the prior's mean is taken off: that would weigh how many features a row has.
    Without `centred` it is not, and the last bits are those of answers from before it was.

    >>> noisy = np.array([[0.0, 2.0, 90.0, 3.0], [1.0, -2.0, 5.0, 400.0]])
    >>> log_odds(noisy, scale=5, rows=(1000, 1000), learnt=False).round(1).tolist()
    [0.1, -0.2, -2.6, 3.5]
    """
    counts = np.asarray(noisy, dtype=np.float32)
    sizes: Floats = np.maximum(np.asarray(rows, dtype=float), 1)
    rates = np.concatenate([[0.0], np.geomspace(1 / sizes.sum(), largest, RATES)])
    odds = np.linspace(-SPAN, SPAN, ODDS)
    first = rates[:, None] * sizes.sum() / (sizes[0] + sizes[1] * np.exp(odds))
    shares = np.stack([first, first * np.exp(odds)])
    likelihood = _likelihood(counts, shares * sizes[:, None, None], scale)
    likelihood[:, (shares.max(axis=0) > 1).ravel()] = 0
    own = np.exp(-0.5 * (odds / ODDS_WIDTH) ** 2)
    prior = np.outer(np.full(len(rates), 1 / len(rates)), own / own.sum())
    for _ in range(ROUNDS if learnt else 0):
        evidence = np.maximum(likelihood @ prior.ravel().astype(np.float32), SMALLEST)
        spread = prior * (likelihood.T @ (1 / evidence)).reshape(prior.shape) / len(counts.T)
        of_odds = spread[1:].sum(axis=0)
        of_odds = (1 - EVEN) * of_odds / max(of_odds.sum(), 1e-12) + EVEN / ODDS
        prior = np.outer(spread.sum(axis=1), of_odds)
    evidence = np.maximum(likelihood @ prior.ravel().astype(np.float32), SMALLEST)
    # A feature that no row sets says nothing, whatever the odds are called there.
    known = np.where(rates[:, None] > 0, odds, 0)
    if not centred:
        weighted = (prior * known).ravel().astype(np.float32)
        return np.asarray((likelihood @ weighted) / evidence, dtype=float)
    powers = [(prior * known**power).ravel() for power in (1, 2)]
    mean, square = (
        np.asarray(likelihood @ power.astype(np.float32), dtype=float) / evidence
        for power in powers
    )
    if not learnt:
        return mean
    common, variance = powers[0].sum(), powers[1].sum() - powers[0].sum() ** 2
    shrunk: Floats = mean - common * np.clip((square - mean**2) / max(variance, 1e-9), 0, 1)
    return shrunk


def _likelihood(noisy: NDArray[np.float32], expected: Floats, scale: float) -> NDArray[np.float32]:
    """Return the likelihoods of grid points by feature, the largest of a feature being 1."""
    total: Any = 0
    for counts, mean in zip(noisy, expected.reshape(2, -1), strict=True):
        # Poisson spread widens the Laplace law to the sum of the two variances.
        wide = np.sqrt(scale**2 + mean / 2)
        far = np.abs(counts[:, None] - mean.astype(np.float32)) / wide.astype(np.float32)
        total = total - far - np.log(2 * wide).astype(np.float32)
    total -= total.max(axis=1, keepdims=True)
    likelihood: NDArray[np.float32] = np.exp(total)
    return likelihood


STEP = 2**16  # steps of the lattice to one unit of log-odds


@dataclass(frozen=True)
class Cuts:
    """Public cuts of a score: `near` of them on each side, evenly `apart`, and a few far ones."""

    apart: Fraction
    near: int = 16
    far: tuple[int, ...] = (20, 24, 32, 48, 64, 96, 128)

    @property
    def places(self) -> tuple[int, ...]:
        """In lattice steps, rising.

        >>> len(Cuts(Fraction(1, 2)).places)
        47
        """
        sides = {*range(-self.near, self.near + 1), *self.far, *(-cut for cut in self.far)}
        return tuple(int(cut * self.apart * STEP) for cut in sorted(sides))

    def value(self, place: int) -> float:
        """The score from which rows are called positive, for an answer of `RightCalls`.

        Where calling all rows alike came out, it is the last of the near cuts: far out, all
        probabilities would round to one number, and no row would be ranked above another.
        """
        last = float(self.near * self.apart)
        if 1 <= place <= len(self.places):
            return self.places[place - 1] / STEP
        return -last if place == 0 else last

    def step(
        self,
        scores: RowScores,
        *,
        epsilon: Fraction,
        protection: Protection,
        chosen: tuple[int, ...] | None = None,
    ) -> Step:
        """The choice of a cut, by permute-and-flip."""
        return Step(
            RightCalls(scores, self.places, chosen), self.chooser(epsilon, protection=protection)
        )

    @staticmethod
    def chooser(epsilon: Fraction, *, protection: Protection) -> PermuteAndFlip:
        """One unit moves each count of `RightCalls` by its rows, all one way under add-remove."""
        one_way = protection.neighbours is Neighbours.ADD_REMOVE
        return PermuteAndFlip(epsilon, protection.rows_per_unit, monotone=one_way)


Features = tuple[int, ...] | None
"""The public features that a model is trained on; None is all of them."""


Model = TypeVar("Model")
"""What a plan learns: the model without its cut."""


class TrainingPlan(Protocol[Model]):
    """Trains one model in two steps, of public facts alone."""

    def prices(self) -> tuple[Event, Event]:
        """Return the prices of learning and of the cut; the same for any features."""

    def split(self) -> dict[str, str]:
        """Return what each step costs, in epsilon."""

    def learn(self, chosen: Features) -> Step:
        """Ask of the rows what the model is learnt from."""

    def understood(self, noisy: ArrayLike, chosen: Features) -> Model:
        """Read the answer: the model without its cut."""

    def cut(self, model: Model, chosen: Features) -> Step:
        """Ask of the rows last where the model calls a row positive."""

    def weights(self, model: Model) -> Floats:
        """Return a weight for each feature it was trained on."""

    def pick_selected(self, weights: Floats) -> Ints:
        """Return which of these features count as selected."""


class Stages:
    """A selection, if there is one, then learning, then the cut; paid as one.

    After the draw `chosen` and `model` are what the public answers meant.
    """

    def __init__(self, plan: TrainingPlan[Any], selection: SelectionPlan | None = None) -> None:
        self.plan, self.selection = plan, selection
        self.chosen: Features = None
        self.model: Any = None

    def request(self, name: str, *, claim: str, **words: Any) -> Staged:
        split = self.split()
        learning, cutting = self.plan.prices()
        # What cannot be drawn at this price is refused here, before anything is booked.
        self.plan.learn(None)
        steps = {"learning": Booked(learning, self._learn), "cut": Booked(cutting, self._cut)}
        if self.selection is not None:
            first = Step(self.selection.statistic, self.selection.mechanism)
            steps = {"selection": Booked.of(first)} | steps
        return Staged(
            name=name,
            steps=steps,
            parameters=words | split,
            claim=claim,
            description={"name": f"{name} in {len(steps)} steps", "split": split},
            reading=self,
        )

    def split(self) -> dict[str, str]:
        parts = self.plan.split()
        if self.selection is None:
            return parts
        return {"selection": str(price(self.selection.mechanism.event()).epsilon)} | parts

    def _learn(self, answers: Answers) -> Step:
        if self.selection is not None:
            indices = self.selection.read(answers["selection"]).indices
            # With nothing selected the model is one of the rows' sizes and of any one feature.
            self.chosen = tuple(sorted(int(index) for index in indices)) or (0,)
        return self.plan.learn(self.chosen)

    def _cut(self, answers: Answers) -> Step:
        self.model = self.plan.understood(answers["learning"], self.chosen)
        return self.plan.cut(self.model, self.chosen)

    def retell(self, answers: Answers) -> None:
        """Learn from stored answers what the draw learnt from them."""
        if self.model is None:
            asked: Any = self._learn(answers).statistic
            if len(answers["learning"]) != asked.dimension:
                raise ArgumentError(f"the model is learnt from {asked.dimension:,} numbers.")
            self._cut(answers)

    def __getstate__(self) -> dict[str, Any]:
        # How a selection was read is a function; a stored model needs what it read alone.
        return self.__dict__ | {"selection": None}


UNIT_ROUNDOFF = Fraction(1, 2**53)
HALF = Fraction(1, 2)
TOLERANCE = Fraction(1, 2**24)
LARGEST = 64  # coefficients beyond this are summed with care, term by term
FINE = 2**20  # how much finer the noise's lattice is than a row, over all coefficients
MARGIN = 2.0
"""How far on the right side a row's score must be to pull half as hard as it can.

Noise is paid for the hardest pull. Without a margin, rows pull half as hard before anything is
learnt. Of 0 to 3, tried on adult, diabetes130, CPS, ACS, wine, pima and abalone, 2 was best.
"""


Minimiser = Callable[[Sequence[int]], NDArray[np.object_]]
"""Noise in lattice steps -> the minimum of the noisy loss, in whole lattice steps."""


@dataclass(frozen=True)
class LogisticLoss(FeatureStatistic[Minimiser]):
    """Sum over rows of log(1 + exp(MARGIN - y t.x)), x the row's features and a constant.

    It is sealed as a function: for noise in lattice steps it gives the minimum of the noisy,
    ridged loss. `rows` is a public bound on the number of rows. With a `weight`, a feature that is
    set counts 1, or weight/size in rows of more features, and one that is not set 0. Without, as
    suits few features that many rows set, it counts 1/2 or -1/2. With a `coding`, features describe
    columns, and x has the coding's entries. The constant is 1/2, or 1 with a coding.

    Claim:       a row's gradient is at most `row` long, in L1 with a weight, in its largest entry
                 without, and in the L1 length of any group with a coding, and at most
                 `square` in squared L2; the solver's minimum lies within `slack` of the true one.
                                                                              [claim: logistic]
    Neighbours:  any; each row enters by itself.
    Sensitivity: with a weight, features sum to at most `weight`, each at most 1, and the constant
                 is 1/2; without, every entry is 1/2 or -1/2; a coding's groups sum to at most 1.
    Numerics:    doubles with a proved bound on their error.
    Refuses:     nothing in the rows.
    Reference:   Chaudhuri, Monteleoni and Sarwate 2011; proofs/logistic.md.
    Cost:        a dozen Newton steps by conjugate gradients.
    """

    features: int
    weight: int | None
    ridge: Fraction
    rows: int
    chosen: tuple[int, ...] | None = None
    coding: Coding | None = None
    claim = "logistic"
    shown_by = (
        "tests/questions/features/test_logistic.py"
        "::test_the_density_of_the_ideal_minimum_moves_by_no_more_than_claimed"
    )

    @property
    def dimension(self) -> int:
        return (self.features if self.coding is None else self.coding.entries) + 1

    @property
    def grid(self) -> int:
        """Return the steps of an entry of 1."""
        return 1 if self.coding is None else RESOLUTION

    @property
    def constant(self) -> Fraction:
        """Return what every row has: as much as its norm leaves free."""
        return HALF if self.coding is None else Fraction(1)

    @property
    def row(self) -> Fraction:
        """Return how hard one row can pull: in all with a weight, at one coefficient without."""
        if self.coding is not None:
            return Fraction(1)
        return HALF if self.weight is None else self.weight + HALF

    @property
    def square(self) -> Fraction:
        """The squared length of a row."""
        if self.coding is not None:
            return Fraction(len(self.coding.groups) + 1)
        if self.weight is None:
            return HALF**2 * self.dimension
        return self.weight + HALF**2

    @property
    def length(self) -> Fraction:
        """The sum of a row's entries, without their signs."""
        if self.coding is not None:
            return Fraction(len(self.coding.groups) + 1)
        return HALF * self.dimension if self.weight is None else self.row

    @cached_property
    def step(self) -> Fraction:
        """Of the noise: a power of two."""
        return Fraction(1, 1 << int(FINE * self.dimension / self.length).bit_length())

    @property
    def lattice(self) -> Fraction:
        """Of the coefficients."""
        return self.step / self.ridge

    @property
    def grain(self) -> int:
        """Bits after the point of coefficients that are summed: sums fit 62 bits."""
        return min(40, 62 - (LARGEST * self.grid * self.dimension).bit_length())

    @property
    def bits(self) -> int:
        """Bits after the point of rows' gradients that are summed: sums fit 62 bits."""
        return 62 - self.rows.bit_length()

    @cached_property
    def error(self) -> Fraction:
        """A bound on the length of a gradient's error in doubles."""
        margin = self.length / (1 << (self.grain - 1))
        of_entries = self.grid * self._root / (1 << (self.bits + 1))
        return 2 * self.rows * (self.length * (margin / 4 + 16 * UNIT_ROUNDOFF) + of_entries)

    @cached_property
    def _root(self) -> Fraction:
        """The square root of the dimension, rounded up."""
        return Fraction(math.isqrt(self.dimension << 40) + 1, 1 << 20)

    @property
    def tolerance(self) -> Fraction:
        return max(TOLERANCE, 4 * self.error)

    @cached_property
    def slack(self) -> int:
        """Lattice steps (L1) between two roundings of one minimum."""
        root = self._root
        wrong = self.tolerance + self.error + root * self.step / 2
        return math.ceil(2 * root * wrong / self.ridge / self.lattice) + self.dimension

    def read(self, columns: Columns) -> Minimiser:
        matrix = seen_through(columns, self.chosen)
        rows = TrainingRows(self, matrix, columns["label"])

        def minimum(noise: Sequence[int]) -> NDArray[np.object_]:
            steps = np.rint(self.minimum(rows, list(noise)) / float(self.lattice))
            # Integers without an end: 64 bits would not hold those of many rows and features.
            return np.array([int(step) for step in steps], dtype=object)

        return minimum

    def minimum(self, rows: "TrainingRows", noise: list[int]) -> Floats:
        """Return where the noisy loss is least, plus b/ridge; Newton's steps, shortened."""
        from scipy.sparse.linalg import LinearOperator, cg

        ridge, tolerance = float(self.ridge), float(self.tolerance)
        at = np.zeros(self.dimension)
        slope, curve = rows.slope(at, noise)
        while np.linalg.norm(slope) > tolerance:
            curved = LinearOperator(
                (self.dimension, self.dimension),
                matvec=lambda v, curve=curve: rows.curved(v, curve) + ridge * v,
            )
            exact = min(0.1, float(np.linalg.norm(slope)) ** 0.5)
            move, _ = cg(curved, slope, rtol=max(exact, 1e-8), maxiter=10 * self.dimension)
            length = 1.0
            while True:
                tried = at - length * move
                then, curve_then = rows.slope(tried, noise)
                if then @ then < slope @ slope * (1 - length / 4):
                    break
                length /= 2
            at, slope, curve = tried, then, curve_then
        return at


class TrainingRows:
    """Rows, their weights and labels of -1 and 1, and the sums that Newton's method needs.

    A row's vector is its weight for each feature that it sets, `shift` (0 or -1/2) added to every
    feature, or the entries of a coding; and the constant.
    """

    def __init__(self, loss: LogisticLoss, matrix: SparseRows, label: ArrayLike) -> None:
        from scipy.sparse import csr_array

        self.loss = loss
        coded = matrix if loss.coding is None else csr_array(loss.coding.coded(matrix))
        self.whole: Any = coded.astype(np.int64)
        self.whole_across = self.whole.T.tocsr()
        self.matrix, self.across = self.whole.astype(float), self.whole_across.astype(float)
        if loss.coding is not None:
            self.weights, self.shift = np.full(matrix.shape[0], 1 / loss.grid), 0.0
        elif loss.weight is None:
            self.weights, self.shift = np.ones(matrix.shape[0]), -0.5
        else:
            self.weights, self.shift = row_units(matrix, loss.weight) / UNIT, 0.0
        self.constant = float(loss.constant)
        self.labels = 2.0 * np.asarray(label) - 1

    def slope(self, at: Floats, noise: list[int]) -> tuple[Floats, Floats]:
        """Return the gradient, and each row's curvature. Sums are of integers."""
        loss = self.loss
        miss = logistic(MARGIN - self.labels * self.margins(at, noise))
        pull = -self.labels * miss
        fine = 2.0**loss.bits
        own = np.rint(self.weights * pull * fine).astype(np.int64)
        last = np.rint(pull * fine).astype(np.int64).sum()
        slope = np.append(self.whole_across @ own + self.shift * last, self.constant * last) / fine
        return slope + float(loss.ridge) * at, miss * (1 - miss)

    def margins(self, at: Floats, noise: list[int]) -> Floats:
        """Return t.x for every row, t being `at` minus the noise over the ridge."""
        away = float(self.loss.lattice) * np.array(noise, dtype=float)
        whole = at - away
        # Noise beyond 53 bits is rounded on its way to a double: far out that would be seen.
        if np.abs(whole).max() > LARGEST or np.abs(away).max() > 2 * LARGEST:
            return self._careful(at, noise)
        fine = 2.0**self.loss.grain
        entries = np.rint(whole[:-1] * fine).astype(np.int64)
        features = self.weights * ((self.whole @ entries) / fine)
        every = self.shift * (entries.sum() / fine) + self.constant * whole[-1]
        margins: Floats = features + every
        return margins

    def curved(self, vector: Floats, curve: Floats) -> Floats:
        every = self.shift * vector[:-1].sum() + self.constant * vector[-1]
        along = curve * (self.weights * (self.matrix @ vector[:-1]) + every)
        total = along.sum()
        rest = self.constant * total
        return np.append(self.across @ (self.weights * along) + self.shift * total, rest)

    def _careful(self, at: Floats, noise: list[int]) -> Floats:
        """Return margins by exact rationals, for coefficients too large for doubles."""
        step = self.loss.lattice
        whole = [Fraction(float(a)) - step * b for a, b in zip(at, noise, strict=True)]
        every = Fraction(self.shift) * sum(whole[:-1]) + self.loss.constant * whole[-1]
        starts, places = self.whole.indptr, self.whole.indices
        entries = [int(entry) for entry in self.whole.data]
        margins = []
        for a, b, weight in zip(starts, starts[1:], self.weights, strict=False):
            own = sum(entries[place] * whole[places[place]] for place in range(a, b))
            margins.append(float(Fraction(float(weight)) * own + every))
        return np.array(margins)


def logistic(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    shares: Floats = np.where(x >= 0, 1.0, small) / (1 + small)
    return shares


def needs(coding: Coding) -> Fraction:
    """Return what the noise of all coefficients amounts to, in single slopes.

    Noise for a block with the share a of what a row may move spreads scores with a variance of
    A/a^2; the least sum over blocks has shares in proportion to the cube roots of A. Of m slopes A
    is about m (m + 1)(m + 2)/6, so its root like m + 1; of one column of kinds it is 2, however
    many kinds there are.

    >>> needs(Coding(sizes=(5, 2, 12), ordered=(0,), degree=1))
    Fraction(25, 4)
    """
    slopes, bends, kinds = coding.roles
    total = KINDS_NEED * len(kinds) + 1
    total += len(slopes) + 1 if slopes else 0
    return total + (BENDS_NEED * (len(bends) + 1) if bends else 0)


LOGISTIC_CUTS = Cuts(apart=Fraction(1, 8), near=32, far=(40, 48, 64, 96, 128))
LARGEST_COEFFICIENT = 2.0**20
LEAST_PRICE, MOST_PRICE = Fraction(1, 10**6), 10**6


@dataclass(frozen=True)
class LogisticPlan:
    """One logistic regression before it is paid: coefficients, then the cut. Public facts alone."""

    features: int
    features_per_row: int
    epsilon: Fraction
    weight: int
    ridge: Fraction | None
    rows: int
    most_rows: int | None
    protection: Protection
    rules: Rules = RULES[LATEST]
    columns: tuple[int, ...] | None = None
    ordered: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.columns is not None and sum(self.columns) != self.features:
            raise ArgumentError(
                f"columns must have all {self.features:,} features, got {sum(self.columns):,}."
            )
        if not LEAST_PRICE <= self.epsilon <= MOST_PRICE:
            raise ArgumentError(
                f"epsilon must lie between {LEAST_PRICE} and {MOST_PRICE:,} for a logistic "
                "regression. Try 1."
            )
        if self.most_rows is None:
            raise ArgumentError(
                "A logistic regression needs a public bound on the number of rows where the number "
                "itself is not public. Pass FeatureMatrix(..., most_rows=...)."
            )

    @property
    def cut_epsilon(self) -> Fraction:
        shares = shares_for(
            self.epsilon,
            rows=self.rows,
            protection=self.protection,
            features=self.features,
            rules=self.rules,
        )
        return self.epsilon * shares.cut

    @property
    def loss_epsilon(self) -> Fraction:
        return self.epsilon - self.cut_epsilon

    def split(self) -> dict[str, str]:
        return {"coefficients": str(self.loss_epsilon), "cut": str(self.cut_epsilon)}

    def prices(self) -> tuple[Event, Event]:
        chooser = LOGISTIC_CUTS.chooser(self.cut_epsilon, protection=self.protection)
        first = Event("objective-perturbation", {"epsilon": self.loss_epsilon})
        return first, chooser.event()

    @cached_property
    def coding(self) -> Coding | None:
        """Return how features are read as columns; numbers bend where enough can be seen."""
        if self.columns is None:
            return None
        straight = Coding(self.columns, self.ordered, 1)
        seen = strength(self.loss_epsilon, rows=self.rows, protection=self.protection)
        many = needs(straight) if self.rules.blocks else straight.entries + 1
        bent = seen >= BENT_FROM * many
        return Coding(self.columns, self.ordered, 2) if bent else straight

    def loss(self, chosen: Features = None) -> LogisticLoss:
        assert self.most_rows is not None
        if self.coding is not None:
            coded = LogisticLoss(
                self.features, None, Fraction(1), self.most_rows, coding=self.coding
            )
            return replace(coded, ridge=self.ridge_for(coded))
        count = self.features if chosen is None else len(chosen)
        few = count <= FEW_TIMES * min(TYPICAL, self.features_per_row)
        weight = None if few else min(self.weight, count)
        loss = LogisticLoss(count, weight, Fraction(1), self.most_rows, chosen)
        return replace(loss, ridge=self.ridge_for(loss))

    def learn(self, chosen: Features = None) -> Step:
        loss = self.loss(chosen)
        return Step(loss, self.mechanism(loss))

    def mechanism(self, loss: LogisticLoss) -> ObjectivePerturbation:
        return ObjectivePerturbation(
            epsilon=self.loss_epsilon,
            moved=self.protection.rows_moved,
            rows_per_unit=self.protection.rows_per_unit,
            row=loss.row,
            square=loss.square,
            dimension=loss.dimension,
            ridge=loss.ridge,
            step=loss.step,
            slack=loss.slack,
            even=loss.weight is None and loss.coding is None,
            blocks=None if loss.coding is None else self.blocks(loss.coding),
        )

    def blocks(self, coding: Coding) -> tuple[Block, ...]:
        """Return the coefficients whose noise is drawn together, with shares that sum to 1."""
        constant = (coding.entries,)
        if not self.rules.blocks:
            ends = accumulate(coding.groups, initial=0)
            groups = [tuple(range(a, b)) for a, b in pairwise(ends)]
            return (Block(Fraction(1), (*groups, constant)),)
        total = needs(coding)
        slopes, bends, kinds = coding.roles
        blocks = [
            Block(BENDS_NEED**power * (len(own) + 1) / total, own)
            for power, own in enumerate((slopes, bends))
            if own
        ]
        blocks += [Block(KINDS_NEED / total, (own,)) for own in kinds]
        return (*blocks, Block(1 / total, (constant,)))

    def understood(self, noisy: ArrayLike, chosen: Features = None) -> Ints:
        """Return the coefficients in lattice steps of scores, within a range that no sum overflows.

        The last one is what every row gets: half the constant's, and half of each feature's less
        where features count 1/2 or -1/2.
        """
        loss = self.loss(chosen)
        real = np.clip(
            np.asarray(noisy, dtype=float) * float(loss.lattice),
            -LARGEST_COEFFICIENT,
            LARGEST_COEFFICIENT,
        )
        if loss.coding is not None:
            weights, rest = loss.coding.spread(real[:-1])
            every = 2 * (float(loss.constant) * real[-1] + rest)
        else:
            weights = real[:-1]
            every = real[-1] - (weights.sum() if loss.weight is None else 0)
        steps: Ints = np.rint(np.append(weights, every / 2) * STEP).astype(np.int64)
        return steps

    def cut(self, model: Ints, chosen: Features = None) -> Step:
        return LOGISTIC_CUTS.step(
            RegressionScores(model, self.loss(chosen).weight),
            epsilon=self.cut_epsilon,
            protection=self.protection,
            chosen=chosen,
        )

    def ridge_for(self, loss: LogisticLoss) -> Fraction:
        """Return a power of two: the ridge asked for, or 2 to 4 times a coefficient's noise."""
        least = ObjectivePerturbation.least_ridge(
            self.loss_epsilon, square=loss.square, rows_per_unit=self.protection.rows_per_unit
        )
        # Noise of the law exp(-max) deviates by (dimension + 1)/sqrt(3) scales.
        deviation = 1 if loss.weight is not None else Fraction(4, 7) * (loss.dimension + 1)
        times = 2
        if loss.coding is not None:
            deviation, times = self._deviation(loss.coding), CODED_RIDGE
        wanted = times * self.protection.rows_moved * loss.row * deviation / self.loss_epsilon
        if self.ridge is not None:
            wanted = self.ridge
        return _next_power_of_two(max(least, wanted))

    def _deviation(self, coding: Coding) -> Fraction:
        """Return about how far a coefficient's noise deviates, in scales of the noise."""
        if self.rules.blocks:
            return Fraction(3, 5) * needs(coding)  # 0.58, 0.77 and 0.63 by role
        # In a group of m by dimension sqrt(2/((m + 1)(m + 2))).
        sizes = (*coding.groups, 1)
        squares = [Fraction(2 * size, (size + 1) * (size + 2)) for size in sizes]
        return Fraction(math.isqrt(int(sum(sizes) * sum(squares) * 4**8)), 2**8)

    def weights(self, model: Ints) -> Floats:
        """Return the coefficients without the intercept."""
        return model[:-1] / STEP

    def pick_selected(self, weights: Floats) -> Ints:
        """Return all of them: a penalty leaves none out."""
        return np.arange(len(weights))


def _next_power_of_two(number: Fraction) -> Fraction:
    """Return the smallest power of two that is not below the number.

    >>> _next_power_of_two(Fraction(5)), _next_power_of_two(Fraction(1, 3))
    (Fraction(8, 1), Fraction(1, 2))
    """
    power = Fraction(2) ** math.ceil(math.log2(number))
    while power < number:
        power *= 2
    return power


BAYES_CUTS = Cuts(apart=Fraction(1, 2))


def size_units(share: Fraction, weight: int) -> int:
    """Return the units that make the size cells take this share of a row's weight."""
    return max(1, round(share / (1 - share) * weight * UNIT))


def mean_weights(weight: int) -> Floats:
    """Return about what a feature of a row weighs, by cell of sizes; public."""
    spans = [np.arange(a, b) for a, b in pairwise((*SIZES, 2 * SIZES[-1]))]
    return np.array([1.0, *(np.minimum(1.0, weight / span).mean() for span in spans)])


class NaiveBayesPlan:
    """The two steps of a naive Bayes model: noisy counts, then the cut. Public facts alone."""

    def __init__(
        self,
        *,
        features: int,
        epsilon: Fraction,
        weight: int,
        rows: int,
        protection: Protection,
        rules: Rules = RULES[LATEST],
    ) -> None:
        shares = shares_for(
            epsilon, rows=rows, protection=protection, features=features, rules=rules
        )
        self.features, self.weight, self.protection = features, weight, protection
        self.epsilon, self.rows, self.rules = epsilon, rows, rules
        self.size_units = size_units(shares.sizes, weight)
        self.cut_epsilon = epsilon * shares.cut
        self.counts_epsilon = epsilon - self.cut_epsilon

    def prices(self) -> tuple[Event, Event]:
        """Return the prices, the same however many features there will be."""
        chooser = BAYES_CUTS.chooser(self.cut_epsilon, protection=self.protection)
        noise = DiscreteLaplace.for_epsilon(self.counts_epsilon, l1_sensitivity=1, dimension=1)
        return noise.event(), chooser.event()

    def split(self) -> dict[str, str]:
        return {"counts": str(self.counts_epsilon), "cut": str(self.cut_epsilon)}

    def learn(self, chosen: Features = None) -> Step:
        count = self.features if chosen is None else len(chosen)
        places = None
        if self.rules.shared:
            places = places_for(
                count, epsilon=self.epsilon, rows=self.rows, protection=self.protection
            )
        statistic = JointCounts(count, self.weight, self.size_units, chosen, places)
        noise = DiscreteLaplace.for_epsilon(
            self.counts_epsilon,
            l1_sensitivity=statistic.sensitivity(self.protection),
            dimension=statistic.dimension,
        )
        return Step(statistic, noise)

    def understood(self, noisy: ArrayLike, chosen: Features = None) -> tuple[Ints, Ints]:
        """Read log-odds of features and of row sizes off noisy counts, in lattice steps."""
        asked = self.learn(chosen)
        noise, counts = asked.mechanism, asked.statistic
        assert isinstance(noise, DiscreteLaplace)
        assert isinstance(counts, JointCounts)
        scale, real, cells = noise.float_scale, np.asarray(noisy, dtype=float), len(SIZES) + 1
        by_size = real[: 2 * cells].reshape(2, cells) / self.size_units
        by_feature = real[2 * cells :].reshape(2, -1) / UNIT
        by_size[:, 1:][:, np.array(SIZES) > counts.features] = 0  # no row has so many: noise
        rows = np.maximum(by_size.sum(axis=1), 1)
        present = np.maximum(by_size, 0)
        present *= (rows / np.maximum(present.sum(axis=1), 1))[:, None]
        seen = np.maximum((present * mean_weights(self.weight)).sum(axis=1), 1)
        centred = self.rules.centred
        features = log_odds(by_feature, scale=scale / UNIT, rows=seen, centred=centred)
        sizes = log_odds(
            by_size,
            scale=scale / self.size_units,
            rows=rows,
            learnt=False,
            largest=0.9,
            centred=centred,
        )
        features = np.where(np.abs(features) < FAINT, 0, features)
        features = features[place_of(counts.features, counts.places)]
        return np.rint(features * STEP).astype(np.int64), np.rint(sizes * STEP).astype(np.int64)

    def cut(self, model: tuple[Ints, Ints], chosen: Features = None) -> Step:
        return BAYES_CUTS.step(
            SummedScores(*model),
            epsilon=self.cut_epsilon,
            protection=self.protection,
            chosen=chosen,
        )

    def weights(self, model: tuple[Ints, Ints]) -> Floats:
        """Return the shrunk log-odds of each feature; 0 for one that is like noise."""
        return model[0] / STEP

    def pick_selected(self, weights: Floats) -> Ints:
        """Return the features with a weight, by number: those that are unlike noise."""
        least = max(self.rules.plain, 1 / STEP)
        return np.asarray(np.flatnonzero(np.abs(weights) >= least), dtype=np.int64)
