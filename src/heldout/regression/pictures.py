"""The pictures of a released residual plot, as Altair charts in the house style."""

from typing import Any, Final, Protocol

import numpy as np

from heldout.drawing.figure import MUTED, PALETTE, Figure, rows, to_svg
from heldout.errors import ArgumentError
from heldout.regression.readings import ByPrediction
from heldout.regression.readings_logistic import BinnedResiduals
from heldout.regression.readings_verdict import Readings
from heldout.regression.table import ResidualTable

__all__ = [
    "KINDS",
    "Plotted",
    "binned_chart",
    "binned_figure",
    "chart",
    "figure",
    "figures",
    "heat_map",
    "mean_chart",
    "scatter",
    "spread_chart",
]

SIZE: Final = {"width": 380, "height": 270}
MOST_POINTS: Final = 1_000
PALE: Final = "#eaf3fa"
PREDICTED, RESIDUAL = "Predicted value", "Residual (observed less predicted)"
KINDS: Final = {
    "density": "Residual plot: density",
    "points": "Residual plot: sampled points",
    "mean": "Mean residual by predicted value",
    "spread": "Spread of the residuals by predicted value",
}


class Plotted(Protocol):
    """What a picture needs of a released plot."""

    @property
    def table(self) -> ResidualTable: ...

    @property
    def readings(self) -> Readings: ...


def heat_map(table: ResidualTable, *, title: str | None = None) -> Any:
    """Rows by cell as colour; a darker cell holds more rows for its area."""
    import altair as alt

    height, width = np.diff(table.residual_edges), np.diff(table.predicted_edges)
    density = table.density / (height[:, None] * width[None, :])
    most = float(density.max(initial=0.0))
    records = [
        {
            "left": float(table.predicted_edges[j]),
            "right": float(table.predicted_edges[j + 1]),
            "low": float(table.residual_edges[i]),
            "high": float(table.residual_edges[i + 1]),
            "share": float(density[i, j] / most) if most > 0 else 0.0,
        }
        for i, j in np.ndindex(*density.shape)
    ]
    cells = (
        alt.Chart(rows(records))
        .mark_rect(strokeWidth=0)
        .encode(
            x=_x(table, "left"),
            x2="right:Q",
            y=_y(table, "low"),
            y2="high:Q",
            color=alt.Color(
                "share:Q",
                scale=alt.Scale(domain=[0, 1], range=[PALE, PALETTE[0], "#08304f"]),
                legend=alt.Legend(title="density", format=".0%", gradientLength=90),
            ),
        )
    )
    return alt.layer(cells, _zero(table)).properties(title=title or KINDS["density"], **SIZE)


def scatter(table: ResidualTable, *, most: int = MOST_POINTS, title: str | None = None) -> Any:
    """Points placed within the cells: what the plot of the rows may have looked like."""
    import altair as alt

    predicted, residuals = table.points(most)
    records = [
        {"x": round(x, 6), "y": round(y, 6)}
        for x, y in zip(predicted.tolist(), residuals.tolist(), strict=True)
    ]
    dots = (
        alt.Chart(rows(records))
        .mark_circle(size=9, opacity=0.5, color=PALETTE[0])
        .encode(x=_x(table, "x"), y=_y(table, "y"))
    )
    return alt.layer(_zero(table), dots).properties(title=title or KINDS["points"], **SIZE)


def mean_chart(plot: Plotted, *, level: float = 0.95) -> Any:
    """The mean residual of each band of predictions, on the plot's own axes."""
    chart = _steps(plot.readings.mean_by_prediction, plot.table, level, RESIDUAL, signed=True)
    return chart.properties(title=KINDS["mean"], **SIZE)


def spread_chart(plot: Plotted, *, level: float = 0.95) -> Any:
    """The standard deviation of the residuals in each band of predictions."""
    reading = plot.readings.spread_by_prediction
    chart = _steps(reading, plot.table, level, "Standard deviation", signed=False)
    return chart.properties(title=KINDS["spread"], **SIZE)


def binned_chart(reading: BinnedResiduals, *, level: float = 0.95) -> Any:
    """Binned residuals of a logistic regression."""
    import altair as alt

    low, high = reading.interval(level)
    records = [
        {"x": x, "y": y, "low": a, "high": b, "share": s, "misfit": m}
        for x, y, a, b, s, m in zip(
            reading.predicted.tolist(),
            reading.residual.tolist(),
            low.tolist(),
            high.tolist(),
            reading.share.tolist(),
            reading.misfits.tolist(),
            strict=True,
        )
    ]
    x = alt.X("x:Q", title="Mean prediction", scale=alt.Scale(domain=[0, 1], nice=False))
    title = "Observed share less prediction"
    colour = alt.condition("datum.misfit", alt.value(PALETTE[1]), alt.value(PALETTE[0]))
    base = alt.Chart(rows(records))
    bars = base.mark_rule(strokeWidth=3, opacity=0.45).encode(
        x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=colour
    )
    dots = base.mark_point(opacity=1).encode(
        x=x,
        y=alt.Y("y:Q", title=title),
        color=colour,
        size=alt.Size("share:Q", legend=None, scale=alt.Scale(range=[25, 160])),
    )
    line = alt.Chart(rows([{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 0.0}]))
    zero = line.mark_line(color=MUTED, strokeDash=[4, 3], strokeWidth=1.2).encode(
        x=x, y=alt.Y("y:Q", title=title)
    )
    return alt.layer(zero, bars, dots).properties(title="Binned residuals", **SIZE)


