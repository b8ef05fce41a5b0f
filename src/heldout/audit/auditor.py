"""The auditor: looks for an event on all pairs of neighbours, then tests it on fresh answers."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

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
from heldout.audit.subjects import DOORS, VIOLATOR, Subject, find, registered
from heldout.errors import ArgumentError
from heldout.kernel import exact
from heldout.questions.session import Epsilon
from heldout.workers import Progress, mapper

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
