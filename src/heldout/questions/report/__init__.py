"""A report: several releases of one data set, what they cost, and how people read them."""

import importlib.metadata
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import heldout
from heldout.arguments import no_attribute
from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.drawing.page import checked_labels, interval_plot, measures_card, rendered, write_page
from heldout.drawing.words import few
from heldout.errors import ArgumentError
from heldout.intervals.measure import NO_INFORMATION, Exported, Measure, Release
from heldout.kernel import Budget, Loss
from heldout.questions.answers import Answered
from heldout.questions.ranking.release import AucRelease, TieBound
from heldout.questions.registry import places, section_name

SCHEMA = 2
"""Since 2, sections go by the kinds of their questions."""


@dataclass(frozen=True)
class Report(Exported):
    """Holds what was released, by section. Everything here is already paid for."""

    kind = "report"
    subject: ScoredRows | ClassifiedRows
    """The public facts of the rows that were evaluated."""
    epsilon: Fraction
    shares: Mapping[str, Fraction]
    releases: Mapping[str, Release]
    left_out: Mapping[str, str]
    budget: Budget
    spent: Loss
    remaining: Loss
    time: datetime

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            sections = {kind.replace("-", "_"): kind for kind in vars(self).get("releases", ())}
            for meant in get_close_matches(name, sections, n=1, cutoff=0.75):
                raise AttributeError(
                    f"'Report' object has no attribute {name!r}. Its sections go by name: "
                    f"report[{sections[meant]!r}]."
                )
            raise no_attribute("'Report' object", name, dir(self))

    def __getitem__(self, name: str) -> Release:
        try:
            return self.releases[section_name(name)]
        except KeyError:
            have = ", ".join(self.releases)
            raise ArgumentError(f"section must be one of {have}, got {name!r}.") from None

    def __iter__(self) -> Iterator[Release]:
        return iter(self.releases.values())

    @property
    def headline(self) -> Measure:
        """The area under the ROC curve if it was bought, or else the first measure."""
        known = places()
        leading = [release for name, release in self.releases.items() if known[name].section.leads]
        return (leading or list(self.releases.values()))[0].headline

    def measures(self) -> dict[str, Measure]:
        """All measures of all sections, by name."""
        return {name: measure for release in self for name, measure in release.measures.items()}

    def plotted(self) -> dict[str, Measure]:
        """The measures that lie between 0 and 1, of all sections."""
        return {name: measure for release in self for name, measure in release.plotted().items()}

    def read_at(self, level: float) -> None:
        """Work out both intervals of every measure, before anything is said or drawn of them."""
        for measure in self.measures().values():
            _ = measure.interval(level), measure.noise_interval(level), measure.informative

    def __str__(self) -> str:
        lines = [f"{few(self.subject.score)} on {self.subject.name}, {self.terms}"]
        width = max((len(name) for name in self.plotted()), default=0)
        for name, measure in self.plotted().items():
            low, high = measure.interval()
            value = f"{measure.value:.3f}" if measure.informative else NO_INFORMATION
            lines.append(f"  {name:<{width}}  {value}  ({low:.3f} to {high:.3f})")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def terms(self) -> str:
        return f"epsilon {self.epsilon}, {self.subject.protection.describe()}"

    @property
    def weighing(self) -> str | None:
        """Return what a row counts for, in words; None if each counts once."""
        for parameters in (release.parameters for release in self):
            if "weight" in parameters:
                most = f"at most {parameters['largest_weight']:g}"
                return f"a row counts for its {parameters['weight']}, {most}; counts are sums of it"
        return None

    def tie_bound(self, level: float = 0.95) -> TieBound | None:
        """Return how much ranking on the grid can matter; None if exact scores were ranked."""
        area, ties, curves = (self.releases.get(kind) for kind in ("auc", "grid-ties", "curves"))
        if not isinstance(area, AucRelease) or not area.on_grid:
            return None
        sources: list[Any] = [release for release in (area, ties, curves) if release is not None]
        # Each with its share of the error, so that the least of them holds at the level.
        bounds = [source.tie_bound(1 - (1 - level) / len(sources)) for source in sources]
        smallest: TieBound = min(bounds, key=lambda bound: bound.auc)
        precision = next((bound.average_precision for bound in bounds[::-1]), None)
        return replace(smallest, level=level, average_precision=precision)

    def stored_readings(self) -> dict[str, Any] | None:
        """Return what was read off sections whose noisy numbers do not decide everything."""
        sections = {name: release.stored_readings() for name, release in self.releases.items()}
        return {name: read for name, read in sections.items() if read is not None} or None

    def as_read(self, readings: Mapping[str, Any]) -> Self:
        """Return the same report with the numbers that were read off it before."""
        if not set(readings) <= set(self.releases):
            raise ValueError("readings")
        read = {name: self.releases[name].as_read(part) for name, part in readings.items()}
        return replace(self, releases={**self.releases, **read})

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON: everything that an analyst may see of this report."""
        ties = self.tie_bound(level)
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "heldout": heldout.__version__,
            "time": self.time.isoformat(timespec="seconds"),
            "subject": self.subject.as_dict(),
            "epsilon": str(self.epsilon),
            "shares": {name: str(share) for name, share in self.shares.items()},
            "releases": {name: release.as_dict(level) for name, release in self.releases.items()},
            "left_out": dict(self.left_out),
            "ties": None if ties is None else ties.as_dict(),
            "budget": self.budget.as_dict(),
            "spent": self.spent.as_dict(),
            "remaining": self.remaining.as_dict(),
        }

    def html(
        self,
        level: float = 0.95,
        *,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> str:
        """The whole page, which needs nothing from anywhere else.

        `title` is its heading; `labels` say what people call the data, its columns and the unit,
        such as `labels={"risk_b": "the new model"}`.
        """
        return page(self, level=level, title=title, labels=labels)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        level: float = 0.95,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the page as one self-contained HTML file; `title` and `labels` as in `html`."""
        return write_page(path, lambda: self.html(level, title=title, labels=labels))

    def _repr_html_(self) -> str:
        return measures_card(
            f"Evaluation of {self.subject.score} on {self.subject.name}",
            self.plotted(),
            note=f"Paid: {self.terms}.",
        )


