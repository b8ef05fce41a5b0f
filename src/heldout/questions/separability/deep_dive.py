"""Why the privatized data gives itself away: columns, probabilities, groups, hints."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.arrays import Bools, Floats
from heldout.data.two_tables import Table
from heldout.questions.separability.fits import Classifier, Constant, Fit
from heldout.questions.separability.separator import (
    MISSING,
    OTHER,
    Number,
    frequent,
)
from heldout.questions.separability.tuned import MOST_CATEGORIES


@dataclass(frozen=True)
class Feature:
    """One column of the matrix and the column of the table that it came from."""

    column: str
    level: str | None = None
    """None for the number itself, a category, "missing", or "other"."""

    @property
    def name(self) -> str:
        return self.column if self.level is None else f"{self.column} = {self.level}"


@dataclass(frozen=True, eq=False)
class Encoding:
    """Learns from both tables together, without looking at which row is whose.

    Numbers are centred and scaled, and have a column more where some are missing; a text has a
    column for each of its most frequent categories and one for all others. Columns that are the
    same in every row are left out.
    """

    features: tuple[Feature, ...]
    numbers: dict[str, Number]
    levels: dict[str, tuple[str, ...]]
    constant: tuple[str, ...]

    @classmethod
    def of(cls, *tables: Table, most_categories: int = MOST_CATEGORIES) -> "Encoding":
        numbers, levels, features, constant = {}, {}, [], []
        for name in tables[0].numbers:
            values = np.concatenate([table.numbers[name] for table in tables])
            number = Number.of(values)
            numbers[name] = number
            encoded = [Feature(name)] if number.scale > 0 else []
            missing = np.isnan(values)
            if missing.any() and not missing.all():
                encoded.append(Feature(name, MISSING))
            features += encoded
            constant += [] if encoded else [name]
        for name in tables[0].texts:
            pooled = np.concatenate([table.texts[name] for table in tables])
            levels[name] = frequent(pooled, most_categories)
            encoded = _text_features(name, pooled, levels[name])
            features += encoded
            constant += [] if encoded else [name]
        return cls(tuple(features), numbers, levels, tuple(constant))

    def matrix(self, table: Table) -> Floats:
        """Return one row for each row of the table, one column for each feature."""
        matrix = np.empty((table.rows, len(self.features)))
        for index, feature in enumerate(self.features):
            matrix[:, index] = self._column(feature, table)
        return matrix

    def _column(self, feature: Feature, table: Table) -> Bools | Floats:
        name = feature.column
        if name in self.numbers:
            values = table.numbers[name]
            return np.isnan(values) if feature.level == MISSING else self.numbers[name](values)
        values = table.texts[name]
        if feature.level == MISSING and MISSING not in self.levels[name]:
            return np.array([value is None for value in values])
        if feature.level == OTHER and OTHER not in self.levels[name]:
            known = {None, *self.levels[name]}
            return np.array([value not in known for value in values])
        same: Bools = values == feature.level
        return same


def _text_features(
    name: str, values: NDArray[np.object_], levels: tuple[str, ...]
) -> list[Feature]:
    known = set(levels)
    missing = sum(value is None for value in values)
    other = sum(value is not None and value not in known for value in values)
    sizes = [len(levels) > 0, missing > 0, other > 0]
    if len(levels) + sum(sizes[1:]) <= 1:
        return []
    features = [Feature(name, level) for level in levels]
    features += [Feature(name, MISSING)] if missing and MISSING not in known else []
    features += [Feature(name, OTHER)] if other and OTHER not in known else []
    return features


NAMED = 5


def hints(truth: Table, privatized: Table) -> Iterator[str]:
    """Return what a custodian can change upstream; nothing if no usual cause shows."""
    if truth.numbers:
        yield from _lost_zeros(truth, privatized)
        yield from _new_kinds_of_numbers(truth, privatized)
    yield from _new_categories(truth, privatized)
    yield from _missing(truth, privatized)


def _lost_zeros(truth: Table, privatized: Table) -> Iterator[str]:
    before, after = _zeros(truth), _zeros(privatized)
    if before >= 0.2 and before - after >= 0.1:
        yield (
            f"Lost zeros: {before:.0%} of the true numbers are zero, but {after:.0%} of the "
            "privatized ones. Noise on empty cells gives the data away. Use a mechanism that "
            "keeps zeros: draw counts from noisy totals, or drop noisy counts below a threshold "
            "(a high one gives itself away by lost small counts)."
        )
    elif after >= 0.2 and after - before >= 0.05:
        yield (
            f"New zeros: {before:.0%} of the true numbers are zero, but {after:.0%} of the "
            "privatized ones. Small counts were dropped. Lower the threshold."
        )


def _new_kinds_of_numbers(truth: Table, privatized: Table) -> Iterator[str]:
    negative = [
        name
        for name, values in truth.numbers.items()
        if np.nanmin(values, initial=0) >= 0 > np.nanmin(privatized.numbers[name], initial=0)
    ]
    if negative:
        yield (
            f"Negative numbers in {_listed(negative)}, where the truth has none. Hold them to 0 "
            "after the noise; that costs no privacy."
        )
    broken = [
        name
        for name, values in truth.numbers.items()
        if _whole(values) and not _whole(privatized.numbers[name])
    ]
    if broken:
        yield (
            f"Fractions in {_listed(broken)}, where the truth has whole numbers. Use discrete "
            "noise, or round afterwards."
        )


def _new_categories(truth: Table, privatized: Table) -> Iterator[str]:
    for name, values in truth.texts.items():
        known = {value for value in values if value is not None}
        invented = np.array([v is not None and v not in known for v in privatized.texts[name]])
        if invented.mean() >= 0.01:
            yield (
                f"Categories of {name} that the truth does not have, in {invented.mean():.0%} of "
                "the privatized rows."
            )
        left = {value for value in privatized.texts[name] if value is not None}
        lost = np.array([value is not None and value not in left for value in values])
        if lost.mean() >= 0.01:
            yield (
                f"Categories of {name} that the privatized data lost, in {lost.mean():.0%} of the "
                "true rows."
            )


def _missing(truth: Table, privatized: Table) -> Iterator[str]:
    for name in (*truth.numbers, *truth.texts):
        before, after = (_share_missing(table, name) for table in (truth, privatized))
        if abs(before - after) >= 0.05:
            yield (
                f"{name} is missing in {before:.0%} of the true rows and in {after:.0%} of the "
                "privatized ones."
            )


def _zeros(table: Table) -> float:
    cells = sum(len(values) for values in table.numbers.values())
    return sum(int((values == 0).sum()) for values in table.numbers.values()) / cells


def _whole(values: Any) -> bool:
    known = values[~np.isnan(values)]
    return bool(np.all(known == np.floor(known)))


def _share_missing(table: Table, name: str) -> float:
    if name in table.numbers:
        return float(np.isnan(table.numbers[name]).mean())
    return float(np.mean([value is None for value in table.texts[name]]))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more columns" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


BINS = 20
LISTED = 10
DRAWN = 4
SHUFFLED_ROWS = 2000  # for classifiers that do not say what they look at


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
class Histogram:
    """The values of one feature, side by side: the share of each side's rows between two edges."""

    name: str
    edges: tuple[float, ...]
    true: tuple[float, ...]
    privatized: tuple[float, ...]

    @classmethod
    def of(cls, feature: Feature, sides: list[Floats]) -> "Histogram":
        """Count both sides in the same bins: one for each whole number where these are few."""
        values = np.concatenate(sides)
        low, high = float(values.min()), float(values.max())
        edges = np.linspace(low, high, BINS + 1)
        if high - low < 2 * BINS and np.array_equal(values, np.rint(values)):
            edges = np.arange(low, high + 2) - 0.5
        counts = [np.histogram(side, bins=edges)[0] for side in sides]
        shares = [tuple((count / max(count.sum(), 1)).tolist()) for count in counts]
        return cls(feature.name, tuple(edges.tolist()), *shares)


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
    """Spreads the estimated probability of being true over the rows of one side."""

    mean: float
    variance: float
    shares: tuple[float, ...]
    """The share of rows in each of 20 equal steps from 0 to 1."""

    @classmethod
    def of(cls, scores: Any) -> "Probabilities":
        shares = np.clip(scores, 0, 1)
        counts, _ = np.histogram(shares, bins=BINS, range=(0, 1))
        return cls(
            float(shares.mean()), float(shares.var()), tuple((counts / len(shares)).tolist())
        )


