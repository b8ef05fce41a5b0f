"""Pictures of measures: intervals side by side, and the confusion matrix."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from heldout.drawing.chart import (
    GRID,
    HEAT,
    INK,
    MUTED,
    PALETTE,
    Chart,
    Field,
    Figure,
    Layer,
    Names,
    Numbers,
)
from heldout.drawing.words import half_width, spread

if TYPE_CHECKING:
    from heldout.intervals.measure import Measure

ROW_HEIGHT: Final = 32
DARK: Final = 0.6  # cells above it carry white text


class Counts(Protocol):
    """A confusion matrix at a threshold."""

    @property
    def threshold(self) -> float: ...
    @property
    def true_positives(self) -> "Measure": ...
    @property
    def false_positives(self) -> "Measure": ...
    @property
    def false_negatives(self) -> "Measure": ...
    @property
    def true_negatives(self) -> "Measure": ...


def interval_plot(
    measures: Mapping[str, "Measure"], *, level: float, title: str = "", mark: float | None = None
) -> Figure:
    """Draw a line per measure: thin bar for its interval, thick bar for its noise interval, dot.

    One that is not informative is a grey line without a number. A line stands at `mark`.
    """
    known = [measure for measure in measures.values() if measure.informative]
    axis = _axis(known, level, title, mark)
    half = 0.003 * (axis.high - axis.low)
    marks = [
        {"name": name, "from": mark - half, "to": mark + half}
        for name in measures
        if mark is not None
    ]
    rows, hidden = [], []
    for name, measure in measures.items():
        (low, high), (noise_low, noise_high) = (
            measure.interval(level),
            measure.noise_interval(level),
        )
        if not measure.informative:
            ends = {"low": axis.low, "high": axis.high, "end": axis.high}
            hidden.append({"name": name, **ends, "shown": "no information"})
            continue
        rows.append(
            {
                "name": name,
                "value": measure.value,
                "low": low,
                "high": high,
                "noise_low": noise_low,
                "noise_high": noise_high,
                "end": axis.high,
                "shown": spread(measure, level)[0],
            }
        )
    thick, thin, beside = (
        {"strokeWidth": 11},
        {"strokeWidth": 2},
        {"align": "left", "dx": 10, "fontSize": 12, "fontWeight": 600},
    )
    chart = Chart(
        [
            Layer("rect", marks, x="from", x2="to", y="name", color=MUTED),
            Layer("rule", rows, "noise_low", "name", "noise_high", color=PALETTE[5], style=thick),
            Layer("rule", rows, x="low", x2="high", y="name", style=thin),
            Layer("point", rows, x="value", y="name", size=34),
            Layer("text", rows, x="end", y="name", text="shown", color=INK, style=beside),
            Layer("rule", hidden, x="low", x2="high", y="name", color=GRID, style=thick),
            Layer("text", hidden, x="end", y="name", text="shown", color=MUTED, style=beside),
        ],
        x=axis,
        y=Names(list(measures)),
        width=230,
        height=ROW_HEIGHT * len(measures),
    )
    says = "; ".join(
        f"{name} {spread(measure, level)[0]}, interval {spread(measure, level)[1]}"
        for name, measure in measures.items()
    )
    percent = f"{level * 100:g}%"
    return Figure(
        chart.svg(says=f"All measures with their intervals. {says}"),
        "Dot: the released value. Thick bar: the noise interval, which holds the exact value on "
        f"these rows ({percent}). Thin bar: the interval, which holds the value in the population "
        f"({percent}; sampling error and privacy noise)."
        + (" Grey: no information at this price." if hidden else ""),
    )


def _axis(
    measures: Sequence["Measure"], level: float, title: str, mark: float | None = None
) -> Numbers:
    """Return as far as the intervals reach, and a mark: from an end of 0 to 1 if that is near."""
    ends = [end for measure in measures for end in measure.interval(level)]
    ends += [] if mark is None else [mark]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    shares, reach = 0 <= low <= high <= 1, (high - low) or 1.0
    low, high = low - 0.08 * reach, high + 0.08 * reach
    if shares:  # no room beyond what a share can be
        return Numbers(
            title, 0.0 if low < 0.5 * reach else low, 1.0 if high > 1 - 0.25 * reach else high
        )
    return Numbers(title, min(low, 0.0) if low < high - low else low, max(high, 0.0))


def confusion_chart(counts: Counts, *, level: float = 0.95) -> Chart:
    """Draw the four noisy counts as a heat map, truth down, prediction across."""
    cells = (
        ("true negatives", "negatives", "called negative", counts.true_negatives),
        ("false positives", "negatives", "called positive", counts.false_positives),
        ("false negatives", "positives", "called negative", counts.false_negatives),
        ("true positives", "positives", "called positive", counts.true_positives),
    )
    rows = [
        {
            "name": name,
            "truth": truth,
            "called": called,
            "value": cell.value,
            "noise": f"±{half_width(cell.noise_interval(level), cell.value):,.0f}",
        }
        for name, truth, called, cell in cells
    ]
    texts = (("count", 20, -8, 700), ("noise", 12, 12, 400), ("name", 11, 30, 400))
    return _heat_map(rows, texts=texts, size=(290, 210))


def confusion_matrix(counts: Counts, *, level: float = 0.95) -> Figure:
    """Return the heat map with what is written under it."""
    return Figure(
        _described(confusion_chart(counts, level=level)),
        "Rows are what was true, columns what the model said: positive where the score is "
        f"{counts.threshold:g} or more. Counts carry privacy noise; ± is its {level * 100:g}% "
        "half-width.",
    )


def class_chart(names: Sequence[str], matrix: Sequence[Sequence[float]]) -> Chart:
    """Draw the noisy counts of several classes as a heat map, truth down, call across."""
    rows = [
        {
            "name": f"{truth} called {called}",
            "truth": truth,
            "called": f"called {called}",
            "value": matrix[i][j],
            "noise": "",
        }
        for i, truth in enumerate(names)
        for j, called in enumerate(names)
    ]
    side = min(64, max(28, 640 // len(names)))
    width = max(side, 7 * max(len(name) + 7 for name in names))
    size = (width * len(names), side * len(names))
    return _heat_map(rows, texts=(("count", max(8, side // 4), 4, 600),), size=size)


def class_matrix(chart: Chart, half: float, *, level: float = 0.95) -> Figure:
    """Return the heat map of several classes with what is written under it."""
    return Figure(
        _described(chart),
        "Rows are what was true, columns what the model said. Each count carries privacy noise of "
        f"±{half:,.0f} ({level * 100:g}% half-width); a count below 0 is shown as 0.",
    )


def _heat_map(
    rows: list[dict[str, Any]],
    *,
    texts: Sequence[tuple[str, int, int, int]],
    size: tuple[int, int],
) -> Chart:
    """Draw cells with their counts; `texts` are fields to write, with size, offset and weight."""
    most = max(1.0, *(row["value"] for row in rows))
    for row in rows:
        row["share"] = 0.08 + 0.92 * (max(row["value"], 0.0) / most) ** 0.5
        row["ink"] = "#ffffff" if row["share"] > DARK else INK
        row["count"] = f"{row['value']:,.0f}"

    def text(field: str, size: int, dy: int, weight: int) -> Layer:
        style = {"fontSize": size, "dy": dy, "fontWeight": weight}
        return Layer("text", rows, "called", "truth", color=Field("ink"), text=field, style=style)

    heat = Layer(
        "rect",
        rows,
        x="called",
        y="truth",
        color=HEAT,
        opacity=Field("share"),
        style={"cornerRadius": 6},
    )
    return Chart(
        [heat, *(text(*style) for style in texts)],
        x=Names(list(dict.fromkeys(row["called"] for row in rows))),
        y=Names(list(dict.fromkeys(row["truth"] for row in rows))),
        width=size[0],
        height=size[1],
    )


def _described(chart: Chart) -> str:
    """Return the picture, with its counts for screen readers."""
    cells = chart.layers[0].records
    counts = "; ".join(f"{cell['name']} {cell['count']} {cell['noise']}".rstrip() for cell in cells)
    return chart.svg(says=f"Confusion matrix with noisy counts: {counts}")
