"""The auditor: looks for an event on all pairs of neighbours, then tests it on fresh answers."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, as_completed, wait
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import heldout
from heldout.arguments import OneOf, Share, Whole, shown
from heldout.audit.events import (
    AuditResult,
    Event,
    Features,
    Finding,
    Floats,
    as_table,
    best_event,
    epsilon_bound,
    learn,
    stack,
)
from heldout.audit.samplers import (
    Check,
    check_law_at,
    check_streams,
    lattice_check,
    lattice_job,
    lattice_jobs,
    samplers,
)
from heldout.audit.subjects import (
    DOORS,
    MECHANISM,
    RELEASE,
    VIOLATOR,
    Pair,
    Subject,
    find,
    registered,
)
from heldout.errors import ArgumentError
from heldout.kernel import exact
from heldout.questions.session import Epsilon
from heldout.workers import Progress, cores, mapper, pool

Job = tuple[str, str, int, Fraction, int, str]
_CHUNK = {"public": 1000, "replay": 4000}
LEAST = 400
"""Fewer answers than this test nothing."""
# For each answer that tests the worst pair: an eighth explores every pair, a quarter more the two
# most promising, and an eighth tests every other pair.
EVERY, CLOSER, BESIDE = 8, 4, 8
PROMISING = 2


def audit(
    subject: str,
    *,
    epsilon: Epsilon | None = None,
    samples: int = 20_000,
    pairs: Sequence[str] | None = None,
    confidence: float = 0.999,
    door: str = "public",
    workers: int | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """An empirical lower bound on the epsilon of a release, a mechanism or a planted violator.

    First answers are drawn on each neighbour of each named pair, more of them on the promising
    pairs, to teach features and to choose one event a pair. Then `samples` fresh answers on each
    neighbour of the worst pair test its event, and an eighth as many that of each other pair, with
    Clopper-Pearson bounds that hold together with chance `confidence`. A bound above the claimed
    epsilon is a bug in the claim, but for one audit in a thousand; a bound below it proves nothing.

    Every answer that tests comes through `door`: "public" asks a `Session` for each of them, which
    books it, reads the rows and draws; "replay" does so once and then repeats the last step, some
    four times faster. Answers that explore, and test nothing, are always replayed where they can
    be. `epsilon` is the price to audit at; None takes the one declared for the subject.

    >>> audit("discrete-laplace", epsilon="1", samples=4000, workers=1).violated
    False
    """
    checked = find(subject)
    reason = checked.missing()
    if reason is not None:
        raise ArgumentError(f"Nothing to audit: {reason}.")
    names = _names(checked, pairs)
    price = exact(checked.epsilon if epsilon is None else epsilon, name="epsilon")
    if price <= 0:
        raise ArgumentError(f"epsilon must be more than 0, got {shown(epsilon)}.")
    _check(samples, confidence, door, workers)
    samples = max(LEAST, checked.least, int(samples))
    begun = time.perf_counter()
    claimed = checked.claim(price)
    confidence = float(confidence)
    delta, error = float(claimed.delta), 1 - confidence
    with mapper(workers, 2 * (1 + samples // _CHUNK[door])) as mapped:

        def draw(wanted: Mapping[str, int], through: str) -> dict[tuple[str, int], Floats]:
            jobs = list(_jobs(checked, wanted, price, through))
            return _drawn(mapped, jobs, checked.name, progress)

        def explore(among: Sequence[str], many: int) -> None:
            for key, rows in draw(dict.fromkeys(among, max(LEAST // 4, many)), "replay").items():
                seen[key] = stack([seen[key], rows]) if key in seen else rows
            for name in among:
                explored[name] = _explore(
                    seen[name, 0], seen[name, 1], error, delta, trials=samples
                )

        seen: dict[tuple[str, int], Floats] = {}
        explored: dict[str, _Explored] = {}
        ranked = names
        if len(names) > PROMISING:
            explore(names, samples // EVERY)
            ranked = sorted(names, key=lambda name: -explored[name].promise)
        explore(ranked[:PROMISING], samples // CLOSER)
        worst = max(ranked[:PROMISING], key=lambda name: explored[name].promise)
        few = max(LEAST // 4, samples // BESIDE)
        tested = draw({name: samples if name == worst else few for name in names}, door)
    findings = []
    for name in names:
        # Half of the error is for the worst pair, the other half for all others together.
        share = 1 if len(names) == 1 else 0.5 if name == worst else 0.5 / (len(names) - 1)
        outcomes = tested[name, 0], tested[name, 1]
        findings.append(explored[name].test(name, *outcomes, error=error * share, delta=delta))
    return AuditResult(
        subject=checked.name,
        kind=checked.kind,
        claimed=claimed,
        findings=findings,
        samples=samples,
        confidence=confidence,
        door=door,
        seconds=time.perf_counter() - begun,
    )


@dataclass(frozen=True)
class _Explored:
    """The most promising event on a pair, found on samples that test nothing."""

    features: Features
    event: Event
    swapped: bool  # more likely on the second neighbour
    promise: float
    width: int

    def test(
        self, pair: str, first: Floats, second: Floats, *, error: float, delta: float
    ) -> Finding:
        """Count the event on fresh samples."""
        here, there = (
            self.features.hits(self.event, _fitted(side, self.width))
            for side in ((second, first) if self.swapped else (first, second))
        )
        trials = min(len(first), len(second))
        bound = float(epsilon_bound(here, there, trials, error=error, delta=delta))
        towards = "second" if self.swapped else "first"
        return Finding(pair, towards, str(self.event), here, there, trials, bound)


def _explore(
    first: Floats, second: Floats, error: float, delta: float, *, trials: int
) -> _Explored:
    """Half of the samples teach features, the other half chooses an event."""
    both = as_table(stack([first, second]))
    halves = [
        (side[: len(side) // 2], side[len(side) // 2 :]) for side in np.split(both, [len(first)])
    ]
    features = learn(halves[0][0], halves[1][0])
    best = None
    for swapped in (False, True):
        here, there = halves[swapped][1], halves[not swapped][1]
        event, promise = best_event(features, here, there, error=error, delta=delta, trials=trials)
        if best is None or promise > best.promise:
            best = _Explored(features, event, swapped, promise, both.shape[1])
    assert best is not None
    return best


def _fitted(rows: Floats, width: int) -> Floats:
    """As many numbers as the explored outcomes had; features know no others."""
    missing = width - rows.shape[1]
    padded = np.pad(rows, ((0, 0), (0, max(0, missing))), constant_values=np.nan)
    return as_table(padded[:, :width])


def audit_all(
    *, kinds: Sequence[str] | None = None, confidence: float = 0.999, **words: Any
) -> tuple[list[AuditResult], Mapping[str, str]]:
    """Audits of all that is registered, and the subjects that are missing with the reason.

    The confidence is that of all of our own subjects together: a thousandth of a false alarm in
    the whole run. Planted violators do not share it, since they are meant to be caught.
    """
    there, missing = present(kinds)
    one = own_confidence(there, confidence)
    results = [
        audit(subject.name, confidence=confidence if subject.kind == VIOLATOR else one, **words)
        for subject in there
    ]
    return results, missing


def present(kinds: Sequence[str] | None = None) -> tuple[list[Subject], Mapping[str, str]]:
    """The subjects of these kinds that are there, and why the others are not."""
    subjects = [subject for subject in registered() if kinds is None or subject.kind in kinds]
    missing = {subject.name: why for subject in subjects if (why := subject.missing()) is not None}
    return [subject for subject in subjects if subject.name not in missing], missing


def own_confidence(subjects: Sequence[Subject], confidence: float, *, more: int = 0) -> float:
    """Each of ours, and so many more audits, may err with the same part of the whole."""
    own = sum(subject.kind != VIOLATOR for subject in subjects) + more
    return 1 - (1 - confidence) / max(own, 1)


def _columns(rows: Floats) -> Floats:
    rows = np.asarray(rows, dtype=np.float64)
    return rows[:, None] if rows.ndim == 1 else rows


def _jobs(
    subject: Subject, wanted: Mapping[str, int], epsilon: Fraction, door: str
) -> Iterator[Job]:
    chunk = _CHUNK[door]
    for pair, samples in wanted.items():
        for start in range(0, samples, chunk):
            for side in (0, 1):
                count = min(chunk, samples - start)
                yield (subject.name, pair, side, epsilon, count, door)


def _drawn(
    mapped: Callable[..., Any], jobs: Sequence[Job], name: str, progress: Progress | None
) -> dict[tuple[str, int], Floats]:
    drawn: dict[tuple[str, int], list[Floats]] = {}
    for done, (job, rows) in enumerate(mapped(_work, jobs), start=1):
        drawn.setdefault((job[1], job[2]), []).append(_columns(rows))
        if progress is not None:
            progress(name, done, len(jobs))
    return {key: stack(tables) for key, tables in drawn.items()}


def _work(job: Job) -> tuple[Job, Floats]:
    name, pair, side, epsilon, count, door = job
    subject = find(name)
    return job, np.asarray(subject.draw(subject.pair(pair), side, epsilon, count, door))


def _names(checked: Subject, pairs: Sequence[str] | None) -> list[str]:
    """The pairs to audit, each once: all of the subject's unless some are named."""
    if pairs is None:
        return [pair.name for pair in checked.pairs]
    given = (
        [pairs] if isinstance(pairs, str) else list(pairs) if isinstance(pairs, Sequence) else []
    )
    if not given:
        raise ArgumentError(f"pairs must be names, got {shown(pairs)}. Leave it out for all.")
    return list(dict.fromkeys(checked.pair(name).name for name in given))


