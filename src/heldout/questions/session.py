"""The analyst's handle: private rows, a budget and a ledger, and the questions that they pay."""

import os
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from heldout import questions as q
from heldout.arguments import FormField, guess, is_one_of, refuse_unknown, shown
from heldout.data import Dataset, PrivateTable
from heldout.data.classes import ClassifiedRows
from heldout.data.description import Description, MeasuredRows, ScoredRows
from heldout.drawing.ledger import Booking
from heldout.errors import ArgumentError
from heldout.kernel import Budget, Ledger, Loss
from heldout.kernel.door import release
from heldout.kernel.loss import Rational
from heldout.questions.groups import Divisible
from heldout.questions.quote import booked_together, check_questions

if TYPE_CHECKING:
    from heldout.intervals.confusion import ConfusionRelease
    from heldout.intervals.groups import ByGroup, DecisionsByGroup
    from heldout.intervals.measure import Release
    from heldout.intervals.ratio import MeanRelease
    from heldout.questions.answers import Answered
    from heldout.questions.classes import RankRelease
    from heldout.questions.curves.release import CurvesByGroup, CurvesRelease
    from heldout.questions.lists import ListsRelease
    from heldout.questions.ranking.paired import PairedDifference
    from heldout.questions.ranking.release import (
        AucRelease,
        CompareRelease,
        RankingRelease,
        TiesRelease,
    )
    from heldout.questions.report import Report
    from heldout.questions.values import ValueMean

Epsilon = Rational
Columns = str | Sequence[str]
"""A declared group, or several to cross."""
Groups = TypeVar("Groups", bound="ByGroup[Release]")
First = TypeVar("First")
Second = TypeVar("Second")
Third = TypeVar("Third")


