"""Bars and lines of accuracies, the methods that are not private set apart."""

from __future__ import annotations

from typing import Any

from heldout.drawing.chart import MUTED
from heldout_papers.altair_svg import rows
from heldout_papers.colours import colour_of, scale

__all__ = ["bars", "lines"]

_GREY = "#7d8a97"
_LEAST_SPAN = 0.02


def bars(found: list[dict[str, Any]]) -> Any:
    """One panel a data set, one bar a method in its own colour; pale is not private."""
    import altair as alt

    panels = []
    for data in dict.fromkeys(row["data"] for row in found):
        here = [
            {**row, "colour": colour_of(row["method"]) or _GREY}
            for row in found
            if row["data"] == data
        ]
        title = f"{data} (pale: not private)"
        names = alt.Axis(minExtent=165, labelLimit=240)
        base = alt.Chart(rows(here), title=title, width=230, height=18 * len(here)).encode(
            y=alt.Y("method:N", sort=[row["method"] for row in here], title=None, axis=names),
            x=alt.X("accuracy:Q", scale=alt.Scale(domain=[0, 1.1]), title="Accuracy"),
        )
        colour = alt.Color("colour:N", scale=None)
        pale = alt.Opacity(
            "private:N", scale=alt.Scale(domain=[True, False], range=[1, 0.4]), legend=None
        )
        text = base.mark_text(align="left", dx=3, fontSize=10, color=MUTED).encode(
            text=alt.Text("accuracy:Q", format=".3f")
        )
        panels.append(base.mark_bar(clip=True).encode(color=colour, opacity=pale) + text)
    return alt.hconcat(*panels)


def lines(
    found: list[dict[str, Any]], x: str, title: str, *, y: str = "accuracy", log: bool = False
) -> Any:
    """One panel a data set, one line a method; what is not private (marked *) is dashed."""
    import altair as alt

    methods = list(dict.fromkeys(row["method"] for row in found))
    ticks = sorted({float(row[x]) for row in found})
    shown = [{**row, x: float(row[x])} for row in found]
    panels = []
    for data in dict.fromkeys(row["data"] for row in found):
        here = [row for row in shown if row["data"] == data]
        values = [row[y] for row in here]
        flat = max(0.0, _LEAST_SPAN - (max(values) - min(values)))  # a flat line has an axis too
        span = alt.Scale(zero=False)
        if flat:
            span = alt.Scale(domain=[min(values) - flat / 2, max(values) + flat / 2])
        panels.append(
            alt.Chart(rows(here), title=data, width=230, height=220)
            .mark_line(point=True)
            .encode(
                x=alt.X(
                    f"{x}:Q",
                    title=title,
                    scale=alt.Scale(type="log" if log else "linear", nice=not log),
                    axis=alt.Axis(values=ticks, format="~g"),
                ),
                y=alt.Y(f"{y}:Q", title=y[:1].upper() + y[1:], scale=span),
                color=alt.Color(
                    "method:N",
                    scale=scale(methods),
                    title="Method",
                    legend=None if len(methods) == 1 else alt.Legend(labelLimit=240),
                ),
                strokeDash=alt.StrokeDash(
                    "private:N",
                    scale=alt.Scale(domain=[True, False], range=[[1, 0], [5, 3]]),
                    legend=None,
                ),
            )
        )
    return alt.hconcat(*panels)
