"""The long audit: everything that is registered, and one page of results."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import heldout
from heldout.audit.auditor import audit, audit_all
from heldout.audit.parallel import Progress
from heldout.audit.result import AuditResult
from heldout.audit.samplers import Check, sampler_checks
from heldout.audit.subjects import MECHANISM, RELEASE, VIOLATOR, find

__all__ = ["LongAudit", "long_audit"]

_THROUGH_THE_DOOR = (
    ("confusion", "a row changes its cell"),
    ("auc", "one of two positives falls"),
)

_HEAD = """# The latest audit

Made by `heldout audit --all`, which `make audit` runs, with version {version}; do not edit.
How it is done, and what it can and cannot show: [security](security.md#the-audit).

An *empirical lower bound* says: with a confidence of {confidence}, for all rows of this page
together, the true epsilon is not below it. A bound above the claimed epsilon would be a broken
promise. A bound far below it proves nothing: either the pair of data sets or the event is not the
worst, or the noise is larger than it need be (the methods of the 2015 paper).

{verdict}
"""


@dataclass(frozen=True)
class LongAudit:
    """Results of everything."""

    results: Sequence[AuditResult]
    through_the_door: Sequence[AuditResult]
    missing: Mapping[str, str]
    checks: Sequence[Check]
    confidence: float
    seconds: float

    @property
    def bad(self) -> list[str]:
        """What is not as it should be, by name."""
        every = [*self.results, *self.through_the_door]
        flagged = [each.subject for each in every if each.violated != (each.kind == VIOLATOR)]
        return flagged + [each.name for each in self.checks if not each.passed]

    def of(self, kind: str) -> list[AuditResult]:
        return [each for each in self.results if each.kind == kind]

    def markdown(self) -> str:
        """The page."""
        caught = sum(each.violated for each in self.of(VIOLATOR))
        planted = len(self.of(VIOLATOR))
        own = len(self.results) - planted
        flagged = sum(each.violated for each in self.results if each.kind != VIOLATOR)
        passed = sum(each.passed for each in self.checks)
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
            _table(self.of(RELEASE)),
            "The same through the public door, each answer booked, read and drawn anew:\n",
            _table(self.through_the_door),
            "## Mechanisms\n",
            _table(self.of(MECHANISM)),
            "## Planted violators\n",
            "Each claims its epsilon and is not private. An audit that misses one is blind.\n",
            _planted(self.of(VIOLATOR)),
            "## Samplers\n",
            _checks(self.checks),
        ]
        if self.missing:
            parts += ["## Not audited\n", _missing(self.missing)]
        parts.append(f"The whole took {self.seconds / 60:.0f} minutes.\n")
        return "\n".join(parts)


def long_audit(
    *,
    samples: int,
    confidence: float = 0.999,
    door: str = "replay",
    workers: int | None = None,
    lattice: int = 10_000_000,
    draws: int = 150_000,
    progress: Progress | None = None,
) -> LongAudit:
    """Audit all subjects, check all samplers; half of the error is for the public door."""
    begun = time.perf_counter()
    half = (1 - confidence) / 2
    words: dict[str, Any] = {"workers": workers, "progress": progress}
    results, missing = audit_all(confidence=1 - half, samples=samples, door=door, **words)
    through = [
        audit(
            name,
            pairs=[pair],
            door="public",
            samples=max(400, samples // 5),
            confidence=1 - half / len(_THROUGH_THE_DOOR),
            **words,
        )
        for name, pair in _THROUGH_THE_DOOR
    ]
    checks = sampler_checks(draws=draws, lattice=lattice, workers=workers, progress=progress)
    return LongAudit(
        results=results,
        through_the_door=through,
        missing=missing,
        checks=checks,
        confidence=confidence,
        seconds=time.perf_counter() - begun,
    )


def _table(results: Sequence[AuditResult]) -> str:
    lines = [
        "| subject | claimed | at least | worst pair | event | samples |",
        "|---|---|---|---|---|---|",
    ]
    for each in results:
        worst, flag = each.worst, " **not as claimed**" if each.violated else ""
        lines.append(
            f"| {each.subject} | {each.claimed} | {each.epsilon:.3f}{flag} | "
            f"{worst.pair if each.epsilon else ''} | {worst.event.replace('|', '')} | "
            f"{each.samples:,} |"
        )
    return "\n".join(lines) + "\n"


def _planted(results: Sequence[AuditResult]) -> str:
    lines = ["| planted | what is wrong with it | claimed | at least | |", "|---|---|---|---|---|"]
    for each in results:
        verdict = "caught" if each.violated else "**missed**"
        note = find(each.subject).note
        lines.append(
            f"| {each.subject} | {note} | {each.claimed} | {each.epsilon:.3f} | {verdict} |"
        )
    return "\n".join(lines) + "\n"


def _checks(checks: Sequence[Check]) -> str:
    lines = ["| check | found | |", "|---|---|---|"]
    lines += [
        f"| {each.name} | {each.found} | {'passed' if each.passed else '**failed**'} |"
        for each in checks
    ]
    return "\n".join(lines) + "\n"


def _missing(missing: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {why}." for name, why in missing.items()) + "\n"
