"""Trend, curvature and fan of a residual plot, and the sentences that follow from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arrays import Floats
from heldout.intervals.measure import Measure
from heldout.questions.regression.readings import (
    ByPrediction,
    QuantilePlot,
    Sum,
    mean_by_prediction,
    offset,
    quantile_plot,
    scale_by_prediction,
    spread_by_prediction,
    tail_chance,
    tail_quantile,
    unexplained,
)
from heldout.questions.regression.table import ResidualTable
from heldout.questions.regression.tuned import (
    CUT_BEND,
    CUT_TREND,
    FEWEST_CELLS,
    INVISIBLE,
    NOISE_MARGIN,
    PLAIN_FAN,
    SLIGHT,
    TELLING,
    VISIBLE,
)

LEVEL: Final = 0.95
FAMILY: Final = 3
"""The three scores together give a false alarm in at most 1 - LEVEL of all plots."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class _Weights:
    """A of the prediction and B of the residual (by cell), with the correlation's denominators."""

    across: Floats
    down: Floats
    whole: Floats
    """B without the weights by which cells that hold mostly noise count less."""

    @property
    def product(self) -> Floats:
        return self.across[None, :] * self.down

    def squares(self, counts: Floats) -> tuple[float, float]:
        """Sums of A squared and of B squared over the rows."""
        across, down = self.across[None, :] ** 2, self.down**2
        return float((across * counts).sum()), float((down * counts).sum())

    def vary(self, counts: Floats) -> bool:
        """Return whether both A and B differ between the rows by more than rounding."""
        rows = float(np.sum(counts))
        largest = [float((values**2).max(initial=0.0)) for values in (self.across, self.down)]
        return all(
            square > _ROUNDING * most * rows and most > 0
            for square, most in zip(self.squares(counts), largest, strict=True)
        )

    def correlation(self, counts: Floats) -> float:
        """Of A and B over rows counted by cell, both with mean 0."""
        first, second = self.squares(counts)
        size = (first * second) ** 0.5
        return float((self.product * counts).sum()) / size if size > 0 else 0.0


class Score(Measure):
    """A correlation with intervals, and whether it can be chance."""

    deviations: float
    unexplained: float
    """What is left of `deviations` if the rows beyond the bounds lean the other way."""
    threshold: float
    enough: float
    """What must be left of `deviations` then. Whether it leans is asked of three, on both sides
    of 0; whether the cut explains it of this one, on the side it leans to."""
    p_value: float
    """How often a score so far from 0 would be released if residuals and predictions had nothing
    to do with each other, or, of a mean, if the rows beyond the bounds made up for it: noise and
    sampling both; 1 where nothing could be seen."""

    @property
    def leans(self) -> bool:
        """It is further from 0 than noise and sampling explain, all three scores considered."""
        return abs(self.deviations) > self.threshold

    @property
    def seen(self) -> bool:
        """It leans, and what the bounds cut off cannot be the cause."""
        return self.leans and self.unexplained > self.enough


def trend(table: ResidualTable, *, terms: str = "") -> Score:
    """Positive: the higher the prediction, the more it is too low."""
    return _score(table, _weights(table, degree=1, sizes=False), "trend", terms, cut=CUT_TREND)


def curvature(table: ResidualTable, *, terms: str = "") -> Score:
    """Positive: predictions are too low at both ends and too high in between."""
    return _score(table, _weights(table, degree=2, sizes=False), "curvature", terms, cut=CUT_BEND)


def fan(table: ResidualTable, *, terms: str = "", centre: Floats | None = None) -> Score:
    """Positive: residuals are larger where predictions are higher.

    `centre` is the mean residual by predicted cell, if it is not the same everywhere.
    """
    weights = _weights(table, degree=1, sizes=True, centre=centre)
    return _score(table, weights, "fan", terms, least=0.0 if centre is None else PLAIN_FAN)