def _check(samples: int, confidence: float, door: str, workers: int | None) -> None:
    Whole(LEAST, advice="Try 100_000.")(samples, "samples")
    Share("Try 0.999.")(confidence, "confidence")
    OneOf(DOORS)(door, "door")
    if workers is not None:
        Whole(1, 1024, "Leave it out for all cores.")(workers, "workers")


# --- the long audit: everything that is registered, in one run and in a given time ----------------
#
# How many answers a subject gets follows from what one costs, and from nothing else: that is
# measured before any answer is looked at, so that their number cannot follow from what they say.


_NEAR = 0.6  # of the claim; a bound below it needs a word

_HEAD = """# The latest audit

Made by `heldout audit --all`, which `make audit` runs, with version {version}; do not edit.
How it is done, and what it can and cannot show: [security](security.md#the-audit).

An *empirical lower bound* says: with a confidence of {confidence}, for all rows of this page
together, the true epsilon is not below it. A bound above the claimed epsilon would be a broken
promise. A bound far below it proves nothing: the pair of data sets or the event is not the worst,
or the noise is larger than it need be; the last column says why, as far as we know. *Answers* is
how many tested the worst pair, on each of its two data sets. It was decided by what one answer
costs in time, before any was looked at. Everything here is from one run, at the epsilons that are
declared with the subjects.

{verdict}
"""


