"""Read a separability: a number, a sentence, an interval, a bound."""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from heldout.drawing.chart import (
    INK,
    MUTED,
    PALETTE,
    Chart,
    Field,
    Figure,
    Layer,
    Names,
    Numbers,
    records,
)
from heldout.drawing.page import card, rendered, write_page
from heldout.intervals.measure import Interval, checked_level
from heldout.questions.separability.deep_dive import BINS, DeepDive, Grouping, Histogram
from heldout.questions.separability.fits import NAME, Ensemble, Roc
from heldout.questions.separability.tuned import SEEN

CUSTODIAN_ONLY = "for the custodian only"
WHY_CUSTODIAN = "computed on the ground truth without noise; do not publish"


@dataclass(frozen=True)
class FitNumbers:
    """Holds what the fits gave, before anybody reads it."""

    accuracy: float
    shuffled: tuple[float, ...]
    held_out: tuple[float, ...] | None
    detection_auc: float | None
    detection_auc_in_sample: float
    propensity: float | None
    propensity_shuffled: float | None
    rows: tuple[int, int]


@dataclass(frozen=True)
class CrossValidated:
    """The same ratio on rows held out, where chance is a half; it has no overfitting to divide by.

    The interval is Nadeau and Bengio's (2003), which allows for folds that share training rows.
    """

    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        return float(np.mean(self.accuracies))

    @property
    def value(self) -> float:
        return 2 * self.accuracy - 1

    def interval(self, level: float = 0.95) -> Interval:
        folds = len(self.accuracies)
        spread = float(np.std(self.accuracies, ddof=1))
        half = _t_quantile(checked_level(level), folds - 1) * spread
        half *= 2 * math.sqrt(1 / folds + 1 / (folds - 1))
        return (self.value - half, self.value + half)


@dataclass(frozen=True)
class ErrorBound:
    """Bounds how far a classifier's error may change between truth and privatized data.

    `on_these_rows` (2 x accuracy - 1) holds for every yes-or-no question that the class can ask:
    the shares of rows that say yes differ by no more, so long as the fit found the class's best.
    The mistakes of a classifier are such a question if the class is closed under XOR (trees are,
    for a greater depth; logistic regression is not). `in_population` adds what chance may hide,
    for rows that are independent draws (McDiarmid; the in-sample optimum is not below the true
    one on average).
    """

    on_these_rows: float
    rows: tuple[int, int]

    def in_population(self, level: float = 0.95) -> float:
        slack = (1 / self.rows[0] + 1 / self.rows[1]) * math.log(1 / (1 - checked_level(level))) / 2
        return min(1.0, self.on_these_rows + math.sqrt(slack))


