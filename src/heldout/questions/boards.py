"""Boards: leaderboards that cannot be gamed, planned before they open."""

import fcntl
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from heldout.arguments import as_number, as_whole, is_one_of, shown
from heldout.arrays import Ints
from heldout.data import Dataset
from heldout.data.classes import ClassifiedDataset, ClassifiedRows
from heldout.data.sql import Columns, double
from heldout.errors import AlreadyBooked, AnswerLost, ArgumentError, LedgerError, PrivacyError
from heldout.kernel import Account, Budget, Event, Ledger
from heldout.kernel.door import Request, release
from heldout.kernel.ledger.records import checked_name
from heldout.kernel.loss import Rational, exact
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace, Mechanism
from heldout.kernel.noise.selection import AboveBar, Prepaid, SparseVector, secret_of
from heldout.kernel.statistic import ERRORS, Statistic, check_resolution

# --- plan what a board can show before it opens: from public numbers, no row is read --------------


@dataclass(frozen=True)
class Certificate:
    """With probability `level`, no submission's score on the rows exceeds its population's by more.

    >>> print(certified(rows=50_000, submissions=1000, improvements=10, spacing=0.01, epsilon=2))
    at most 0.034 above the population, 95%, whatever the other 999 submissions learnt
    """

    bound: float
    level: float
    submissions: int
    by: str
    """"counting" of transcripts, or "privacy"."""

    def __str__(self) -> str:
        others = f"whatever the other {self.submissions - 1:,} submissions learnt"
        bound = math.ceil(self.bound * 1000) / 1000
        return f"at most {bound:.3f} above the population, {self.level * 100:g}%, {others}"

    def as_dict(self) -> dict[str, str | float | int]:
        return dict(vars(self)) | {"words": str(self)}


def certified(
    *,
    rows: int,
    submissions: int,
    improvements: int,
    spacing: float,
    epsilon: float,
    level: float = 0.95,
    least_class: int | None = None,
) -> Certificate:
    """The certificate of a board on `rows` independent rows, for a mean of values in [0, 1].

    `spacing` is how far apart shown scores are, `epsilon` the price of the whole board. With
    `least_class`, the least number of rows of either class, it is for the AUC.

    Claim:       with probability `level` no submission's mean over the rows exceeds that over the
                 population by more than `bound`, all submissions together, adaptively chosen.
                                                                    [claim: board-certificate]
    Reference:   Blum and Hardt 2015; Dwork et al. 2015; proofs/board-certificate.md.
    """
    failing = 1 - level
    values = math.floor(1 / spacing) + 2  # the grid's, and 1, where what lies above it is shown
    counted = _transcripts(submissions, improvements, values)
    count = rows if least_class is None else least_class
    counting = _bound(count, math.log(submissions) + counted, failing)
    # Dwork et al. 2015, theorem 20: the max-information of an epsilon-private transcript, in nats.
    half = failing / 2
    information = epsilon**2 * rows / 2 + epsilon * math.sqrt(rows * math.log(2 / half) / 2)
    privacy = _bound(count, math.log(submissions) + information, half)
    best = min(counting, privacy)
    return Certificate(
        min(best, 1.0), level, submissions, "counting" if best == counting else "privacy"
    )


def _bound(rows: int, logarithm: float, failing: float) -> float:
    """Hoeffding's bound for exp(logarithm) means, or areas, at once, one-sided."""
    return math.sqrt((logarithm + math.log(1 / failing)) / (2 * rows))


def _transcripts(submissions: int, improvements: int, values: int) -> float:
    """ln of how many transcripts a board can show: which submissions improved, to which value."""
    logarithms = [
        math.lgamma(submissions + 1)
        - math.lgamma(count + 1)
        - math.lgamma(submissions - count + 1)
        + count * math.log(values)
        for count in range(min(improvements, submissions) + 1)
    ]
    most = max(logarithms)
    return most + math.log(sum(math.exp(logarithm - most) for logarithm in logarithms))


