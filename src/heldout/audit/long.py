"""The long audit: everything that is registered, in one run and in a given time."""

import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, as_completed, wait
from dataclasses import dataclass, field
from typing import Any

from heldout.audit.auditor import audit, own_confidence, present
from heldout.audit.page import LongAudit
from heldout.audit.parallel import Progress, cores, pool
from heldout.audit.result import AuditResult
from heldout.audit.samplers import (
    check_law_at,
    check_streams,
    lattice_check,
    lattice_job,
    lattice_jobs,
    samplers,
)
from heldout.audit.schedule import Cost, answers_for, cost_of, most_answers
from heldout.audit.subjects import MECHANISM, VIOLATOR, Subject
from heldout.errors import ArgumentError

__all__ = ["LongAudit", "long_audit"]

REPLAYED = ("confusion", "auc", "average-precision")


def long_audit(
    *,
    samples: int,
    minutes: float | None = None,
    confidence: float = 0.999,
    door: str = "public",
    workers: int | None = None,
    lattice: int = 10_000_000,
    draws: int = 150_000,
    progress: Progress | None = None,
) -> LongAudit:
    """Audit all subjects and check all samplers: one run, all cores busy with a subject each.

    With `minutes`, samplers and planted violators are looked at in full, and then each of ours
    gets as many answers as fit: at most `samples`, by what an answer costs and by nothing else.
    """
    if minutes is not None and not minutes > 0:
        raise ArgumentError(f"minutes must be more than 0, got {minutes!r}. Try 45.")
    begun = time.perf_counter()
    there, missing = present()
    planted = [each for each in there if each.kind == VIOLATOR]
    own = [each for each in there if each.kind != VIOLATOR]
    again = REPLAYED if door == "public" else ()
    one = own_confidence(own, confidence, more=len(again))
    words = {"confidence": one, "workers": 1}
    with pool(workers) as executor:
        bar = _Bar(progress)
        costs, caught, laws, lattices = bar.gather(
            executor,
            [(cost_of, (each.name, door), {}) for each in own if minutes is not None]
            + [(cost_of, (name, "replay"), {}) for name in again if minutes is not None],
            [(audit, (e.name,), {**words, "samples": samples}) for e in planted],
            [(check_law_at, (place, draws), {}) for place in range(len(samplers()))],
            [(lattice_job, (job,), {}) for job in lattice_jobs(lattice)],
        )
        most = {each.name: most_answers(each, samples) for each in own}
        queue = _Queue(
            own=[*((each.name, door) for each in own), *((name, "replay") for name in again)],
            costs=costs,
            most=most,
            first=frozenset(each.name for each in own if each.kind == MECHANISM),
            until=None if minutes is None else begun + 60 * minutes,
            workers=cores(workers),
        )
        audited = queue.run(executor, words, bar)
    by_name = {(each.subject, each.door): each for each in [*caught, *audited]}
    results = [by_name.get((each.name, _door_of(each, door))) for each in there]
    replayed = [by_name.get((name, "replay")) for name in again]
    return LongAudit(
        results=[each for each in results if each is not None],
        replayed=[each for each in replayed if each is not None],
        missing=missing,
        checks=[*sorted(laws, key=lambda e: e.name), lattice_check(lattices), check_streams()],
        confidence=confidence,
        door=door,
        seconds=time.perf_counter() - begun,
        failed=queue.failed,
    )


def _door_of(subject: Subject, door: str) -> str:
    return "public" if subject.kind == VIOLATOR else door


Task = tuple[Any, tuple[Any, ...], dict[str, Any]]


@dataclass
class _Bar:
    """How far a run is."""

    progress: Progress | None
    done: int = 0
    total: int = 0

    def move(self, name: str) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(name, self.done, self.total)

    def gather(self, executor: Executor, *groups: Iterable[Task]) -> list[list[Any]]:
        """The results of each group, in any order."""
        futures: dict[Future[Any], int] = {}
        for place, group in enumerate(groups):
            for function, given, named in group:
                futures[executor.submit(function, *given, **named)] = place
        found: list[list[Any]] = [[] for _ in groups]
        self.total += len(futures)
        for each in as_completed(futures):
            found[futures[each]].append(each.result())
            self.move("samplers and violators")
        return found


@dataclass
class _Queue:
    """Our mechanisms, then our releases, the slowest first; each gets its number of answers when
    its turn comes.

    By then the clock tells what is left for those that wait, so that a wrong guess of what an
    answer costs is made good by the next ones. The answers themselves have no say.
    """

    own: list[tuple[str, str]]
    costs: list[Cost]
    most: dict[str, int]
    first: frozenset[str]
    until: float | None
    workers: int
    running: dict[Future[Any], tuple[str, float]] = field(default_factory=dict)
    """Which subject it is, and when it is expected to end."""
    failed: dict[str, str] = field(default_factory=dict)

    def run(self, executor: Executor, words: dict[str, Any], bar: _Bar) -> list[AuditResult]:
        known = {(each.subject, each.door): each for each in self.costs}
        waiting = sorted(
            self.own, key=lambda e: (e[0] not in self.first, -known[e].seconds if known else 0.0)
        )
        bar.total += len(waiting)
        found: list[AuditResult] = []
        while waiting or self.running:
            while waiting and len(self.running) < self.workers:
                name, door = waiting[0]
                samples, takes = self.most[name], 0.0
                if self.until is not None:
                    samples, takes = self._share([known[each] for each in waiting])
                waiting = waiting[1:]
                job = executor.submit(audit, name, samples=samples, door=door, **words)
                self.running[job] = name, time.perf_counter() + takes
            done, _ = wait(self.running, return_when=FIRST_COMPLETED)
            for each in done:
                name = self.running.pop(each)[0]
                try:
                    found.append(each.result())
                except Exception as problem:  # the others go on; the page says which one broke
                    self.failed[name] = f"it ended with {type(problem).__name__}"
                bar.move(name)
        return found

    def _share(self, waiting: list[Cost]) -> tuple[int, float]:
        """For the first of those that wait: its answers, and about how long they take."""
        assert self.until is not None
        now = time.perf_counter()
        busy = sum(max(0.0, ends - now) for _, ends in self.running.values())
        left = self.workers * max(0.0, self.until - now) - busy
        most = {each.key: self.most[each.subject] for each in waiting}
        first = waiting[0]
        samples = answers_for(waiting, most, left)[first.key]
        return samples, first.fixed + samples * first.seconds
