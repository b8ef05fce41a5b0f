"""How far above the population a board can be pushed, whatever its submissions learnt.

Two bounds hold for all submissions of a board together, adaptively chosen; the smaller one is
used, which public numbers decide. See proofs/board-certificate.md.
"""

import math
from dataclasses import dataclass

__all__ = ["Certificate", "certified"]


@dataclass(frozen=True)
class Certificate:
    """With probability `level`, no submission's score on the rows exceeds its population's by more.

    >>> print(certified(rows=50_000, submissions=1000, improvements=10, spacing=0.01, epsilon=2))
    at most 0.034 above the population, 95%, whatever the other 999 submissions learnt
    """

    bound: float
    level: float
    submissions: int
    by: str
    """"counting" of transcripts, or "privacy"."""

    def __str__(self) -> str:
        others = f"whatever the other {self.submissions - 1:,} submissions learnt"
        bound = math.ceil(self.bound * 1000) / 1000
        return f"at most {bound:.3f} above the population, {self.level * 100:g}%, {others}"

    def as_dict(self) -> dict[str, str | float | int]:
        return dict(vars(self)) | {"words": str(self)}


def certified(
    *,
    rows: int,
    submissions: int,
    improvements: int,
    spacing: float,
    epsilon: float,
    level: float = 0.95,
    least_class: int | None = None,
) -> Certificate:
    """The certificate of a board on `rows` independent rows, for a mean of values in [0, 1].

    `spacing` is how far apart shown scores are, `epsilon` the price of the whole board. With
    `least_class`, the least number of rows of either class, it is for the AUC.

    Claim:       with probability `level` no submission's mean over the rows exceeds that over the
                 population by more than `bound`, all submissions together, adaptively chosen.
                                                                    [claim: board-certificate]
    Reference:   Blum and Hardt 2015; Dwork et al. 2015; proofs/board-certificate.md.
    """
    failing = 1 - level
    values = math.floor(1 / spacing) + 2  # the grid's, and 1, where what lies above it is shown
    counted = _transcripts(submissions, improvements, values)
    count = rows if least_class is None else least_class
    counting = _bound(count, math.log(submissions) + counted, failing)
    # Dwork et al. 2015, theorem 20: the max-information of an epsilon-private transcript, in nats.
    half = failing / 2
    information = epsilon**2 * rows / 2 + epsilon * math.sqrt(rows * math.log(2 / half) / 2)
    privacy = _bound(count, math.log(submissions) + information, half)
    best = min(counting, privacy)
    return Certificate(
        min(best, 1.0), level, submissions, "counting" if best == counting else "privacy"
    )


def _bound(rows: int, logarithm: float, failing: float) -> float:
    """Hoeffding's bound for exp(logarithm) means, or areas, at once, one-sided."""
    return math.sqrt((logarithm + math.log(1 / failing)) / (2 * rows))


def _transcripts(submissions: int, improvements: int, values: int) -> float:
    """ln of how many transcripts a board can show: which submissions improved, to which value."""
    logarithms = [
        math.lgamma(submissions + 1)
        - math.lgamma(count + 1)
        - math.lgamma(submissions - count + 1)
        + count * math.log(values)
        for count in range(min(improvements, submissions) + 1)
    ]
    most = max(logarithms)
    return most + math.log(sum(math.exp(each - most) for each in logarithms))
