"""Pictures of measures: intervals side by side, and the confusion matrix."""

from collections.abc import Mapping
from typing import Any, Protocol

from heldout.drawing.figure import INK, PALETTE, Figure, rows, to_svg
from heldout.drawing.words import half_width, spread
from heldout.measure import Measure

ROW_HEIGHT = 32
PLOT_WIDTH = 230
LABEL_WIDTH = 16  # letters; longer names take two lines


class Counts(Protocol):
    """A confusion matrix at a threshold."""

    @property
    def threshold(self) -> float: ...
    @property
    def true_positives(self) -> Measure: ...
    @property
    def false_positives(self) -> Measure: ...
    @property
    def false_negatives(self) -> Measure: ...
    @property
    def true_negatives(self) -> Measure: ...


def interval_plot(measures: Mapping[str, Measure], *, level: float) -> Figure:
    """A line a measure: thin bar for the population, thick bar for the noise, dot for the value."""
    import altair as alt

    records = []
    for name, each in measures.items():
        (low, high), (noise_low, noise_high) = each.interval(level), each.noise_interval(level)
        records.append(
            {
                "name": _in_lines(name),
                "value": each.value,
                "low": low,
                "high": high,
                "noise_low": noise_low,
                "noise_high": noise_high,
                "shown": spread(each, level)[0],
            }
        )
    y = alt.Y(
        "name:N",
        sort=[_in_lines(name) for name in measures],
        title=None,
        axis=alt.Axis(
            labelExpr="split(datum.value, '/')",
            labelOffset=alt.condition("indexof(datum.value, '/') > 0", alt.value(-6), alt.value(0)),
            ticks=False,
            domain=False,
            labelPadding=8,
        ),
    )
    scale = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(format=".1f", tickCount=5)
    base = alt.Chart(rows(records)).encode(y=y)
    thin = base.mark_rule(strokeWidth=2, color=PALETTE[0], strokeCap="butt").encode(
        x=alt.X("low:Q", scale=scale, title=None, axis=axis), x2="high:Q"
    )
    thick = base.mark_rule(strokeWidth=11, color=PALETTE[5]).encode(
        x=alt.X("noise_low:Q", scale=scale, axis=axis), x2="noise_high:Q"
    )
    dot = base.mark_point(size=34, filled=True, color=PALETTE[0], opacity=1).encode(
        x=alt.X("value:Q", scale=scale, axis=axis)
    )
    text = base.mark_text(align="left", dx=10, fontSize=12, fontWeight=600, color=INK).encode(
        x=alt.value(PLOT_WIDTH), text="shown:N"
    )
    chart = alt.layer(thick, thin, dot, text).properties(
        width=PLOT_WIDTH,
        height=ROW_HEIGHT * len(records),
        # Room for text that the reader's font may set wider than the renderer's.
        padding={"left": 16, "right": 48, "top": 5, "bottom": 5},
    )
    percent = f"{level * 100:g}%"
    svg = to_svg(
        chart,
        title="All measures with their intervals",
        description="; ".join(
            f"{name} {spread(each, level)[0]}, interval {spread(each, level)[1]}"
            for name, each in measures.items()
        ),
    )
    caption = (
        f"Dot: the released value. Thick bar: where the exact value on these rows lies "
        f"({percent}, privacy noise alone). Thin bar: where the value in the population "
        f"lies ({percent}, privacy noise and chance of the sample)."
    )
    return Figure(svg, caption)


def _in_lines(name: str) -> str:
    """A name with a stroke where its first line ends, if it is long.

    >>> _in_lines("negative predictive value")
    'negative/predictive value'
    """
    name = name.replace("/", " ")
    return name if len(name) <= LABEL_WIDTH else name.replace(" ", "/", 1)


def confusion_matrix(counts: Counts, *, level: float = 0.95) -> Figure:
    """The four noisy counts as a heat map, truth down, prediction across."""
    import altair as alt

    cells = (
        ("true negatives", "negative", "negative", counts.true_negatives),
        ("false positives", "negative", "positive", counts.false_positives),
        ("false negatives", "positive", "negative", counts.false_negatives),
        ("true positives", "positive", "positive", counts.true_positives),
    )
    most = max(1.0, *(each.value for *_, each in cells))
    records: list[dict[str, Any]] = [
        {
            "name": name,
            "truth": f"{truth}s",
            "called": f"called {called}",
            "share": (each.value / most) ** 0.5,
            "count": f"{each.value:,.0f}",
            "noise": f"±{half_width(each.noise_interval(level), each.value):,.0f}",
        }
        for name, truth, called, each in cells
    ]
    base = alt.Chart(rows(records)).encode(
        x=alt.X(
            "called:N",
            sort=["called negative", "called positive"],
            title=None,
            axis=alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False, labelPadding=8),
        ),
        y=alt.Y(
            "truth:N",
            sort=["negatives", "positives"],
            title=None,
            axis=alt.Axis(ticks=False, domain=False, labelPadding=8),
        ),
    )
    heat = base.mark_rect(stroke="white", strokeWidth=3, cornerRadius=6).encode(
        color=alt.Color(
            "share:Q",
            scale=alt.Scale(domain=[0, 1], range=["#eaf3fa", PALETTE[0]]),
            legend=None,
        )
    )
    ink = alt.condition("datum.share > 0.62", alt.value("#ffffff"), alt.value("#12202c"))
    count = base.mark_text(fontSize=20, fontWeight=700, dy=-8).encode(text="count:N", color=ink)
    noise = base.mark_text(fontSize=12, dy=12).encode(text="noise:N", color=ink)
    name = base.mark_text(fontSize=11, dy=30).encode(text="name:N", color=ink)
    svg = to_svg(
        alt.layer(heat, count, noise, name).properties(width=290, height=210),
        title="Confusion matrix with noisy counts",
        description="; ".join(
            f"{each['name']} {each['count']} {each['noise']}" for each in records
        ),
    )
    caption = (
        f"Rows are what was true, columns what the model said: positive where the score is "
        f"{counts.threshold:g} or more. Counts carry privacy noise; ± is its {level * 100:g}% "
        "half-width."
    )
    return Figure(svg, caption)


__all__ = ["confusion_matrix", "interval_plot"]