def curve(table: ResidualTable) -> Floats:
    """The mean residual by predicted cell, as a parabola: what a fan is measured around."""
    density = table.density
    rows = density.sum(axis=0)
    middle = _middles(table.residual_edges)
    means = np.divide(
        (density * middle[:, None]).sum(axis=0), rows, out=np.zeros_like(rows), where=rows > 0
    )
    shares = rows / max(float(rows.sum()), 1e-9)
    basis = np.vander(_standardised(_middles(table.predicted_edges), shares), 3, increasing=True)
    root = np.sqrt(shares)
    coefficients, *_ = np.linalg.lstsq(basis * root[:, None], means * root, rcond=None)
    result: Floats = np.clip(basis @ coefficients, middle[0], middle[-1])
    return result


def _weights(
    table: ResidualTable, *, degree: int, sizes: bool, centre: Floats | None = None
) -> _Weights:
    density = table.density
    total = max(float(density.sum()), 1e-9)
    columns, rows = density.sum(axis=0) / total, density.sum(axis=1) / total
    middle = _middles(table.residual_edges)
    noise = float(np.mean(table.cell_deviation**2))
    seen_columns = _taper(_level(columns), total, noise / max(float((rows**2).sum()), 1e-9))
    seen_rows = _taper(_bell(middle, rows), total, noise / max(float((columns**2).sum()), 1e-9))
    x = _standardised(_middles(table.predicted_edges), columns)
    basis = np.vander(x, degree + 1, increasing=True)
    across = seen_columns * _residue(basis, columns * seen_columns)
    shifted = np.broadcast_to(middle[:, None], table.noisy.shape)
    if centre is not None:
        shifted = shifted - np.asarray(centre, dtype=np.float64)[None, :]
    else:
        # A wrong slope moves sizes around a median by nothing, to first order (Brown, Forsythe).
        shifted = shifted - (_median(middle, rows) if sizes else float((rows * middle).sum()))
    tapers = np.interp(shifted, middle - float((rows * middle).sum()), seen_rows, left=0, right=0)
    functions = np.abs(shifted) if sizes else shifted
    shares = columns[None, :] * rows[:, None] if centre is None else density / total
    mass = float((shares * tapers).sum())
    mean = float((shares * tapers * functions).sum()) / mass if mass > 0 else 0.0
    whole = functions - float((shares * functions).sum()) / max(float(shares.sum()), 1e-9)
    return _Weights(across, tapers * (functions - mean), whole)


def _score(
    table: ResidualTable,
    weights: _Weights,
    name: str,
    terms: str,
    *,
    least: float = 0.0,
    cut: float = 0.0,
) -> Score:
    product = Sum(table, weights.product)
    first, second = weights.squares(table.density)
    size = (first * second) ** 0.5
    exists = weights.vary(table.density) and product.variance(noise_only=False) > 0
    value = float(np.clip(product.value / size, -1.0, 1.0)) if exists else 0.0
    straight = product
    if exists:
        # How the denominators move with the counts, to first order.
        bend = weights.across[None, :] ** 2 / first + weights.down**2 / second
        straight = Sum(table, weights.product / size - value * bend / 2)

    def around(level: float, *, noise_only: bool) -> tuple[float, float]:
        if not exists:
            return -1.0, 1.0
        half = NOISE_MARGIN * straight.half_width(level, noise_only=noise_only)
        return max(value - half, -1.0), min(value + half, 1.0)

    score = Score(
        value,
        name=name,
        terms=terms,
        noise_interval=lambda level: around(level, noise_only=True),
        interval=lambda level: around(level, noise_only=False),
        share=lambda value: (1 + value) / 2,
    )
    variance = product.variance(noise_only=False)
    score.deviations = product.value / variance**0.5 if exists else 0.0
    score.unexplained = abs(score.deviations)
    if exists and cut > 0:
        left = unexplained(
            table,
            across=weights.across,
            down=weights.down,
            whole=weights.whole,
            largest=cut,
            sign=float(np.sign(product.value)),
        )
        score.unexplained = min(score.unexplained, max(left, 0.0))
    kurtosis = product.kurtosis(noise_only=False)
    chance = NOISE_MARGIN * tail_quantile(LEVEL, kurtosis=kurtosis, of=FAMILY)
    score.threshold = max(chance, least * size / variance**0.5) if exists else np.inf
    score.enough = NOISE_MARGIN * tail_quantile(LEVEL, kurtosis=kurtosis)
    lean, left = abs(score.deviations), score.unexplained
    by_chance, by_the_cut = (
        tail_chance(far / NOISE_MARGIN, kurtosis=kurtosis) for far in (lean, left)
    )
    score.p_value = max(by_chance, by_the_cut / 2 if left < lean else 0.0) if exists else 1.0
    if visible(table) < INVISIBLE:
        score.threshold, score.p_value = np.inf, 1.0
    return score


