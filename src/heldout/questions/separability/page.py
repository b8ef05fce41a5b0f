"""The separability report as one HTML page that needs nothing from anywhere else."""

from collections.abc import Iterable
from typing import Any

from heldout.drawing.chart import (
    INK,
    MUTED,
    PALETTE,
    Chart,
    Field,
    Figure,
    Layer,
    Names,
    Numbers,
    records,
)
from heldout.drawing.page import rendered
from heldout.questions.separability.deep_dive import BINS, DeepDive, Grouping, Histogram
from heldout.questions.separability.fits import NAME
from heldout.questions.separability.result import CUSTODIAN_ONLY, WHY_CUSTODIAN, Separability

SIDES = {"true": PALETTE[0], "privatized": PALETTE[1]}
MOST_CLUES = 15
MOST_GROUPS = 12
NAME_LENGTH = 28


def roc_figure(result: Separability) -> Figure:
    """The headline's classifier first, then the paper's fits on true and on shuffled labels."""
    points = [
        {"fit": name, **record}
        for name, curve in result.curves.items()
        for record in records(x=curve.fpr, y=curve.tpr)
    ]
    ends, dashed = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}], {"strokeDash": [4, 3]}
    chart = Chart(
        [
            Layer("line", ends, color=MUTED, style={**dashed, "strokeWidth": 1.2}),
            Layer("line", points, color=Field("fit")),
        ],
        x=Numbers("Privatized rows called true"),
        y=Numbers("True rows called true"),
        title="ROC curves of the separator",
        colours=dict(zip(result.curves, PALETTE, strict=False)),
    )
    says = (
        f"Accuracy {result.accuracy:.2f} on true labels, "
        f"{result.shuffled_accuracy:.2f} on shuffled."
    )
    ratio = (
        "ROC curves of the classifier on the true labels and on shuffled ones, both on the rows "
        "that it was fitted to. How far the second curve lies above the diagonal is overfitting; "
        "the score divides by it."
    )
    if result.stronger is not None:
        says = f"Accuracy {(1 + result.value) / 2:.2f} on rows held out."
        ratio = (
            f"The {NAME}, whose number the headline is; beside it the {result.classifier} of the "
            "paper's ratio, on the rows that it was fitted to, with true and with shuffled labels."
        )
    return Figure(chart.svg(says=says), ratio)


def probability_figure(dive: DeepDive) -> Figure:
    """Return how true each side looks to the classifier."""
    bars: list[dict[str, Any]] = [
        {"side": side, "low": k / BINS, "high": (k + 1) / BINS, "foot": 0.0, "share": share}
        for side, probabilities in dive.probabilities.items()
        for k, share in enumerate(probabilities.shares)
    ]
    most = max((bar["share"] for bar in bars), default=1.0)
    chart = Chart(
        [Layer("rect", bars, "low", "foot", "high", "share", color=Field("side"), opacity=0.65)],
        x=Numbers("Estimated probability of being true"),
        y=Numbers("Share of rows", 0.0, most * 1.05, form=".0%"),
        title="Estimated probability of being true",
        colours=SIDES,
    )
    mean = dive.probabilities["privatized"].mean
    return Figure(
        chart.svg(says=f"By side; privatized rows have {mean:.2g} on average."),
        f"How true each row looks. Privatized rows should look like true ones; on average they "
        f"get {mean:.2g}, where 0.5 means that they cannot be distinguished.",
    )


def clue_figures(dive: DeepDive) -> list[Figure]:
    """The features that say the most, to the left if they speak for privatized data."""
    bars: list[dict[str, Any]] = [
        {
            "name": shortened(clue.name),
            "foot": 0.0,
            "weight": clue.weight,
            "side": "true" if clue.weight > 0 else "privatized",
        }
        for clue in dive.clues[:MOST_CLUES]
        if clue.weight
    ]
    if not bars:
        return []
    weights = [0.0, *(bar["weight"] for bar in bars)]
    room = 0.05 * (max(weights) - min(weights))
    ends = min(weights) - room * (min(weights) < 0), max(weights) + room * (max(weights) > 0)
    chart = Chart(
        [Layer("rect", bars, x="foot", x2="weight", y="name", color=Field("side"))],
        x=Numbers(f"Signed {dive.method}", *ends),
        y=Names(_once(bar["name"] for bar in bars)),
        title="What speaks for which side",
        width=260,
        height=20 * max(len(bars), 4),
        colours=SIDES,
    )
    words = "; ".join(f"{bar['name']} {bar['weight']:+.3g}" for bar in bars)
    return [
        Figure(
            chart.svg(says=f"By feature: {words}."),
            f"The {len(bars)} features that the classifier looks at most. To the left: larger "
            "values speak for privatized data.",
        )
    ]


def histogram_figures(dive: DeepDive) -> list[Figure]:
    """Return the values that tell most, true beside privatized."""
    return [_side_by_side(histogram) for histogram in dive.histograms]