STEPS = 2**20
MERITS = {"accuracy": 1, "brier": STEPS, "mean-absolute-error": STEPS}
"""What a row may earn, in whole steps, by each metric."""
_ERROR = {"brier": "squared", "mean-absolute-error": "absolute"}


ONLY_ACCURACY = "A board on rows of several classes is by accuracy: metric must be 'accuracy'."


@dataclass(frozen=True)
class Merit(Statistic[Ints]):
    """The sum over the rows of what each earns: a right call 1, a small error nearly `STEPS`.

    Divided by the number of rows and the most that one can earn, it is the accuracy, or 1 minus the
    mean error.

    Claim:       one row earns from 0 to `most` steps.                     [claim: board]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: `most` times the rows of a unit: of the rows that leave and those that arrive, the
                 ones lower the sum and the others raise it.
    Numerics:    exact integers; a row's error is one rounded double operation, held to its range.
    Refuses:     a metric that is not known; scores of no range.
    Reference:   proofs/board.md.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> Merit(metric="accuracy").sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE))
    1
    """

    metric: str
    threshold: float = 0.5
    score_range: tuple[float, float] = (0.0, 1.0)
    of_classes: bool = False
    """Whether a right call is that of one of several classes, and not of a score's side."""
    claim = "board"

    def __post_init__(self) -> None:
        if self.metric not in MERITS:
            raise ArgumentError(f"metric must be one of {', '.join(MERITS)}, got {self.metric!r}.")
        if self.of_classes and self.metric != "accuracy":
            raise ArgumentError(ONLY_ACCURACY)
        check_resolution(self.most)

    @property
    def most(self) -> int:
        """Return what one row can earn at most."""
        return MERITS[self.metric]

    def body(self) -> str:
        if self.of_classes:
            earned = "CAST(called = truth AS INTEGER)"
        elif self.metric == "accuracy":
            earned = f"CAST((score >= {double(self.threshold)}) = (label = 1) AS INTEGER)"
        else:
            low, high = self.score_range
            position = f"(score - {double(low)}) / {double(high - low)}"
            error = ERRORS[_ERROR[self.metric]].format(distance=f"{position} - label")
            lost = f"CAST(floor(({error}) * {double(self.most)} + 0.5) AS BIGINT)"
            earned = f"{self.most} - greatest(0, least({self.most}, {lost}))"
        return f"SELECT CAST(sum({earned}) AS BIGINT) AS total\nFROM evaluated"

    def read(self, columns: Columns) -> Ints:
        import numpy as np

        return np.array([int(columns["total"][0] or 0)], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        return self.most * protection.rows_per_unit

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return [cls(metric=metric) for metric in MERITS]


@dataclass(frozen=True)
class AreaMerit(Statistic[Ints]):
    """Counts by how much the pairs of a positive and a negative row ranked rightly exceed a bar.

    Twice the pairs that are ranked rightly and the tied ones once, minus twice the bar's share of
    all pairs, in steps of `1/STEPS_OF_A_BAR`; and the number of positive rows, `weight` for each.
    The AUC is above the bar where the first number is above 0, whatever the classes' sizes are.

    Claim:       the first number moves by at most `most`, the second by `weight`. [claim: board]
    Neighbours:  replace-one, the number of rows public.
    Sensitivity: every pair counts -2b to 2 - 2b steps for a bar b. A replaced row of the same
                 class changes its pairs by 2 each, of which there are at most n - 1; one that
                 changes its class leaves n0 pairs and enters n1 - 1 others, n - 1 in all.
    Numerics:    exact integers.
    Refuses:     more rows than 64 bits have room for; a bar that is no whole number of steps.
    Reference:   proofs/board.md.
    Cost:        one scan and a sort.
    """

    bar: Fraction
    rows: int
    claim = "board"
    shown_by = (
        "tests/questions/boards/test_area.py::test_no_small_neighbours_move_it_further_than_claimed"
    )
    STEPS_OF_A_BAR: ClassVar[int] = 10_000
    MOST_ROWS: ClassVar[int] = 10_000_000

    def __post_init__(self) -> None:
        if self.rows > self.MOST_ROWS:
            raise ArgumentError(f"A board by AUC takes at most {self.MOST_ROWS:,} rows.")
        if (self.bar * self.STEPS_OF_A_BAR).denominator != 1:
            raise ArgumentError("bar must be a whole number of steps.")

    @property
    def most(self) -> int:
        return 2 * (self.rows - 1) * self.STEPS_OF_A_BAR

    @property
    def weight(self) -> int:
        return (self.rows - 1) * self.STEPS_OF_A_BAR

    def body(self) -> str:
        return "SELECT label, score\nFROM evaluated"

    def read(self, columns: Columns) -> Ints:
        import numpy as np

        label, score = np.asarray(columns["label"]), np.asarray(columns["score"])
        positives, negatives = score[label == 1], np.sort(score[label == 0])
        right = int(np.searchsorted(negatives, positives, side="left").sum())
        tied = int(np.searchsorted(negatives, positives, side="right").sum()) - right
        pairs = len(positives) * len(negatives)
        steps = int(self.bar * self.STEPS_OF_A_BAR)
        above = (2 * right + tied) * self.STEPS_OF_A_BAR - 2 * steps * pairs
        return np.array([above, len(positives) * self.weight], dtype=np.int64)


SHOWN = Fraction(1, 4)
"""Of the price, for the scores that are shown; the rest is the bar's."""
FALSE_ALARMS = 0.05
FEWEST_STEPS = 2
"""Between the start and a perfect score; a board with fewer would show nothing."""
METRICS = (*MERITS, "auc")
TITLES = {
    "accuracy": "accuracy (of two classes, at a score of 0.5)",
    "auc": "AUC",
    "brier": "1 minus the Brier score",
    "mean-absolute-error": "1 minus the mean absolute error",
}
"""Names of the metrics for people."""
FAR = 60.0  # scales of noise; beyond, less than 1e-26 is left


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A board's public terms.

    `start` is the score that the first submission has to beat. `step` is by how much a submission
    must beat the best: None takes the smallest that false alarms allow. The price is for the whole
    board: all submissions, and at most `improvements` scores that are shown. A board by "auc" needs
    `least_class`, a public number that neither class has fewer rows than: the step and the
    certificate rest on it, and privacy does not.

    >>> plan = Plan(rows=5000, price=2, improvements=5, submissions=300)
    >>> round(plan.step, 4), plan.false_alarms <= 0.05, plan.misses <= 0.05
    (0.0134, True, True)
    """

    rows: int
    price: Rational
    improvements: int
    submissions: int
    metric: str = "accuracy"
    threshold: float = 0.5
    start: float = 0.5
    step: float | None = None
    least_class: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("rows", 100), ("improvements", 1), ("submissions", 2)):
            count = as_whole(getattr(self, name), most=10**12)
            if count is None or count < least:
                given = shown(getattr(self, name))
                raise ArgumentError(f"{name} must be a whole number from {least}, got {given}.")
            object.__setattr__(self, name, count)
        if self.improvements > self.submissions:
            raise ArgumentError("improvements must be at most the number of submissions.")
        object.__setattr__(self, "price", exact(self.price, name="price", minimum=0))
        if not is_one_of(self.metric, METRICS):
            listed = ", ".join(METRICS)
            raise ArgumentError(f"metric must be one of {listed}, got {shown(self.metric)}.")
        for name in ("threshold", "start"):
            number = as_number(getattr(self, name))
            if not math.isfinite(number) or (name == "start" and not 0 <= number < 1):
                given = shown(getattr(self, name))
                raise ArgumentError(f"{name} must be a score, below 1 to start with, got {given}.")
            object.__setattr__(self, name, number)
        self._settle_classes()
        self._settle_step()

    def _settle_classes(self) -> None:
        if not self.by_area:
            if self.least_class is not None:
                raise ArgumentError("least_class must be left out unless the metric is 'auc'.")
            return
        count = as_whole(self.least_class, most=self.rows // 2)
        if count is None or count < 10:
            raise ArgumentError(
                "least_class must be a whole number from 10 to half of the rows, got "
                f"{shown(self.least_class)}. It promises that neither class has fewer rows."
            )
        object.__setattr__(self, "least_class", count)

    def _settle_step(self) -> None:
        smallest = self.smallest_step
        wanted = smallest if self.step is None else as_number(self.step)
        if not wanted >= smallest:
            raise ArgumentError(
                f"step must be at least {smallest:.4g}, got {shown(self.step)}: noise alone "
                "would look like an improvement. Take more rows, pay more, or allow fewer "
                "improvements or submissions."
            )
        if (1 - self.start) / wanted < FEWEST_STEPS:
            raise ArgumentError(
                f"This board would show nothing: a submission must be {wanted:.3g} better to be "
                f"seen, and only {1 - self.start:.3g} lies above the start. Take more rows, pay "
                "more, or allow fewer improvements or submissions."
            )
        object.__setattr__(self, "step", wanted)

    # --- how the price is spent ------------------------------------------------------------------

    @property
    def _price(self) -> Fraction:
        assert isinstance(self.price, Fraction)
        return self.price

    @property
    def by_area(self) -> bool:
        return self.metric == "auc"

    def merit(self, bar: float, *, of_classes: bool = False) -> Merit | AreaMerit:
        """Return what is computed of the rows for a submission that has to reach a score."""
        if not self.by_area or of_classes:
            return Merit(metric=self.metric, threshold=self.threshold, of_classes=of_classes)
        steps = min(math.ceil(bar * AreaMerit.STEPS_OF_A_BAR), AreaMerit.STEPS_OF_A_BAR)
        return AreaMerit(Fraction(steps, AreaMerit.STEPS_OF_A_BAR), self.rows)

    def check_classes(self) -> None:
        """Refuse a board on rows of several classes by anything but accuracy."""
        if self.metric != "accuracy":
            raise ArgumentError(ONLY_ACCURACY)

    @cached_property
    def _most(self) -> int:
        return self.merit(0.5).most

    @cached_property
    def test(self) -> SparseVector:
        """Says which submissions are above the bar, for its share of the price."""
        return SparseVector(
            self._price * (1 - SHOWN), sensitivity=self._most, limit=self.improvements
        )

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """Of a score that is shown; for an area also of the number of positive rows."""
        merit = self.merit(0.5)
        more = merit.weight if isinstance(merit, AreaMerit) else 0
        return DiscreteLaplace.for_epsilon(
            self._price * SHOWN / self.improvements,
            l1_sensitivity=self._most + more,
            dimension=2 if more else 1,
        )

    @property
    def shown_price(self) -> Fraction:
        """The price of one score that is shown."""
        return self.noise.l1_sensitivity / self.noise.scale

    def event(self) -> Event:
        """Return all that the board can ever cost: its bar, and every score that it may show."""
        scores = Event("adaptive", {"epsilon": self.improvements * self.shown_price})
        return Event.composed([self.test.event(), scores])

    @property
    def whole(self) -> int:
        """The total of a perfect score; of an area, with as few pairs as there may be."""
        if self.least_class is None:
            return self.rows * self._most
        pairs = self.least_class * (self.rows - self.least_class)
        return 2 * AreaMerit.STEPS_OF_A_BAR * pairs

    def reached(self, bar: float) -> int:
        """The total from which on a submission has this score."""
        return 0 if self.by_area else math.ceil(bar * self.whole)

    @property
    def spacing(self) -> float:
        """Return how far apart the scores are that can be shown: on a public grid of steps."""
        assert self.step is not None
        return self.step

    def shown_score(self, noisy: Sequence[int], bar: float) -> float:
        """Noisy numbers as they are shown: on the grid, within [0, 1]."""
        score = noisy[0] / self.whole
        merit = self.merit(bar)
        if isinstance(merit, AreaMerit):
            assert self.least_class is not None
            positives = min(
                max(noisy[1] / merit.weight, self.least_class), self.rows - self.least_class
            )
            pairs = positives * (self.rows - positives)
            score = float(merit.bar) + noisy[0] / (2 * merit.STEPS_OF_A_BAR * pairs)
        cell = round(score / self.spacing)
        return min(max(cell * self.spacing, 0.0), 1.0)

    # --- what to expect --------------------------------------------------------------------------

    @cached_property
    def smallest_step(self) -> float:
        """The smallest step at which noise raises an alarm in few boards: by bisection."""
        low, high = 0, 1
        while self._false_alarms(high) > FALSE_ALARMS:
            low, high = high, high * 2
        while high - low > max(1, high // 1000):
            middle = (low + high) // 2
            low, high = (
                (middle, high) if self._false_alarms(middle) > FALSE_ALARMS else (low, middle)
            )
        return high / self.whole

    @property
    def false_alarms(self) -> float:
        """Return how often some submission that is as good as the best is called an improvement."""
        assert self.step is not None
        return self._false_alarms(math.floor(self.step * self.whole))

    @property
    def misses(self) -> float:
        """Return how often a submission that is two steps better than the best is not seen."""
        assert self.step is not None
        gap = math.floor(self.step * self.whole)
        return sum(chance * (1 - self._above(level - gap)) for level, chance in self._bar)

    def _false_alarms(self, gap: int) -> float:
        """All submissions lie `gap` below the bar: P(one of them is called above it)."""
        return sum(
            chance * -math.expm1(self.submissions * math.log1p(-self._above(gap + level)))
            for level, chance in self._bar
        )

    @cached_property
    def _bar(self) -> list[tuple[float, float]]:
        """The bar's noise: levels, and how likely each is, on a grid fine against its scale."""
        scale = float(self.test.threshold_scale)
        edges = [at * scale / 8 for at in range(-int(4 * FAR), int(4 * FAR) + 1)]
        return [
            ((low + high) / 2, _below(high, scale) - _below(low, scale))
            for low, high in pairwise(edges)
        ]

    def _above(self, gap: float) -> float:
        """P(the noise of a query is at least `gap`)."""
        return min(1 - _below(gap, float(self.test.query_scale)), 1 - 1e-15)

    def certificate(self, level: float = 0.95) -> Certificate:
        """Return how far above the population the best can be, whatever the submissions learnt."""
        return certified(
            rows=self.rows,
            submissions=self.submissions,
            improvements=self.improvements,
            spacing=self.spacing,
            epsilon=float(self._price),
            level=level,
            least_class=self.least_class,
        )

    def noise_half_width(self, level: float = 0.95) -> float:
        """Return how far a shown score is from the rows' own, noise and rounding together."""
        scale, failing = self.noise.float_scale, 1 - level
        if self.least_class is None:
            return scale / self.whole * math.log(1 / failing) + self.spacing / 2
        merit = self.merit(0.5)
        assert isinstance(merit, AreaMerit)
        # Half of the failures for each number; the second shows what lies above the bar.
        tail = math.log(2 / failing)
        classes = min(scale / merit.weight * tail / self.least_class, 1.0)
        return scale / self.whole * tail + classes * (1 - self.start) + self.spacing / 2

    # --- as data ---------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return content | {"price": str(self.price)}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Read what `as_dict` wrote."""
        known = {field.name for field in fields(cls)}
        if not isinstance(content, dict) or set(content) - known:
            raise ArgumentError(f"A plan has the fields {', '.join(sorted(known))}.")
        try:
            return cls(**content)
        except TypeError:
            raise ArgumentError("A plan needs rows, price, improvements, submissions.") from None

    def __str__(self) -> str:
        return f"A submission must be {self.step:.4f} better than the best to be seen."


def _below(value: float, scale: float) -> float:
    """The Laplace distribution function; the discrete law at these scales differs by less."""
    if value < 0:
        return math.exp(value / scale) / 2
    return 1 - math.exp(-value / scale) / 2


# --- the board itself: each submission learns whether it improved; improvements are shown ---------


Noisy = TypeVar("Noisy")


@dataclass
class State:
    """The bar, and every submission in order."""

    secret: int
    paid: int
    submissions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"State(paid={self.paid}, submissions={len(self.submissions)})"

    @property
    def improvements(self) -> int:
        return sum(submission["above"] for submission in self.submissions.values())

    @property
    def shown(self) -> list[float]:
        return [
            submission["score"]
            for submission in self.submissions.values()
            if submission["score"] is not None
        ]


class StateFile:
    """One board's file; `held` keeps others out while a submission is judged."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def read(self) -> State | None:
        """The state, or None if there is none yet."""
        try:
            content = json.loads(self.path.read_text(encoding="ascii"))
            return State(int(content["secret"]), int(content["paid"]), content["submissions"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise LedgerError("The board's state cannot be read. Restore it from a copy.") from None

    def write(self, state: State) -> None:
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        handle = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(vars(state), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class BoardEnded(PrivacyError):
    """The board takes no more submissions."""


@dataclass(frozen=True)
class Outcome:
    """Tells a submission whether it improved, and if so its score as it is shown."""

    improved: bool
    score: float | None
    best: float
    certificate: Certificate | None

    def __str__(self) -> str:
        if not self.improved:
            return f"Not an improvement; the best is {self.best:.4g}."
        if self.score is None:
            return "An improvement, whose score was lost after it was paid for."
        return f"An improvement: {self.score:.4g}, {self.certificate}."

    def as_dict(self) -> dict[str, Any]:
        certificate = None if self.certificate is None else self.certificate.as_dict()
        return vars(self) | {"certificate": certificate}


class Board:
    """A leaderboard over a registered account.

    Claim:       everything that a board ever says, however many submissions there are and however
                 they were chosen, is `price`-private.                           [claim: board]
    Neighbours:  replace-one, the number of rows public.
    Sensitivity: the merit's.
    Numerics:    exact.
    Refuses:     an account that cannot pay the whole price when the board opens; rows of another
                 number than planned, or under another relation; a submission after the last one
                 or after the last improvement; a bar that was paid for and lost; a state that is
                 another board's, or older than what the ledger booked.
    Reference:   Blum and Hardt 2015; Lyu, Su and Li 2017; proofs/board.md.
    Cost:        one scan and one ledger entry a submission.
    """

    def __init__(
        self,
        name: str,
        *,
        plan: Plan,
        ledger: Ledger,
        account: str,
        state: str | os.PathLike[str],
    ) -> None:
        """Open the board, or take it up again where it was left."""
        self.name, self.plan = checked_name("name", name), plan
        if "/" in name:
            raise ArgumentError(f"name must be a text without a slash, got {shown(name)}.")
        self._ledger, self._data = ledger, account
        self._file = StateFile(state)
        self._share = self._granted()
        with self._file.locked():
            known = self._file.read()
            self._draw_bar() if known is None else self._check_bar(known)
            self._scores_paid = self._pay_scores()

    @property
    def _whose(self) -> str:
        return f"board {self.name}"

    @property
    def _bar_reference(self) -> str:
        return f"board/{self.name}/bar"

    @property
    def _terms(self) -> dict[str, str]:
        """The plan as the ledger keeps it with the bar."""
        return {name: str(value) for name, value in self.plan.as_dict().items()}

    def _granted(self) -> Account:
        """The board's own share of the account, of exactly its price."""
        budget = Budget(epsilon=self.plan.price)
        known = self._ledger.share(self._data, self._whose)
        if known is None:
            return self._ledger.grant(self._data, analyst=self._whose, budget=budget)
        if known.budget != budget:
            raise LedgerError(f"The board {shown(self.name)} was opened with another price.")
        return known

    def _draw_bar(self) -> None:
        """Pay for the bar and every score that may be shown, then draw the bar, once for all.

        From here on no answer can fail because somebody else spent the account.
        """
        try:
            receipt = self._ledger.book(
                self._share,
                self.plan.event(),
                request={
                    "release": "board bar",
                    "reference": self._bar_reference,
                    "plan": self._terms,
                },
            )
        except AlreadyBooked as error:
            raise LedgerError(
                f"The bar of board {shown(self.name)} was drawn before (entry {error.sequence}), "
                "and its state is gone. Restore it; another bar would be another board."
            ) from None
        self._file.write(State(secret_of(self.plan.test), receipt.sequence))

    def _check_bar(self, state: State) -> None:
        """Refuse a bar that was not paid for on these terms, and a count of answers that fell."""
        paid = self._ledger.booked(self._bar_reference)
        if (
            paid is None
            or (paid.sequence, paid.account) != (state.paid, self._share.id)
            or paid.request["plan"] != self._terms
        ):
            raise LedgerError(
                f"This is the state of another board, or {shown(self.name)} was opened with "
                "another plan or account. Nothing was charged."
            )
        if state.improvements < self._scores_booked():
            raise LedgerError(
                "The board's state is older than what the ledger booked: improvements that were "
                "shown are missing in it, and others would take their place. Restore the newest."
            )

    def _scores_booked(self) -> int:
        """Count the scores that were shown, or lost on the way, by the ledger."""
        start = f"board/{self.name}/score/"
        entries = self._ledger.entries(self._share)
        return sum(str(entry.request.get("reference", "")).startswith(start) for entry in entries)

    def _pay_scores(self) -> int:
        """Return the entry that paid for the scores.

        It is the bar's. Older versions paid for the bar alone when a board opened, and for each
        score when it was shown: what is left of such a board's price is paid when it is taken up.
        """
        bar = self._ledger.booked(self._bar_reference)
        assert bar is not None
        if bar.event == self.plan.event():
            return bar.sequence
        reference = f"board/{self.name}/scores"
        paid = self._ledger.booked(reference)
        if paid is not None:
            return paid.sequence
        left = self.plan.improvements - self._scores_booked()
        if left == 0:
            return bar.sequence  # the board has ended
        request = {"release": "board scores", "reference": reference}
        event = Event("adaptive", {"epsilon": left * self.plan.shown_price})
        return self._ledger.book(self._share, event, request=request).sequence

    # --- what everybody may know -----------------------------------------------------------------

    @property
    def best(self) -> float:
        """The best score that was shown, or the start."""
        return self._best(self._state())

    @property
    def left(self) -> tuple[int, int]:
        """Submissions and improvements that are left."""
        state = self._state()
        return (
            self.plan.submissions - len(state.submissions),
            self.plan.improvements - state.improvements,
        )

    def entries(self) -> list[tuple[str, float]]:
        """The improvements that were shown, in order: submission and score."""
        submissions = self._state().submissions.items()
        return [
            (name, outcome["score"])
            for name, outcome in submissions
            if outcome["score"] is not None
        ]

    def _best(self, state: State) -> float:
        return max([self.plan.start, *state.shown])

    def _state(self) -> State:
        state = self._file.read()
        if state is None:
            raise LedgerError("The board's state is gone. Restore it from a copy.")
        return state

    # --- a submission ----------------------------------------------------------------------------

    def submit(self, rows: Dataset, *, submission: str) -> Outcome:
        """Judge a model by the rows with its scores; the same submission is judged once."""
        self._check(rows)
        checked_name("submission", submission)
        with self._file.locked():
            state = self._state()
            self._check_bar(state)
            if submission not in state.submissions:
                self._judge(rows, submission, state)
            outcome = state.submissions[submission]
            if outcome["above"] and outcome["score"] is None and not outcome["lost"]:
                self._show(rows, submission, state)
            return self._outcome(state.submissions[submission], state)

    def _check(self, rows: Dataset) -> None:
        about = rows.description
        protection = about.protection
        public = protection.row_count_is_public and not protection.unit
        if not public or about.rows != self.plan.rows:
            raise ArgumentError(
                f"A board of {self.plan.rows:,} rows needs a data set of that many rows, with "
                "replace-one neighbours and no unit: its certificate counts independent rows."
            )
        if isinstance(about, ClassifiedRows):
            self.plan.check_classes()
        elif about.score_map is not None or about.score_range != (0.0, 1.0):
            raise ArgumentError("A board needs scores from 0 to 1: score_range=(0, 1).")

    def _judge(self, rows: Dataset, submission: str, state: State) -> None:
        if len(state.submissions) >= self.plan.submissions:
            raise BoardEnded("The board has had its last submission. Nothing was charged.")
        if state.improvements >= self.plan.improvements:
            raise BoardEnded("The board has shown its last improvement. Nothing was charged.")
        reached = self.plan.reached(self._bar(state))
        mechanism = AboveBar(self.plan.test, reached, state.paid, state.secret)
        # Written down before anything else happens, so that what follows cannot choose the answer.
        try:
            above = self._draw(rows, mechanism, f"submission/{submission}", state)
            outcome = {"above": above, "score": None, "lost": False}
        except (AlreadyBooked, AnswerLost):  # booked by a process that was lost: it counts
            outcome = {"above": False, "score": None, "lost": True}
        state.submissions[submission] = outcome
        self._file.write(state)

    def _show(self, rows: Dataset, submission: str, state: State) -> None:
        """Show an improvement's score; one that was lost is not drawn again."""
        outcome = state.submissions[submission]
        noise = Prepaid(self.plan.noise, self._scores_paid)
        try:
            noisy = self._draw(rows, noise, f"score/{submission}", state)
            numbers = [int(number) for number in noisy]
            outcome["score"] = self.plan.shown_score(numbers, self._bar(state))
        except (AlreadyBooked, AnswerLost):
            outcome["lost"] = True
        self._file.write(state)

    def _bar(self, state: State) -> float:
        """Return what a submission has to reach now."""
        assert self.plan.step is not None
        return self._best(state) + self.plan.step

    def _draw(
        self, rows: Dataset, mechanism: Mechanism[Ints, Noisy], what: str, state: State
    ) -> Noisy:
        of_classes = isinstance(rows, ClassifiedDataset)
        merit = self.plan.merit(self._bar(state), of_classes=of_classes)
        view = (lambda rows: rows.with_calls()) if of_classes else None
        request = Request("board", merit, mechanism, {"board": self.name}, view=view)
        words = {"release": "board", "reference": f"board/{self.name}/{what}"}
        about, digests = rows.bind_ledger(self._ledger.id, by_content=False)
        account = self._ledger.resolve(
            fingerprints=digests,
            protection=rows.protection,
            rows=rows.public_rows,
            name=rows.name,
            account=self._data,
            analyst=self._whose,
        )
        answer: Noisy = release(
            request,
            rows=rows,
            about=about,
            ledger=self._ledger,
            account=account,
            words=words,
        ).values
        return answer

    def _outcome(self, outcome: dict[str, Any], state: State) -> Outcome:
        if outcome["lost"] and not outcome["above"]:
            raise LedgerError("This submission was lost before it was judged. Submit it again.")
        certificate = None if outcome["score"] is None else self.certificate()
        return Outcome(outcome["above"], outcome["score"], self._best(state), certificate)

    def certificate(self, level: float = 0.95) -> Certificate:
        """Return what holds of every score that is shown."""
        return certificate_of(self.plan, level)


def certificate_of(plan: Plan, level: float = 0.95) -> Certificate:
    """Certify every score that a board shows: over-fitting, noise and rounding together.

    A fifth of the failures is left to noise, for all scores that may be shown.
    """
    failing = 1 - level
    certificate = plan.certificate(1 - failing * 0.8)
    noise = plan.noise_half_width(1 - failing * 0.2 / plan.improvements)
    return replace(certificate, bound=min(certificate.bound + noise, 1.0), level=level)
