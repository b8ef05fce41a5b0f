"""Pages and notebook cards from templates in which every text is escaped.

A page is one file: no script, and no font, style or picture from another place. Jinja2 is
imported when the first page is made.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from heldout.arguments import shown, visible
from heldout.drawing import words
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
    captions,
)
from heldout.drawing.words import half_width, spread
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

    from heldout.intervals.measure import Measure


def rendered(template: str, **content: Any) -> str:
    """Return the text of a template; `content` is what it shows."""
    return _templates().get_template(template).render(content)


def checked_labels(names: Sequence[str | None], labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return what the page is to call the data and its columns; refuse names that they lack."""
    unknown = [label for label in labels if label not in names]
    if unknown:
        known = ", ".join(shown(name) for name in names if name)
        raise ArgumentError(f"labels must name some of {known}, got {shown(unknown[0])}.")
    return labels


def card(
    says: str,
    *,
    drawn: Sequence[Figure] = (),
    head: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
    note: str = "",
) -> str:
    """Return what a notebook shows: a sentence, pictures, a table (none without a head), a note."""
    return rendered("card.html", says=says, drawn=drawn, head=head, rows=list(rows), note=note)


def measures_card(
    says: str, measures: Mapping[str, "Measure"], *, drawn: Sequence[Figure] = (), note: str = ""
) -> str:
    """Return a card with a table of measures; without pictures it shows their intervals."""
    if not drawn and all(
        0 <= end <= 1 for measure in measures.values() for end in measure.interval()
    ):
        drawn = [interval_plot(measures, level=0.95)]
    rows = [
        (_sentence(words.tested(name, measure)), *words.spread(measure, 0.95))
        for name, measure in measures.items()
    ]
    head = ("Measure", "Value", "95% interval", "Noise alone")
    return card(says, drawn=drawn, head=head, rows=rows, note=note)


@cache
def _templates() -> "Environment":
    from jinja2 import PackageLoader

    return environment(PackageLoader("heldout.drawing"))


def environment(loader: "BaseLoader") -> "Environment":
    """Return templates in which every text is escaped and no name may be missing."""
    import platform
    from importlib.metadata import version

    from jinja2 import Environment, StrictUndefined

    templates = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_seen,
    )
    templates.globals |= {name: getattr(words, name) for name in words.__all__}
    templates.globals["captions"] = captions
    templates.globals |= {"python": platform.python_version(), "version": version("heldout")}
    templates.filters |= {"percent": _percent, "sentence": _sentence, "whole": "{:,.0f}".format}
    return templates


def _seen(value: object) -> object:
    """Return a text as people can see it; markup of ours, such as a picture, stays as it is."""
    return visible(value, allowed="\n\t") if type(value) is str else value


def _percent(share: float) -> str:
    """
    >>> _percent(0.95), _percent(0.123), _percent(0.00123)
    ('95%', '12.3%', '0.12%')
    """
    return f"{share * 100:.{3 if share >= 0.1 else 2}g}%"


def _sentence(text: str) -> str:
    """Return it with a capital at its beginning; the rest stays as it is."""
    return text[:1].upper() + text[1:]


# --- where a page is written ---


def write_page(path: str | os.PathLike[str], make: Callable[[], str]) -> Path:
    """Make a page and write it, if there is a place for it."""
    place = checked_place(path)
    write_file(place, make())
    return place


def write_file(place: Path, content: str) -> None:
    """Write a page or a picture; a failure, such as a full disk, raises a HeldoutError."""
    try:
        place.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            f"path must be a file that can be written, got {shown(place.name)} ({error.strerror})."
        ) from None


def checked_place(path: str | os.PathLike[str], *pictures: str) -> Path:
    """Return a place for a page, looked at before anything is paid for what will be in it.

    `pictures` are the endings that it may have beside .html.
    """
    place = Path(path)
    if place.suffix.lower() not in (".html", ".htm", *pictures):
        endings = " or ".join((".html", *pictures))
        raise ArgumentError(f"A page must be saved as {endings}, got {shown(place.name)}.")
    if not _is_writable(place):
        raise ArgumentError(
            f"path must be a file that can be written, got {shown(os.fspath(path))}. Check that "
            "its directory is there."
        )
    return place


def _is_writable(place: Path) -> bool:
    try:
        if b"\0" in os.fsencode(place):
            return False
        there = place if place.exists() else place.parent
        return not place.is_dir() and there.exists() and os.access(there, os.W_OK)
    except (OSError, ValueError):  # a name that the system cannot spell, or too long a one
        return False


# --- pictures of measures: intervals side by side, and the confusion matrix -----------------------


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