class PrivateSession:
    """Private rows of any kind, a budget and a ledger: what every kind of session has.

    Its parameters are those of `Session`.
    """

    holds: ClassVar[Any] = PrivateTable
    """Which rows this kind of session asks about."""

    def __init__(
        self,
        dataset: PrivateTable,
        *,
        budget: Budget | Epsilon | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        account: str | None = None,
        analyst: str | None = None,
        new: bool = False,
    ) -> None:
        if budget is not None and not isinstance(budget, Budget):
            budget = Budget(epsilon=budget)
        if not isinstance(dataset, self.holds):
            raise ArgumentError(
                f"A {type(self).__name__} needs a {self.holds.__name__}, got a "
                f"{type(dataset).__name__}. Describe the rows first: "
                f"{self.holds.__name__}(rows, ...)."
            )
        self._table = dataset
        open_ledger = ledger if isinstance(ledger, Ledger | None) else Ledger.open(ledger)
        self._about: Description
        self._about, digests = dataset.bind_ledger(
            None if open_ledger is None else open_ledger.id, by_content=account is None
        )
        self._ledger = Ledger.open(None) if open_ledger is None else open_ledger
        self._account = self._ledger.resolve(
            fingerprints=digests,
            protection=dataset.protection,
            rows=dataset.public_rows,
            name=dataset.name,
            budget=budget,
            account=account,
            analyst=analyst,
            new=new,
        )

    @property
    def dataset(self) -> Description:
        """Return what is public about the rows. The rows themselves stay behind the session."""
        return self._about

    @property
    def budget(self) -> Budget:
        return self._ledger.budget(self._account)

    @property
    def spent(self) -> Loss:
        return self._ledger.spent(self._account)

    @property
    def remaining(self) -> Loss:
        """Return what is left for these rows, whoever spent the rest."""
        return self._ledger.remaining(self._account)

    def history(self) -> list[Booking]:
        """Return what was paid out of this budget so far, by whoever asked: oldest first.

        >>> rows = {"y": [1, 0] * 500, "p": [0.8, 0.3] * 500}
        >>> session = Session(Dataset(rows, label="y", score="p"), budget=Budget(3))
        >>> answer = session.confusion(epsilon="1/2")
        >>> [(booking.asked, str(booking.loss)) for booking in session.history()]
        [('confusion', 'epsilon 0.5')]
        """
        return [Booking.of(entry) for entry in self._ledger.entries(self._account)]

    @overload
    def ask(self, question: q.Question[First], /) -> First: ...
    @overload
    def ask(
        self, first: q.Question[First], second: q.Question[Second], /
    ) -> tuple[First, Second]: ...
    @overload
    def ask(
        self, first: q.Question[First], second: q.Question[Second], third: q.Question[Third], /
    ) -> tuple[First, Second, Third]: ...
    @overload
    def ask(self, *questions: q.Question[Any]) -> Any: ...
    def ask(self, *questions: q.Question[Any]) -> object:
        """Book all of the questions in one ledger entry, or none; then draw the answers.

        One question gives its release, several a tuple of them. What cannot be asked or paid in
        full is refused before anything is charged.

        >>> rows = {"y": [1, 0] * 500, "p": [0.8, 0.3] * 500}
        >>> session = Session(Dataset(rows, label="y", score="p"), budget=Budget(epsilon="3"))
        >>> auc, cells = session.ask(q.Auc(epsilon="1/2"), q.Confusion(epsilon="1/2"))
        >>> print(session.remaining)
        epsilon 2
        """
        releases = self.answer(*questions).releases
        return releases[0] if len(questions) == 1 else releases

    def _ask(
        self,
        kind: type[Divisible[First, Groups]],
        by: Columns | None,
        of_classes: type[q.Question[object]] | None = None,
        **fields: Any,
    ) -> First | Groups:
        """Ask a question, by group if groups are named.

        Of rows of several classes the sibling is asked, where there is one, which has fewer fields.
        """
        if of_classes is not None and isinstance(self._about, ClassifiedRows):
            usual = {field.name: field.default for field in kind.form() if not field.required}
            fields = {
                name: value for name, value in fields.items() if value != usual.get(name, ...)
            }
            divided = {} if by is None else {"by": by}
            return cast("First | Groups", self.ask(of_classes.of_fields(fields | divided)))
        question: Divisible[First, Groups] = kind(**fields)
        asked: q.Question[First | Groups] = question if by is None else q.By(question, by)
        return self.ask(asked)

    def answer(
        self,
        *questions: q.Question[Any],
        reference: str | None = None,
        subject: Mapping[str, object] | None = None,
    ) -> "Answered":
        """As `ask`, with all that is needed to keep the answer and to build it again.

        `reference` is the asker's own name for this booking, and `subject` is public JSON of what
        it is about, such as a model's digest; the ledger keeps both with it.
        """
        from heldout.questions.answers import Answered

        if not (reference is None or (isinstance(reference, str) and reference)):
            raise ArgumentError(f"reference must be a text, got {shown(reference)}.")
        check_questions(questions)
        words: dict[str, Any] = {"reference": reference, "subject": subject}
        words = {name: value for name, value in words.items() if value is not None}
        words |= {
            "model": self._about.model,
            "questions": [question.booked() for question in questions],
        }
        request = booked_together(questions, self._about)
        drawn = release(
            request,
            rows=self._table,
            about=self._about,
            ledger=self._ledger,
            account=self._account,
            words={"release": request.name, **words},
        )
        return Answered(questions, drawn)

    def quote(
        self,
        *questions: q.Question[Any],
        guess: q.Guess | None = None,
        level: float = 0.95,
        **guesses: Any,
    ) -> q.Quote:
        """Return what `ask` would charge, exactly, and the half-widths to expect. Reads no row.

        `guesses` are public guesses of the rows, as in `heldout.questions.Guess`: `positives=500`,
        `auc=0.85`, and `rows=5000` where their number is not public.
        """
        check_questions(questions)
        return q.Quote(questions, self._about, guess or q.Guess(**guesses), level)

    def __new__(cls, *_: Any, **named: Any) -> Self:
        refuse_unknown(cls, named)
        return object.__new__(cls)

    def viewing(self, rows: PrivateTable) -> Self:
        """A session on a view of the same rows (fewer features, say), paid out of this budget."""
        if not rows.is_view_of(self._table):
            raise ArgumentError("These rows have a budget of their own. Make a session for them.")
        if rows.protection != self._about.protection:
            raise ArgumentError(
                "neighbours, unit and rows_per_unit differ from the session's. Declare the "
                "data set again."
            )
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._table, other._about = rows, rows.description
        return other

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method of a registered question: `session.share_above("dice", ...)`.

        Every kind has one. Its required fields may be given by place, in the order of its form;
        `epsilon` and all others go by name. Kinds that have a method of their own state its types.
        """
        kind = name.replace("_", "-")
        question = q.find(kind) if not name.startswith("_") and kind in q.kinds() else None
        if question is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.{_meant(name)}")
        form = question.form()
        needed = [field.name for field in form if field.required and field.name != "epsilon"]

        def ask(*given: Any, **named: Any) -> object:
            if len(given) > len(needed):
                raise TypeError(f"{name} takes {len(needed)} values by place, got {len(given)}")
            return self.ask(question.of_fields(dict(zip(needed, given, strict=False)) | named))

        fields = "\n".join(f"{field.name}\n    {field.help}" for field in form)
        ask.__name__, ask.__qualname__ = name, f"{type(self).__name__}.{name}"
        ask.__doc__ = f"{question.asks}\n\n{question.tells}\n\nParameters\n----------\n{fields}\n"
        ask.__signature__ = Signature(  # type: ignore[attr-defined]
            sorted((_parameter(field, needed) for field in form), key=lambda one: one.kind)
        )
        return ask

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(kind.replace("-", "_") for kind in q.kinds())})

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._table!r}, budget {self.budget}, {self.remaining} left)"
        )


def _parameter(field: FormField, by_place: Sequence[str]) -> Parameter:
    """Return a field as editors and `help` show it: what may go by place, or by name alone."""
    kind = Parameter.POSITIONAL_OR_KEYWORD if field.name in by_place else Parameter.KEYWORD_ONLY
    return Parameter(field.name, kind, default=Parameter.empty if field.required else field.default)


class _OfCounts(TypedDict, total=False):
    threshold: float
    weighted: bool


class _OfRanking(TypedDict, total=False):
    method: str
    smaller_class: int | None
    delta: Epsilon | None
    scores: str | None


class _OfPrecision(_OfRanking, total=False):
    ties: str


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
    account, analyst
        The registered account that pays, and whose share of it. Without an account the ledger
        finds the rows by a digest of their content.
    new
        Open a budget for rows that the ledger has not seen, although it knows other rows by the
        same name.

    >>> rows = {"y": [1, 0] * 500, "p": [0.8, 0.3] * 500}
    >>> session = Session(Dataset(rows, label="y", score="p"), budget=Budget(epsilon="3"))
    >>> answer = session.confusion(threshold=0.5, epsilon="0.5")
    >>> 0.9 < answer.accuracy <= 1
    True
    >>> print(session.remaining)
    epsilon 2.5
    """

    holds = Dataset

    @property
    def dataset(self) -> ScoredRows | ClassifiedRows | MeasuredRows:
        """Return what is public about the rows. The rows themselves stay behind the session."""
        assert isinstance(self._about, ScoredRows | ClassifiedRows | MeasuredRows)
        return self._about

    # Types are those of rows with two classes, with by= of answers by group. The answers of several
    # classes have types of their own: `ask(q.ClassAuc(...))` and its siblings state them.

    @overload
    def confusion(
        self, *, epsilon: Epsilon, by: None = None, **options: Unpack[_OfCounts]
    ) -> "ConfusionRelease": ...
    @overload
    def confusion(
        self, *, epsilon: Epsilon, by: Columns, **options: Unpack[_OfCounts]
    ) -> "DecisionsByGroup": ...
    def confusion(
        self,
        *,
        epsilon: Epsilon,
        threshold: float = 0.5,
        by: Columns | None = None,
        weighted: bool = False,
    ) -> "ConfusionRelease | DecisionsByGroup":
        """The confusion matrix where rows with score >= threshold are called positive.

        `by` names a declared group, or several to cross: one matrix for each of its values, at
        the price and with the noise of one for all rows. `weighted` counts rows by their declared
        weights. Rows of several classes have no threshold: theirs is the matrix of true and
        called classes (`heldout.questions.classes.ClassConfusionRelease`).
        """
        return self._ask(
            q.Confusion,
            by,
            q.ClassConfusion,
            epsilon=epsilon,
            threshold=threshold,
            weighted=weighted,
        )

    @overload
    def brier(
        self, *, epsilon: Epsilon, by: None = None, weighted: bool = False
    ) -> "MeanRelease": ...
    @overload
    def brier(
        self, *, epsilon: Epsilon, by: Columns, weighted: bool = False
    ) -> "ByGroup[MeanRelease]": ...
    def brier(
        self, *, epsilon: Epsilon, by: Columns | None = None, weighted: bool = False
    ) -> "MeanRelease | ByGroup[MeanRelease]":
        """The Brier score: the mean squared distance of the score from the outcome, 0 or 1."""
        return self._ask(q.Brier, by, epsilon=epsilon, weighted=weighted)

    @overload
    def log_loss(
        self, *, epsilon: Epsilon, clip: float = 0.01, by: None = None, weighted: bool = False
    ) -> "MeanRelease": ...
    @overload
    def log_loss(
        self, *, epsilon: Epsilon, clip: float = 0.01, by: Columns, weighted: bool = False
    ) -> "ByGroup[MeanRelease]": ...
    def log_loss(
        self,
        *,
        epsilon: Epsilon,
        clip: float = 0.01,
        by: Columns | None = None,
        weighted: bool = False,
    ) -> "MeanRelease | ByGroup[MeanRelease]":
        """The mean of -ln of the probability given to the truth, at least `clip`."""
        return self._ask(q.LogLoss, by, epsilon=epsilon, clip=clip, weighted=weighted)

    @overload
    def mean_absolute_error(
        self, *, epsilon: Epsilon, by: None = None, weighted: bool = False
    ) -> "MeanRelease": ...
    @overload
    def mean_absolute_error(
        self, *, epsilon: Epsilon, by: Columns, weighted: bool = False
    ) -> "ByGroup[MeanRelease]": ...
    def mean_absolute_error(
        self, *, epsilon: Epsilon, by: Columns | None = None, weighted: bool = False
    ) -> "MeanRelease | ByGroup[MeanRelease]":
        """The mean distance of the score from the end of its range that the label stands for."""
        return self._ask(q.MeanAbsoluteError, by, epsilon=epsilon, weighted=weighted)

    @overload
    def mean_squared_error(
        self, *, epsilon: Epsilon, by: None = None, weighted: bool = False
    ) -> "MeanRelease": ...
    @overload
    def mean_squared_error(
        self, *, epsilon: Epsilon, by: Columns, weighted: bool = False
    ) -> "ByGroup[MeanRelease]": ...
    def mean_squared_error(
        self, *, epsilon: Epsilon, by: Columns | None = None, weighted: bool = False
    ) -> "MeanRelease | ByGroup[MeanRelease]":
        """The mean squared distance of the score from its label's end of the range."""
        return self._ask(q.MeanSquaredError, by, epsilon=epsilon, weighted=weighted)

    @overload
    def auc(
        self, *, epsilon: Epsilon, by: None = None, **options: Unpack[_OfRanking]
    ) -> "AucRelease": ...
    @overload
    def auc(
        self, *, epsilon: Epsilon, by: Columns, **options: Unpack[_OfRanking]
    ) -> "ByGroup[AucRelease]": ...
    def auc(
        self,
        *,
        epsilon: Epsilon,
        by: Columns | None = None,
        method: str = "piecewise-laplace",
        smaller_class: int | None = None,
        delta: Epsilon | None = None,
        scores: str | None = None,
    ) -> "AucRelease | ByGroup[AucRelease]":
        """The area under the ROC curve.

        `method`, `smaller_class`, `delta` and `scores` are as in `heldout.questions.Auc`. Of
        several classes: the area of each against all others, and their mean, as a
        `heldout.questions.classes.ClassAreas`.
        """
        return self._ask(
            q.Auc,
            by,
            q.ClassAuc,
            epsilon=epsilon,
            method=method,
            smaller_class=smaller_class,
            delta=delta,
            scores=scores,
        )

    @overload
    def average_precision(
        self, *, epsilon: Epsilon, by: None = None, **options: Unpack[_OfPrecision]
    ) -> "RankingRelease": ...
    @overload
    def average_precision(
        self, *, epsilon: Epsilon, by: Columns, **options: Unpack[_OfPrecision]
    ) -> "ByGroup[RankingRelease]": ...
    def average_precision(
        self,
        *,
        epsilon: Epsilon,
        by: Columns | None = None,
        method: str = "piecewise-laplace",
        smaller_class: int | None = None,
        delta: Epsilon | None = None,
        scores: str | None = None,
        ties: str = "grouped",
    ) -> "RankingRelease | ByGroup[RankingRelease]":
        """The mean precision at the positive rows' scores, as in scikit-learn.

        Options are as in `auc`. `ties="negatives-first"` ranks the negatives of a tie before its
        positives, as the papers do. Of several classes: that of each against all others, and their
        mean.
        """
        return self._ask(
            q.AveragePrecision,
            by,
            q.ClassAveragePrecision,
            epsilon=epsilon,
            method=method,
            smaller_class=smaller_class,
            delta=delta,
            scores=scores,
            ties=ties,
        )

    def versus(self, name: str) -> "Session":
        """Of several classes: a session on one against all others, by its score, same budget.

        All questions of two classes can be asked of it, such as `curves` and `report`.
        """
        if not isinstance(self._about, ClassifiedRows) or not is_one_of(name, self._about.classes):
            known = getattr(self._about, "classes", ())
            raise ArgumentError(f"name must be one of the classes {known}, got {shown(name)}.")
        table: Any = self._table
        return self.viewing(table.versus(self._about.classes.index(name)))

    @overload
    def top_k(
        self, *, epsilon: Epsilon, by: None = None, weighted: bool = False
    ) -> "RankRelease": ...
    @overload
    def top_k(
        self, *, epsilon: Epsilon, by: Columns, weighted: bool = False
    ) -> "ByGroup[RankRelease]": ...
    def top_k(
        self, *, epsilon: Epsilon, by: Columns | None = None, weighted: bool = False
    ) -> "RankRelease | ByGroup[RankRelease]":
        """Of several classes: how often the true one has one of the k highest scores, any k."""
        return self._ask(q.TopK, by, epsilon=epsilon, weighted=weighted)

    @overload
    def mean(
        self, column: str, *, epsilon: Epsilon, by: None = None, **fields: Any
    ) -> "ValueMean": ...
    @overload
    def mean(
        self, column: str, *, epsilon: Epsilon, by: Columns, **fields: Any
    ) -> "ByGroup[ValueMean]": ...
    def mean(
        self, column: str, *, epsilon: Epsilon, by: Columns | None = None, **fields: Any
    ) -> "ValueMean | ByGroup[ValueMean]":
        """The mean of a declared column, by group if groups are named.

        `fields` are those of `heldout.questions.Mean`: `minus` (another declared column, for the
        mean of the difference), `bounds` and `weighted`.
        """
        return self._ask(q.Mean, by, column=column, epsilon=epsilon, **fields)

    def ndcg(self, *, epsilon: Epsilon, k: int = 10) -> "ListsRelease":
        """Return how well rows of a unit are ranked (NDCG of the first k), averaged over units."""
        return self.ask(q.Ndcg(epsilon=epsilon, k=k))

    def precision_at_k(self, *, epsilon: Epsilon, k: int = 10) -> "ListsRelease":
        """The share of positives among the first k rows of each unit, on average over units."""
        return self.ask(q.PrecisionAtK(epsilon=epsilon, k=k))

    def grid_ties(self, *, epsilon: Epsilon) -> "TiesRelease":
        """The share of pairs that the public grid ties: how much ranking on it can matter.

        Half of it bounds what the order of rows within cells can do to the AUC.
        """
        return self.ask(q.GridTies(epsilon=epsilon))

    def compare(
        self,
        *,
        score: str,
        epsilon: Epsilon,
        method: str = "piecewise-laplace",
        smaller_class: int | None = None,
        measure: str = "auc",
        threshold: float = 0.5,
        rival_threshold: float | None = None,
    ) -> "CompareRelease | PairedDifference":
        """Is the model with this score better on the same rows? The difference of the two AUCs.

        `measure` may be "average-precision", "brier", "log-loss", "accuracy", "recall" or
        "specificity" instead, the last three at a threshold, and all but the first row by row. The
        difference is B minus A.

        Of AUCs: one release with noise of twice one AUC's; the difference of two releases at half
        the price each would have 1.4 times that. A score that is missing counts as the lowest.
        Models of several classes are compared by accuracy: theirs is a `ClassCompare`.
        """
        fields: dict[str, Any] = {
            "score": score,
            "epsilon": epsilon,
            "method": method,
            "smaller_class": smaller_class,
            "measure": measure,
            "threshold": threshold,
            "rival_threshold": rival_threshold,
        }
        if isinstance(self._about, ClassifiedRows):
            usual = {field.name: field.default for field in q.Compare.form() if not field.required}
            usual["measure"] = "accuracy"
            fields["measure"] = "accuracy" if measure == "auc" else measure
            given = {name: value for name, value in fields.items() if value != usual.get(name, ...)}
            return cast("PairedDifference", self.ask(q.ClassCompare.of_fields(given)))
        return self.ask(q.Compare(**fields))

    @overload
    def curves(
        self,
        *,
        epsilon: Epsilon,
        method: str = "heldout",
        thresholds: float | Sequence[float] | None = None,
        by: None = None,
        **options: object,
    ) -> "CurvesRelease": ...
    @overload
    def curves(
        self,
        *,
        epsilon: Epsilon,
        method: str = "heldout",
        thresholds: float | Sequence[float] | None = None,
        by: Columns,
        **options: object,
    ) -> "CurvesByGroup": ...
    def curves(
        self,
        *,
        epsilon: Epsilon,
        method: str = "heldout",
        thresholds: float | Sequence[float] | None = None,
        by: Columns | None = None,
        **options: object,
    ) -> "CurvesRelease | CurvesByGroup":
        """One score table with noise; ROC, precision-recall, calibration and more are then free.

        `method` may name one of the papers' instead: "laplace", "fixed-space",
        "recursive-medians" or "hierarchical-quantile", with its own options. At `thresholds` that
        are named beforehand `confusion` is nearly as sharp as if all of epsilon were for it. `by`
        gives a `heldout.questions.curves.release.CurvesRelease` for each declared group.
        """
        if method != "heldout" and thresholds is not None:
            options["thresholds"], thresholds = thresholds, None  # how many: an option of theirs
        chosen: dict[str, Any] = {"options": options, "thresholds": thresholds}
        return self._ask(q.Curves, by, epsilon=epsilon, method=method, **chosen)

    def report(
        self,
        *,
        epsilon: Epsilon,
        threshold: float | None = None,
        curves: bool = False,
        sections: Sequence[str] | None = None,
        scores: str | None = None,
        by: Columns | None = None,
        weighted: bool = False,
        k: int = 10,
    ) -> "Report":
        """Everything that a reader of a report asks for, each at its own share of epsilon.

        One booking pays for all of it. `threshold` is the middle of the score range unless it is
        given; `curves` adds them, for a quarter of the price; `sections` buys only those named, by
        the kinds of their questions (docs/reference.md lists which have a section); `scores` is as
        in `auc`; `by` adds the decisions by group; with `weighted` rows count by their weights, and
        what has no weighted form is left out; `k` is how many rows of each ranked list count.
        """
        return self.ask(
            q.Report(
                epsilon=epsilon,
                threshold=threshold,
                curves=curves,
                sections=sections,
                scores=scores,
                by=by,
                weighted=weighted,
                k=k,
            )
        )