def chart(plot: Plotted, kind: str, *, level: float = 0.95) -> Any:
    """One of KINDS as an Altair chart."""
    if kind not in KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    if kind == "density":
        return heat_map(plot.table)
    if kind == "points":
        return scatter(plot.table)
    return (mean_chart if kind == "mean" else spread_chart)(plot, level=level)


def figure(plot: Plotted, kind: str, *, level: float = 0.95) -> Figure:
    """A picture as SVG with what is written under it."""
    drawn = chart(plot, kind, level=level)
    says, caption = _words(plot, kind, level)
    svg = to_svg(drawn, title=KINDS[kind], description=says)
    return Figure(svg, caption)


def figures(plot: Plotted, *, level: float = 0.95) -> list[Figure]:
    """All of them, in the order in which they are read."""
    return [figure(plot, kind, level=level) for kind in KINDS]


def binned_figure(reading: BinnedResiduals, *, level: float = 0.95) -> Figure:
    said = "; ".join(
        f"{residual:+.3f} at {predicted:.3f}"
        for predicted, residual in zip(
            reading.predicted.tolist(), reading.residual.tolist(), strict=True
        )
    )
    svg = to_svg(
        binned_chart(reading, level=level),
        title="Binned residuals",
        description=f"Observed share less mean prediction by bin: {said}.",
    )
    return Figure(
        svg,
        "Observed share of positives less mean prediction, in bins of the prediction; bars are "
        f"the {level * 100:g}% interval of each bin. Bins whose interval leaves 0 out are marked.",
    )


def _words(plot: Plotted, kind: str, level: float) -> tuple[str, str]:
    """What a screen reader says, and the caption."""
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
            "Where rows lie, after noise: darker cells hold more rows for their area, 100% is the "
            "densest. A good fit is an even ribbon around the dashed line."
        )
    if kind == "points":
        return f"Points scattered within the cells of the density. {verdict}", (
            "Points scattered over the cells of the density, as many as it holds "
            f"(at most {MOST_POINTS:,}). No point is a row."
        )
    readings = plot.readings
    reading = readings.mean_by_prediction if kind == "mean" else readings.spread_by_prediction
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
        f"noise and chance of the sample). {asked}"
    )


def _steps(
    reading: ByPrediction, table: ResidualTable, level: float, title: str, *, signed: bool
) -> Any:
    """A level line for each band of predictions, with its two intervals as boxes."""
    import altair as alt

    low, high = reading.interval(level)
    noise_low, noise_high = reading.noise_interval(level)
    columns = zip(
        reading.edges[:-1].tolist(),
        reading.edges[1:].tolist(),
        reading.values.tolist(),
        low.tolist(),
        high.tolist(),
        noise_low.tolist(),
        noise_high.tolist(),
        strict=True,
    )
    names = ("left", "right", "value", "low", "high", "noise_low", "noise_high")
    records = [dict(zip(names, each, strict=True)) for each in columns]
    base = alt.Chart(rows(records)).encode(x=_x(table, "left"), x2="right:Q")
    top = max(float(high.max()), 0.0)
    bottom = min(float(low.min()), 0.0) if signed else 0.0
    room = 0.05 * (top - bottom) or 1.0
    scale = alt.Scale(domain=[bottom - (room if signed else 0), top + room], nice=False)

    def y(name: str) -> Any:
        return alt.Y(f"{name}:Q", title=title, scale=scale)

    outer = base.mark_rect(color=PALETTE[5], opacity=0.28).encode(y=y("low"), y2="high:Q")
    inner = base.mark_rect(color=PALETTE[5], opacity=0.55).encode(
        y=y("noise_low"), y2="noise_high:Q"
    )
    line = base.mark_rule(color=PALETTE[0], strokeWidth=2.5).encode(y=y("value"))
    layers = [outer, inner, line]
    if signed:
        layers.insert(0, _zero(table, scale))
    return alt.layer(*layers)


def _zero(table: ResidualTable, scale: Any = None) -> Any:
    """The dashed line on which a prediction is right."""
    import altair as alt

    low, high = table.bounds.predicted
    ends = rows([{"x": low, "y": 0.0}, {"x": high, "y": 0.0}])
    y = _y(table, "y") if scale is None else alt.Y("y:Q", title=RESIDUAL, scale=scale)
    line = alt.Chart(ends).mark_line(color=MUTED, strokeDash=[4, 3], strokeWidth=1.4, clip=True)
    return line.encode(x=_x(table, "x"), y=y)


def _x(table: ResidualTable, name: str) -> Any:
    import altair as alt

    low, high = table.bounds.predicted
    scale = alt.Scale(domain=[low, high], nice=False)
    return alt.X(f"{name}:Q", title=PREDICTED, scale=scale, axis=alt.Axis(tickCount=6))


def _y(table: ResidualTable, name: str) -> Any:
    import altair as alt

    low, high = table.bounds.residual
    scale = alt.Scale(domain=[low, high], nice=False)
    return alt.Y(f"{name}:Q", title=RESIDUAL, scale=scale, axis=alt.Axis(tickCount=6))