def visible(table: ResidualTable) -> float:
    """The rows of a table, in deviations of the noise of all its cells together."""
    noise = table.noise_variance(np.ones(table.noisy.shape)) ** 0.5
    return float(table.density.sum()) / noise if noise > 0 else np.inf


def _taper(shares: Floats, total: float, noise: float) -> Floats:
    """Return how much of a row or column of cells is rows and not noise, from 0 to 1."""
    rows = shares * total
    return np.divide(rows, rows + noise, out=np.zeros_like(rows), where=rows > 0)


def _bell(values: Floats, shares: Floats) -> Floats:
    """The shares of a normal law with the same mean and spread: two numbers hold little noise."""
    mean = float((shares * values).sum())
    variance = float((shares * (values - mean) ** 2).sum())
    if variance <= 0:
        return shares
    density = np.exp(-((values - mean) ** 2) / (2 * variance))
    result: Floats = density / density.sum()
    return result


def _median(values: Floats, shares: Floats) -> float:
    """Of cells with these middles, all as wide, each filled evenly."""
    below = np.cumsum(shares) - shares / 2
    return float(np.interp(below[-1] / 2 + shares[-1] / 4, below, values))


def _level(shares: Floats) -> Floats:
    """Each share with a part of its neighbours'."""
    padded = np.concatenate([shares[:1], shares, shares[-1:]])
    result: Floats = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return result


def _residue(basis: Floats, weights: Floats) -> Floats:
    """The last column minus its weighted projection on the others."""
    root = np.sqrt(np.maximum(weights, 0.0))[:, None]
    others, last = basis[:, :-1], basis[:, -1]
    coefficients, *_ = np.linalg.lstsq(others * root, last * root[:, 0], rcond=None)
    left = last - others @ coefficients
    return np.where(np.abs(left) < 1e-9, 0.0, left)


def _standardised(values: Floats, shares: Floats) -> Floats:
    mean = float((shares * values).sum())
    spread = float((shares * (values - mean) ** 2).sum()) ** 0.5
    return (values - mean) / spread if spread > 0 else np.zeros_like(values)


def _middles(edges: Floats) -> Floats:
    """Of cells, in units of the largest edge: scores have no unit, and no square may overflow."""
    edges = edges / np.abs(edges).max()
    return (edges[:-1] + edges[1:]) / 2


