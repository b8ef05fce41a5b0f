"""A report: several releases of one data set, what they cost, and how people read them."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import heldout
from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.drawing.page import measures_card, write_page
from heldout.errors import ArgumentError
from heldout.intervals.measure import NO_INFORMATION, Exported, Measure
from heldout.intervals.release import Release
from heldout.kernel import Budget, Loss
from heldout.questions.ranking.release import AucRelease, TieBound
from heldout.questions.registry import places, section_name

SCHEMA = 2
"""Since 2, sections go by the kinds of their questions."""


@dataclass(frozen=True)
class Report(Exported):
    """What was released, by section. Everything here is already paid for."""

    kind: ClassVar[str] = "report"
    subject: ScoredRows | ClassifiedRows
    """What was evaluated: the public facts of the rows."""
    epsilon: Fraction
    shares: Mapping[str, Fraction]
    releases: Mapping[str, Release]
    left_out: Mapping[str, str]
    budget: Budget
    spent: Loss
    remaining: Loss
    time: datetime

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
        leading = [each for name, each in self.releases.items() if known[name].section.leads]
        return (leading or list(self.releases.values()))[0].headline

    def measures(self) -> dict[str, Measure]:
        """All measures of all sections, by name."""
        return {name: each for release in self for name, each in release.measures.items()}

    def plotted(self) -> dict[str, Measure]:
        """The measures that lie between 0 and 1, of all sections."""
        return {name: measure for release in self for name, measure in release.plotted().items()}

    def __str__(self) -> str:
        lines = [f"{self.subject.score} on {self.subject.name}, {self.terms}"]
        width = max((len(name) for name in self.plotted()), default=0)
        for name, each in self.plotted().items():
            low, high = each.interval()
            value = f"{each.value:.3f}" if each.informative else NO_INFORMATION
            lines.append(f"  {name:<{width}}  {value}  ({low:.3f} to {high:.3f})")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def terms(self) -> str:
        return f"epsilon {self.epsilon}, {self.subject.protection.describe()}"

    @property
    def weighing(self) -> str | None:
        """Return what a row counts for, in words; None if each counts once."""
        for told in (each.parameters for each in self):
            if "weight" in told:
                most = f"at most {told['largest_weight']:g}"
                return f"a row counts for its {told['weight']}, {most}; counts are sums of it"
        return None

    def tie_bound(self, level: float = 0.95) -> TieBound | None:
        """Return how much ranking on the grid can matter; None if exact scores were ranked."""
        area, ties, curves = (self.releases.get(each) for each in ("auc", "grid-ties", "curves"))
        if not isinstance(area, AucRelease) or not area.on_grid:
            return None
        sources: list[Any] = [each for each in (area, ties, curves) if each is not None]
        # Each with its share of the error, so that the least of them holds at the level.
        bounds = [source.tie_bound(1 - (1 - level) / len(sources)) for source in sources]
        found: TieBound = min(bounds, key=lambda bound: bound.auc)
        precision = next((each.average_precision for each in bounds[::-1]), None)
        return replace(found, level=level, average_precision=precision)

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
            "releases": {name: each.as_dict(level) for name, each in self.releases.items()},
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
        from heldout.questions.report.page import page

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
