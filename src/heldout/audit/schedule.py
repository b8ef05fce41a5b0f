"""How many answers each subject gets in a given time: by what one costs, and by nothing else.

What an answer costs is measured before any is looked at, so that the number of answers cannot
follow from what they say.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heldout.audit.auditor import BESIDE, CLOSER, EVERY, LEAST, PROMISING
from heldout.audit.subjects import MECHANISM, Pair, Subject, find

__all__ = ["Cost", "answers_for", "cost_of", "most_answers"]

Key = tuple[str, str]
_LONG_ENOUGH = 0.08  # seconds; a shorter time is measured again with more answers
_FEWEST, _MOST = 16, 1024
QUICK = 10
"""A mechanism without rows is quick: it is asked so many times more often than a release."""
_LEARNING = 2e-6  # seconds an answer and number of it, to teach features and to choose an event


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
    opened, width = 0.0, 1
    for pair in {each.name: each for each in (subject.pairs[0], subject.pairs[-1])}.values():
        for way, found in (("replay", replayed), (door, asked)):

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
            found.append(max((took - alone) / count, 1e-6))
            opened += 4 * alone
    pairs = len(subject.pairs)
    explored = pairs * sum(replayed) / len(replayed) / EVERY if pairs > PROMISING else 0.0
    explored += min(pairs, PROMISING) * max(replayed) / CLOSER
    tested = max(asked) + (pairs - 1) * sum(asked) / len(asked) / BESIDE
    learning = _LEARNING * (20 + width) * (pairs / EVERY + PROMISING / 2)
    return Cost(name, door, 2 * (explored + tested + learning), opened)


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
    left = seconds - sum(each.fixed for each in costs)
    found: dict[Key, int] = {}
    # The one that needs least for all that it may get comes first.
    waiting = sorted(costs, key=lambda each: each.seconds * most[each.key])
    for place, each in enumerate(waiting):
        share = max(left, 0.0) / (len(waiting) - place)
        fitting = round(share / each.seconds)
        found[each.key] = max(LEAST, min(most[each.key], fitting))
        left -= found[each.key] * each.seconds
    return found
