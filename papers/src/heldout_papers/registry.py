"""How a table or figure of a paper registers itself, and what it gets and gives.

    @figure(paper="boyd-2014", number="4.5", title="Bias ratio by data set size")
    def bias_by_size(context: Context) -> Reproduction: ...

The modules of this package are imported only when the command runs (`discover`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from heldout.errors import ArgumentError
from heldout.workers import mapper

Progress = Callable[[str, int, int], None]
Job = TypeVar("Job")
Result = TypeVar("Result")


def _silent(_label: str, _done: int, _total: int) -> None:
    """No progress bar."""


@dataclass(frozen=True)
class Context:
    """What a figure may use.

    `data` is the folder of public data sets or None; `repetitions` None means the paper's own
    number; `progress(label, done, total)` moves a bar; `shared` lives for one command, so that
    figures of one study pay for it once.
    """

    data: Path | None = None
    repetitions: int | None = None
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    progress: Progress = _silent
    shared: dict[str, Any] = field(default_factory=dict)

    def over(
        self, work: Callable[[Job], Result], jobs: Sequence[Job], *, label: str
    ) -> Iterator[Result]:
        """`work(job)` for all jobs on all workers, as they finish, moving the progress bar.

        `work` must be a function of a module and a job must pickle. One worker runs in-process.
        """
        self.progress(label, 0, len(jobs))
        with mapper(self.workers) as mapped:
            for done, result in enumerate(mapped(work, jobs), start=1):
                self.progress(label, done, len(jobs))
                yield result


@dataclass(frozen=True)
class Reproduction:
    """What a figure gives: charts (Altair or Vega-Lite mappings), a table, and what it shows."""

    title: str
    table: Sequence[Mapping[str, Any]]
    charts: Sequence[Any] = ()
    description: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Entry:
    """One registered table or figure."""

    paper: str
    kind: str
    number: str
    title: str
    needs_data: tuple[str, ...]
    make: Callable[[Context], Reproduction]

    @property
    def name(self) -> str:
        """File name without suffix, such as `boyd-2014-figure-4.5`."""
        return f"{self.paper}-{self.kind}-{self.number}"

    def run(self, context: Context) -> Reproduction:
        """Make it, after a look at the data it needs."""
        missing = [
            name
            for name in self.needs_data
            if context.data is None or not (context.data / name).exists()
        ]
        if missing:
            raise ArgumentError(
                f"data must hold {', '.join(missing)} for {self.kind} {self.number} of "
                f"{self.paper}, got {context.data or 'no folder'}. Pass --data with the folder."
            )
        return self.make(context)


_ENTRIES: dict[tuple[str, str, str], Entry] = {}

Maker = Callable[[Context], Reproduction]


def figure(
    *, paper: str, number: str, title: str, needs_data: Iterable[str] | None = None
) -> Callable[[Maker], Maker]:
    """Register a figure of a paper; `needs_data` are names below the data folder."""
    return _register("figure", paper, number, title, needs_data)


def table(
    *, paper: str, number: str, title: str, needs_data: Iterable[str] | None = None
) -> Callable[[Maker], Maker]:
    """Register a table of a paper."""
    return _register("table", paper, number, title, needs_data)


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


def _register(
    kind: str, paper: str, number: str, title: str, needs_data: Iterable[str] | None
) -> Callable[[Maker], Maker]:
    def keep(make: Maker) -> Maker:
        key = (paper, kind, number)
        other = _ENTRIES.get(key)
        if other is not None and other.make.__module__ != make.__module__:
            raise ArgumentError(
                f"{kind} must be registered once, got {number} of {paper} twice. Rename one."
            )
        _ENTRIES[key] = Entry(paper, kind, number, title, tuple(needs_data or ()), make)
        return make

    return keep


def _order(entry: Entry) -> tuple[tuple[int, str], ...]:
    parts = entry.number.replace("-", ".").split(".")
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in parts)
