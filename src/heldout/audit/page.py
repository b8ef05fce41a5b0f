"""The page of the long audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import heldout
from heldout.audit.result import AuditResult
from heldout.audit.samplers import Check
from heldout.audit.subjects import MECHANISM, RELEASE, VIOLATOR, find

__all__ = ["LongAudit"]

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
        """What is not as it should be, by name."""
        every = [*self.results, *self.replayed]
        flagged = [each.subject for each in every if each.violated != (each.kind == VIOLATOR)]
        return [*flagged, *self.failed, *(each.name for each in self.checks if not each.passed)]

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
    for each in results:
        worst, flag = each.worst, " **not as claimed**" if each.violated else ""
        why = find(each.subject).why if each.share < _NEAR else ""
        lines.append(
            f"| {each.subject} | {each.claimed} | {each.epsilon:.3f}{flag} | {each.share:.0%} | "
            f"{worst.pair if each.epsilon else ''} | {worst.event.replace('|', '')} | "
            f"{each.samples:,} | {why} |"
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