@dataclass(frozen=True)
class LongAudit:
    """Results of everything."""

    results: Sequence[AuditResult]
    replayed: Sequence[AuditResult]
    missing: Mapping[str, str]
    checks: Sequence[Check]
    confidence: float
    door: str
    seconds: float
    failed: Mapping[str, str] = field(default_factory=dict)
    """Subjects whose audit broke, and how."""

    @property
    def bad(self) -> list[str]:
        """Return what is not as it should be, by name."""
        every = [*self.results, *self.replayed]
        flagged = [
            result.subject for result in every if result.violated != (result.kind == VIOLATOR)
        ]
        return [*flagged, *self.failed, *(check.name for check in self.checks if not check.passed)]

    def of(self, kind: str) -> list[AuditResult]:
        return [result for result in self.results if result.kind == kind]

    def markdown(self) -> str:
        """The page."""
        caught = sum(result.violated for result in self.of(VIOLATOR))
        planted = len(self.of(VIOLATOR))
        own = len(self.results) - planted
        flagged = sum(result.violated for result in self.results if result.kind != VIOLATOR)
        passed = sum(check.passed for check in self.checks)
        verdict = (
            f"**{flagged} of {own} releases and mechanisms flagged; {caught} of {planted} planted "
            f"violators caught; {passed} of {len(self.checks)} checks of samplers passed.**"
        )
        head = _HEAD.format(
            version=heldout.__version__, confidence=f"{self.confidence:.1%}", verdict=verdict
        )
        parts = [
            head,
            "## Releases\n",
            _DOORS[self.door],
            _table(self.of(RELEASE)),
            *(["Some of them again, replayed:\n", _table(self.replayed)] if self.replayed else []),
            "## Mechanisms\n",
            _table(self.of(MECHANISM)),
            "## Planted violators\n",
            "Each claims its epsilon and is not private. An audit that misses one is blind.\n",
            _planted(self.of(VIOLATOR)),
            "## Samplers\n",
            _checks(self.checks),
        ]
        if self.missing or self.failed:
            parts += ["## Not audited\n", _missing({**self.missing, **self.failed})]
        parts.append(f"The whole took {self.seconds / 60:.0f} minutes.\n")
        return "\n".join(parts)