@dataclass(frozen=True, eq=False, repr=False)
class Separability:
    """States how well the two tables can be distinguished. For the custodian only.

    `value`, `interval` and `p_value` are those of the stronger of two: the paper's ratio of two
    accuracies, minus 1, and, where it was asked for, the forest on rows held out (`ensemble`).
    `paper_value` is always the ratio, which is not held to 0 and 1: on small data it may be
    negative (shuffled labels were fitted better than the true ones, as happens to tables that are
    copies of each other), and above 1 where the shuffled fit falls below a half.
    """

    numbers: FitNumbers
    classifier: str
    columns: int
    features: int
    dropped_rows: int
    roc: dict[str, Roc]
    deep_dive: DeepDive
    ensemble: Ensemble | None = None
    left_out: tuple[str, ...] = ()
    """Columns that look like an index that pandas wrote, which were not compared."""

    @cached_property
    def ratios(self) -> tuple[float, ...]:
        """The paper's SEP, once for each shuffle."""
        return tuple(self.numbers.accuracy / accuracy - 1 for accuracy in self.numbers.shuffled)

    @property
    def paper_value(self) -> float:
        """The mean of the ratios over shuffles."""
        return float(np.mean(self.ratios))

    @property
    def stronger(self) -> Ensemble | None:
        """The forest where it tells more than the ratio does; None where the ratio stands."""
        forest = self.ensemble
        if forest is None or forest.p_value > SEEN or forest.value <= self.paper_value:
            return None
        return forest

    @property
    def headline_classifier(self) -> str:
        """Return whose number `value` is."""
        return self.classifier if self.stronger is None else NAME

    @property
    def value(self) -> float:
        """That of the stronger."""
        return self.paper_value if self.stronger is None else self.stronger.value

    def __float__(self) -> float:
        return self.value

    @property
    def spread(self) -> float:
        """The standard deviation over shuffles: how far a single shuffle would have misled."""
        return float(np.std(self.ratios, ddof=1))

    @property
    def ceiling(self) -> float:
        """The score of a classifier that never errs: 1 over the shuffled accuracy, minus 1."""
        return float(np.mean([1 / accuracy - 1 for accuracy in self.numbers.shuffled]))

    @property
    def accuracy(self) -> float:
        return self.numbers.accuracy

    @property
    def shuffled_accuracy(self) -> float:
        return float(np.mean(self.numbers.shuffled))

    def interval(self, level: float = 0.95) -> Interval:
        """Where the score may lie by chance; it holds 0 at this level if the data are alike.

        That of the stronger. For the ratio the shuffled fits show how far the accuracy moves by
        chance. That spread is used as it is near chance level, and shrinks towards an accuracy of
        1 as a binomial's does.
        """
        if self.stronger is not None:
            return self.stronger.interval(level)
        level = checked_level(level)
        count, total = len(self.numbers.shuffled), sum(self.numbers.rows)
        mean = self.shuffled_accuracy
        variance = float(np.var(self.numbers.shuffled, ddof=1))
        reached, chance = _smoothed(self.accuracy, total), _smoothed(mean, total)
        shrunk = variance * reached * (1 - reached) / (chance * (1 - chance))
        error = math.sqrt(shrunk + variance / count * (self.accuracy / mean) ** 2) / mean
        half = _t_quantile(level, count - 1) * error
        return (self.paper_value - half, self.paper_value + half)

    @property
    def p_value(self) -> float:
        """The share of labellings, the true one among them, that are fitted at least as well.

        With the forest beside it twice the smaller of the two, as either may find something, and
        never less than the shuffles can show (`least_p_value`).
        """
        shuffled = np.array(self.numbers.shuffled)
        own = float(1 + (shuffled >= self.accuracy).sum()) / (1 + len(shuffled))
        if self.ensemble is None:
            return own
        return min(1.0, max(self.least_p_value, 2 * min(own, self.ensemble.p_value)))

    @property
    def least_p_value(self) -> float:
        """One over the shuffles and 1."""
        return 1 / (1 + len(self.numbers.shuffled))

    @property
    def curves(self) -> dict[str, Roc]:
        """The ROC curves of the headline's classifier first, then those of the paper's fits."""
        if self.stronger is None or self.stronger.roc is None:
            return self.roc
        of_ratio = {f"{self.classifier}, {name}": curve for name, curve in self.roc.items()}
        return {NAME: self.stronger.roc, **of_ratio}

    @property
    def cross_validated(self) -> CrossValidated | None:
        held_out = self.numbers.held_out
        return None if held_out is None else CrossValidated(held_out)

    @property
    def error_bound(self) -> ErrorBound:
        best = max(self.accuracy, 1 - self.accuracy)
        return ErrorBound(2 * best - 1, self.numbers.rows)

    @property
    def detection_auc(self) -> float | None:
        """AUC of the separator on rows held out; 1/2 is chance."""
        return self.numbers.detection_auc

    @property
    def pmse(self) -> float | None:
        return self.numbers.propensity

    @property
    def pmse_ratio(self) -> float | None:
        """pMSE over its mean with shuffled labels; 1 is chance."""
        top, bottom = self.numbers.propensity, self.numbers.propensity_shuffled
        return None if top is None or not bottom else top / bottom

    # --- for people ------------------------------------------------------------------------------

    @property
    def verdict(self) -> str:
        low, high = self.interval()
        if high < 0:
            return (
                "The privatized rows are nearer to the true ones than new draws would be: "
                "are they copies?"
            )
        if low <= 0:
            return f"This classifier cannot tell the privatized data from the truth.{self.blind}"
        if self.value < 0.1:
            return f"The privatized data is hard to tell from the truth.{self.blind}"
        if self.value < 0.4:
            return "The privatized data can partly be distinguished from the truth."
        return "The privatized data can easily be distinguished from the truth."

    @property
    def blind(self) -> str:
        """Return what a linear classifier alone cannot see, said where it saw little."""
        if self.ensemble is not None or "logistic" not in self.classifier:
            return ""
        return (
            " But it sees each column by itself: that columns no longer go together it cannot see. "
            "Pass classifier='both'."
        )

    @property
    def snapshot(self) -> str:
        """One number, one sentence."""
        low, high = self.interval()
        if self.stronger is not None:
            return (
                f"Separability {self.value:.2f} (95% interval {low:.2f} to {high:.2f}): a {NAME} "
                f"tells true from privatized rows with accuracy {(1 + self.value) / 2:.2f}, "
                f"against 0.50 by chance (p {self.p_value:.2g} with {len(self.ratios)} shuffles); "
                f"the paper's ratio, of a {self.classifier}, which sees each column by itself, is "
                f"{self.paper_value:.2f}. {self.verdict}{self._without}"
            )
        return (
            f"Separability {self.value:.2f} (95% interval {low:.2f} to {high:.2f}): a "
            f"{self.classifier} tells true from privatized rows with accuracy "
            f"{self.accuracy:.2f}, against {self.shuffled_accuracy:.2f} on shuffled labels "
            f"(p {self.p_value:.2g} with {len(self.ratios)} shuffles). "
            f"{self.verdict}{self._without}"
        )

    @property
    def _without(self) -> str:
        """Return which columns were not compared although nobody ignored them."""
        if not self.left_out:
            return ""
        listed = ", ".join(map(repr, self.left_out))
        return f" Left out as an index: {listed}; pass categorical= to compare it."

    def __str__(self) -> str:
        return f"[{CUSTODIAN_ONLY}] {self.snapshot}"

    __repr__ = __str__

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON; it says first whom it is for."""
        numbers, held_out = self.numbers, self.cross_validated
        return {
            "audience": f"{CUSTODIAN_ONLY}: {WHY_CUSTODIAN}",
            "separability": self.value,
            "paper_separability": self.paper_value,
            "ensemble": None if self.ensemble is None else self.ensemble.as_dict(level),
            "level": level,
            "interval": list(self.interval(level)),
            "spread": self.spread,
            "ceiling": self.ceiling,
            "p_value": self.p_value,
            "least_p_value": self.least_p_value,
            "sentence": self.snapshot,
            "classifier": self.classifier,
            "accuracy": self.accuracy,
            "shuffled_accuracies": list(numbers.shuffled),
            "cross_validated": held_out
            and {
                "value": held_out.value,
                "accuracy": held_out.accuracy,
                "interval": list(held_out.interval(level)),
            },
            "error_bound": {
                "on_these_rows": self.error_bound.on_these_rows,
                "in_population": self.error_bound.in_population(level),
            },
            "detection_auc": self.detection_auc,
            "detection_auc_in_sample": numbers.detection_auc_in_sample,
            "pmse": self.pmse,
            "pmse_ratio": self.pmse_ratio,
            "rows": {
                "truth": numbers.rows[0],
                "privatized": numbers.rows[1],
                "dropped": self.dropped_rows,
            },
            "columns": self.columns,
            "left_out": list(self.left_out),
            "features": self.features,
            "roc": {
                name: {"fpr": list(curve.fpr), "tpr": list(curve.tpr)}
                for name, curve in self.curves.items()
            },
            "deep_dive": self.deep_dive.as_dict(),
        }

    def html(self, level: float = 0.95) -> str:
        """The whole report, which needs nothing from anywhere else."""
        from heldout.questions.separability.result import page

        return page(self, level=level)

    def save(self, path: str | os.PathLike[str], *, level: float = 0.95) -> Path:
        """Write the report as one HTML file."""
        return write_page(path, lambda: self.html(level))

    def _repr_html_(self) -> str:
        return card(self.snapshot, note=CUSTODIAN_ONLY)


def _smoothed(share: float, rows: int) -> float:
    """Agresti and Coull's share, which is never 0 or 1."""
    return (share * rows + 2) / (rows + 4)


