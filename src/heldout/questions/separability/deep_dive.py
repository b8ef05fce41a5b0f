"""Why the privatized data gives itself away: columns, probabilities, groups, hints."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from heldout.data.two_tables import Table
from heldout.questions.separability.encoding import Encoding, Feature
from heldout.questions.separability.fits import Constant, Fit
from heldout.questions.separability.hints import hints

BINS = 20
LISTED = 10
JUDGED_ROWS = 2000  # for classifiers that do not say what they look at


@dataclass(frozen=True)
class Clue:
    """One feature: how much it says, and what it looks like on each side."""

    name: str
    column: str
    weight: float
    """Positive: larger values speak for the truth. Negative: for privatized data."""
    mean_true: float
    mean_privatized: float
    nonzero_true: float
    nonzero_privatized: float


@dataclass(frozen=True)
class Group:
    """Rows of one group of privatized data, and how true they look on average."""

    name: str
    rows: int
    probability: float


@dataclass(frozen=True)
class Grouping:
    """The variance of the estimated probabilities within and between groups, as in the paper."""

    column: str
    within: float
    between: float
    groups: tuple[Group, ...]
    """The worst (least like the truth) first."""

    @property
    def total(self) -> float:
        return self.within + self.between

    @property
    def worst(self) -> tuple[Group, ...]:
        return self.groups[:LISTED]

    @classmethod
    def of(cls, column: str, names: Any, scores: Any) -> "Grouping":
        shown = np.array(["missing" if name is None else str(name) for name in names])
        levels, which, rows = np.unique(shown, return_inverse=True, return_counts=True)
        means = np.bincount(which, weights=scores) / rows
        within = float(np.mean((scores - means[which]) ** 2))
        between = float(rows @ (means - scores.mean()) ** 2) / len(scores)
        order = np.argsort(means, kind="stable")
        groups = tuple(Group(str(levels[i]), int(rows[i]), float(means[i])) for i in order)
        return cls(column, within, between, groups)


@dataclass(frozen=True)
class Probabilities:
    """How the estimated probability of being true is spread over the rows of one side."""

    mean: float
    variance: float
    shares: tuple[float, ...]
    """The share of rows in each of 20 equal steps from 0 to 1."""

    @classmethod
    def of(cls, scores: Any) -> "Probabilities":
        held = np.clip(scores, 0, 1)
        counts, _ = np.histogram(held, bins=BINS, range=(0, 1))
        return cls(float(held.mean()), float(held.var()), tuple((counts / len(held)).tolist()))


@dataclass(frozen=True)
class DeepDive:
    """For the custodian only, like all that is computed on the truth without noise."""

    method: str
    clues: tuple[Clue, ...]
    """The features that say the most, first."""
    probabilities: dict[str, Probabilities]
    groups: tuple[Grouping, ...]
    hints: tuple[str, ...]
    constant: tuple[str, ...]
    """Columns that hold the same value everywhere, which were left out."""

    @classmethod
    def of(
        cls,
        truth: Table,
        privatized: Table,
        *,
        encoding: Encoding,
        fit: Fit,
        features: Any,
        is_true: Any,
    ) -> "DeepDive":
        method, weights = weights_of(fit.model, features, is_true)
        clues = [
            _clue(feature, weight, _sides(feature, features[:, index], is_true, truth, privatized))
            for index, (feature, weight) in enumerate(zip(encoding.features, weights, strict=True))
        ]
        clues.sort(key=lambda clue: -abs(clue.weight))
        scores = fit.scores[~is_true]
        return cls(
            method=method,
            clues=tuple(clues),
            probabilities={
                "true": Probabilities.of(fit.scores[is_true]),
                "privatized": Probabilities.of(scores),
            },
            groups=tuple(
                Grouping.of(name, values, scores) for name, values in privatized.groups.items()
            ),
            hints=tuple(hints(truth, privatized)),
            constant=encoding.constant,
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "clues": [asdict(clue) for clue in self.clues],
            "probabilities": {name: asdict(each) for name, each in self.probabilities.items()},
            "groups": [{**asdict(each), "total": each.total} for each in self.groups],
            "hints": list(self.hints),
            "constant": list(self.constant),
        }

    def __repr__(self) -> str:
        told = "; ".join(self.hints) or "no usual cause was found"
        return f"DeepDive [for the custodian only] of {len(self.clues)} features: {told}"


def weights_of(model: Any, features: Any, is_true: Any) -> tuple[str, Any]:
    """What the model looks at, signed: coefficients, impurity, or what a shuffled column costs."""
    width = features.shape[1]
    if isinstance(model, Constant):
        return "none", np.zeros(width)
    coefficients = np.ravel(getattr(model, "coef_", ()))
    if len(coefficients) == width:
        return "coefficient", coefficients
    direction = np.sign(features[is_true].mean(axis=0) - features[~is_true].mean(axis=0))
    importances = np.ravel(getattr(model, "feature_importances_", ()))
    if len(importances) == width:
        return "impurity", importances * direction
    from sklearn.inspection import permutation_importance

    step = max(1, len(features) // JUDGED_ROWS)
    judged = permutation_importance(
        model, features[::step], is_true[::step], n_repeats=2, scoring="balanced_accuracy",
        random_state=0,
    )  # fmt: skip
    return "permutation", judged.importances_mean * direction


def _sides(
    feature: Feature, encoded: Any, is_true: Any, truth: Table, privatized: Table
) -> list[Any]:
    """The feature's values on each side: known numbers as they are, or 0 and 1."""
    if feature.level is not None:
        return [encoded[is_true], encoded[~is_true]]
    sides = [table.numbers[feature.column] for table in (truth, privatized)]
    return [side[~np.isnan(side)] for side in sides]


def _clue(feature: Feature, weight: float, sides: list[Any]) -> Clue:
    means = [float(side.mean()) if len(side) else 0.0 for side in sides]
    nonzero = [float((side != 0).mean()) if len(side) else 0.0 for side in sides]
    return Clue(feature.name, feature.column, float(weight), *means, *nonzero)
