"""Fitted scikit-learn models: evaluate one, or search among several for one declared price."""

import os
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NoReturn

from heldout.arguments import OneOf, Whole, as_array, shown
from heldout.data import Dataset
from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.data.validation import other_label
from heldout.errors import ArgumentError, BudgetExceeded
from heldout.kernel import Budget, Event, Ledger, Loss, Neighbours, Protection, exact
from heldout.one_off import Array, declared
from heldout.questions.session import Epsilon, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heldout.questions.report import Report

__all__ = ["Search", "evaluate"]

DECIDED: Final = ("accuracy", "balanced_accuracy", "f1", "precision", "recall")
METRICS: Final = ("roc_auc", "average_precision", "neg_brier_score", *DECIDED)
"""By scikit-learn's names; the last five call a row positive from the middle of the scores on."""
_EACH_ROW: Final = Protection(neighbours=Neighbours.REPLACE_ONE)


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: Epsilon,
    threshold: float | None = None,
    curves: bool = True,
    neighbours: str = "replace-one",
    ledger: str | os.PathLike[str] | Ledger | None = None,
    account: str | None = None,
    name: str | None = None,
    **labels: Any,
) -> "Report":
    """Return a private report on a fitted classifier; `X` and `y` are rows it was not trained on.

    The score is `predict_proba` of the positive class, or `decision_function`, whose numbers have
    no range and are ranked by a map (`score_map`, (0, 1) unless given). The model must score each
    row for itself: one that looks at the whole of `X`, to standardise it say, carries every row
    into every score. `pos_label` is the second of the model's classes unless given. With a
    `ledger`, `account` names the registered account that pays; other scores of the same people
    must not open another one.

    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0]] * 500, [0, 1] * 500
    >>> report = evaluate(LogisticRegression().fit(X, y), X, y, epsilon="1")
    >>> report.measures()["AUC"] > 0.8
    True
    """
    if (ledger is None) != (account is None):
        raise ArgumentError("Pass ledger= and account= together, or neither.")
    budget = Budget(epsilon=exact(epsilon, name="epsilon"))
    dataset = _scored(model, X, y, labels, neighbours=neighbours, name=name)
    if ledger is None:
        session = Session(dataset, budget=budget)
    else:
        session = Session(dataset, ledger=ledger, account=account)
    if isinstance(session.dataset, ClassifiedRows):
        curves = False  # they are of two classes
    return session.report(epsilon=epsilon, threshold=threshold, curves=curves)


def _scored(model: Any, X: Any, y: Any, labels: dict[str, Any], **custody: Any) -> Dataset:
    """Return the rows with the model's scores.

    What fails in the model may quote a row, so its message is dropped.
    """
    classes = as_array(getattr(model, "classes_", ()), name="classes_").tolist()
    if not isinstance(classes, list) or len(classes) < 2:
        raise ArgumentError(
            "model must be a fitted classifier. For a regression put what it predicts into a "
            "column: heldout.regression.metrics(frame, observed='y', predicted='yhat', "
            "epsilon=1), or residual_plot."
        )
    options: dict[str, Any] = {"out_of_range": "clip"}  # rounding may take a probability beyond 1
    scores: dict[str, Any] = {}
    kind = type(model).__name__
    if len(classes) > 2:
        if labels:
            raise ArgumentError("With more than two classes, leave pos_label= and labels= out.")
        names = [f"{kind} {place + 1}" for place in range(len(classes))]
        options |= {"classes": classes, "scores": names}
        with suppress(Exception):
            scores = dict(zip(names, as_array(model.predict_proba(X), name="score").T, strict=True))
    else:
        options |= declared(labels)
        place = _place_of_positive(classes, options)
        options["score"] = kind
        with suppress(Exception):
            if hasattr(model, "predict_proba"):
                scores[kind] = as_array(model.predict_proba(X), name="score")[:, place]
            else:
                options.setdefault("score_map", (0.0, 1.0))
                scores[kind] = as_array(model.decision_function(X), name="score") * (
                    1 if place else -1
                )
    truth = _labels(y)
    if not scores or any(score.shape != truth.shape for score in scores.values()):
        raise ArgumentError("model must give one score to each row of X, and y one label.")
    return Dataset({"label": truth, **scores}, label="label", **options, **custody)


def _place_of_positive(classes: list[Any], options: dict[str, Any]) -> int:
    """Return which of the model's two classes is positive; declare both in `options`."""
    positive = options.setdefault("positive", classes[1])
    if positive not in classes:
        raise ArgumentError(f"pos_label must be a class of the model, got {shown(positive)}.")
    place = classes.index(positive)
    options["negative"] = other_label(positive, options.get("negative", classes[1 - place]))
    return place


