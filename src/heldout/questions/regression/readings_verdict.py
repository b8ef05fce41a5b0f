"""What a residual plot says, in sentences: it curves, it fans out, or it is too noisy to tell."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from heldout.questions.regression.readings import (
    ByPrediction,
    mean_by_prediction,
    scale_by_prediction,
    spread_by_prediction,
)
from heldout.questions.regression.readings_normal import QuantilePlot, quantile_plot
from heldout.questions.regression.readings_offset import offset
from heldout.questions.regression.readings_scores import (
    INVISIBLE,
    PLAIN,
    Score,
    curvature,
    curve,
    fan,
    trend,
    visible,
)
from heldout.questions.regression.table import ResidualTable

__all__ = ["TELLING", "Finding", "Readings", "Verdict"]

TELLING: Final = 0.25
"""A score whose interval is wider than this on either side could hide a fault that anybody sees."""
SLIGHT: Final = 0.1
"""Many rows show faults that matter little: below this they are called slight."""
FEWEST_CELLS: Final = 2.5
"""With fewer cells that hold rows, by predicted value or by residual, no shape can be seen."""
VISIBLE: Final = 5.0
"""With fewer rows than so many deviations of all cells' noise, a few full cells may be noise."""

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
        return tuple(name for name, each in self.findings.items() if each.answer == "seen")

    @property
    def sentences(self) -> tuple[str, ...]:
        found = sorted(self.findings.values(), key=lambda each: _ORDER.index(each.answer))
        return tuple(each.sentence for each in found)

    def __str__(self) -> str:
        if not self.offset:
            return self._of_scores
        rest = self._of_scores
        return f"{self.offset[:1].upper()}{self.offset[1:]}; {rest[:1].lower()}{rest[1:]}"

    @property
    def _of_scores(self) -> str:
        answers = {each.answer for each in self.findings.values()} - {"not judged"}
        if answers == {"no verdict"}:
            return _NO_VERDICT[:1].upper() + _NO_VERDICT[1:] + "."
        if answers == {"too noisy"}:
            return "Too noisy to tell: no score can be told from chance at this epsilon."
        if answers == {"too coarse"}:
            return "Too coarse to tell: nearly all rows lie in a few cells. Declare bounds."
        if answers == {"not seen"}:
            return "No sign of curvature, a fan or a trend at this epsilon."
        text = "; ".join(each for each in self.sentences if each != _BENT)
        return text[:1].upper() + text[1:] + "."

    def __repr__(self) -> str:
        return str(self)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "sentence": str(self),
            "faults": list(self.faults),
            "offset": self.offset or None,
            "scores": {name: each.as_dict(level) for name, each in self.findings.items()},
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
                name: Finding(each, "no verdict", _NO_VERDICT) for name, each in scores.items()
            }
            return Verdict(silent)
        # Skew residuals that fan out also drift a little: beside a fan a trend must be plain.
        least = {"trend": PLAIN if self.fan.seen else 0.0}
        found = {
            name: self._finding(name, score, least=least.get(name, 0.0))
            for name, score in scores.items()
        }
        if self.curvature.leans:
            # A bend makes some trend of its own; by itself a trend is a fault of its own.
            found["trend"] = Finding(self.trend, "not judged", _BENT)
        plain = visible(self._table) >= INVISIBLE
        return Verdict(found, offset(self._table) if plain else "")

    @cached_property
    def coarse(self) -> bool:
        """Whether nearly all rows lie in a few cells, so that no shape could be seen."""
        if visible(self._table) < VISIBLE:
            return False  # noise looks like a few full cells, too
        density = self._table.density
        sums = [density.sum(axis=axis) for axis in (0, 1)]
        # One over the sum of squared shares: how many cells as full as each other there would be.
        return any(float(each.sum()) ** 2 < FEWEST_CELLS * float((each**2).sum()) for each in sums)

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
        share = max(self._table.outside, 0.0) / max(self._table.rows, 1)
        return (
            f"{_CUT[name, score > 0]} ({score.value:+.2f}), but the bounds cut {share:.1%} of the "
            "rows, and a lean of this size can come from the cut"
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
