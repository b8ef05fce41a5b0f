"""Questions that select features of private rows and train models on them."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from heldout.data.feature_matrix import FeatureRows
from heldout.errors import ArgumentError
from heldout.features.budget import (
    GUESSED_ROWS,
    LATEST,
    RULES,
    TABLE,
    features_to_take,
    selection_share,
)
from heldout.features.logistic_plan import LogisticPlan
from heldout.features.model import ModelRelease
from heldout.features.naive_bayes_plan import NaiveBayesPlan
from heldout.features.selection import Selection as SelectionRelease
from heldout.features.selection_methods import METHODS, Plan, plan_selection
from heldout.features.stages import Stages, TrainingPlan
from heldout.questions import Question
from heldout.questions.rules import Exact, Number, OneOf, Text, Whole
from heldout.release import Drawn, Request, Staged
from heldout.statistics.feature_scores import score_named

__all__ = ["AUTO", "JOINT", "WEIGHT", "Selection", "Training"]

JOINT: Final = "joint"
AUTO: Final = "auto"
WEIGHT: Final = 5
CLASSIFIERS: Final[dict[str, Any]] = {"naive-bayes": NaiveBayesPlan, "logistic": LogisticPlan}
NAMES: Final = {"naive-bayes": "naive Bayes", "logistic": "logistic regression"}
BY_NUMBER: Final = ("noisy-top-k", "permute-and-flip", "sparse-vector")
"""Methods whose noise grows with k."""
MORE: Final = 8  # times as many features from the others: the training can tell noise by itself
Count = Annotated[int | None, Whole()]
Threshold = Annotated[float | None, Number()]


@dataclass(frozen=True, kw_only=True)
class Selection(Question):
    """Which features are worth keeping? `k` at most, or those with a score of `threshold`."""

    kind: ClassVar[str] = "selection"
    of: ClassVar[tuple[type, ...]] = (FeatureRows,)
    method: Annotated[str, OneOf(METHODS)] = "noisy-counts"
    score: Annotated[str, Text()] = "total-count"
    k: Count = None
    threshold: Threshold = None

    def request(self, about: FeatureRows) -> Request:
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


@dataclass(frozen=True, kw_only=True)
class Training(Question):
    """A model of 0/1 features: learnt with noise, its cut chosen with noise, for one price.

    `classifier` is "naive-bayes", "logistic" or "auto": logistic regression for the features of a
    table, naive Bayes for the many of texts or where rows have no public bound. `select` is None,
    "joint" (the counts that train naive Bayes select as well) or a method of `Selection`, whose
    part of the price is `split`, a half unless given. `weight` is how many features a row may set
    before their weights shrink, `ridge` the least penalty of a logistic regression, and
    `expected_rows` a public guess.
    """

    kind: ClassVar[str] = "training"
    of: ClassVar[tuple[type, ...]] = (FeatureRows,)
    rules: ClassVar[int] = LATEST
    known_rules: ClassVar[tuple[int, ...]] = tuple(RULES)
    classifier: Annotated[str, OneOf((AUTO, *CLASSIFIERS))] = "naive-bayes"
    select: Annotated[str | None, OneOf((JOINT, *METHODS))] = None
    split: Any = None
    selection_score: Annotated[str, Text()] = "total-count"
    k: Count = None
    threshold: Threshold = None
    weight: Annotated[int, Whole(1, advice="Try 5.")] = WEIGHT
    ridge: Annotated[Any, Exact()] = None
    expected_rows: Count = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.selects:
            object.__setattr__(self, "split", selection_share(self.split, method=str(self.select)))
        elif self.split is not None:
            raise ArgumentError(
                f"Leave split out with select={self.select!r}, where all of epsilon trains."
            )

    @property
    def selects(self) -> bool:
        """Whether a selection of its own comes before the training."""
        return self.select is not None and self.select != JOINT

    def rows(self, about: FeatureRows) -> int:
        """About how many rows there are, from public facts."""
        return max(1, about.rows if about.rows is not None else self.expected_rows or GUESSED_ROWS)

    def trained(self, about: FeatureRows) -> str:
        """Which classifier it is, from public facts."""
        if self.classifier != AUTO:
            return self.classifier
        table = about.features <= TABLE and about.row_bound is not None
        return "logistic" if table else "naive-bayes"

    def plan(self, about: FeatureRows, price: Fraction) -> TrainingPlan:
        """How the classifier spends its part of the price."""
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
            }
        plan: TrainingPlan = CLASSIFIERS[self.trained(about)](**words)
        return plan

    def selection(self, about: FeatureRows, price: Fraction) -> Plan:
        """How features are selected for their part of the price."""
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
        selected: Plan | None = None
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
        learnt = stages.plan.weights(stages.found)
        chosen = np.arange(about.features) if stages.chosen is None else np.array(stages.chosen)
        weights = np.zeros(about.features)
        weights[chosen] = learnt
        told = stages.plan.told_apart(learnt)
        return ModelRelease(
            drawn,
            weights=weights,
            selected=told if stages.chosen is None else chosen,
            split=stages.split(),
            names=about.feature_names,
        )
