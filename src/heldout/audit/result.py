"""What an audit found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heldout.kernel.loss import Loss

__all__ = ["AuditResult", "Finding"]


@dataclass(frozen=True)
class Finding:
    """The best event on one pair of neighbours, tested on samples that did not choose it."""

    pair: str
    towards: str  # which neighbour the event is more likely on
    event: str
    hits: int
    hits_of_neighbour: int
    trials: int
    epsilon: float
    """The epsilon that the mechanism has at least, with the result's confidence."""

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class AuditResult:
    """An empirical lower bound on epsilon. All findings hold together at `confidence`."""

    subject: str
    kind: str
    claimed: Loss
    findings: Sequence[Finding]
    samples: int
    confidence: float
    door: str
    seconds: float

    @property
    def worst(self) -> Finding:
        return max(self.findings, key=lambda each: each.epsilon)

    @property
    def epsilon(self) -> float:
        """The true epsilon is at least this, at the claimed delta, with the confidence."""
        return self.worst.epsilon

    @property
    def violated(self) -> bool:
        """Whether more was measured than claimed."""
        limit = self.claimed.epsilon
        return limit is not None and self.epsilon > float(limit)

    @property
    def share(self) -> float:
        """The bound as a part of what is claimed."""
        return self.epsilon / float(self.claimed.epsilon or 1)

    def __str__(self) -> str:
        verdict = "NOT AS CLAIMED" if self.violated else "nothing found against the claim"
        return (
            f"{self.subject}: epsilon is at least {self.epsilon:.3f} with confidence "
            f"{self.confidence * 100:g}% (worst pair: {self.worst.pair}); claimed {self.claimed}; "
            f"{verdict}"
        )

    def __repr__(self) -> str:
        return str(self)

    def as_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "kind": self.kind,
            "claimed": self.claimed.as_dict(),
            "epsilon_at_least": self.epsilon,
            "violated": self.violated,
            "confidence": self.confidence,
            "samples": self.samples,
            "door": self.door,
            "seconds": round(self.seconds, 1),
            "findings": [each.as_dict() for each in self.findings],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "AuditResult":
        """Read what `as_dict` wrote."""
        same = ("subject", "kind", "samples", "confidence", "door", "seconds")
        return cls(
            claimed=Loss.from_dict(content["claimed"]),
            findings=[Finding(**each) for each in content["findings"]],
            **{name: content[name] for name in same},
        )