def _side_by_side(histogram: Histogram) -> Figure:
    bars: list[dict[str, Any]] = []
    for place, (side, shares) in enumerate(
        {"true": histogram.true, "privatized": histogram.privatized}.items()
    ):
        for low, high, share in zip(histogram.edges, histogram.edges[1:], shares, strict=False):
            middle = (low + high) / 2
            ends = (low, middle) if place == 0 else (middle, high)
            bars.append(
                {"side": side, "low": ends[0], "high": ends[1], "foot": 0.0, "share": share}
            )
    most = max((bar["share"] for bar in bars), default=1.0)
    name = shortened(histogram.name)
    chart = Chart(
        [Layer("rect", bars, "low", "foot", "high", "share", color=Field("side"))],
        x=Numbers(name, histogram.edges[0], histogram.edges[-1]),
        y=Numbers("Share of rows", 0.0, most * 1.05, form=".0%"),
        title=f"{name}, side by side",
        width=260,
        height=180,
        colours=SIDES,
    )
    apart = sum(abs(a - b) for a, b in zip(histogram.true, histogram.privatized, strict=True)) / 2
    return Figure(
        chart.svg(says=f"{apart:.0%} of the rows would have to move for the two to agree."),
        f"{name}: true and privatized rows by value. {apart:.0%} of the rows would have to move "
        "for the two to agree.",
    )


def group_figure(grouping: Grouping) -> Figure:
    """The groups whose privatized rows look least true."""
    dots: list[dict[str, Any]] = [
        {
            "name": shortened(group.name),
            "probability": group.probability,
            "shown": f"{group.probability:.2%}",
        }
        for group in grouping.groups[:MOST_GROUPS]
    ]
    most = max((dot["probability"] for dot in dots), default=0.0)
    beside = {"align": "left", "dx": 8}
    chart = Chart(
        [
            Layer("point", dots, x="probability", y="name", color=PALETTE[1], size=50),
            Layer("text", dots, "probability", "name", color=INK, text="shown", style=beside),
        ],
        x=Numbers("Mean probability of being true", 0.0, most * 1.05 or 1.0, form=".1%"),
        y=Names(_once(dot["name"] for dot in dots), title=grouping.column),
        title=f"Worst groups by {grouping.column}",
        width=260,
        height=20 * max(len(dots), 3),
    )
    return Figure(
        chart.svg(says="Lowest first."),
        f"{grouping.column}: the {len(dots)} groups of {len(grouping.groups)} whose privatized "
        "rows look least true.",
    )


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def shortened(name: str) -> str:
    """
    >>> shortened("a" * 40)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"


LISTED_CLUES = 20


def page(result: Separability, *, level: float = 0.95) -> str:
    """The whole document."""
    dive = result.deep_dive
    return rendered(
        "separability.html",
        title=f"Separability ({CUSTODIAN_ONLY})",
        audience=CUSTODIAN_ONLY,
        why=WHY_CUSTODIAN,
        result=result,
        level=level,
        between=lambda ends: f"{ends[0]:.3f} to {ends[1]:.3f}",
        drawn=[roc_figure(result), probability_figure(dive)],
        clue_figures=[*clue_figures(dive), *histogram_figures(dive)],
        clues=[
            (
                clue.name,
                f"{clue.weight:+.3g}",
                f"{clue.mean_true:.3g}",
                f"{clue.mean_privatized:.3g}",
                f"{clue.nonzero_true:.1%}",
                f"{clue.nonzero_privatized:.1%}",
            )
            for clue in dive.clues[:LISTED_CLUES]
        ],
        variances=[
            (group.column, f"{group.within:.3g}", f"{group.between:.3g}", f"{group.total:.3g}")
            for group in dive.groups
        ],
        group_figures=[group_figure(group) for group in dive.groups],
        worst_groups=[
            (group.column, [(g.name, f"{g.rows:,}", _percent(g.probability)) for g in group.worst])
            for group in dive.groups
        ],
        others=_others(result),
    )


def _others(result: Separability) -> list[tuple[str, str, str]]:
    """Score, value, and the value where the tables cannot be distinguished."""
    numbers, shuffled = result.numbers, result.roc["shuffled labels"]
    chance = sum(
        (b - a) * (c + d) / 2
        for a, b, c, d in zip(
            shuffled.fpr, shuffled.fpr[1:], shuffled.tpr, shuffled.tpr[1:], strict=False
        )
    )
    rows = []
    if result.detection_auc is not None:
        rows.append(("Detection AUC, rows held out", f"{result.detection_auc:.3f}", "1/2"))
    in_sample = f"{numbers.detection_auc_in_sample:.3f}"
    rows.append(("Detection AUC, rows fitted to", in_sample, f"{chance:.3f} (shuffled)"))
    if result.pmse is not None and result.pmse_ratio is not None:
        rows.append(("pMSE", f"{result.pmse:.4f}", f"{numbers.propensity_shuffled:.4f} (shuffled)"))
        rows.append(("pMSE ratio", f"{result.pmse_ratio:.2f}", "1"))
    rows.append(("Spread of single shuffles", f"{result.spread:.3f}", ""))
    return rows


def _percent(share: float) -> str:
    return f"{share * 100:.2g}%" if share < 0.1 else f"{share:.1%}"
