"""The auditor: draws on neighbours, chooses events on one half of the samples, tests the other."""

import time
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.bounds import epsilon_bound
from heldout.audit.doors import DOORS
from heldout.audit.events import as_table, best_event, learn, stacked
from heldout.audit.parallel import Progress, mapper
from heldout.audit.result import AuditResult, Finding
from heldout.audit.subjects import VIOLATOR, Pair, Subject, find, registered
from heldout.errors import ArgumentError
from heldout.privacy import exact
from heldout.session import Epsilon

__all__ = ["audit", "audit_all"]

Job = tuple[str, str, int, Fraction, int, str]
_CHUNK = {"public": 500, "replay": 4000}
_LEAST = 400


def audit(
    subject: str,
    *,
    epsilon: Epsilon | None = None,
    samples: int = 100_000,
    pairs: Sequence[str] | None = None,
    confidence: float = 0.999,
    door: str = "replay",
    workers: int | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """An empirical lower bound on the epsilon of a release, a mechanism or a planted violator.

    `samples` answers are drawn on each neighbour of each named pair (fewer for a few slow ones;
    the result says how many), at `epsilon` or at what the subject shows most at, mostly 1. A
    quarter of them teaches features, a quarter chooses an event for either direction, and the
    other half tests just that event with Clopper-Pearson bounds; the bounds of all pairs and
    directions hold together with chance `confidence`. A bound above the claimed epsilon is a bug
    in the claim, but for one audit in a thousand; a bound below it proves nothing.

    `door="public"` asks a `Session` for every single answer (booked, read and drawn anew, a few
    milliseconds each); "replay" does so once and then repeats the last step.

    >>> audit("discrete-laplace", epsilon="1", samples=4000, workers=1).violated
    False
    """
    checked = find(subject)
    reason = checked.missing()
    if reason is not None:
        raise ArgumentError(f"subject must be there to be audited, but {reason}.")
    chosen = checked.pairs if pairs is None else tuple(checked.pair(name) for name in pairs)
    price = exact(checked.epsilon if epsilon is None else epsilon, name="epsilon")
    if price <= 0:
        raise ArgumentError(f"epsilon must be more than 0, got {epsilon!r}.")
    _check(samples, confidence, door)
    samples = max(_LEAST, checked.least, samples // checked.slowness)
    begun = time.perf_counter()
    jobs = list(_jobs(checked, chosen, price, samples, door))
    drawn: dict[tuple[str, int], list[Any]] = {}
    with mapper(workers, len(jobs)) as mapped:
        for done, (job, rows) in enumerate(mapped(_work, jobs), start=1):
            drawn.setdefault((job[1], job[2]), []).append(_columns(rows))
            if progress is not None:
                progress(checked.name, done, len(jobs))
    claimed = checked.claim(price)
    error = (1 - confidence) / (2 * len(chosen))
    findings = [
        finding
        for pair in chosen
        for finding in _findings(
            pair,
            *(stacked(drawn[pair.name, side]) for side in (0, 1)),
            error=error,
            delta=float(claimed.delta),
        )
    ]
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


def audit_all(
    *,
    kinds: Sequence[str] | None = None,
    confidence: float = 0.999,
    **words: Any,
) -> tuple[list[AuditResult], Mapping[str, str]]:
    """Audits of all that is registered, and the subjects that are missing with the reason.

    The confidence is that of all of our own subjects together: a thousandth of a false alarm in
    the whole run. Planted violators do not share it, since they are meant to be caught.
    """
    subjects = [each for each in registered() if kinds is None or each.kind in kinds]
    missing = {each.name: why for each in subjects if (why := each.missing()) is not None}
    there = [each for each in subjects if each.name not in missing]
    own = max(1, sum(each.kind != VIOLATOR for each in there))
    results = [
        audit(
            each.name,
            confidence=confidence if each.kind == VIOLATOR else 1 - (1 - confidence) / own,
            **words,
        )
        for each in there
    ]
    return results, missing


def _findings(
    pair: Pair, first: Any, second: Any, *, error: float, delta: float
) -> Iterator[Finding]:
    """One tested event for each direction."""
    both = as_table(stacked([first, second]))
    parts = [_parts(each) for each in (both[: len(first)], both[len(first) :])]
    features = learn(parts[0][0], parts[1][0])
    for towards, here, there in (("first", 0, 1), ("second", 1, 0)):
        trials = len(parts[0][2])
        event = best_event(features, parts[here][1], parts[there][1], error=error, delta=delta)
        if event is None:
            yield Finding(pair.name, towards, "none", 0, 0, trials, 0.0)
            continue
        hits, others = (features.hits(event, parts[each][2]) for each in (here, there))
        bound = float(epsilon_bound(hits, others, trials, error=error, delta=delta))
        yield Finding(pair.name, towards, str(event), hits, others, trials, bound)


def _columns(rows: Any) -> Any:
    rows = np.asarray(rows, dtype=np.float64)
    return rows[:, None] if rows.ndim == 1 else rows


def _parts(rows: Any) -> tuple[Any, Any, Any]:
    """A quarter to learn, a quarter to choose, a half to test."""
    quarter = len(rows) // 4
    return rows[:quarter], rows[quarter : 2 * quarter], rows[2 * quarter :]


def _jobs(
    subject: Subject, pairs: Sequence[Pair], epsilon: Fraction, samples: int, door: str
) -> Iterator[Job]:
    chunk = _CHUNK[door]
    for pair in pairs:
        for start in range(0, samples, chunk):
            for side in (0, 1):
                count = min(chunk, samples - start)
                yield (subject.name, pair.name, side, epsilon, count, door)


def _work(job: Job) -> tuple[Job, Any]:
    name, pair, side, epsilon, count, door = job
    subject = find(name)
    return job, np.asarray(subject.draw(subject.pair(pair), side, epsilon, count, door))


def _check(samples: int, confidence: float, door: str) -> None:
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < _LEAST:
        raise ArgumentError(
            f"samples must be a whole number of at least {_LEAST}, got {samples!r}. Try 100_000."
        )
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence must lie between 0 and 1, got {confidence!r}. Try 0.999.")
    if door not in DOORS:
        raise ArgumentError(f"door must be one of {', '.join(DOORS)}, got {door!r}.")
