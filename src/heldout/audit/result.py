"""Turn counts of an event on two neighbours into a lower bound on epsilon: an audit's result.

If a mechanism is (epsilon, delta)-private then P(event) <= exp(epsilon) Q(event) + delta for every
event, so P >= p and Q <= q give epsilon >= ln((p - delta) / q). The bounds p and q are those of
Clopper and Pearson, which hold for every sample size: nothing here is an approximation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from heldout.kernel.loss import Loss

Floats = npt.NDArray[np.float64]


def lower(hits: npt.ArrayLike, trials: int, error: float) -> Floats:
    """A chance that is below the true one, but for one time in 1/error.

    >>> round(float(lower(30, 100, 0.025)), 4)
    0.2124
    """
    from scipy.special import betaincinv

    counts = np.asarray(hits, dtype=np.float64)
    chances = betaincinv(np.maximum(counts, 1), trials - counts + 1, error)
    return np.where(counts > 0, chances, 0.0)


def upper(hits: npt.ArrayLike, trials: int, error: float) -> Floats:
    """A chance that is above the true one, but for one time in 1/error.

    >>> round(float(upper(30, 100, 0.025)), 4)
    0.3998
    """
    from scipy.special import betaincinv

    counts = np.asarray(hits, dtype=np.float64)
    chances = betaincinv(counts + 1, np.maximum(trials - counts, 1), 1 - error)
    return np.where(counts < trials, chances, 1.0)


def epsilon_bound(
    hits: npt.ArrayLike,
    hits_of_neighbour: npt.ArrayLike,
    trials: int,
    *,
    error: float,
    delta: float = 0.0,
) -> Floats:
    """The epsilon that the mechanism surely has at least, but for one time in 1/error.

    Claim:       with chance 1 - error the true epsilon at this delta is not below it.
    Numerics:    doubles; the chances are exact tails of the binomial law.
    Reference:   Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020, section 3.

    >>> round(float(epsilon_bound(50_000, 18_394, 100_000, error=1e-3)), 2)  # ln 2.718 is 1
    0.97
    >>> float(epsilon_bound(10, 30, 100, error=1e-3))
    0.0
    """
    above = lower(hits, trials, error / 2) - delta
    below = upper(hits_of_neighbour, trials, error / 2)
    return np.asarray(np.maximum(0.0, np.log(np.maximum(above, 1e-300)) - np.log(below)))


def delta_bound(
    hits: int, hits_of_neighbour: int, trials: int, *, error: float, epsilon: float
) -> float:
    """The delta that the mechanism surely has at least if its epsilon is this one."""
    above = lower(hits, trials, error / 2)
    below = upper(hits_of_neighbour, trials, error / 2)
    return float(np.maximum(0.0, above - np.exp(epsilon) * below))


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
        return max(self.findings, key=lambda finding: finding.epsilon)

    @property
    def epsilon(self) -> float:
        """The true epsilon is at least this, at the claimed delta, with the confidence."""
        return self.worst.epsilon

    @property
    def violated(self) -> bool:
        """Return whether more was measured than claimed."""
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
            "findings": [finding.as_dict() for finding in self.findings],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "AuditResult":
        """Read what `as_dict` wrote."""
        same = ("subject", "kind", "samples", "confidence", "door", "seconds")
        return cls(
            claimed=Loss.from_dict(content["claimed"]),
            findings=[Finding(**finding) for finding in content["findings"]],
            **{name: content[name] for name in same},
        )