def _t_quantile(level: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


# --- the page: one HTML file that needs nothing from anywhere else --------------------------------


SIDES = {"true": PALETTE[0], "privatized": PALETTE[1]}
MOST_CLUES = 15
MOST_GROUPS = 12
NAME_LENGTH = 28


def roc_figure(result: Separability) -> Figure:
    """The headline's classifier first, then the paper's fits on true and on shuffled labels."""
    points = [
        {"fit": name, **record}
        for name, curve in result.curves.items()
        for record in records(x=curve.fpr, y=curve.tpr)
    ]
    ends, dashed = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}], {"strokeDash": [4, 3]}
    chart = Chart(
        [
            Layer("line", ends, color=MUTED, style={**dashed, "strokeWidth": 1.2}),
            Layer("line", points, color=Field("fit")),
        ],
        x=Numbers("Privatized rows called true"),
        y=Numbers("True rows called true"),
        title="ROC curves of the separator",
        colours=dict(zip(result.curves, PALETTE, strict=False)),
    )
    says = (
        f"Accuracy {result.accuracy:.2f} on true labels, "
        f"{result.shuffled_accuracy:.2f} on shuffled."
    )
    ratio = (
        "ROC curves of the classifier on the true labels and on shuffled ones, both on the rows "
        "that it was fitted to. How far the second curve lies above the diagonal is overfitting; "
        "the score divides by it."
    )
    if result.stronger is not None:
        says = f"Accuracy {(1 + result.value) / 2:.2f} on rows held out."
        ratio = (
            f"The {NAME}, whose number the headline is; beside it the {result.classifier} of the "
            "paper's ratio, on the rows that it was fitted to, with true and with shuffled labels."
        )
    return Figure(chart.svg(says=says), ratio)