ENGINES = ("duckdb", "opendp")


@dataclass(frozen=True)
class Part:
    """A section of a report, as the page shows it."""

    title: str
    meaning: str
    cards: tuple[Measure, ...]
    """What is shown large."""
    measures: Mapping[str, Measure]
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
        return cls(title, about.meaning, tuple(cards), release.measures, note)


def page(
    report: Report,
    *,
    level: float = 0.95,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> str:
    """The whole document; `labels` are what people call the data and its columns.

    All numbers are read first, then drawn; the template says them in words.
    """
    report.read_at(level)
    readable = {name: measure for name, measure in report.plotted().items() if measure.informative}
    facts = {
        "ties": report.tie_bound(level),
        "weighing": report.weighing,
        "terms": report.terms,
        "scores": report.subject.scores_in_words(),
    }
    mechanisms = {name: _mechanism(release) for name, release in report.releases.items()}
    # What the headline is of comes first.
    releases = dict(
        sorted(report.releases.items(), key=lambda item: item[1].headline is not report.headline)
    )
    parts = [Part.of(name, release, alone=len(releases) == 1) for name, release in releases.items()]
    titles = {name: place.section.title for name, place in places().items()}
    labels = checked_labels(report.subject.names, labels or {})
    protection = report.subject.protection
    if protection.unit_name is not None:
        unit = labels.get(protection.unit_name, protection.unit_name)
        protection = replace(protection, unit_name=unit)
    drawn = [interval_plot(readable, level=level)] if readable else []
    # A lone small picture comes last, so that the two columns end together.
    for figures in sorted((release.figures(level) for release in releases.values()), key=len)[::-1]:
        drawn += figures
    return rendered(
        "evaluation.html",
        heading=title,
        report=report,
        level=level,
        labels=labels,
        protection=protection,
        price=Loss.pure(report.epsilon),
        releases=list(releases.values()),
        parts=parts,
        drawn=drawn,
        left_out=[(titles[name], why) for name, why in report.left_out.items()],
        paid=[(titles[name], report.shares[name], mechanisms[name]) for name in releases],
        engines=", ".join(f"{name} {importlib.metadata.version(name)}" for name in ENGINES),
        **facts,
    )


def _mechanism(release: Release) -> str:
    """The name of what drew the noise, in words where the name tells nothing."""
    name = str(release.mechanism.get("name", ""))
    return "private cuts, then discrete Laplace counts" if name == "heldout" else name


# --- The page of any answers: one section for each question --------------------------------------


LEVEL: Final = 0.95


def answers_page(answered: Answered) -> str:
    """Return a self-contained page with every measure and picture of the answers."""
    parts, about, names = list(_parts(answered)), answered.drawn.about, answered.names
    model = None if about.model is None else names.get(about.model, few(about.model))
    whose = f"{model} on {about.name}" if model is not None else about.name
    heading = f"How good is {whose}?" if model is not None else f"Answers about {whose}"
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
            for name, part in release.releases.items():
                yield f"{at}. {places()[name].section.title}", part
        else:
            kind = answered.questions[at - 1].kind.replace("-", " ")
            yield f"{at}. {kind[:1].upper()}{kind[1:]}", release