_SEEN: Final = {
    ("curvature", True): "residuals curve: predictions are too low at both ends and too high in "
    "between",
    ("curvature", False): "residuals curve: predictions are too high at both ends and too low in "
    "between",
    ("fan", True): "residuals fan out: variance grows with the prediction",
    ("fan", False): "residuals fan in: variance falls as the prediction grows",
    ("trend", True): "residuals rise: the higher the prediction, the more it is too low",
    ("trend", False): "residuals fall: the higher the prediction, the more it is too high",
}
_UNSEEN: Final = {
    "curvature": "no sign of curvature at this epsilon",
    "fan": "no sign of a fan at this epsilon",
    "trend": "no sign of a trend at this epsilon",
}
_NOISY: Final = {
    "curvature": "too noisy to tell whether residuals curve",
    "fan": "too noisy to tell whether residuals fan out",
    "trend": "too noisy to tell whether residuals rise or fall",
}
_CUT: Final = {
    ("curvature", True): "residuals within the bounds curve upwards at both ends",
    ("curvature", False): "residuals within the bounds curve downwards at both ends",
    ("trend", True): "residuals within the bounds rise",
    ("trend", False): "residuals within the bounds fall",
}
_ORDER: Final = ("seen", "cut", "not seen", "too noisy", "too coarse", "no verdict", "not judged")
_BENT: Final = "a trend is not judged beside a bend, which makes one of its own"
_COARSE: Final = {
    "curvature": "too coarse to tell whether residuals curve",
    "fan": "too coarse to tell whether residuals fan out",
    "trend": "too coarse to tell whether residuals rise or fall",
}
_NO_VERDICT: Final = (
    "no verdict: this method joins cells, and no interval describes the error of that"
)


@dataclass(frozen=True)
class Finding:
    """One score and what follows from it.

    "seen", "cut" (the rows beyond the bounds may make up for it), "not seen", "too noisy", "too
    coarse" (nearly all rows lie in a few cells), "no verdict" or "not judged" (a trend beside a
    bend).
    """

    score: Score
    answer: str
    sentence: str

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            **self.score.as_dict(level),
            "deviations": self.score.deviations,
            "answer": self.answer,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class Verdict:
    """All findings; as text, one sentence with the faults first.

    On data without a fault, at most 5 plots in 100 show one. `offset` says that predictions are too
    low or too high on average, if they plainly are; no score shows that.
    """

    findings: dict[str, Finding]
    offset: str = ""

    @property
    def faults(self) -> tuple[str, ...]:
        """Names of the scores that show a fault."""
        return tuple(name for name, finding in self.findings.items() if finding.answer == "seen")

    @property
    def sentences(self) -> tuple[str, ...]:
        findings = sorted(self.findings.values(), key=lambda finding: _ORDER.index(finding.answer))
        return tuple(finding.sentence for finding in findings)

    def __str__(self) -> str:
        if not self.offset:
            return self._of_scores
        rest = self._of_scores
        return f"{self.offset[:1].upper()}{self.offset[1:]}; {rest[:1].lower()}{rest[1:]}"

    @property
    def _of_scores(self) -> str:
        answers = {finding.answer for finding in self.findings.values()} - {"not judged"}
        if answers == {"no verdict"}:
            return _NO_VERDICT[:1].upper() + _NO_VERDICT[1:] + "."
        if answers == {"too noisy"}:
            return "Too noisy to tell: no score differs clearly from chance at this epsilon."
        if answers == {"too coarse"}:
            return "Too coarse to tell: nearly all rows lie in a few cells. Declare bounds."
        if answers == {"not seen"}:
            return "No sign of curvature, a fan or a trend at this epsilon."
        text = "; ".join(sentence for sentence in self.sentences if sentence != _BENT)
        return text[:1].upper() + text[1:] + "."

    def __repr__(self) -> str:
        return str(self)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "sentence": str(self),
            "faults": list(self.faults),
            "offset": self.offset or None,
            "scores": {name: finding.as_dict(level) for name, finding in self.findings.items()},
        }


