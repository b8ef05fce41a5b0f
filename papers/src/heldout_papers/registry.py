"""How a table or figure of a paper registers itself, and what it gets and gives.

    @figure(paper="boyd-2014", number="4.5", title="Bias ratio by data set size")
    def bias_by_size(context: Context) -> Reproduction: ...

The modules of this package are imported only when the command runs (`discover`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from heldout.errors import ArgumentError
from heldout.workers import mapper
from heldout_papers.finished import Finished, keeping

Progress = Callable[[str, int, int], None]
Job = TypeVar("Job")
Result = TypeVar("Result")


def _silent(_label: str, _done: int, _total: int) -> None:
    """No progress bar."""


@dataclass(frozen=True)
class Context:
    """What a figure may use.

    `data` is the folder of public data sets or None; `repetitions` None means the paper's own
    number; `quick` asks for fewer folds of a cross-validation too; `progress(label, done, total)`
    moves a bar; `shared` lives for one command, so that figures of one study pay for it once;
    `done` is a folder that keeps each finished job until its figure is made, or None.
    """

    data: Path | None = None
    repetitions: int | None = None
    quick: bool = False
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    progress: Progress = _silent
    shared: dict[str, Any] = field(default_factory=dict)
    done: Path | None = None

    def over(
        self, work: Callable[[Job], Result], jobs: Sequence[Job], *, label: str
    ) -> Iterator[Result]:
        """`work(job)` for all jobs on all workers, as they finish, moving the progress bar.

        `work` must be a function of a module and a job must pickle. One worker runs in-process.
        What an interrupted run has left in `done` comes first and is not worked out again.
        """
        kept = Finished(self.done)
        left, found = kept.look_for(work, jobs)
        self.progress(label, len(found), len(jobs))
        yield from found
        with mapper(self.workers) as mapped:
            worked = mapped(keeping, [(work, job, place) for job, place in left])
            for done, result in enumerate(worked, start=len(found) + 1):
                self.progress(label, done, len(jobs))
                yield result


@dataclass(frozen=True)
class Claim:
    """A finding of a paper, with its printed number beside ours."""

    text: str
    printed: str
    here: str
    holds: bool | Verdict
    why: str = ""
    """Why it differs, or that no cause was found."""
    data: str = ""
    """The data that stand in for the paper's, if those are not public."""

    @property
    def verdict(self) -> Verdict:
        if isinstance(self.holds, Verdict):
            return self.holds
        return Verdict.REPRODUCED if self.holds else Verdict.DIFFERS

    def as_dict(self) -> dict[str, str]:
        """Return it as plain JSON, with its verdict."""
        return {
            "text": self.text,
            "printed": self.printed,
            "here": self.here,
            "verdict": str(self.verdict),
            "why": self.why,
            "data": self.data,
        }


class Verdict(StrEnum):
    """How a finding comes out here."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    OURS = "ours / open question"
    """No paper claims it: a question that a paper leaves open, or a finding of our own."""
    IMPOSSIBLE = "impossible"
    """It cannot be matched: data or a model are not public."""


@dataclass(frozen=True)
class Reproduction:
    """What a figure gives: charts (Altair or Vega-Lite mappings), a table, and what it shows."""

    title: str
    table: Sequence[Mapping[str, Any]]
    charts: Sequence[Any] = ()
    description: str = ""
    notes: Sequence[str] = ()
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Entry:
    """One registered table or figure."""

    paper: str
    kind: str
    number: str
    title: str
    needs_data: tuple[str, ...]
    make: Callable[[Context], Reproduction]
    quick: int | None = None
    """Repetitions for a quick look; None: as many as the paper has."""

    @property
    def name(self) -> str:
        """File name without suffix, such as `boyd-2014-figure-4.5`."""
        return f"{self.paper}-{self.kind}-{self.number}"

    def missing(self, data: Path | None) -> list[str]:
        """What it needs and the folder does not have."""
        return [name for name in self.needs_data if data is None or not (data / name).exists()]

    def run(self, context: Context) -> Reproduction:
        """Make it, after a look at the data it needs."""
        missing = self.missing(context.data)
        if missing:
            raise ArgumentError(
                f"data must hold {', '.join(missing)} for {self.kind} {self.number} of "
                f"{self.paper}, got {context.data or 'no folder'}. Pass --data with the folder."
            )
        return self.make(context)


_ENTRIES: dict[tuple[str, str, str], Entry] = {}

Maker = Callable[[Context], Reproduction]


def figure(
    *,
    paper: str,
    number: str,
    title: str,
    needs_data: Iterable[str] | None = None,
    quick: int | None = None,
) -> Callable[[Maker], Maker]:
    """Register a figure of a paper; `needs_data` are names below the data folder."""
    return _register(Entry(paper, "figure", number, title, tuple(needs_data or ()), _none, quick))


def table(
    *,
    paper: str,
    number: str,
    title: str,
    needs_data: Iterable[str] | None = None,
    quick: int | None = None,
) -> Callable[[Maker], Maker]:
    """Register a table of a paper."""
    return _register(Entry(paper, "table", number, title, tuple(needs_data or ()), _none, quick))


def discover() -> list[Entry]:
    """All entries, after importing every module of this package."""
    import importlib
    import pkgutil

    import heldout_papers as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return sorted(_ENTRIES.values(), key=lambda entry: (entry.paper, entry.kind, _order(entry)))


def find(*, paper: str, kind: str, number: str) -> Entry:
    """One entry, or an error that names what there is."""
    entries = discover()
    for entry in entries:
        if (entry.paper, entry.kind, entry.number) == (paper, kind, number):
            return entry
    papers = sorted({entry.paper for entry in entries})
    if paper not in papers:
        raise ArgumentError(f"paper must be one of {', '.join(papers)}, got {paper!r}. Try --list.")
    known = ", ".join(e.number for e in entries if e.paper == paper and e.kind == kind)
    raise ArgumentError(
        f"{kind} must be one of {known or 'none'} for {paper}, got {number!r}. Try --list."
    )


def _none(_: Context) -> Reproduction:
    """In the place of the function until it is known."""
    raise NotImplementedError


def _register(entry: Entry) -> Callable[[Maker], Maker]:
    def keep(make: Maker) -> Maker:
        key = (entry.paper, entry.kind, entry.number)
        other = _ENTRIES.get(key)
        if other is not None and other.make.__module__ != make.__module__:
            raise ArgumentError(
                f"{entry.kind} must be registered once, got {entry.number} of {entry.paper} "
                "twice. Rename one."
            )
        _ENTRIES[key] = replace(entry, make=make)
        return make

    return keep


def _order(entry: Entry) -> tuple[tuple[int, str], ...]:
    parts = entry.number.replace("-", ".").split(".")
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in parts)