@dataclass(frozen=True)
class DeepDive:
    """For the custodian only, like all that is computed on the truth without noise."""

    method: str
    clues: tuple[Clue, ...]
    """The features that say the most, first."""
    histograms: tuple[Histogram, ...]
    """True and privatized values of the first of them, side by side."""
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
        order = np.argsort(-np.abs(weights), kind="stable")
        sides = {
            index: _sides(encoding.features[index], features[:, index], is_true, truth, privatized)
            for index in order.tolist()
        }
        clues = [
            _clue(encoding.features[index], float(weights[index]), values)
            for index, values in sides.items()
        ]
        numeric = [
            index for index in sides if weights[index] and encoding.features[index].level is None
        ]
        drawn = [index for index in numeric if all(len(side) for side in sides[index])][:DRAWN]
        scores = fit.scores[~is_true]
        return cls(
            method=method,
            clues=tuple(clues),
            histograms=tuple(Histogram.of(encoding.features[i], sides[i]) for i in drawn),
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
            "histograms": [asdict(histogram) for histogram in self.histograms],
            "probabilities": {
                name: asdict(probabilities) for name, probabilities in self.probabilities.items()
            },
            "groups": [{**asdict(group), "total": group.total} for group in self.groups],
            "hints": list(self.hints),
            "constant": list(self.constant),
        }

    def __repr__(self) -> str:
        causes = "; ".join(self.hints) or "no usual cause was found"
        return f"DeepDive [for the custodian only] of {len(self.clues)} features: {causes}"


def weights_of(model: Classifier, features: Floats, is_true: Bools) -> tuple[str, Floats]:
    """Return what the model looks at, signed: coefficients, impurity, or a shuffle's cost."""
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

    step = max(1, len(features) // SHUFFLED_ROWS)
    shuffled = permutation_importance(
        model, features[::step], is_true[::step], n_repeats=2, scoring="balanced_accuracy",
        random_state=0,
    )  # fmt: skip
    return "permutation", shuffled.importances_mean * direction


def _sides(
    feature: Feature, encoded: Floats, is_true: Bools, truth: Table, privatized: Table
) -> list[Floats]:
    """Return the feature's values on each side: known numbers as they are, or 0 and 1."""
    if feature.level is not None:
        return [encoded[is_true], encoded[~is_true]]
    sides = [table.numbers[feature.column] for table in (truth, privatized)]
    return [side[~np.isnan(side)] for side in sides]


def _clue(feature: Feature, weight: float, sides: list[Floats]) -> Clue:
    means = [float(side.mean()) if len(side) else 0.0 for side in sides]
    nonzero = [float((side != 0).mean()) if len(side) else 0.0 for side in sides]
    return Clue(feature.name, feature.column, float(weight), *means, *nonzero)
