"""The report as one HTML page that needs nothing from anywhere else."""

import importlib.metadata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from heldout.drawing.chart import Figure
from heldout.drawing.page import checked_labels, rendered
from heldout.drawing.pictures import interval_plot
from heldout.drawing.words import belief, decimal
from heldout.intervals.measure import Measure
from heldout.intervals.release import Release
from heldout.kernel import Loss
from heldout.questions.answers import Answered
from heldout.questions.registry import places
from heldout.questions.report.report import Report

__all__ = ["REMARKS", "answers_page", "page", "precision_recall_page"]

ENGINES = ("duckdb", "opendp")


@dataclass(frozen=True)
class Part:
    """A section of a report, as it is shown."""

    title: str
    meaning: str
    release: Release
    cards: tuple[Measure, ...]
    note: str

    @classmethod
    def of(cls, name: str, release: Release, *, alone: bool) -> "Part":
        about, threshold = places()[name].section, getattr(release, "threshold", None)
        cards = [release.measures[card] for card in about.cards]
        if not cards:
            cards = (alone and list(release.plotted().values())) or [release.headline]
        note = "lower is better" if about.lower_is_better else ""
        if threshold is not None:
            note = f"at a score of {threshold:g} or more"
        title = about.title if threshold is None else f"{about.title} {threshold:g}"
        return cls(title, about.meaning, release, tuple(cards), note)


def page(
    report: Report,
    *,
    level: float = 0.95,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> str:
    """The whole document; `labels` are what people call the data and its columns."""
    subject, labels = report.subject, checked_labels(report.subject.names, labels or {})

    def named(name: str) -> str:
        return labels.get(name, name)

    protection = subject.protection
    if protection.unit_name is not None:
        protection = replace(protection, unit_name=named(protection.unit_name))
    readable = {name: each for name, each in report.plotted().items() if each.informative}
    drawn = [interval_plot(readable, level=level)] if readable else []
    # What the headline is of comes first.
    releases = dict(
        sorted(report.releases.items(), key=lambda each: each[1].headline is not report.headline)
    )
    # A lone small picture comes last, so that the two columns end together.
    for figures in sorted((each.figures(level) for each in releases.values()), key=len)[::-1]:
        drawn += figures
    heading = title or f"How good is {named(subject.score)} on {named(subject.name)}?"
    earlier = report.spent != Loss.pure(report.epsilon)
    return rendered(
        "evaluation.html",
        title=title or f"{named(subject.score)} on {named(subject.name)}: private evaluation",
        heading=heading,
        report=report,
        level=level,
        named=named,
        protection=protection,
        releases=list(releases.values()),
        parts=[
            Part.of(name, release, alone=len(releases) == 1) for name, release in releases.items()
        ],
        drawn=drawn,
        ties=report.tie_bound(level),
        left_out=[(places()[name].section.title, why) for name, why in report.left_out.items()],
        bet=belief(Loss.pure(report.epsilon), protection),
        so_far=belief(report.spent, protection) if earlier else "",
        paid=[
            (
                places()[name].section.title,
                f"epsilon {decimal(report.shares[name])}",
                _mechanism(release),
            )
            for name, release in releases.items()
        ],
        engines=", ".join(f"{name} {importlib.metadata.version(name)}" for name in ENGINES),
    )


def _mechanism(release: Release) -> str:
    """The name of what drew the noise, in words where the name tells nothing."""
    name = str(release.mechanism.get("name", ""))
    return "private cuts, then discrete Laplace counts" if name == "heldout" else name


# --- The page of any answers: one section for each question --------------------------------------


LEVEL: Final = 0.95


def answers_page(answered: Answered) -> str:
    """Return a self-contained page with every measure and picture of the answers."""
    parts, about = list(_parts(answered)), answered.drawn.about
    whose = f"{about.model} on {about.name}" if about.model is not None else about.name
    heading = f"How good is {whose}?" if about.model is not None else f"Answers about {whose}"
    return rendered(
        "answer.html",
        title=f"{whose}: private evaluation",
        heading=heading,
        about=about,
        level=LEVEL,
        parts=parts,
        receipt=answered.receipt,
        releases=[release for _, release in parts],
        standing=answered.standing,
    )


def _parts(answered: Answered) -> Iterator[tuple[str, Any]]:
    """Every release with a title; those of a report among other questions follow one another."""
    for at, release in enumerate(answered.releases, start=1):
        if isinstance(release, Report):
            for name, each in release.releases.items():
                yield f"{at}. {places()[name].section.title}", each
        else:
            kind = answered.questions[at - 1].kind.replace("-", " ")
            yield f"{at}. {kind[:1].upper()}{kind[1:]}", release


# --- The page on a public precision-recall curve, as one file that needs nothing from elsewhere --


REMARKS: Mapping[str, str] = {
    "lower-trapezoid": "recommended",
    "average-precision": "recommended",
    "interpolated-median": "recommended",
    "upper-trapezoid": "too high",
    "interpolated-max": "a little high",
    "interpolated-convex": "too high",
    "binormal": "right only for normal scores",
}
"""What Boyd (2014, chapter 4) found of each estimator of the area."""


def precision_recall_page(found: Mapping[str, Any], *, name: str, svg: str, title: str = "") -> str:
    """The whole document; `found` is what `heldout pr --json` prints."""
    estimator = found["estimator"]
    caption = (
        f"Drawn as {estimator} takes it, with a {found['interval']['confidence'] * 100:g}% band at "
        "each recall. Grey: what no ranking of these rows can reach. Dashed: guessing."
    )
    return rendered(
        "precision_recall.html",
        title=title or f"Precision and recall on {name}",
        found=found,
        drawn=[Figure(svg, caption)],
        areas=[
            (
                each.replace("-", " "),
                "undefined" if value is None else f"{value:.4f}",
                REMARKS.get(each, "") + (" (chosen)" if each == estimator else ""),
            )
            for each, value in found["areas"].items()
        ],
    )
