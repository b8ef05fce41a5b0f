"""The analyst's handle: a data set, a budget and a ledger."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heldout.data import Dataset, PrivateTable
from heldout.errors import ArgumentError
from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.bounded_mean import MeanRelease
from heldout.metrics.confusion import ConfusionRelease
from heldout.metrics.ranking import AucRelease, CompareRelease, RankingRelease
from heldout.metrics.ties import TiesRelease
from heldout.privacy import Budget, Ledger, Loss, exact
from heldout.privacy.rational import Rational
from heldout.ranking_request import ranking_request, ties_request
from heldout.release import Drawn, Question, Request, release
from heldout.statistics import BoundedSum, ThresholdCounts

if TYPE_CHECKING:
    from heldout.metrics.curves.release import CurvesRelease
    from heldout.report import Report

Epsilon = Rational
ONE_OFF = bytes(32)


class PrivateSession:
    """Private rows of any kind, a budget and a ledger: what every kind of session has.

    Parameters
    ----------
    dataset
        The private rows, validated.
    budget
        What may be spent on these rows in all, by anyone. It is kept with the rows in the ledger:
        the same rows under another name have the same budget. None takes the one on record.
    ledger
        None (in memory, for one-off use), a file, or a SQLAlchemy URL.
    account, analyst
        The registered account that pays, and whose share of it. Without an account the ledger
        finds the rows by a digest of their content.
    new
        Open a budget for rows that the ledger has not seen, although it knows other rows by the
        same name.
    """

    def __init__(
        self,
        dataset: PrivateTable,
        *,
        budget: Budget | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        account: str | None = None,
        analyst: str | None = None,
        new: bool = False,
    ) -> None:
        self._table, self._protection = dataset, dataset.protection
        self._ledger = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        # A ledger of this session's own, in memory, never meets other rows: it needs no digest.
        self._account = self._ledger.resolve(
            fingerprints=lambda: (ONE_OFF,) if ledger is None else dataset._fingerprints,
            protection=dataset.protection,
            rows=dataset.public_rows,
            name=dataset.name,
            budget=budget,
            account=account,
            analyst=analyst,
            new=new,
        )

    @property
    def budget(self) -> Budget:
        return self._account.budget

    @property
    def spent(self) -> Loss:
        return self._ledger.spent(self._account)

    @property
    def remaining(self) -> Loss:
        """What is left for these rows, whoever spent the rest."""
        return self._ledger.remaining(self._account)

    def _release(self, request: Question, *, dataset: PrivateTable | None = None) -> Drawn:
        rows = self._table if dataset is None else dataset
        if not rows.is_view_of(self._table):
            raise ArgumentError(
                "dataset must be a view of the session's own rows, got other rows, which another "
                "budget pays for. Make a session for them."
            )
        if rows.protection != self._protection:
            raise ArgumentError(
                "protection must be the one that the session was opened with, got another. "
                "Declare the data set anew."
            )
        return release(request, dataset=rows, ledger=self._ledger, account=self._account)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._table!r}, budget {self.budget}, {self.remaining} left)"
        )


class Session(PrivateSession):
    """Questions to one data set, each paid out of one budget.

    Parameters
    ----------
    dataset
        The private rows, validated.
    budget
        What may be spent on these rows in all, by anyone. It is kept with the rows in the ledger:
        the same rows under another name have the same budget. None takes the one on record.
    ledger
        None (in memory, for one-off use), a file, or a SQLAlchemy URL.
    account, analyst, new
        As in `PrivateSession`.

    >>> rows = {"y": [1, 0] * 500, "p": [0.8, 0.3] * 500}
    >>> session = Session(Dataset(rows, label="y", score="p"), budget=Budget(epsilon="3"))
    >>> answer = session.confusion(threshold=0.5, epsilon="0.5")
    >>> 0.9 < answer.accuracy <= 1
    True
    >>> print(session.remaining)
    epsilon 5/2
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        budget: Budget | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        account: str | None = None,
        analyst: str | None = None,
        new: bool = False,
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise ArgumentError(f"dataset must be a heldout.Dataset, got {type(dataset).__name__}.")
        super().__init__(
            dataset, budget=budget, ledger=ledger, account=account, analyst=analyst, new=new
        )

    @property
    def dataset(self) -> Dataset:
        """The private rows. The session keeps to them: its noise is made for no others."""
        assert isinstance(self._table, Dataset)
        return self._table

    def _counts_request(
        self, name: str, statistic: Any, *, dimension: int, epsilon: Epsilon, **parameters: Any
    ) -> Request:
        mechanism = DiscreteLaplace.for_epsilon(
            exact(epsilon, name="epsilon"),
            l1_sensitivity=statistic.sensitivity(self.dataset.protection),
            dimension=dimension,
        )
        return Request(name, statistic, mechanism, parameters | self.dataset.scale_parameters)

    def confusion(self, *, threshold: float = 0.5, epsilon: Epsilon) -> ConfusionRelease:
        """The confusion matrix where rows with score >= threshold are called positive."""
        at = self.dataset.threshold(threshold)
        statistic = ThresholdCounts(thresholds=(self.dataset.counted_threshold(at),))
        request = self._counts_request(
            "confusion", statistic, dimension=4, epsilon=epsilon, threshold=at
        )
        return ConfusionRelease(self._release(request))

    def brier(self, *, epsilon: Epsilon) -> MeanRelease:
        """The Brier score: the mean squared distance of the score from the outcome, 0 or 1."""
        if self.dataset.score_range != (0.0, 1.0):
            raise ArgumentError(
                "score_range must be (0, 1) for the Brier score, which judges probabilities. "
                "Use mean_squared_error for other scores."
            )
        return self._mean("Brier score", "squared", epsilon)

    def mean_absolute_error(self, *, epsilon: Epsilon) -> MeanRelease:
        """The mean distance of the score from the end of its range that the label stands for."""
        return self._mean("mean absolute error", "absolute", epsilon)

    def mean_squared_error(self, *, epsilon: Epsilon) -> MeanRelease:
        """The mean squared distance of the score from its label's end of the range."""
        return self._mean("mean squared error", "squared", epsilon)

    def _mean(self, name: str, error: str, epsilon: Epsilon) -> MeanRelease:
        if self.dataset.score_map is not None:
            raise ArgumentError(
                "score_map must be left out for a mean error, which is told in the scores' own "
                "unit. Declare score_range instead."
            )
        with_rest = not self.dataset.protection.row_count_is_public
        statistic = BoundedSum(
            error=error, score_range=self.dataset.score_range, with_rest=with_rest
        )
        request = self._counts_request(
            name, statistic, dimension=1 + with_rest, epsilon=epsilon, error=error
        )
        return MeanRelease(self._release(request))

    def auc(
        self,
        *,
        epsilon: Epsilon,
        method: str = "piecewise-laplace",
        smaller_class: int | None = None,
        delta: Epsilon | None = None,
        scores: str | None = None,
    ) -> AucRelease:
        """The area under the ROC curve; a tied pair counts one half, as in scikit-learn.

        `smaller_class` is a public guess of the smaller class, which makes the noise fit better
        and costs nothing when it is wrong but accuracy. `method` may name another noise law:
        "polynomial-tail", "cauchy", or the papers' "boyd-2015-cauchy" and "boyd-2015-laplace"
        (with `delta`). `scores` is "exact" or "grid"; a ranking on the grid needs little memory
        and is the default for more than five million rows where their number is public.
        """
        request = ranking_request(
            "auc",
            self.dataset,
            epsilon=epsilon,
            method=method,
            smaller_class=smaller_class,
            delta=delta,
            scores=scores,
        )
        return AucRelease(self._release(request))

    def average_precision(
        self,
        *,
        epsilon: Epsilon,
        method: str = "piecewise-laplace",
        smaller_class: int | None = None,
        delta: Epsilon | None = None,
        scores: str | None = None,
    ) -> RankingRelease:
        """The mean precision at the positive rows' ranks; within a tie negatives come first.

        `smaller_class` is a public guess of the number of positives; the rest is as in `auc`.
        """
        request = ranking_request(
            "average-precision",
            self.dataset,
            epsilon=epsilon,
            method=method,
            smaller_class=smaller_class,
            delta=delta,
            scores=scores,
        )
        return RankingRelease(self._release(request))

    def grid_ties(self, *, epsilon: Epsilon) -> TiesRelease:
        """The share of pairs that the public grid ties: how much ranking on it can matter.

        Half of it bounds what the order of rows within cells can do to the AUC. It moves like an
        AUC, so a small epsilon is enough where there are many rows.
        """
        return TiesRelease(self._release(ties_request(self.dataset, epsilon=epsilon)))

    def compare(
        self,
        *,
        score: str,
        epsilon: Epsilon,
        method: str = "piecewise-laplace",
        smaller_class: int | None = None,
    ) -> CompareRelease:
        """Is the model with this score better on the same rows? The difference of the two AUCs.

        One release with noise of twice one AUC's; the difference of two releases at half the price
        each would have 1.4 times that. A score that is missing counts as the lowest.
        """
        if not isinstance(score, str):
            raise ArgumentError(
                f"score must be the name of a column, got a {type(score).__name__}. Name one."
            )
        rivals = self.dataset.with_rival(score)
        request = ranking_request(
            "auc-difference",
            rivals,
            epsilon=epsilon,
            method=method,
            smaller_class=smaller_class,
            scores="grid" if rivals.remote else "exact",
            rival=score,
        )
        return CompareRelease(self._release(request, dataset=rivals))

    def curves(
        self, *, epsilon: Epsilon, method: str = "heldout", **options: Any
    ) -> "CurvesRelease":
        """One score table with noise; ROC, precision-recall, calibration and more are then free.

        `method` may name one of the papers' instead: "laplace", "fixed-space",
        "recursive-medians" or "hierarchical-quantile", with its own options.
        """
        from heldout.metrics.curves.release import CurvesRelease, curves_request

        request = curves_request(self.dataset, epsilon=epsilon, method=method, **options)
        return CurvesRelease(self._release(request))

    def report(
        self,
        *,
        epsilon: Epsilon,
        threshold: float | None = None,
        curves: bool = False,
        sections: Sequence[str] | None = None,
        scores: str | None = None,
    ) -> "Report":
        """Everything that a reader of a report asks for, each at its own share of epsilon.

        `threshold` is the middle of the score range unless it is given; `curves` adds them, for
        half of the price; `sections` buys only those named, of "auc", "average_precision",
        "confusion", "brier" and "curves"; `scores` is as in `auc`. What cannot be made or paid in
        full is refused before anything is charged.
        """
        from heldout.report import build

        return build(
            self,
            epsilon=epsilon,
            threshold=threshold,
            curves=curves,
            sections=sections,
            scores=scores,
        )
