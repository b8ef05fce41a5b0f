"""The curves of a report, each with what is written under it."""

from heldout.metrics.curves.release import CurvesRelease
from heldout.release import Release
from heldout.report.sections import Figure

__all__ = ["curve_figures"]

_BAND = (
    "The shaded band holds the whole curve of the population with {level:g}% confidence, privacy "
    "noise and chance of the sample both; it assumes nothing of the curve but that it rises."
)


def curve_figures(release: Release, *, level: float = 0.95) -> list[Figure]:
    """ROC, precision-recall, and the reliability diagram if the scores are probabilities."""
    assert isinstance(release, CurvesRelease)
    band = _BAND.format(level=level * 100)
    found = [
        Figure(
            release.svg("roc", level=level),
            "True against false positive rate as the threshold falls; the dashed line is chance. "
            + band,
        ),
        Figure(
            release.svg("precision-recall", level=level),
            "Precision against recall. No model can reach the shaded region below at this "
            "prevalence; the dashed line is chance. " + band,
        ),
    ]
    if release.judges_probabilities:
        caption = (
            "Observed share of positives against mean score in bins of the scores; bars are the "
            f"{level * 100:g}% interval of each bin. On the dashed line a score is the probability "
            "that it says."
        )
        found.append(Figure(release.svg("calibration", level=level), caption))
    return found