class Search:
    """A search among candidate models on private rows, for a price declared beforehand.

    It is scikit-learn's `cv` and its `scoring` at once:
    `GridSearchCV(model, grid, cv=search, scoring=search, refit=False, error_score="raise")`.

    Claim:       pure DP, epsilon, for all scores of the search together.       [claim: search]
    Neighbours:  replace-one, of the rows that are not public.
    Sensitivity: a row is in one test fold, by its position alone, and is tested there once by
                 each candidate; models know it only if they were trained on it.
    Numerics:    exact.
    Refuses:     more candidates than declared, rows of a number that no fold has, a second table,
                 other processes; training on private rows, unless `training_epsilon` says what
                 the learner itself promises for one fit. None of it looks at a cell.
    Reference:   McSherry 2009, theorem 4; Dwork, Rothblum and Vadhan 2010.
    Cost:        that of one release a candidate and fold.

    Parameters
    ----------
    epsilon
        The price of the whole search, booked before the first score.
    candidates
        How many models may be scored on each fold, at epsilon / candidates each.
    folds
        Disjoint test folds. They cost nothing more: a row is in one of them. Their sizes differ by
        a row or two, because a fold is known by its number of rows alone.
    public
        True, or a position, for each row with nothing to protect. Models are trained on these, and
        tested on the others.
    training_epsilon
        Instead: what a learner that is private itself promises for one fit. A row trains
        `folds - 1` models of each candidate, which is part of the price.
    metric
        One of "roc_auc", "average_precision", "neg_brier_score", "accuracy",
        "balanced_accuracy", "f1", "precision" and "recall".
    ledger, account
        Where the price is booked, beside this object's own count.

    >>> print(Search(epsilon="6", candidates=6, folds=5, public=[0, 1]))
    6 candidates on 5 disjoint test folds: each score costs its fold epsilon 1. A row is in one
    fold, and every candidate is tested on it: epsilon 6 for the search, whatever the folds.
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        candidates: int,
        folds: int = 5,
        public: Any = None,
        training_epsilon: Epsilon | None = None,
        metric: str = "roc_auc",
        ledger: str | os.PathLike[str] | Ledger | None = None,
        account: str | None = None,
        **labels: Any,
    ) -> None:
        if (public is None) == (training_epsilon is None):
            raise ArgumentError(
                "Pass public=, the rows to train on, or training_epsilon=, what a private learner "
                "promises for one fit. A model carries the rows that it was trained on into every "
                "score, and no noise on the scores hides that."
            )
        self.candidates = Whole(1, 10**6)(candidates, "candidates")
        self.folds = Whole(2, 10**6)(folds, "folds")
        self.metric = OneOf(METRICS)(metric, "metric")
        if (ledger is None) != (account is None):
            raise ArgumentError("Pass ledger= and account= together, or neither.")
        self.epsilon = exact(epsilon, name="epsilon")
        fit = Fraction(0) if training_epsilon is None else exact(training_epsilon, name="epsilon")
        self.fold_epsilon = self.epsilon / self.candidates - (self.folds - 1) * fit
        if self.fold_epsilon <= 0:
            raise ArgumentError(
                f"epsilon must be more than {self.candidates * (self.folds - 1) * fit}, which "
                "training costs: candidates * (folds - 1) * training_epsilon."
            )
        self._public = None if public is None else as_array(public, name="public")
        self._labels, self._where = declared(labels), (ledger, account)
        self._counted = Ledger.open(None)
        self._table: tuple[Any, Any] | None = None
        self._tests: dict[int, tuple[Any, Any]] = {}  # rows of each test fold, by their number

    @property
    def loss(self) -> Loss:
        """The price of all scores together."""
        return Loss.pure(self.epsilon)

    def __str__(self) -> str:
        trained = "" if self._public is not None else " with what training it costs"
        return (
            f"{self.candidates} candidates on {self.folds} disjoint test folds: each score costs "
            f"its fold epsilon {self.fold_epsilon}. A row is in one fold, and every candidate is "
            f"tested on it: {self.loss} for the search{trained}, whatever the folds."
        )

    __repr__ = __str__

    # --- scikit-learn's cv ------------------------------------------------------------------------

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.folds

    def split(self, X: Any, y: Any, groups: Any = None) -> "Iterator[tuple[Any, Any]]":
        """Positions to train on and to test on; which are which looks at no row."""
        import numpy as np

        every, public = np.arange(len(_labels(y))), self._public
        private = every if public is None else every[~_chosen(public, len(every))]
        sizes = _sizes(len(private), self.folds)
        # Folds take turns, and one that is full takes no more.
        fold_of = np.nonzero(np.arange(sizes[-1])[:, None] < sizes)[1]
        tests = [private[fold_of == fold] for fold in range(self.folds)]
        self._open(X, y, tests, len(private))
        for test in tests:
            yield (np.setdiff1d(every, test if public is None else private), test)

    def _open(self, X: Any, y: Any, tests: list[Any], rows: int) -> None:
        """Book the search, once, and copy its folds; the same table may be split again."""
        if self._table is not None:
            if self._table[0] is not X or self._table[1] is not y:
                raise ArgumentError(
                    "A search is for one table: pass the same X and y again, not copies of them, "
                    "or declare another search."
                )
            return
        copies = {len(test): _taken(X, y, test) for test in tests}
        ledger, account = self._where
        if account is not None:
            book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
            paying = book.resolve(
                fingerprints=(), protection=_EACH_ROW, rows=rows, name=None, account=account
            )
            event = Event("disjoint-rows", {"epsilon": self.epsilon})
            book.book(paying, event, request={"release": "search", "metric": self.metric})
        for size in copies:
            allowed = Budget(epsilon=self.fold_epsilon * self.candidates)
            self._counted.register(f"fold of {size}", budget=allowed)
        self._table, self._tests = (X, y), copies

    # --- scikit-learn's scoring -------------------------------------------------------------------

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the noisy score of one candidate on one fold.

        The number of rows says which fold it is; its own copy of that fold is scored, so that
        nothing in the given cells decides what is scored or refused.
        """
        size = len(_labels(y))
        if size not in self._tests:
            raise BudgetExceeded(
                "These rows are not a test fold of this search. Pass it as cv= too, and "
                "leave return_train_score out."
            )
        dataset = _scored(estimator, *self._tests[size], dict(self._labels))
        session = Session(dataset, ledger=self._counted, account=f"fold of {size}")
        if isinstance(session.dataset, ClassifiedRows):
            raise ArgumentError("A Search compares models of two classes only.")
        try:
            return self._score(session)
        except BudgetExceeded:
            raise BudgetExceeded(
                f"This search declared {self.candidates} candidates, and this is one more. Nothing "
                "was charged; declare another search."
            ) from None

    def _score(self, session: Session) -> float:
        if self.metric in DECIDED:
            about = session.dataset
            assert isinstance(about, ScoredRows)
            middle = about.middle
            name = "f1_score" if self.metric == "f1" else self.metric
            return float(
                getattr(session.confusion(threshold=middle, epsilon=self.fold_epsilon), name)
            )
        if self.metric == "neg_brier_score":
            return -float(session.brier(epsilon=self.fold_epsilon))
        if self.metric == "roc_auc":
            return float(session.auc(epsilon=self.fold_epsilon))
        return float(session.average_precision(epsilon=self.fold_epsilon))

    def __reduce__(self) -> tuple[type["_InAnotherProcess"], tuple[()]]:
        return _InAnotherProcess, ()