def probability_figure(dive: DeepDive) -> Figure:
    """Return how true each side looks to the classifier."""
    bars: list[dict[str, Any]] = [
        {"side": side, "low": k / BINS, "high": (k + 1) / BINS, "foot": 0.0, "share": share}
        for side, probabilities in dive.probabilities.items()
        for k, share in enumerate(probabilities.shares)
    ]
    most = max((bar["share"] for bar in bars), default=1.0)
    chart = Chart(
        [Layer("rect", bars, "low", "foot", "high", "share", color=Field("side"), opacity=0.65)],
        x=Numbers("Estimated probability of being true"),
        y=Numbers("Share of rows", 0.0, most * 1.05, form=".0%"),
        title="Estimated probability of being true",
        colours=SIDES,
    )
    mean = dive.probabilities["privatized"].mean
    return Figure(
        chart.svg(says=f"By side; privatized rows have {mean:.2g} on average."),
        f"How true each row looks. Privatized rows should look like true ones; on average they "
        f"get {mean:.2g}, where 0.5 means that they cannot be distinguished.",
    )


def clue_figures(dive: DeepDive) -> list[Figure]:
    """The features that say the most, to the left if they speak for privatized data."""
    bars: list[dict[str, Any]] = [
        {
            "name": shortened(clue.name),
            "foot": 0.0,
            "weight": clue.weight,
            "side": "true" if clue.weight > 0 else "privatized",
        }
        for clue in dive.clues[:MOST_CLUES]
        if clue.weight
    ]
    if not bars:
        return []
    weights = [0.0, *(bar["weight"] for bar in bars)]
    room = 0.05 * (max(weights) - min(weights))
    ends = min(weights) - room * (min(weights) < 0), max(weights) + room * (max(weights) > 0)
    chart = Chart(
        [Layer("rect", bars, x="foot", x2="weight", y="name", color=Field("side"))],
        x=Numbers(f"Signed {dive.method}", *ends),
        y=Names(_once(bar["name"] for bar in bars)),
        title="What speaks for which side",
        width=260,
        height=20 * max(len(bars), 4),
        colours=SIDES,
    )
    words = "; ".join(f"{bar['name']} {bar['weight']:+.3g}" for bar in bars)
    return [
        Figure(
            chart.svg(says=f"By feature: {words}."),
            f"The {len(bars)} features that the classifier looks at most. To the left: larger "
            "values speak for privatized data.",
        )
    ]


def histogram_figures(dive: DeepDive) -> list[Figure]:
    """Return the values that tell most, true beside privatized."""
    return [_side_by_side(histogram) for histogram in dive.histograms]


def _side_by_side(histogram: Histogram) -> Figure:
    bars: list[dict[str, Any]] = []
    for place, (side, shares) in enumerate(
        {"true": histogram.true, "privatized": histogram.privatized}.items()
    ):
        for low, high, share in zip(histogram.edges, histogram.edges[1:], shares, strict=False):
            middle = (low + high) / 2
            ends = (low, middle) if place == 0 else (middle, high)
            bars.append(
                {"side": side, "low": ends[0], "high": ends[1], "foot": 0.0, "share": share}
            )
    most = max((bar["share"] for bar in bars), default=1.0)
    name = shortened(histogram.name)
    chart = Chart(
        [Layer("rect", bars, "low", "foot", "high", "share", color=Field("side"))],
        x=Numbers(name, histogram.edges[0], histogram.edges[-1]),
        y=Numbers("Share of rows", 0.0, most * 1.05, form=".0%"),
        title=f"{name}, side by side",
        width=260,
        height=180,
        colours=SIDES,
    )
    apart = sum(abs(a - b) for a, b in zip(histogram.true, histogram.privatized, strict=True)) / 2
    return Figure(
        chart.svg(says=f"{apart:.0%} of the rows would have to move for the two to agree."),
        f"{name}: true and privatized rows by value. {apart:.0%} of the rows would have to move "
        "for the two to agree.",
    )


