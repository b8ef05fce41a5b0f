"""Pictures of the curves, as Altair charts in the house style."""

from collections.abc import Iterable
from typing import Any

from heldout.drawing.figure import MUTED, PALETTE, Figure, rows, to_svg
from heldout.metrics.curves.bands import Band
from heldout.metrics.curves.readings import CalibrationCurve, PrecisionRecallCurve, RocCurve

__all__ = ["chart", "description", "figures", "svg"]

_SIDE = {"width": 340, "height": 300}
TITLES = {
    "roc": "ROC curve",
    "precision-recall": "Precision-recall curve",
    "calibration": "Reliability diagram",
}
_BAND = (
    " The shaded band holds the whole curve of the population with {percent} confidence, privacy "
    "noise and chance of the sample both; it assumes nothing of the curve but that it rises."
)
_CAPTIONS = {
    "roc": "True against false positive rate as the threshold falls; the dashed line is chance."
    + _BAND,
    "precision-recall": "Precision against recall. No model can reach the grey region at this "
    "prevalence; the dashed line is chance." + _BAND,
    "calibration": "Observed share of positives against mean score in bins of the scores; bars are "
    "the {percent} interval of each bin. On the dashed line a score is the probability that it "
    "says.",
}
Drawable = RocCurve | PrecisionRecallCurve | CalibrationCurve


def chart(reading: Drawable, *, level: float) -> Any:
    """The chart of a reading, with its simultaneous band."""
    import altair as alt

    if isinstance(reading, RocCurve):
        layers = [
            _diagonal("x", "y", "False positive rate", "True positive rate"),
            _area(reading.band(level), "False positive rate", "True positive rate", "step-after"),
            _line(reading.fpr, reading.tpr, "False positive rate", "True positive rate"),
        ]
    elif isinstance(reading, PrecisionRecallCurve):
        from heldout.precision_recall.picture import space

        layers = [
            space(min(max(reading.prevalence, 0.0), 1.0)),
            _area(reading.band(level), "Recall", "Precision", "linear"),
            _line(reading.recall, reading.precision, "Recall", "Precision"),
        ]
    else:
        layers = _calibration(reading, level)
    return alt.layer(*layers).properties(title=TITLES[reading.kind], **_SIDE)


def svg(reading: Drawable, *, level: float) -> str:
    """The picture as SVG."""
    return to_svg(
        chart(reading, level=level), title=TITLES[reading.kind], description=description(reading)
    )


def figures(readings: Iterable[Drawable], *, level: float) -> list[Figure]:
    """Pictures with what is written under them."""
    percent = f"{level * 100:g}%"
    return [
        Figure(svg(each, level=level), _CAPTIONS[each.kind].format(percent=percent))
        for each in readings
    ]


def description(reading: Drawable) -> str:
    """What a screen reader says."""
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


def _axes(x: str, x_title: str, y: str, y_title: str) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=[0, 1], nice=False)
    return {
        "x": alt.X(f"{x}:Q", title=x_title, scale=scale),
        "y": alt.Y(f"{y}:Q", title=y_title, scale=scale),
    }


def _diagonal(x: str, y: str, x_title: str, y_title: str) -> Any:
    import altair as alt

    ends = rows([{x: 0.0, y: 0.0}, {x: 1.0, y: 1.0}])
    line = alt.Chart(ends).mark_line(color=MUTED, strokeDash=[4, 3], strokeWidth=1.2)
    return line.encode(**_axes(x, x_title, y, y_title))


def _area(band: Band, x_title: str, y_title: str, interpolate: Any) -> Any:
    import altair as alt

    records = [
        {"x": x, "low": low, "high": high}
        for x, low, high in zip(
            band.at.tolist(), band.low.tolist(), band.high.tolist(), strict=True
        )
    ]
    area = alt.Chart(rows(records)).mark_area(
        color=PALETTE[0], opacity=0.18, interpolate=interpolate
    )
    return area.encode(**_axes("x", x_title, "low", y_title), y2="high:Q")


def _line(x: Any, y: Any, x_title: str, y_title: str) -> Any:
    import altair as alt

    records = [
        {"k": k, "x": a, "y": b}
        for k, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True))
    ]
    line = alt.Chart(rows(records)).mark_line(color=PALETTE[0])
    return line.encode(**_axes("x", x_title, "y", y_title), order="k:Q")


def _calibration(reading: CalibrationCurve, level: float) -> list[Any]:
    import altair as alt

    x_title, y_title = "Mean score", "Observed share of positives"
    band = reading.band(level)
    records = [
        {"x": x, "y": y, "low": low, "high": high, "share": share}
        for x, y, low, high, share in zip(
            reading.predicted.tolist(),
            reading.observed.tolist(),
            band.low.tolist(),
            band.high.tolist(),
            reading.share.tolist(),
            strict=True,
        )
    ]
    base = alt.Chart(rows(records))
    bars = base.mark_rule(color=PALETTE[5], strokeWidth=3).encode(
        **_axes("x", x_title, "low", y_title), y2="high:Q"
    )
    dots = base.mark_point(color=PALETTE[0], opacity=1).encode(
        **_axes("x", x_title, "y", y_title), size=alt.Size("share:Q", legend=None)
    )
    return [_diagonal("x", "y", x_title, y_title), bars, dots]
