"""The pictures of a residual plot, and its page."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from heldout.drawing.chart import (
    INK,
    MUTED,
    PALETTE,
    SHADE,
    Chart,
    Field,
    Figure,
    Layer,
    Numbers,
    records,
    side_by_side,
)
from heldout.drawing.page import checked_labels, rendered
from heldout.drawing.words import numbers, spread
from heldout.errors import ArgumentError
from heldout.intervals.groups import Gap
from heldout.intervals.measure import NO_INFORMATION
from heldout.kernel.accountant import total
from heldout.questions.regression.logistic import BinnedResiduals
from heldout.questions.regression.readings import ByPrediction, QuantilePlot
from heldout.questions.regression.table import ResidualTable
from heldout.questions.regression.verdict import Readings

if TYPE_CHECKING:
    from heldout.questions.regression.measures import RegressionMetrics
    from heldout.questions.regression.release import MetricsByGroup, PlotsByGroup, ResidualPlot
    from heldout.questions.regression.table import Bounds

SIZE: Final[dict[str, Any]] = {"width": 380, "height": 270}
MOST_POINTS: Final = 1_000
MOST_DEVIATIONS: Final = 3.5
PREDICTED, RESIDUAL = "Predicted value", "Residual (observed less predicted)"
KINDS: Final = {
    "density": "Residual plot: density",
    "points": "Residual plot: sampled points",
    "mean": "Mean residual by predicted value",
    "spread": "Spread of the residuals by predicted value",
    "scale": "Scale-location",
    "qq": "Normal QQ plot",
}


class Plotted(Protocol):
    """Holds what a picture needs of a released plot."""

    @property
    def table(self) -> ResidualTable: ...

    @property
    def readings(self) -> Readings: ...


def chart(plot: Plotted, kind: str, *, level: float = 0.95) -> Chart:
    """One of KINDS."""
    if kind not in KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    table, readings = plot.table, plot.readings
    residuals = Numbers(RESIDUAL, *table.bounds.residual)
    if kind == "density":
        layers, y = [cells(table), zero(table.bounds.predicted)], residuals
    elif kind == "points":
        x, y_at = (point.round(6) for point in table.points(MOST_POINTS))
        dots = Layer("point", records(x=x, y=y_at), size=9, opacity=0.5)
        layers, y = [zero(table.bounds.predicted), dots], residuals
    elif kind == "mean":
        layers, y = _steps(readings.mean_by_prediction, level, RESIDUAL)
        layers = [zero(table.bounds.predicted), *layers]
    elif kind == "spread":
        layers, y = _steps(readings.spread_by_prediction, level, "Standard deviation")
    elif kind == "scale":
        layers, y = _steps(readings.scale_by_prediction, level, "Mean √|standardised residual|")
    else:
        return _quantiles(readings.quantiles, level, residuals)
    predicted = Numbers(PREDICTED, *table.bounds.predicted)
    return Chart(layers, x=predicted, y=y, title=KINDS[kind], **SIZE)


def figure(plot: Plotted, kind: str, *, level: float = 0.95) -> Figure:
    """A picture as SVG with what is written under it."""
    drawn = chart(plot, kind, level=level)
    says, caption = _words(plot, kind, level)
    return Figure(drawn.svg(says=says), caption)


def figures(plot: Plotted, *, level: float = 0.95) -> list[Figure]:
    """All of them, in the order in which they are read."""
    return [figure(plot, kind, level=level) for kind in KINDS]


def binned_chart(reading: BinnedResiduals, *, level: float = 0.95) -> Chart:
    """Binned residuals of a logistic regression."""
    low, high = reading.interval(level)
    most = float(reading.share.max(initial=0.0)) or 1.0
    bins = records(
        x=reading.predicted,
        y=reading.residual,
        low=low,
        high=high,
        size=25 + 135 * np.maximum(reading.share, 0.0) / most,
        colour=[PALETTE[1] if misfit else PALETTE[0] for misfit in reading.misfits],
    )
    colour, style = Field("colour"), {"strokeWidth": 3}
    layers = [
        zero((0.0, 1.0)),
        Layer("rule", bins, y="low", y2="high", color=colour, opacity=0.45, style=style),
        Layer("point", bins, color=colour, size=Field("size")),
    ]
    y = around(low, high, "Observed share less prediction")
    return Chart(layers, x=Numbers("Mean prediction"), y=y, title="Binned residuals", **SIZE)


def binned_figure(reading: BinnedResiduals, *, level: float = 0.95) -> Figure:
    residuals = "; ".join(
        f"{residual:+.3f} at {predicted:.3f}"
        for predicted, residual in zip(
            reading.predicted.tolist(), reading.residual.tolist(), strict=True
        )
    )
    return Figure(
        binned_chart(reading, level=level).svg(
            says=f"Observed share less mean prediction by bin: {residuals}."
        ),
        "Observed share of positives less mean prediction, in bins of the prediction; bars are "
        f"the {level * 100:g}% interval of each bin. Bins whose interval leaves 0 out are marked.",
    )


def _words(plot: Plotted, kind: str, level: float) -> tuple[str, str]:
    """Return what a screen reader says, and the caption."""
    table, percent = plot.table, f"{level * 100:g}%"
    verdict = str(plot.readings.verdict)
    if kind == "density":
        i, j = np.unravel_index(int(np.argmax(table.density)), table.density.shape)
        says = (
            f"Densest where predictions lie between {table.predicted_edges[j]:.4g} and "
            f"{table.predicted_edges[j + 1]:.4g} and residuals between "
            f"{table.residual_edges[i]:.4g} and {table.residual_edges[i + 1]:.4g}. {verdict}"
        )
        return says, (
            "Where rows lie, after noise: the stronger the colour, the more rows a cell holds for "
            "its area. A good fit is an even ribbon around the dashed line."
        )
    if kind == "points":
        return f"Points scattered within the cells of the density. {verdict}", (
            "Points scattered over the cells of the density, as many as it holds "
            f"(at most {MOST_POINTS:,}). No point is a row."
        )
    readings = plot.readings
    if kind == "qq":
        points = zip(readings.quantiles.theoretical, readings.quantiles.residual, strict=True)
        says = "Residual by normal quantile: " + "; ".join(f"{y:.4g} at {x:.2f}" for x, y in points)
        return says, (
            "Residuals against the normal quantile of the share of rows below them; bars: where it "
            f"lies ({percent}, sampling error and noise). Normal residuals lie on the dashed "
            "line through the quartiles."
        )
    reading: ByPrediction = getattr(readings, f"{kind}_by_prediction")
    says = f"{reading.name} by predicted value: " + "; ".join(
        f"{value:.3g} around {place:.4g}"
        for place, value in zip(reading.predicted.tolist(), reading.values.tolist(), strict=True)
    )
    asked = (
        "On the dashed line predictions are right on average."
        if kind == "mean"
        else "A level row of lines means that the spread is the same everywhere."
    )
    return says, (
        f"Each line is a band of predictions. Inner box: where the rows’ own number lies "
        f"({percent}, privacy noise alone). Outer box: where the population’s lies ({percent}, "
        f"sampling error and noise). {asked}"
    )


def _quantiles(reading: QuantilePlot, level: float, y: Numbers) -> Chart:
    """Bars where the normal quantile of each edge lies, and the line through the quartiles."""
    shown = np.abs(reading.theoretical) <= MOST_DEVIATIONS
    low, high = (np.clip(ends[shown], -MOST_DEVIATIONS, MOST_DEVIATIONS)
                 for ends in reading.interval(level))  # fmt: skip
    points = records(x=reading.theoretical[shown], y=reading.residual[shown], low=low, high=high)
    centre, spread = reading.line
    ends = [{"x": x, "y": centre + spread * x} for x in (-MOST_DEVIATIONS, MOST_DEVIATIONS)]
    bars = Layer("rule", points, "low", "y", "high", color=PALETTE[5], style={"strokeWidth": 3})
    dashed = Layer(
        "line", _clipped(ends, y), color=MUTED, style={"strokeDash": [4, 3], "strokeWidth": 1.4}
    )
    x = Numbers("Normal quantile", -MOST_DEVIATIONS, MOST_DEVIATIONS)
    layers = [dashed, bars, Layer("point", points, size=24)]
    return Chart(layers, x=x, y=y, title=KINDS["qq"], **SIZE)


def _clipped(ends: list[dict[str, float]], y: Numbers) -> list[dict[str, float]]:
    """The part of a rising line that lies within the axis."""
    (first, second), slope = ends, (ends[1]["y"] - ends[0]["y"]) / (ends[1]["x"] - ends[0]["x"])
    if slope <= 0:
        return []
    points = []
    for point in (first, second):
        height = min(max(point["y"], y.low), y.high)
        points.append({"x": first["x"] + (height - first["y"]) / slope, "y": height})
    return points


def cells(table: ResidualTable) -> Layer:
    """Rows by cell; a darker cell holds more rows for its area."""
    height, width = np.diff(table.residual_edges), np.diff(table.predicted_edges)
    density = table.density / (height[:, None] * width[None, :])
    most = float(density.max(initial=0.0)) or 1.0
    i, j = np.indices(density.shape).reshape(2, -1)
    cells = records(
        left=table.predicted_edges[j],
        right=table.predicted_edges[j + 1],
        low=table.residual_edges[i],
        high=table.residual_edges[i + 1],
        share=np.maximum(density.ravel() / most, 0.0),
    )
    return Layer("rect", cells, "left", "low", "right", "high", opacity=Field("share"))


def _steps(reading: ByPrediction, level: float, title: str) -> tuple[list[Layer], Numbers]:
    """A level line for each band of predictions, with its two intervals as boxes."""
    low, high = reading.interval(level)
    noise_low, noise_high = reading.noise_interval(level)
    rows = records(
        left=reading.edges[:-1],
        right=reading.edges[1:],
        value=reading.values,
        low=low,
        high=high,
        noise_low=noise_low,
        noise_high=noise_high,
    )
    sky, wide = PALETTE[5], {"strokeWidth": 2.5}
    layers = [
        Layer("rect", rows, "left", "low", "right", "high", color=sky, opacity=0.28),
        Layer("rect", rows, "left", "noise_low", "right", "noise_high", color=sky, opacity=0.55),
        Layer("rule", rows, x="left", x2="right", y="value", style=wide),
    ]
    return layers, around(low, high, title)


def around(low: Any, high: Any, title: str) -> Numbers:
    """An axis that holds 0 and all intervals, with a little room where they end."""
    top, bottom = max(float(np.max(high)), 0.0), min(float(np.min(low)), 0.0)
    room = 0.05 * (top - bottom) or 1.0
    return Numbers(title, bottom - room if bottom < 0 else 0.0, top + room)


def zero(ends: tuple[float, float]) -> Layer:
    """The dashed line on which a prediction is right."""
    rows = [{"x": float(end), "y": 0.0} for end in ends]
    return Layer("line", rows, color=MUTED, style={"strokeDash": [4, 3], "strokeWidth": 1.4})


SMALL: Final[dict[str, Any]] = {"width": 190, "height": 135}
ACROSS: Final = 3


def densities(plots: "PlotsByGroup") -> Figure:
    """A small plot for each group; one without information is an empty grey panel."""
    panels = []
    for name, plot in plots.groups.items():
        table, drowned = plot.table, name in plots.not_informative
        (left, right), (low, high) = table.bounds
        layers = [cells(table), zero(table.bounds.predicted)]
        if drowned:
            box = {"left": left, "right": right, "low": low, "high": high}
            middle = {"x": (left + right) / 2, "y": (low + high) / 2, "says": NO_INFORMATION}
            layers = [
                Layer("rect", [box], "left", "low", "right", "high", color=SHADE),
                Layer("text", [middle], color=INK, text="says"),
            ]
        x, y = Numbers(PREDICTED, left, right, 3), Numbers("Residual", low, high, 4)
        panels.append(Chart(layers, x=x, y=y, title=name, **SMALL))
    says = "; ".join(f"{name}: {verdict}" for name, verdict in plots.verdicts.items())
    return Figure(
        side_by_side(panels, across=ACROSS, title="Residual plots by group", says=says),
        "Where the rows of each group lie, after noise, on the same axes: the stronger the colour, "
        "the more of the group’s own rows a cell holds. A good fit is an even ribbon around the "
        "dashed line." + (" Grey: no information at this price." if plots.not_informative else ""),
    )


def means(plots: "PlotsByGroup", level: float) -> list[Figure]:
    """Mean residuals by predicted value, a colour for each group that can be read."""
    shown = [name for name in plots.groups if name not in plots.not_informative][: len(PALETTE)]
    colours = dict(zip(shown, PALETTE, strict=False))
    layers, ends = [], []
    for name in shown:
        reading = plots.groups[name].mean_by_prediction
        low, high = reading.interval(level)
        ends.append((low, high))
        # Bands of groups may be the same: their bars stand beside each other.
        place = (shown.index(name) + 1) / (len(shown) + 1)
        bands = records(
            left=reading.edges[:-1],
            right=reading.edges[1:],
            at=reading.edges[:-1] + place * np.diff(reading.edges),
            value=reading.values,
            low=low,
            high=high,
            group=np.full(low.size, name),
        )
        colour = Field("group")
        layers += [
            Layer("rule", bands, "at", "low", y2="high", color=colour, style={"strokeWidth": 1.5}),
            Layer(
                "rule", bands, "left", "value", "right", color=colour, style={"strokeWidth": 2.5}
            ),
        ]
    if not shown:
        return []
    predicted = plots.groups[shown[0]].bounds.predicted
    lows, highs = (np.concatenate(own) for own in zip(*ends, strict=True))
    chart = Chart(
        [zero(predicted), *layers],
        x=Numbers(PREDICTED, *predicted),
        y=around(lows, highs, "Mean residual"),
        title="Mean residual by predicted value",
        colours=colours,
        **SIZE,
    )
    says = "; ".join(f"{name} {plots.groups[name].mean_residual.value:+.4g}" for name in shown)
    return [
        Figure(
            chart.svg(says=f"Mean residual by group: {says}."),
            "Each level line is a band of predictions of one group; the bar on it is where the "
            f"population’s mean lies ({level * 100:g}%, sampling error and noise). On the "
            "dashed line predictions are right on average.",
        )
    ]


_ANSWERS: Final = {
    "seen": "seen",
    "not seen": "no sign at this epsilon",
    "too noisy": "too noisy to tell",
    "cut": "may come from the cut",
    "too coarse": "too coarse to tell",
    "no verdict": "no verdict",
    "not judged": "not judged beside a bend",
}


def page(
    plot: "ResidualPlot",
    *,
    level: float = 0.95,
    metrics: "RegressionMetrics | None" = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> str:
    """The whole document, with the error measures if they were released as well.

    `labels` are what people call the data, its columns and the unit.
    """
    return rendered(
        "residuals.html",
        title=title or "Does the model fit?",
        plot=plot,
        level=level,
        public_rows=plot.rows if plot.table.rows_scale is None else None,
        chances=plot.p_values if plot.table.unbiased else {},
        answers=_ANSWERS,
        outside=" to ".join(f"{end:.1%}" for end in plot.outside.interval(level)),
        errors=[] if metrics is None else metrics.measures.items(),
        bands=list(band_rows(plot, level)),
        drawn=plot.figures(level),
        **_facts(plot, plot.bounds, metrics, labels or {}),
    )


def page_by_group(
    plots: "PlotsByGroup",
    *,
    level: float = 0.95,
    metrics: "MetricsByGroup | None" = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> str:
    """The same for groups, side by side."""

    def tested(gaps: Iterable[Gap]) -> list[tuple[str, ...]]:
        return [(gap.name, *spread(gap, level), f"{gap.p_value:.3g}") for gap in gaps]

    facts = _facts(plots, next(iter(plots.groups.values())).bounds, metrics, labels or {})
    called = facts.pop("called")
    return rendered(
        "residuals_by_group.html",
        title=title or "For whom does the model fit?",
        plots=plots,
        level=level,
        by=[called.get(column, column) for column in plots.by],
        rows=plots.rows,
        gaps=lambda release: tested(e for e in release.measures.values() if isinstance(e, Gap)),
        rest=lambda release: tested(
            e for m in release.compared for e in release.against_rest(m).values()
        ),
        **facts,
    )


def _facts(plot: Any, bounds: "Bounds", metrics: Any, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return what both pages say of the data, the protection and the price."""
    parameters = plot.as_dict()["parameters"]
    columns = [parameters[name] for name in ("observed", "predicted") if name in parameters]
    protection = plot.protection
    names = (plot.data, *columns, *getattr(plot, "by", ()), protection.unit_name)
    called = checked_labels(names, labels)
    if protection.unit_name is not None:
        unit = called.get(protection.unit_name, protection.unit_name)
        protection = replace(protection, unit_name=unit)
    releases = [plot] if metrics is None else [plot, metrics]
    return {
        "data": called.get(plot.data, plot.data),
        "columns": [called.get(column, column) for column in columns],
        "protection": protection,
        "shown": [" to ".join(numbers(ends)(end) for end in ends) for ends in bounds],
        "price": total(release.loss for release in releases),
        "releases": releases,
        "called": called,
    }


def band_rows(plot: "ResidualPlot", level: float) -> Iterator[tuple[str, ...]]:
    """Band of predictions, rows, mean and its interval, standard deviation and its interval."""
    means, spreads = plot.mean_by_prediction, plot.spread_by_prediction
    edge, number = numbers(means.edges), numbers(plot.residual_edges)
    for left, right, rows, mean, low, high, deviation, least, most in zip(
        means.edges[:-1],
        means.edges[1:],
        means.rows,
        means.values,
        *means.interval(level),
        spreads.values,
        *spreads.interval(level),
        strict=True,
    ):
        yield (
            f"{edge(left)} to {edge(right)}",
            f"{rows:,.0f}",
            number(mean),
            f"{number(low)} to {number(high)}",
            number(deviation),
            f"{number(least)} to {number(most)}",
        )