def group_figure(grouping: Grouping) -> Figure:
    """The groups whose privatized rows look least true."""
    dots: list[dict[str, Any]] = [
        {
            "name": shortened(group.name),
            "probability": group.probability,
            "shown": f"{group.probability:.2%}",
        }
        for group in grouping.groups[:MOST_GROUPS]
    ]
    most = max((dot["probability"] for dot in dots), default=0.0)
    beside = {"align": "left", "dx": 8}
    chart = Chart(
        [
            Layer("point", dots, x="probability", y="name", color=PALETTE[1], size=50),
            Layer("text", dots, "probability", "name", color=INK, text="shown", style=beside),
        ],
        x=Numbers("Mean probability of being true", 0.0, most * 1.05 or 1.0, form=".1%"),
        y=Names(_once(dot["name"] for dot in dots), title=grouping.column),
        title=f"Worst groups by {grouping.column}",
        width=260,
        height=20 * max(len(dots), 3),
    )
    return Figure(
        chart.svg(says="Lowest first."),
        f"{grouping.column}: the {len(dots)} groups of {len(grouping.groups)} whose privatized "
        "rows look least true.",
    )


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def shortened(name: str) -> str:
    """
    >>> shortened("a" * 40)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"


LISTED_CLUES = 20


def page(result: Separability, *, level: float = 0.95) -> str:
    """The whole document."""
    dive = result.deep_dive
    return rendered(
        "separability.html",
        title=f"Separability ({CUSTODIAN_ONLY})",
        audience=CUSTODIAN_ONLY,
        why=WHY_CUSTODIAN,
        result=result,
        level=level,
        between=lambda ends: f"{ends[0]:.3f} to {ends[1]:.3f}",
        drawn=[roc_figure(result), probability_figure(dive)],
        clue_figures=[*clue_figures(dive), *histogram_figures(dive)],
        clues=[
            (
                clue.name,
                f"{clue.weight:+.3g}",
                f"{clue.mean_true:.3g}",
                f"{clue.mean_privatized:.3g}",
                f"{clue.nonzero_true:.1%}",
                f"{clue.nonzero_privatized:.1%}",
            )
            for clue in dive.clues[:LISTED_CLUES]
        ],
        variances=[
            (group.column, f"{group.within:.3g}", f"{group.between:.3g}", f"{group.total:.3g}")
            for group in dive.groups
        ],
        group_figures=[group_figure(group) for group in dive.groups],
        worst_groups=[
            (group.column, [(g.name, f"{g.rows:,}", _percent(g.probability)) for g in group.worst])
            for group in dive.groups
        ],
        others=_others(result),
    )


def _others(result: Separability) -> list[tuple[str, str, str]]:
    """Score, value, and the value where the tables cannot be distinguished."""
    numbers, shuffled = result.numbers, result.roc["shuffled labels"]
    chance = sum(
        (b - a) * (c + d) / 2
        for a, b, c, d in zip(
            shuffled.fpr, shuffled.fpr[1:], shuffled.tpr, shuffled.tpr[1:], strict=False
        )
    )
    rows = []
    if result.detection_auc is not None:
        rows.append(("Detection AUC, rows held out", f"{result.detection_auc:.3f}", "1/2"))
    in_sample = f"{numbers.detection_auc_in_sample:.3f}"
    rows.append(("Detection AUC, rows fitted to", in_sample, f"{chance:.3f} (shuffled)"))
    if result.pmse is not None and result.pmse_ratio is not None:
        rows.append(("pMSE", f"{result.pmse:.4f}", f"{numbers.propensity_shuffled:.4f} (shuffled)"))
        rows.append(("pMSE ratio", f"{result.pmse_ratio:.2f}", "1"))
    rows.append(("Spread of single shuffles", f"{result.spread:.3f}", ""))
    return rows


def _percent(share: float) -> str:
    return f"{share * 100:.2g}%" if share < 0.1 else f"{share:.1%}"