class _InAnotherProcess:
    """Stands for a `Search` in another process, and refuses by name: joblib would not say why."""

    def __call__(self, *scored: object) -> NoReturn:
        raise ArgumentError(
            "n_jobs must be 1: a Search counts in one process. Leave n_jobs out, or use threads: "
            "joblib.parallel_backend('threading')."
        )


def _labels(y: object) -> Array:
    labels = as_array(y, name="y")
    if labels.ndim != 1:
        raise ArgumentError(f"y must be one-dimensional, got {labels.ndim} dimensions.")
    return labels


def _chosen(public: Array, rows: int) -> Array:
    """Return which rows are named as public: by a bool each, or by their positions."""
    import numpy as np

    if public.ndim == 1 and public.dtype == bool and len(public) == rows:
        return public
    chosen = np.zeros(rows, dtype=bool)
    inside = public.ndim == 1 and public.dtype.kind in "iu" and len(public) > 0
    if not inside or public.min() < 0 or public.max() >= rows:
        raise ArgumentError("public must be a bool for each row of y, or positions in it.")
    chosen[public] = True
    return chosen


def _sizes(rows: int, folds: int) -> list[int]:
    """Return sizes of folds, as equal as distinct numbers can be.

    >>> _sizes(600, 5), _sizes(17, 5)
    ([118, 119, 120, 121, 122], [1, 2, 3, 5, 6])
    """
    fewest = folds * (folds + 1) // 2
    if rows < fewest:
        raise ArgumentError(
            f"{folds} folds of distinct sizes need at least {fewest} private rows, got {rows}. "
            "Declare fewer folds."
        )
    least, more = divmod(rows - fewest, folds)
    return [1 + least + place + (place >= folds - more) for place in range(folds)]


def _taken(X: Any, y: Any, test: Any) -> tuple[Any, Any]:
    """Copy the rows of a fold, taken as scikit-learn takes them."""
    from sklearn.utils import _safe_indexing

    try:
        return _safe_indexing(X, test), _safe_indexing(y, test)
    except Exception:
        pass  # its message may quote a row
    raise ArgumentError("X and y must have a row each. Pass arrays or frames of the same length.")
