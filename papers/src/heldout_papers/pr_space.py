"""Precision-recall space as Altair layers, for the dissertation's figures."""

from typing import Any

from heldout.drawing.chart import INK, Chart
from heldout.precision_recall.curve import PRECISION, RECALL, Curve
from heldout.precision_recall.curve import space as layers_of_space
from heldout_papers.altair_svg import rows

__all__ = ["axis", "path", "space", "words"]


def space(prevalence: float, *, guessing: bool = True) -> Any:
    """The region that no model reaches, and the level of guessing."""
    import altair as alt

    layers = layers_of_space(prevalence)[: 2 if guessing else 1]
    chart = Chart(layers, x=RECALL, y=PRECISION)
    return alt.LayerChart.from_dict({"layer": chart.vega_lite()["layer"]})


def axis(name: str, title: str) -> Any:
    """A quantitative axis from 0 to 1: `axis("recall", ...)` is x, anything else is y."""
    import altair as alt

    channel = alt.X if title == "Recall" else alt.Y
    return channel(f"{name}:Q", title=title, scale=alt.Scale(domain=[0, 1]))


def words(texts: list[tuple[float, float, str]]) -> Any:
    """Words at places of the space."""
    import altair as alt

    found = [{"recall": x, "precision": y, "text": text} for x, y, text in texts]
    return (
        alt.Chart(rows(found))
        .mark_text(color=INK, align="left", fontSize=12)
        .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"), text="text:N")
    )


def path(curve: Curve) -> list[dict[str, float]]:
    """The estimator's curve as a polyline, jumps included."""
    return [
        {"k": k, "recall": each["x"], "precision": each["y"]} for k, each in enumerate(curve.path())
    ]
