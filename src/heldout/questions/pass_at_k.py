"""Answers of a language model that are drawn several times: would one of k be right?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from heldout.arguments import visible
from heldout.data import Dataset, PrivateTable
from heldout.data.description import MeasuredRows
from heldout.data.sql import balanced, double, held_to
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import BoundedSum, Statistic
from heldout.questions.base import Rule, Text, Whole
from heldout.questions.values import OfSums
from heldout.questions.worst_cases import PERSON, REMOVE, Pair, WorstCase

__all__ = ["PassAtK"]

MOST_SAMPLES: Final = 10_000


@dataclass(frozen=True)
class Samples(Rule):
    """Checks the samples of each prompt: a whole number, or the declared column that says so.

    >>> Samples()(10, "samples"), Samples()("10", "samples"), Samples()("drawn", "samples")
    (10, 10, 'drawn')
    """

    def __call__(self, value: Any, name: str) -> int | str:
        if isinstance(value, str) and not value.isdecimal():
            return value
        return Whole(1, MOST_SAMPLES)(int(value) if isinstance(value, str) else value, name)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [Whole(1, MOST_SAMPLES).schema(), {"type": "string"}]}


@dataclass(frozen=True)
class PassSums(BoundedSum):
    """Sums over prompts of the chance that one of k samples is right, as `BoundedSum` sums errors.

    Of a prompt with n samples, c of them right, it is 1 - C(n - c, k) / C(n, k): the share of all
    choices of k samples with a right one among them, which is an unbiased estimate (Chen et al.).

    Claim:       as BoundedSum: L1 sensitivity `resolution` a row that leaves or arrives, or is
                 replaced where the row count is public.                  [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the chance is a number from 0 to 1 of the row's own n and c.
    Numerics:    exact integers; n and c are rounded to whole numbers, n held to `least` and `most`
                 and c to 0 and n, before k quotients of them are multiplied in doubles.
    Refuses:     what BoundedSum refuses; a k above `least`.
    Reference:   Chen et al. 2021, Evaluating large language models trained on code, equation 1.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> added = Protection(neighbours=Neighbours.ADD_REMOVE)
    >>> PassSums(k=2, least=2, most=4).sensitivity(added)
    1048576
    """

    error: str = "pass"
    score_range: tuple[float, float] = (0.0, 1.0)
    with_rest: bool = True
    right: int = 0
    samples: int | None = None
    """The place of the declared value with n; None where all prompts have `least` samples."""
    k: int = 1
    least: int = 1
    most: int = MOST_SAMPLES
    known: ClassVar[tuple[str, ...]] = ("pass",)
    shown_by: ClassVar[str | None] = (
        "tests/questions/test_pass_at_k.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.k <= self.least <= self.most:
            raise ArgumentError("k must be at most the smallest number of samples per prompt.")

    @property
    def largest(self) -> float:
        return 1.0

    def _error(self) -> str:
        samples = double(self.least)
        if self.samples is not None:
            samples = f"floor({held_to(f'value_{self.samples}', self.least, self.most)} + 0.5)"
        right = f"floor({held_to(f'value_{self.right}', 0, self.most)} + 0.5)"
        wrong = f"greatest({samples} - {right}, {double(0)})"
        # Drawn one after the other: the chance that the next is wrong too.
        chances = [
            f"(greatest({wrong} - {double(drawn)}, {double(0)}) / ({samples} - {double(drawn)}))"
            for drawn in range(self.k)
        ]
        return f"{double(1)} - {balanced(chances, '*')}"

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return []


@dataclass(frozen=True, kw_only=True)
class PassAtK(OfSums):
    """The mean over prompts of the chance that one of k samples is right."""

    kind = "pass-at-k"
    title = "pass at k"
    asks = "Would one of k answers be right?"
    tells = (
        "pass@k: the chance that one of k samples of a prompt is right, on average over prompts."
    )
    column_field = "right"
    example: ClassVar[Mapping[str, Any]] = {"right": "a", "samples": 4}
    replayed = (*OfSums.replayed, {"k": 2})
    right: Annotated[str, Text("a column"), "The declared column with the number of right samples."]
    samples: Annotated[
        Any,
        Samples(),
        "How many samples each prompt has: a number, or the declared column that says so.",
    ]
    k: Annotated[int, Whole(1, 100), "How many samples somebody may look at."] = 1

    def statistic(self, about: MeasuredRows) -> PassSums:
        least, most = self._ends(about)
        if self.k > least:
            raise ArgumentError(
                f"k must be at most {least}, the smallest number of samples per prompt, got "
                f"{self.k}."
            )
        return PassSums(
            right=about.place(self.right),
            samples=about.place(self.samples) if isinstance(self.samples, str) else None,
            k=self.k,
            least=least,
            most=most,
            **self.with_rest(about),
        )

    def _ends(self, about: MeasuredRows) -> tuple[int, int]:
        """Return the least and the largest number of samples that a prompt can have."""
        if not isinstance(self.samples, str):
            return self.samples, self.samples
        about.place(self.samples)
        low, high = about.values[self.samples].ends
        if not (1 <= low == int(low) and high == int(high) <= MOST_SAMPLES):
            raise ArgumentError(
                f"values[{visible(self.samples)!r}] must be whole numbers from 1 to "
                f"{MOST_SAMPLES:,}, got {low:g} to {high:g}, the samples per prompt."
            )
        return int(low), int(high)

    def words(self) -> str:
        return f"pass@{self.k}"

    def parameters(self, about: MeasuredRows) -> dict[str, Any]:
        own = {"right": self.right, "samples": self.samples, "k": self.k}
        ends = {"bounds": list(self._ends(about))}
        return own | ends | super().parameters(about)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (
            _pair("a prompt from never to always right", [0], [4]),
            _pair("a prompt that was always right leaves", [4], [], **REMOVE),
            _pair("two prompts of one author change", [0, 0], [4, 4], **PERSON),
        )
        return (
            WorstCase(pairs=pairs, fields={"k": 2}, make=_table),
            WorstCase(name="counted", pairs=pairs, fields={"samples": "b", "k": 2}, make=_table),
        )


def _table(content: Any, options: Mapping[str, Any]) -> PrivateTable:
    """Return private prompts with a right ones of b samples."""
    values = {"a": (0, 4), "b": (2, 4)}
    return Dataset(content, **{"values": values, "name": "neighbour", **options})


def _pair(name: str, first: list[int], second: list[int], **options: Any) -> Pair:
    others = [0, 1, 2, 3, 4, 2]

    def of(own: list[int]) -> dict[str, Any]:
        right = [*own, *others]
        people = [*[0] * len(own), *range(1, len(others) + 1)]
        places = list(range(len(right)))
        return {"a": right, "b": [4] * len(right), "u": people, "k": places}

    return Pair(name, of(first), of(second), options)