class Readings:
    """Everything that is read off a released table for free."""

    def __init__(self, table: ResidualTable, *, terms: str = "") -> None:
        self._table, self._terms = table, terms

    @cached_property
    def mean_by_prediction(self) -> ByPrediction:
        return mean_by_prediction(self._table)

    @cached_property
    def spread_by_prediction(self) -> ByPrediction:
        return spread_by_prediction(self._table)

    @cached_property
    def scale_by_prediction(self) -> ByPrediction:
        return scale_by_prediction(self._table)

    @cached_property
    def quantiles(self) -> QuantilePlot:
        return quantile_plot(self._table)

    @property
    def p_values(self) -> dict[str, float]:
        """RESET's question (is the mean wrong?) and Breusch and Pagan's (does the spread change?).

        RESET looks at a trend and at a bend, and pays for two looks.
        """
        wrong = min(1.0, 2 * min(self.trend.p_value, self.curvature.p_value))
        return {"RESET": wrong, "Breusch-Pagan": self.fan.p_value}

    @cached_property
    def trend(self) -> Score:
        return trend(self._table, terms=self._terms)

    @cached_property
    def curvature(self) -> Score:
        return curvature(self._table, terms=self._terms)

    @cached_property
    def fan(self) -> Score:
        bent = self.curvature.leans or self.trend.leans
        centre = curve(self._table) if bent else None
        return fan(self._table, terms=self._terms, centre=centre)

    @cached_property
    def verdict(self) -> Verdict:
        scores = {"curvature": self.curvature, "fan": self.fan, "trend": self.trend}
        if not self._table.unbiased:
            silent = {
                name: Finding(score, "no verdict", _NO_VERDICT) for name, score in scores.items()
            }
            return Verdict(silent)
        # Skew residuals that fan out also drift a little: beside a fan a trend must be plain.
        least = {"trend": PLAIN_FAN if self.fan.seen else 0.0}
        findings = {
            name: self._finding(name, score, least=least.get(name, 0.0))
            for name, score in scores.items()
        }
        if self.curvature.leans:
            # A bend makes some trend of its own; by itself a trend is a fault of its own.
            findings["trend"] = Finding(self.trend, "not judged", _BENT)
        plain = visible(self._table) >= INVISIBLE
        return Verdict(findings, offset(self._table) if plain else "")

    @cached_property
    def coarse(self) -> bool:
        """Return whether nearly all rows lie in a few cells, so that no shape could be seen."""
        if visible(self._table) < VISIBLE:
            return False  # noise looks like a few full cells, too
        density = self._table.density
        sums = [density.sum(axis=axis) for axis in (0, 1)]
        # One over the sum of squared shares: how many cells as full as each other there would be.
        return any(
            float(counts.sum()) ** 2 < FEWEST_CELLS * float((counts**2).sum()) for counts in sums
        )

    def _finding(self, name: str, score: Score, *, least: float) -> Finding:
        if visible(self._table) < INVISIBLE:
            return Finding(score, "too noisy", _NOISY[name])
        if score.seen and abs(score.value) >= least:
            slight = f" (slightly, {score.value:+.2f})" if abs(score.value) < SLIGHT else ""
            return Finding(score, "seen", _SEEN[name, score > 0] + slight)
        if score.leans and not score.seen:
            return Finding(score, "cut", self._cut(name, score))
        if self.coarse:
            return Finding(score, "too coarse", _COARSE[name])
        low, high = score.interval(0.95)
        if max(high - score.value, score.value - low) > TELLING:
            return Finding(score, "too noisy", _NOISY[name])
        return Finding(score, "not seen", _UNSEEN[name])

    def _cut(self, name: str, score: Score) -> str:
        table = self._table
        lean = f"{_CUT[name, score > 0]} ({score.value:+.2f})"
        if table.outside <= 2 * table.outside_noise:
            return f"{lean}, but so few rows far out that noise hides them can make up for it"
        share = table.outside / max(table.rows, 1)
        return (
            f"{lean}, but the bounds cut {share:.1%} of the rows, and a lean of this size can come "
            "from the cut"
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "verdict": self.verdict.as_dict(level),
            "mean_by_prediction": self.mean_by_prediction.as_dict(level),
            "spread_by_prediction": self.spread_by_prediction.as_dict(level),
            "scale_by_prediction": self.scale_by_prediction.as_dict(level),
            "quantiles": self.quantiles.as_dict(level),
            "p_values": self.p_values if self._table.unbiased else None,
        }
