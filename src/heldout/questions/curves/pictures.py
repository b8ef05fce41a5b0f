"""Pictures of the curves."""

from collections.abc import Iterable

from heldout.drawing.chart import MUTED, PALETTE, Chart, Field, Figure, Layer, Numbers, records
from heldout.intervals.measure import MOST_NOISE
from heldout.precision_recall.curve import space
from heldout.questions.curves.bands import Band
from heldout.questions.curves.readings import CalibrationCurve, PrecisionRecallCurve, RocCurve

__all__ = ["chart", "figures", "svg"]

TITLES = {
    "roc": "ROC curve",
    "precision-recall": "Precision-recall curve",
    "calibration": "Reliability diagram",
}
_BAND = (
    " The shaded band contains the whole curve of the population with {percent} confidence, "
    "allowing for sampling error and privacy noise."
)
_FITTED = (
    " It assumes that the share of positives changes smoothly with the score, except at scores "
    "that many rows share. A curve with a sharp corner elsewhere may leave it."
)
_EDGES = (
    " It uses only the counts at the edges of the released table, and assumes only that the curve "
    "rises between them."
)
_CAPTIONS = {
    "roc": "True against false positive rate as the threshold falls; the dashed line is chance.",
    "precision-recall": "Precision against recall. No model can reach the grey region at this "
    "prevalence; the dashed line is chance.",
    "calibration": "Observed share of positives against mean score in bins of the scores; bars are "
    "the {percent} interval of each bin. On the dashed line scores are right "
    "as probabilities.",
}
Drawable = RocCurve | PrecisionRecallCurve | CalibrationCurve


_DIAGONAL = Layer(
    "line",
    [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}],
    color=MUTED,
    style={"strokeDash": [4, 3], "strokeWidth": 1.2},
)


def chart(reading: Drawable, *, level: float) -> Chart:
    """The chart of a reading, with its simultaneous band."""
    band = reading.band(level)
    if isinstance(reading, RocCurve):
        x, y = "False positive rate", "True positive rate"
        line = Layer("line", records(x=reading.fpr, y=reading.tpr))
        layers = [_DIAGONAL, _area(band, "linear" if reading.is_fitted else "step-after"), line]
    elif isinstance(reading, PrecisionRecallCurve):
        x, y = "Recall", "Precision"
        # The curve begins by convention at a precision of 1, which says nothing of the model.
        heights = reading.precision[1:2].tolist() + reading.precision[1:].tolist()
        line = Layer("line", records(x=reading.recall, y=heights))
        layers = [*space(min(max(reading.prevalence, 0.0), 1.0)), _area(band, "linear"), line]
    else:
        x, y = "Mean score", "Observed share of positives"
        most = float(reading.share.max(initial=0.0)) or 1.0
        bins = records(x=reading.predicted, y=reading.observed, low=band.low, high=band.high)
        for point, share in zip(bins, reading.share.tolist(), strict=True):
            point["size"] = 10 + 190 * max(share, 0.0) / most
        bins = [point for point, fits in zip(bins, _readable(reading, level), strict=True) if fits]
        bars = Layer("rule", bins, y="low", y2="high", color=PALETTE[5], style={"strokeWidth": 3})
        layers = [_DIAGONAL, bars, Layer("point", bins, size=Field("size"))]
    return Chart(layers, x=Numbers(x), y=Numbers(y), title=TITLES[reading.kind])


def svg(reading: Drawable, *, level: float) -> str:
    """The picture as SVG."""
    return chart(reading, level=level).svg(says=_description(reading))


def figures(readings: Iterable[Drawable], *, level: float) -> list[Figure]:
    """Pictures with what is written under them."""
    return [Figure(svg(reading, level=level), _caption(reading, level)) for reading in readings]


def _caption(reading: Drawable, level: float) -> str:
    """Say what is shown, and what its band assumes."""
    caption = _CAPTIONS[reading.kind]
    if not isinstance(reading, CalibrationCurve):
        caption += _BAND + (_FITTED if reading.is_fitted else _EDGES)
    else:
        left_out = sum(not fits for fits in _readable(reading, level))
        if left_out:
            one = left_out == 1
            bins = "One bin that noise fills is" if one else f"{left_out} bins that noise fills are"
            caption += f" {bins} left out."
    return caption.format(percent=f"{level * 100:g}%")


def _readable(reading: CalibrationCurve, level: float) -> list[bool]:
    """Return of each bin whether anything can be read: its bar fills half the height at most."""
    band = reading.band(level)
    return [bool(high - low <= MOST_NOISE) for low, high in zip(band.low, band.high, strict=True)]


def _description(reading: Drawable) -> str:
    """Say what a screen reader says."""
    if isinstance(reading, RocCurve):
        return "True positive rate against false positive rate, with the band of the population."
    if isinstance(reading, PrecisionRecallCurve):
        return (
            f"Precision against recall at prevalence {reading.prevalence:.3g}, with the band of "
            "the population; the shaded region below is out of reach for any model."
        )
    bins = zip(reading.predicted.tolist(), reading.observed.tolist(), strict=True)
    return "Observed share of positives by mean score: " + "; ".join(
        f"{observed:.3f} at {predicted:.3f}" for predicted, observed in bins
    )


def _area(band: Band, interpolate: str) -> Layer:
    rows = records(x=band.at, low=band.low, high=band.high)
    style = {"interpolate": interpolate}
    return Layer("area", rows, y="low", y2="high", opacity=0.18, style=style)