_DOORS = {
    "public": "Every answer that tests was asked of a session: booked, read and drawn anew.\n",
    "replay": "Answers were asked of a session once; then only their noise was drawn anew.\n",
}


def _table(results: Sequence[AuditResult]) -> str:
    lines = [
        "| subject | claimed | at least | of claimed | worst pair | event | answers | why not |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        worst, flag = result.worst, " **not as claimed**" if result.violated else ""
        why = find(result.subject).why if result.share < _NEAR else ""
        lines.append(
            f"| {result.subject} | {result.claimed} | {result.epsilon:.3f}{flag} "
            f"| {result.share:.0%} | {worst.pair if result.epsilon else ''} "
            f"| {worst.event.replace('|', '')} | {result.samples:,} | {why} |"
        )
    return "\n".join(lines) + "\n"


def _planted(results: Sequence[AuditResult]) -> str:
    lines = ["| planted | what is wrong with it | claimed | at least | |", "|---|---|---|---|---|"]
    for result in results:
        verdict = "caught" if result.violated else "**missed**"
        note = find(result.subject).note
        lines.append(
            f"| {result.subject} | {note} | {result.claimed} | {result.epsilon:.3f} | {verdict} |"
        )
    return "\n".join(lines) + "\n"


def _checks(checks: Sequence[Check]) -> str:
    lines = ["| check | found | |", "|---|---|---|"]
    lines += [
        f"| {check.name} | {check.result} | {'passed' if check.passed else '**failed**'} |"
        for check in checks
    ]
    return "\n".join(lines) + "\n"


def _missing(missing: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {why}." for name, why in missing.items()) + "\n"


Key = tuple[str, str]
_LONG_ENOUGH = 0.08  # seconds; a shorter time is measured again with more answers
_FEWEST, _MOST = 16, 1024
QUICK = 10
"""A mechanism without rows is quick: it is asked so many times more often than a release."""
_LEARNING = 2e-6  # seconds per answer and number of it, to teach features and to choose an event


@dataclass(frozen=True)
class Cost:
    """Seconds that one answer that tests takes, with all that is explored and tested beside it."""

    subject: str
    door: str
    seconds: float
    fixed: float

    @property
    def key(self) -> Key:
        return self.subject, self.door


def cost_of(name: str, door: str) -> Cost:
    """Measured on the first and on the last pair, through both doors."""
    subject = find(name)
    price = Fraction(subject.epsilon)
    replayed: list[float] = []
    asked: list[float] = []
    fixed, width = 0.0, 1
    for pair in {pair.name: pair for pair in (subject.pairs[0], subject.pairs[-1])}.values():
        for way, times in (("replay", replayed), (door, asked)):

            def timed(count: int, pair: Pair = pair, way: str = way) -> tuple[float, Any]:
                begun = time.perf_counter()
                drawn = subject.draw(pair, 1, price, count, way)
                return time.perf_counter() - begun, drawn

            timed(1)  # what is loaded or looked up the first time
            alone, count = min(timed(1)[0], timed(1)[0]), _FEWEST
            while True:
                took, drawn = timed(1 + count)
                if took > 2 * alone + _LONG_ENOUGH or count >= _MOST:
                    break
                count *= 4
            width = max(width, 1 if drawn.ndim == 1 else drawn.shape[1])
            times.append(max((took - alone) / count, 1e-6))
            fixed += 4 * alone
    pairs = len(subject.pairs)
    explored = pairs * sum(replayed) / len(replayed) / EVERY if pairs > PROMISING else 0.0
    explored += min(pairs, PROMISING) * max(replayed) / CLOSER
    tested = max(asked) + (pairs - 1) * sum(asked) / len(asked) / BESIDE
    learning = _LEARNING * (20 + width) * (pairs / EVERY + PROMISING / 2)
    return Cost(name, door, 2 * (explored + tested + learning), fixed)


def most_answers(subject: Subject, samples: int) -> int:
    """However quick a subject is."""
    return samples * (QUICK if subject.kind == MECHANISM else 1)


def answers_for(
    costs: Sequence[Cost], most: Mapping[Key, int], seconds: float
) -> Mapping[Key, int]:
    """The same time for each, and what those that are quick leave for the others.

    >>> quick, slow = Cost("quick", "public", 0.001, 0.0), Cost("slow", "public", 0.1, 0.0)
    >>> list(answers_for([quick, slow], {quick.key: 20_000, slow.key: 20_000}, 120.0).values())
    [20000, 1000]
    """
    left = seconds - sum(cost.fixed for cost in costs)
    answers: dict[Key, int] = {}
    # The one that needs least for all that it may get comes first.
    waiting = sorted(costs, key=lambda cost: cost.seconds * most[cost.key])
    for place, cost in enumerate(waiting):
        share = max(left, 0.0) / (len(waiting) - place)
        fitting = round(share / cost.seconds)
        answers[cost.key] = max(LEAST, min(most[cost.key], fitting))
        left -= answers[cost.key] * cost.seconds
    return answers


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
    planted = [subject for subject in there if subject.kind == VIOLATOR]
    own = [subject for subject in there if subject.kind != VIOLATOR]
    again = [subject.name for subject in own if subject.both_doors and door == "public"]
    one = own_confidence(own, confidence, more=len(again))
    words = {"confidence": one, "workers": 1}
    with pool(workers) as executor:
        bar = _Bar(progress)
        costs, caught, laws, lattices = bar.gather(
            executor,
            [(cost_of, (subject.name, door), {}) for subject in own if minutes is not None]
            + [(cost_of, (name, "replay"), {}) for name in again if minutes is not None],
            [(audit, (e.name,), {**words, "samples": samples}) for e in planted],
            [(check_law_at, (place, draws), {}) for place in range(len(samplers()))],
            [(lattice_job, (job,), {}) for job in lattice_jobs(lattice)],
        )
        most = {subject.name: most_answers(subject, samples) for subject in own}
        queue = _Queue(
            own=[*((subject.name, door) for subject in own), *((name, "replay") for name in again)],
            costs=costs,
            most=most,
            first=frozenset(subject.name for subject in own if subject.kind == MECHANISM),
            until=None if minutes is None else begun + 60 * minutes,
            workers=cores(workers),
        )
        audited = queue.run(executor, words, bar)
    by_name = {(result.subject, result.door): result for result in [*caught, *audited]}
    results = [by_name.get((subject.name, _door_of(subject, door))) for subject in there]
    replayed = [by_name.get((name, "replay")) for name in again]
    return LongAudit(
        results=[result for result in results if result is not None],
        replayed=[result for result in replayed if result is not None],
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
    """Shows how far a run is."""

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
        results: list[list[Any]] = [[] for _ in groups]
        self.total += len(futures)
        for future in as_completed(futures):
            results[futures[future]].append(future.result())
            self.move("samplers and violators")
        return results


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
        known = {(cost.subject, cost.door): cost for cost in self.costs}
        waiting = sorted(
            self.own, key=lambda e: (e[0] not in self.first, -known[e].seconds if known else 0.0)
        )
        bar.total += len(waiting)
        results: list[AuditResult] = []
        while waiting or self.running:
            while waiting and len(self.running) < self.workers:
                name, door = waiting[0]
                samples, takes = self.most[name], 0.0
                if self.until is not None:
                    samples, takes = self._share([known[key] for key in waiting])
                waiting = waiting[1:]
                job = executor.submit(audit, name, samples=samples, door=door, **words)
                self.running[job] = name, time.perf_counter() + takes
            done, _ = wait(self.running, return_when=FIRST_COMPLETED)
            for future in done:
                name = self.running.pop(future)[0]
                try:
                    results.append(future.result())
                except Exception as problem:  # the others go on; the page says which one broke
                    self.failed[name] = f"it ended with {type(problem).__name__}"
                bar.move(name)
        return results

    def _share(self, waiting: list[Cost]) -> tuple[int, float]:
        """For the first of those that wait: its answers, and about how long they take."""
        assert self.until is not None
        now = time.perf_counter()
        busy = sum(max(0.0, ends - now) for _, ends in self.running.values())
        left = self.workers * max(0.0, self.until - now) - busy
        most = {cost.key: self.most[cost.subject] for cost in waiting}
        first = waiting[0]
        samples = answers_for(waiting, most, left)[first.key]
        return samples, first.fixed + samples * first.seconds
