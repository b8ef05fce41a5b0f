"""Answers as a page shows them, alone and side by side. Everything here was paid for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heldout import questions as q
from heldout.drawing.chart import MUTED, PALETTE, Chart, Field, Figure, Layer, Numbers, records
from heldout.drawing.pictures import interval_plot
from heldout.drawing.words import spread
from heldout.intervals.confusion import ConfusionRelease
from heldout.intervals.groups import ByGroup
from heldout.intervals.measure import Measure, measures_of
from heldout.questions.curves.release import CurvesRelease
from heldout.questions.report.report import Report
from heldout.server import evaluations

LEVEL = 0.95
MOST = len(PALETTE)
"""Curves that one picture shows: as many as there are colours to tell them apart."""


@dataclass(frozen=True)
class Block:
    """One answer: its first number, its pictures, all its numbers."""

    heading: str
    title: str
    value: str
    interval: str
    noise: str
    figures: tuple[Figure, ...]
    rows: tuple[tuple[str, ...], ...]
    finding: str | None = None
    """One sentence that says what it shows."""


@dataclass(frozen=True)
class SideBySide:
    """Own models on one picture."""

    measures: tuple[str, ...]
    chosen: str
    figures: tuple[Figure, ...]
    rows: tuple[tuple[str, ...], ...]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def blocks(row: Any) -> tuple[Block, ...]:
    """Return the answers of an evaluation, in the order of the questions."""
    drawn = list(map(_block, row.questions, evaluations.releases(row)))
    captions: set[str] = set()
    for place, block in enumerate(drawn):
        # What dots and bars are is said once on a page.
        figures = tuple(
            replace(figure, caption="") if figure.caption in captions else figure
            for figure in block.figures
        )
        captions |= {figure.caption for figure in figures}
        drawn[place] = replace(block, figures=figures)
    return tuple(drawn)


def _block(question: Mapping[str, Any], release: Any) -> Block:
    measures = measures_of(release)
    headline: Measure = (
        release.largest_gap(LEVEL) if isinstance(release, ByGroup) else release.headline
    )
    if isinstance(release, Report):
        inner = [figure for section in release for figure in section.figures(LEVEL)]
        readable = {name: one for name, one in release.plotted().items() if one.informative}
        figures = ([interval_plot(readable, level=LEVEL)] if readable else []) + inner
    else:
        figures = list(release.figures(LEVEL)) or _intervals(measures)
    value, interval, noise = spread(headline, LEVEL)
    rows = tuple((_capital(name), *spread(one, LEVEL)) for name, one in measures.items())
    heading = q.find(question["question"]).asks
    if isinstance(release, ConfusionRelease):
        heading = f"{heading} Calling rows positive from a score of {release.threshold:g}"
    title = _capital(headline.name)
    finding = release.finding(LEVEL)
    return Block(heading, title, value, interval, noise, tuple(figures), rows, finding)


def _intervals(measures: Mapping[str, Measure]) -> list[Figure]:
    shares = {name: one for name, one in measures.items() if _is_share(one)}
    return [interval_plot(shares, level=LEVEL)] if shares else []


def _is_share(measure: Measure) -> bool:
    return all(0 <= end <= 1 for end in measure.interval(LEVEL)) and not measure.whole


def side_by_side(answers: Sequence[tuple[str, Any]], chosen: str | None) -> SideBySide:
    """Return the same measure of several evaluations, each with the name of its model."""
    shared_by: dict[str, dict[str, Measure]] = {}
    curves: dict[str, CurvesRelease] = {}
    for model, row in answers:
        for release in evaluations.releases(row):
            for name, measure in measures_of(release).items():
                if _is_share(measure):
                    of = shared_by.setdefault(name, {})
                    of[_another(model, of)] = measure
            for part in release if isinstance(release, Report) else (release,):
                if isinstance(part, CurvesRelease):
                    curves[_another(model, curves)] = part
    shared = sorted(shared_by, key=lambda name: -len(shared_by[name]))
    of_all = chosen if chosen in shared_by else next(iter(shared), "")
    shown = dict(list(shared_by.get(of_all, {}).items())[-12:])
    figures = [interval_plot(shown, level=LEVEL)] if shown else []
    if curves:
        figures.append(_overlaid(dict(list(curves.items())[-MOST:])))
    rows = tuple((name, *spread(one, LEVEL)) for name, one in shown.items())
    return SideBySide(tuple(shared), of_all, tuple(figures), rows)


def _another(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name that is not taken: the second answer about a model says that it is one."""
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name} ({count})"
    return free


def _overlaid(curves: Mapping[str, CurvesRelease]) -> Figure:
    """Several ROC curves on one picture."""
    colours = dict(zip(curves, PALETTE, strict=False))
    chance = Layer(
        "line",
        [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}],
        color=MUTED,
        style={"strokeDash": [4, 3], "strokeWidth": 1.2},
    )
    points = [
        point | {"model": name}
        for name, release in curves.items()
        for point in records(x=release.roc.fpr, y=release.roc.tpr)
    ]
    chart = Chart(
        [chance, Layer("line", points, color=Field("model"))],
        x=Numbers("False positive rate"),
        y=Numbers("True positive rate"),
        title="ROC curves",
        colours=colours,
    )
    says = f"The ROC curves of {', '.join(curves)}; the dashed line is chance."
    return Figure(chart.svg(says=says), says)
