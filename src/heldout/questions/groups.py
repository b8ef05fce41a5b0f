"""What questions by group have in common: which groups, and each group's part of an answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heldout.data.description import Description
from heldout.kernel import Event
from heldout.kernel.door import Drawn, Request
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.weights import STEPS
from heldout.questions.base import Question
from heldout.questions.guess import Guess

__all__ = [
    "PartOf",
    "counted_parts",
    "divided",
    "how_many",
    "named",
    "part",
    "tiled",
    "weighed",
    "weighing",
]

By = str | tuple[str, ...] | None


@dataclass(frozen=True)
class PartOf(Request):
    """One group's part of a request, which costs what all parts together cost."""

    whole: Any = None

    def event(self) -> Event:
        found: Event = self.whole.event()
        return found


def how_many(by: By, about: Description) -> int:
    """Groups, the undeclared rest among them; one if nothing is divided."""
    return 1 if by is None else len(about.group_names(by))


def named(by: By, about: Description) -> dict[str, Any]:
    """What is booked of the division."""
    if by is None:
        return {}
    return {"by": by if isinstance(by, str) else list(by), "groups": list(about.group_names(by))}


def weighing(weighted: bool, about: Description) -> dict[str, Any]:
    """What is booked of the weights, if they are used."""
    if not weighted:
        return {}
    about.check_weight()
    return {"weight": about.weight, "largest_weight": about.largest_weight}


def weighed(counts: Any, weighted: bool, guess: Guess) -> Any:
    """Typical counts; if rows have weights, as if each had the mean one."""
    if weighted:
        sums = counts * STEPS * guess.mean_weight
        counts = np.concatenate([sums, sums * (1 - guess.mean_weight)])
    return np.round(counts).astype(np.int64)


def divided(by: By) -> Callable[[Any], Any] | None:
    """The view of the rows that tells each row's group."""
    return None if by is None else lambda rows: rows.with_groups(by)


def part(drawn: Drawn, statistic: Any, mechanism: Any, values: Any) -> Drawn:
    """A group's answer, as if it had been asked alone of rows whose number is private."""
    asked = drawn.request
    request = PartOf(asked.name, statistic, mechanism, asked.parameters, whole=asked)
    return replace(drawn, request=request, values=values, about=replace(drawn.about, rows=None))


def counted_parts(drawn: Drawn) -> Iterator[Drawn]:
    """Each group's counts or sums, from the vector in which they follow one another."""
    asked = drawn.request
    mechanism, groups = asked.mechanism, asked.statistic.groups
    assert isinstance(mechanism, DiscreteLaplace)
    one = replace(mechanism, dimension=mechanism.dimension // groups)
    for values in np.asarray(drawn.values).reshape(groups, -1):
        yield part(drawn, replace(asked.statistic, groups=1), one, values)


def tiled(question: Question[Any], about: Description, guess: Guess, groups: int) -> Any:
    """A typical vector of counts, if all groups are alike."""
    return np.concatenate([question.typical(about, shared(guess, groups))] * groups)


def shared(guess: Guess, groups: int) -> Guess:
    """The guess of one of several groups that are alike."""
    positives, negatives = (max(1, count // groups) for count in guess.counts)
    cells = None if guess.cells is None else tuple(each / groups for each in guess.cells)
    return replace(guess, rows=positives + negatives, positives=positives, cells=cells)
