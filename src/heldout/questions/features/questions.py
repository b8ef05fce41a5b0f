"""Questions that select features of private rows and train models on them."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heldout.arguments import shown
from heldout.arrays import Floats, Ints
from heldout.data.feature_matrix import FeatureMatrix, FeatureRows
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.intervals.measure import Measure, Release
from heldout.kernel import exact
from heldout.kernel.door import Answers, Booked, Drawn, Request, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.mechanism import DeclaredFit
from heldout.questions import Question
from heldout.questions.base import Exact, Number, OneOf, Text, Whole, Wholes
from heldout.questions.features.plans import (
    LATEST,
    LOGISTIC_CUTS,
    MARGIN,
    ORDER_DRAWN,
    RULES,
    STEP,
    Features,
    LogisticPlan,
    NaiveBayesPlan,
    Stages,
    TrainingPlan,
    features_to_take,
    selection_share,
)
from heldout.questions.features.selection import (
    METHODS,
    SelectionPlan,
    count_selected,
    plan_selection,
)
from heldout.questions.features.selection import Selection as SelectionRelease
from heldout.questions.features.statistics import (
    FeatureStatistic,
    SparseRows,
    score_named,
    seen_through,
)
from heldout.questions.features.tuned import GUESSED_ROWS, MORE, TABLE, WEIGHT
from heldout.questions.worst_cases import FLAG, Column, Pair, WorstCase, declare_rows

__all__ = ["AUTO", "JOINT", "Selection", "Training"]


# A trained model as a release: what it cost, what it weighs, and how it was made.
MOST_SHOWN = 1000


class ModelRelease(Release):
    """A private model's numbers with their price. Predictions from it are free."""

    def __init__(
        self,
        drawn: Drawn,
        *,
        weights: Floats,
        selected: Ints,
        split: dict[str, str],
        names: tuple[str, ...] | None = None,
        intercept: float | None = None,
    ) -> None:
        super().__init__(drawn)
        self._intercept = intercept
        self._bins = getattr(drawn.about, "bins", ())
        self.weights = np.asarray(weights, dtype=float)
        """One log-odds weight per feature; 0 where nothing was seen."""
        self.selected = np.asarray(selected)
        """The features that were selected, by number."""
        self.split = split
        """What each part of the training cost, in epsilon."""
        self._names = names

    @property
    def measures(self) -> dict[str, Measure]:
        """Return how many features were selected: a fact about the answer, so without a doubt."""
        return count_selected(len(self.selected), terms=self.terms)

    def strongest(self, count: int = 10) -> list[tuple[str | int, float]]:
        """Return the features that weigh most, by name where they have one."""
        order = np.argsort(-np.abs(self.weights), kind="stable")[:count]
        return [
            (int(place) if self._names is None else self._names[place], float(self.weights[place]))
            for place in order
            if self.weights[place]
        ]

    def linear_model(self) -> dict[str, Any]:
        """Return the model as a linear one that a custodian takes: see `heldout.models.load`.

        It ranks rows as the model does and calls the same rows positive. Its probabilities agree
        where the score is 0 or a margin away, and are near in between.
        """
        if self._intercept is None or self._names is None:
            raise ArgumentError(
                "Only a logistic regression of columns, at most 50 of 0 and 1 or any number with "
                "sizes, is a linear model. Train with classifier='logistic' on fewer columns."
            )
        apart = (math.log(2) - math.log1p(math.exp(-2 * MARGIN))) / MARGIN
        weights: list[float] = (apart * self.weights).tolist()
        coefficients: dict[str, Any] = dict(zip(self._names, weights, strict=True))
        if self._bins:
            coefficients = {}
            for name, edges in self._bins:
                own = [weights.pop(0) for _ in edges[1:] or (0,)]
                steps = {"edges": list(edges[1:-1]), "weights": own}
                coefficients[name] = steps if edges else own[0]
        return {
            "coefficients": coefficients,
            "intercept": apart * self._intercept,
            "link": "logit",
        }

    def save(self, place: str | os.PathLike[str]) -> Path:
        """Write the model to a .json file, as a linear model."""
        from heldout.drawing.page import write_file

        path = Path(place)
        if path.suffix.lower() != ".json":
            raise ArgumentError(f"path must end in .json, got {shown(path.name)}.")
        write_file(path, json.dumps(self.linear_model(), indent=2) + "\n")
        return path

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {cost}" for name, cost in self.split.items())
        return (
            f"{self.name} with {len(self.selected):,} of {len(self.weights):,} features selected, "
            f"{self.terms} ({parts})"
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        used = np.flatnonzero(self.weights)
        content = super().as_dict(level) | {
            "split": dict(self.split),
            "selected": [int(place) for place in self.selected],
            "weights": {str(place): float(self.weights[place]) for place in used},
        }
        if sum(map(len, content["noisy"])) > MOST_SHOWN:
            content["noisy"] = None  # the weights are the reading of thousands of noisy counts
        return content

    def _noisy(self) -> list[list[int]]:
        """Return what was drawn, step by step, in lattice steps."""
        return [[int(number) for number in answer] for answer in self._drawn.values.values()]


JOINT: Final = "joint"
AUTO: Final = "auto"
CLASSIFIERS: Final[dict[str, Any]] = {"naive-bayes": NaiveBayesPlan, "logistic": LogisticPlan}
NAMES: Final = {"naive-bayes": "naive Bayes", "logistic": "logistic regression"}
BY_NUMBER: Final = ("noisy-top-k", "permute-and-flip", "sparse-vector")
"""Methods whose noise grows with k."""
Count = Annotated[int | None, Whole(), "How many features to keep at most."]
Threshold = Annotated[float | None, Number(), "Keep the features with at least this score."]


@dataclass(frozen=True)
class Share(Exact):
    """A part of the price, or "paper" for that of the 2014 paper."""

    def __call__(self, value: Any, name: str) -> Any:
        if isinstance(value, str) and value == "paper":
            return value
        return super().__call__(value, name)


@dataclass(frozen=True, kw_only=True)
class Selection(Question[SelectionRelease]):
    """Which features are worth keeping? `k` at most, or those with a score of `threshold`."""

    kind = "selection"
    title = "selected features"
    asks = "Which features are worth keeping?"
    tells = "The names of the features that were selected."
    cannot_pool = "names of features do not add up across sites"
    of = (FeatureRows,)
    rules = LATEST
    known_rules = tuple(RULES)
    replayed = tuple(
        {"method": method, "k": 2} if method in BY_NUMBER else {"method": method}
        for method in METHODS
    )
    method: Annotated[str, OneOf(METHODS), "The private selection method."] = "noisy-counts"
    score: Annotated[str, Text(), "The score by which features are ranked."] = "total-count"
    k: Count = None
    threshold: Threshold = None

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        """Return one for every method; few features where all scores are released."""
        scored = (_leaves(2, 0), _tied(2))
        named: dict[str, Any] = {
            "pairs": (_tied(4), _leaves(4, 0)),
            "read": _names(2),
            "note": "names",
        }
        return (
            _selected("noisy-counts", pairs=scored, read=_by_feature(2), note="all noisy scores"),
            _selected(
                "cluster",
                pairs=scored,
                read=_by_feature(2),
                note="all noisy scores, in clusters",
            ),
            _selected(
                "score-perturbation",
                pairs=(_label(2), _tied(2)),
                read=_by_feature(2),
                note="all noisy scores",
                score="purity-index",
            ),
            _selected(
                "sparse-vector",
                pairs=(_leaves(4, 0, 1, 2, 3), _tied(4)),
                read=_by_feature(4),
                note="which feature is above the threshold",
                why="half is for the threshold",
                k=1,
                threshold=6.0,
            ),
            _selected("noisy-top-k", **named),
            _selected("permute-and-flip", **named),
        )

    def request(self, about: FeatureRows) -> Request:
        _check_order(self.method, self.rules)
        plan = plan_selection(
            about,
            epsilon=self.price,
            method=self.method,
            score=score_named(self.score),
            k=self.k,
            threshold=self.threshold,
        )
        words = {
            "method": self.method,
            "score": self.score,
            "k": plan.k,
            "threshold": plan.threshold,
            "features": about.features,
            "features_per_row": about.features_per_row,
        }
        return Request("selection", plan.statistic, plan.mechanism, words, reading=plan)

    def read(self, drawn: Drawn) -> SelectionRelease:
        return SelectionRelease(drawn, drawn.about, drawn.request.reading.read(drawn.values))


def _check_order(method: str | None, rules: int) -> None:
    """Refuse a stored answer that does not say in which order features were asked."""
    if method == "sparse-vector" and rules <= ORDER_DRAWN:
        raise ArgumentError(
            "An earlier version stored this answer of a sparse vector without the order in which "
            "features were asked, so nobody can say which it selected. Ask again."
        )


@dataclass(frozen=True, kw_only=True)
class Training(Question[ModelRelease]):
    """A model of 0/1 features: learnt with noise, its cut chosen with noise, for one price.

    `classifier` is "naive-bayes", "logistic" or "auto": logistic regression for the features of a
    table, naive Bayes for the many of texts or where rows have no public bound. `select` is None,
    "joint" (the counts that train naive Bayes select as well) or a method of `Selection`, whose
    part of the price is `split`, a half unless given. `weight` is how many features a row may set
    before their weights shrink, `ridge` the least penalty of a logistic regression, and
    `expected_rows` a public guess.

    With `sizes`, consecutive features describe columns, of which a row sets one feature each:
    `sizes` says how many features each column has, and `ordered` which of them are in order, as
    the bins of a number are. A logistic regression then learns a slope (and with enough rows a
    bend) for a column in order, instead of a weight for each bin.
    """

    kind = "training"
    writes = (".json",)
    title = "trained model"
    asks = "What can be learnt from these rows?"
    tells = "A model of 0/1 features that was trained with noise, and its threshold."
    cannot_pool = "models are not averaged across sites"
    formerly = (*NAMES.values(), "select and train")
    of = (FeatureRows,)
    rules = LATEST
    known_rules = tuple(RULES)
    replayed = (
        {},
        {"classifier": "logistic"},
        {"classifier": "logistic", "sizes": (3, 2)},
        {"classifier": "logistic", "sizes": (1, 4), "ordered": (1,)},
        {"select": JOINT},
        {"select": "noisy-top-k", "k": 2},
        {"select": "sparse-vector", "k": 2, "classifier": "logistic"},
    )
    classifier: Annotated[
        str, OneOf((AUTO, *CLASSIFIERS)), "The model to train; auto chooses by public facts."
    ] = "naive-bayes"
    select: Annotated[
        str | None,
        OneOf((JOINT, *METHODS)),
        "The method that selects features first. Default: no selection.",
    ] = None
    split: Annotated[Any, Share(), "The part of epsilon that pays for the selection."] = None
    selection_score: Annotated[str, Text(), "The score by which features are selected."] = (
        "total-count"
    )
    k: Count = None
    threshold: Threshold = None
    weight: Annotated[
        int,
        Whole(1, advice="Try 5."),
        "How many features a row may set before their weights shrink.",
    ] = WEIGHT
    ridge: Annotated[Any, Exact(), "The smallest penalty of a logistic regression."] = None
    expected_rows: Annotated[
        int | None, Whole(), "A public guess of the number of rows, where it is private."
    ] = None
    sizes: Annotated[
        tuple[int, ...] | None, Wholes(1), "How many consecutive features describe each column."
    ] = None
    ordered: Annotated[
        tuple[int, ...], Wholes(0), "Which of these columns hold ordered values, counted from 0."
    ] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sizes is not None and (self.selects or self.classifier != "logistic"):
            raise ArgumentError(
                "sizes are read by a logistic regression that selects nothing first. Leave "
                "select out and pass classifier='logistic'."
            )
        if self.ordered and (self.sizes is None or max(self.ordered) >= len(self.sizes)):
            raise ArgumentError("ordered must name places of columns, counted from 0.")
        if self.selects:
            object.__setattr__(self, "split", selection_share(self.split, method=str(self.select)))
        elif self.split is not None:
            raise ArgumentError(
                f"Leave split out with select={self.select!r}, where all of epsilon trains."
            )

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        many = 10**6
        return (
            _case(
                name="naive-bayes",
                pairs=_TRAINED,
                fields={"weight": 1, "expected_rows": many},
                note="noisy counts and the cut, jointly",
                why="spread over sizes, features and the cut",
                formerly="naive-bayes",
            ),
            _case(
                name="logistic",
                pairs=_TRAINED,
                fields={"classifier": "logistic", "weight": 1, "expected_rows": many},
                note="coefficients and the cut",
                why="an eighth is for the curvature, a part for the cut; a row seldom pulls as "
                "hard as it may",
                formerly="logistic",
            ),
            _case(
                name="logistic-columns",
                pairs=_COLUMNS,
                fields={
                    "classifier": "logistic",
                    "sizes": (3, 3),
                    "ordered": (0,),
                    "expected_rows": many,
                },
                note="a slope, a column of kinds, the constant and the cut",
                why="as above, and every block of coefficients must pull at its hardest",
            ),
            _case(
                name="pipeline",
                pairs=_TRAINED,
                fields={"select": "permute-and-flip", "k": 1, "expected_rows": many},
                note="selection, counts and the cut, staged",
                why="half is for the selection",
                formerly="pipeline",
            ),
        )

    @property
    def selects(self) -> bool:
        """Return whether a selection of its own comes before the training."""
        return self.select is not None and self.select != JOINT

    def rows(self, about: FeatureRows) -> int:
        """Return about how many rows there are, from public facts."""
        return max(1, about.rows if about.rows is not None else self.expected_rows or GUESSED_ROWS)

    def trained(self, about: FeatureRows) -> str:
        """Return which classifier it is, from public facts."""
        if self.classifier != AUTO:
            return self.classifier
        table = about.features <= TABLE and about.row_bound is not None
        return "logistic" if table else "naive-bayes"

    def plan(self, about: FeatureRows, price: Fraction) -> TrainingPlan[Any]:
        """Plan how the classifier spends its part of the price."""
        words: dict[str, Any] = {
            "features": about.features,
            "epsilon": price,
            "weight": min(self.weight, about.features),
            "rows": self.rows(about),
            "protection": about.protection,
            "rules": RULES[self.rules],
        }
        if self.trained(about) == "logistic":
            words |= {
                "ridge": self.ridge,
                "most_rows": about.row_bound,
                "features_per_row": about.features_per_row,
                "columns": self.sizes,
                "ordered": self.ordered,
            }
        plan: TrainingPlan[Any] = CLASSIFIERS[self.trained(about)](**words)
        return plan

    def selection(self, about: FeatureRows, price: Fraction) -> SelectionPlan:
        """Plan how features are selected for their part of the price."""
        _check_order(self.select, self.rules)
        k = self.k
        if k is None and self.threshold is None:
            k = features_to_take(
                price,
                rows=self.rows(about),
                features=about.features,
                protection=about.protection,
            )
            k = k if self.select in BY_NUMBER else min(MORE * k, about.features)
        return plan_selection(
            about,
            epsilon=price,
            method=str(self.select),
            score=score_named(self.selection_score),
            k=k,
            threshold=self.threshold,
        )

    def request(self, about: FeatureRows) -> Staged:
        words: dict[str, Any] = {
            "features": about.features,
            "classifier": self.trained(about),
        }
        if self.sizes is not None:
            words |= {"sizes": list(self.sizes), "ordered": list(self.ordered)}
        selected: SelectionPlan | None = None
        part = Fraction(0)
        if self.selects:
            part = self.split * self.price
            selected = self.selection(about, part)
            words |= {
                "score": self.selection_score,
                "k": selected.k,
                "threshold": selected.threshold,
            }
        stages = Stages(self.plan(about, self.price - part), selected)
        if self.select is None:
            claim = self.trained(about)
            return stages.request(NAMES[claim], claim=claim, **words)
        return stages.request("select and train", claim="pipeline", select=self.select, **words)

    def read(self, drawn: Drawn) -> ModelRelease:
        stages, about = drawn.request.reading, drawn.about
        stages.retell(drawn.values)
        learnt = stages.plan.weights(stages.model)
        chosen = np.arange(about.features) if stages.chosen is None else np.array(stages.chosen)
        weights = np.zeros(about.features)
        weights[chosen] = learnt
        selected = stages.plan.pick_selected(learnt) if stages.chosen is None else chosen
        intercept = None
        if isinstance(stages.plan, LogisticPlan) and stages.plan.loss(stages.chosen).weight is None:
            cut = LOGISTIC_CUTS.value(int(drawn.values["cut"][0]))
            intercept = float(stages.model[-1]) / STEP - cut
        return ModelRelease(
            drawn,
            weights=weights,
            selected=selected,
            split=stages.split(),
            names=about.feature_names,
            intercept=intercept,
        )


# --- audited -------------------------------------------------------------------------------------


def _matrix(content: Any, options: Mapping[str, Any]) -> FeatureMatrix:
    return FeatureMatrix(*content, **options)


Reader = Callable[[Pair, SelectionRelease], list[float]]
_case: Final = partial(WorstCase, make=_matrix, epsilon="4")


def _selected(
    method: str,
    *,
    pairs: tuple[Pair, ...],
    read: Reader,
    note: str,
    why: str = "spread over several numbers",
    k: int = 2,
    **fields: Any,
) -> WorstCase:
    asked = {"method": method, "k": k, **fields}
    return _case(name=method, pairs=pairs, fields=asked, read=read, note=note, why=why)


Labelled = tuple[NDArray[Any], NDArray[Any]]


def _rows(last: Sequence[int], *, features: int, label: int = 1) -> Labelled:
    """Return rows with the first half of the features, with the other, and one with these."""
    X = np.zeros((11, features), dtype=np.int8)
    X[:5, : features // 2] = X[5:10, features // 2 :] = 1
    X[10, list(last)] = 1
    return X, np.array([1, 0] * 5 + [label])


def _without(rows: Labelled) -> Labelled:
    return rows[0][:-1], rows[1][:-1]


def _tied(features: int) -> Pair:
    half = features // 2
    return Pair(
        "all tied; a row goes from half of the features to the others",
        _rows(range(half), features=features),
        _rows(range(half, features), features=features),
        {"features_per_row": half},
    )


def _leaves(features: int, *with_features: int) -> Pair:
    there = _rows(with_features, features=features)
    options = {"neighbours": "add-remove", "features_per_row": len(with_features)}
    return Pair("a row leaves", _without(there), there, options)


def _label(features: int) -> Pair:
    """Return rows without a feature, where the label of one moves the majority for all."""
    X = np.zeros((11, features), dtype=np.int8)
    before, after = np.ones(11, dtype=int), np.array([1] * 10 + [0])
    return Pair("one of many labels changes", (X, before), (X, after), {"features_per_row": 1})


def _names(k: int) -> Reader:
    """Return a reader of the names of up to k features."""

    def read(pair: Pair, selection: SelectionRelease) -> list[float]:
        numbers = [float(index) for index in selection.indices]
        return numbers + [-1.0] * (k - len(numbers))

    return read


def _by_feature(features: int) -> Reader:
    """Return a reader of features' noisy scores; where none are shown, of what was selected."""

    def read(pair: Pair, selection: SelectionRelease) -> list[float]:
        scores = np.full(features, -1.0)
        scores[selection.indices] = 1.0 if selection.scores is None else selection.scores
        return [float(score) for score in scores]

    return read


_MESSAGES: Final = [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1]]
_LABELS: Final = [1, 0, 1, 0, 1, 0]


def _row(features: list[int], label: int) -> Labelled:
    return np.array([*_MESSAGES, features]), np.array([*_LABELS, label])


# The number of rows is guessed, publicly and far too high: next to nothing goes to the cut then,
# and what a row can do is in few numbers.
_TRAINED: Final = (
    Pair(
        "a row leaves",
        _row([1, 0], 1),
        _without(_row([1, 0], 1)),
        {"neighbours": "add-remove", "most_rows": 64},
    ),
    Pair("a row changes its label", _row([1, 0], 1), _row([1, 0], 0)),
    Pair("a row changes its features", _row([1, 0], 1), _row([0, 1], 1)),
)


def _of_columns(place: int, kind: int, label: int) -> Labelled:
    """Return six rows of a column in order and of a column of kinds, and one like this."""
    cells = [(0, 0), (1, 1), (2, 2), (0, 2), (1, 0), (2, 1), (place, kind)]
    X = np.zeros((len(cells), 6), dtype=np.int8)
    for row, (first, second) in enumerate(cells):
        X[row, [first, 3 + second]] = 1
    return X, np.array([*_LABELS, label])


_COLUMNS: Final = (
    Pair(
        "a row leaves",
        _of_columns(2, 0, 1),
        _without(_of_columns(2, 0, 1)),
        {"neighbours": "add-remove", "most_rows": 64},
    ),
    Pair("a row changes its label", _of_columns(2, 0, 1), _of_columns(2, 0, 0)),
    Pair("a row changes its columns", _of_columns(2, 0, 1), _of_columns(0, 1, 1)),
)
_FEATURES: Final = tuple(f"f{place}" for place in range(5))
declare_rows(
    FeatureRows,
    {"y": FLAG, **dict.fromkeys(_FEATURES, Column((0.0, 1.0, 2.5, None)))},
    partial(
        FeatureMatrix.from_table,
        label="y",
        features=_FEATURES,
        features_per_row=3,
        most_rows=100,
        name="made up",
    ),
    outcome=("y",),
)


# --- Estimators from outside in a private pipeline: they declare what one fit costs ---------------


@runtime_checkable
class PricedEstimator(Protocol):
    """A classifier in scikit-learn's shape that says what one fit costs.

    `fit_price` is the epsilon of pure differential privacy that one call of `fit` costs where
    neighbours differ as the pipeline declares ("replace-one" or "add-remove", units of up to
    `rows_per_unit` rows). It depends on public parameters alone. That it is true is the
    estimator's own claim: the ledger books it, and nothing here proves it. `fit` gets a sparse
    matrix of 0 and 1 and labels 0 and 1; scores come from `decision_function`, or from
    `predict_proba` where there is none.
    """

    def fit_price(self, *, neighbours: str, rows_per_unit: int) -> Any: ...

    def fit(self, X: Any, y: Any) -> Any: ...


def declared_price(estimator: PricedEstimator, protection: Protection) -> Fraction:
    """Return what one fit costs, as the estimator says."""
    declared = estimator.fit_price(
        neighbours=protection.neighbours.value, rows_per_unit=protection.rows_per_unit
    )
    price = exact(declared, name="fit_price")
    if price <= 0:
        raise ArgumentError(f"fit_price must be more than 0, got {shown(declared)}.")
    return price


def scores_of(estimator: Any, matrix: SparseRows) -> Floats:
    """Return the log-odds of public rows by a fitted estimator."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(matrix), dtype=float)
    from scipy.special import logit

    shares = np.asarray(estimator.predict_proba(matrix), dtype=float)[:, 1]
    return np.asarray(logit(np.clip(shares, 1e-12, 1 - 1e-12)), dtype=float)


@dataclass(frozen=True)
class TrainingTable(FeatureStatistic[tuple[SparseRows, Any]]):
    """The rows themselves, for an estimator that answers for their privacy.

    Claim:       none of its own: `DeclaredFit` is the only one to open it. [claim: declared-fit]
    Neighbours:  any.
    Sensitivity: not known.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   proofs/declared-fit.md.
    Cost:        one pass.
    """

    chosen: Features = None
    claim = "declared-fit"
    shown_by = (
        "tests/questions/features/test_outside.py"
        "::test_an_estimator_sees_the_bounded_rows_and_the_selected_features_alone"
    )

    def read(self, columns: Columns) -> tuple[SparseRows, Any]:
        return seen_through(columns, self.chosen), np.asarray(columns["label"])


class OutsideStages:
    """A selection, if there is one, then the fit of an estimator from outside; paid as one."""

    def __init__(
        self, estimator: PricedEstimator, price: Fraction, selection: SelectionPlan | None
    ) -> None:
        self.estimator, self.price, self.selection = estimator, price, selection
        self.chosen: Features = None

    def request(self, words: Mapping[str, Any]) -> Staged:
        fit = DeclaredFit(self.price, self._learn)
        steps = {"learning": Booked(fit.event(), lambda answers: Step(self._table(answers), fit))}
        split = {"declared": str(self.price)}
        if self.selection is not None:
            first = Booked.of(Step(self.selection.statistic, self.selection.mechanism))
            steps = {"selection": first} | steps
        return Staged(
            name="select and train",
            steps=steps,
            parameters=dict(words) | split,
            claim="declared-fit",
            description={"name": "an estimator from outside", "split": split},
            reading=self,
        )

    def _table(self, answers: Answers) -> TrainingTable:
        if self.selection is not None:
            indices = self.selection.read(answers["selection"]).indices
            self.chosen = tuple(sorted(int(index) for index in indices)) or (0,)
        return TrainingTable(self.chosen)

    def _learn(self, rows: tuple[SparseRows, Any]) -> None:
        self.estimator.fit(*rows)