_READ_OFF = {
    "roc": "session.curves(epsilon=...).roc",
    "precision_recall": "session.curves(epsilon=...).precision_recall",
    "calibration": "session.curves(epsilon=...).calibration",
    "roc_auc_score": "session.auc(epsilon=...)",
    "roc_auc": "session.auc(epsilon=...)",
    "f1": "session.confusion(epsilon=...).f1_score",
    "f1_score": "session.confusion(epsilon=...).f1_score",
    "accuracy_score": "session.confusion(epsilon=...).accuracy",
    "confusion_matrix": "session.confusion(epsilon=...)",
    "roc_curve": "session.curves(epsilon=...).roc",
    "precision_recall_curve": "session.curves(epsilon=...).precision_recall",
    "calibration_curve": "session.curves(epsilon=...).calibration",
    "average_precision_score": "session.average_precision(epsilon=...)",
    "brier_score": "session.brier(epsilon=...)",
    "brier_score_loss": "session.brier(epsilon=...)",
    "threshold_for_recall": "session.threshold_for(recall=0.9, epsilon=...)",
    **dict.fromkeys(
        ("groups", "group", "by_group", "group_by", "groupby", "fairness", "gap", "gap_in"),
        "session.confusion(by='sex', epsilon=...), with the column declared in groups=",
    ),
    **dict.fromkeys(
        ("evaluate", "run", "score", "metrics", "summary"), "session.report(epsilon=...)"
    ),
}


def _meant(name: str) -> str:
    """Return what to use instead of a name that a session does not have, as a sentence."""
    from heldout.intervals.readings import CELLS, attribute, registered

    if name in {attribute(reading) for reading in (*CELLS, *registered())}:
        return f" Use session.confusion(epsilon=...).{name}."
    if name in _READ_OFF:
        return f" Use {_READ_OFF[name]}."
    known = [kind.replace("-", "_") for kind in q.kinds()]
    return "" if name.startswith("_") else guess(name, [*known, "remaining", "quote", "ask"])
