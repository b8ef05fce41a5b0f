"""The pictures of a separability report."""

from typing import Any

from heldout.drawing.figure import INK, MUTED, PALETTE, Figure, rows, to_svg
from heldout.separability.deep_dive import BINS, DeepDive, Grouping
from heldout.separability.result import Roc, Separability

SIDES = {"true": PALETTE[0], "privatized": PALETTE[1]}
MOST_CLUES = 15
MOST_GROUPS = 12
NAME_LENGTH = 28


def roc_chart(curves: dict[str, Roc]) -> Any:
    """Both fits in one picture: the first on the true labels, the other on shuffled ones."""
    import altair as alt

    points = [
        {"fit": name, "order": order, "fpr": x, "tpr": y}
        for name, curve in curves.items()
        for order, (x, y) in enumerate(zip(curve.fpr, curve.tpr, strict=True))
    ]
    colours = alt.Scale(domain=list(curves), range=[PALETTE[0], PALETTE[1]])
    ends = [{"fpr": 0.0, "tpr": 0.0}, {"fpr": 1.0, "tpr": 1.0}]
    x = alt.X("fpr:Q", title="Privatized rows called true", axis=alt.Axis(tickCount=5))
    y = alt.Y("tpr:Q", title="True rows called true", axis=alt.Axis(tickCount=5))
    chance = (
        alt.Chart(rows(ends))
        .mark_line(color=MUTED, strokeDash=[4, 3], strokeWidth=1)
        .encode(x=x, y=y)
    )
    lines = (
        alt.Chart(rows(points))
        .mark_line(interpolate="linear")
        .encode(
            x=x,
            y=y,
            order="order:Q",
            color=alt.Color("fit:N", scale=colours, title=None, legend=alt.Legend(orient="top")),
        )
    )
    return (chance + lines).properties(width=300, height=260)


def roc_figure(found: Separability) -> Figure:
    accuracy, shuffled = found.accuracy, found.shuffled_accuracy
    svg = to_svg(
        roc_chart(found.roc),
        title="ROC curves of the separator",
        description=f"Accuracy {accuracy:.2f} on true labels, {shuffled:.2f} on shuffled ones.",
    )
    return Figure(
        svg,
        "ROC curves of the classifier on the true labels and on shuffled ones, both on the rows "
        "that it was fitted to. How far the second curve lies above the diagonal is overfitting; "
        "the score divides by it.",
    )


def probability_figure(dive: DeepDive) -> Figure:
    """How true each side looks to the classifier."""
    import altair as alt

    width = 1 / BINS
    bars = [
        {"side": side, "low": index * width, "high": (index + 1) * width, "share": share}
        for side, each in dive.probabilities.items()
        for index, share in enumerate(each.shares)
    ]
    colours = alt.Scale(domain=list(SIDES), range=list(SIDES.values()))
    chart = (
        alt.Chart(rows(bars))
        .mark_bar(opacity=0.65)
        .encode(
            x=alt.X(
                "low:Q",
                bin="binned",
                title="Estimated probability of being true",
                axis=alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
            ),
            x2="high:Q",
            y=alt.Y("share:Q", stack=None, title="Share of rows", axis=alt.Axis(format="%")),
            color=alt.Color("side:N", scale=colours, title=None, legend=alt.Legend(orient="top")),
        )
        .properties(width=300, height=260)
    )
    mean = dive.probabilities["privatized"].mean
    svg = to_svg(chart, title="Estimated probability of being true", description="By side.")
    return Figure(
        svg,
        f"How true each row looks. Privatized rows should look like true ones; on average they "
        f"get {mean:.2g}, where 0.5 is what cannot be told apart.",
    )


def clue_figure(dive: DeepDive) -> Figure:
    """The features that say the most, to the left if they speak for privatized data."""
    import altair as alt

    top = dive.clues[:MOST_CLUES]
    records = [
        {
            "name": shortened(clue.name),
            "weight": clue.weight,
            "side": "true" if clue.weight > 0 else "privatized",
        }
        for clue in top
    ]
    colours = alt.Scale(domain=list(SIDES), range=list(SIDES.values()))
    chart = (
        alt.Chart(rows(records))
        .mark_bar()
        .encode(
            x=alt.X("weight:Q", title=f"Signed {dive.method}"),
            y=alt.Y("name:N", sort=[each["name"] for each in records], title=None),
            color=alt.Color(
                "side:N", scale=colours, title="speaks for", legend=alt.Legend(orient="top")
            ),
        )
        .properties(width=260, height=16 * max(len(records), 4))
    )
    svg = to_svg(chart, title="What gives the privatized data away", description="By feature.")
    return Figure(
        svg,
        f"The {len(records)} features that the classifier looks at most. To the left: larger "
        "values speak for privatized data.",
    )


def group_figure(grouping: Grouping) -> Figure:
    """The groups whose privatized rows look least true."""
    import altair as alt

    records = [
        {"name": shortened(each.name), "probability": each.probability}
        for each in grouping.groups[:MOST_GROUPS]
    ]
    base = alt.Chart(rows(records)).encode(
        y=alt.Y("name:N", sort=[each["name"] for each in records], title=grouping.column)
    )
    dots = base.mark_point(size=50, color=PALETTE[1], opacity=1).encode(
        x=alt.X(
            "probability:Q",
            title="Mean probability of being true",
            axis=alt.Axis(format=".2~p", tickCount=4),
            scale=alt.Scale(zero=True),
        )
    )
    text = base.mark_text(align="left", dx=8, color=INK).encode(
        x="probability:Q", text=alt.Text("probability:Q", format=".2p")
    )
    chart = (dots + text).properties(width=260, height=18 * max(len(records), 3))
    svg = to_svg(chart, title=f"Worst groups by {grouping.column}", description="Lowest first.")
    return Figure(
        svg,
        f"{grouping.column}: the {len(records)} groups of {len(grouping.groups)} whose privatized "
        "rows look least true.",
    )


def shortened(name: str) -> str:
    """
    >>> shortened("a" * 40)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
