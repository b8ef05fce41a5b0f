"""Several answers paid as one, each asked in the light of the public answers before it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

import heldout as ho
from heldout.data.description import ScoredRows
from heldout.errors import AnswerLost, BudgetExceeded
from heldout.kernel import Event, price
from heldout.kernel.door import Answers, Booked, Drawn, Staged, Step
from heldout.kernel.noise import DiscreteLaplace
from heldout.questions import Question
from heldout.questions.base import KINDS, Rule
from heldout.questions.counts import ThresholdCounts


@dataclass(frozen=True)
class Anything(Rule):
    def __call__(self, value: Any, name: str) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, kw_only=True)
class Asked(Question):
    """A question of any steps, whose answer is what was drawn."""

    kind: ClassVar[str] = "steps-of-a-test"
    title: ClassVar[str] = "steps"
    asks: ClassVar[str] = "What do the steps give?"
    tells: ClassVar[str] = "What was drawn."
    of: ClassVar[tuple[type, ...]] = (ScoredRows,)
    steps: Annotated[Any, Anything(), "What is asked, step by step."]

    def request(self, about: Any) -> Staged:
        staged: Staged = self.steps
        return staged

    def read(self, drawn: Drawn) -> Drawn:
        return drawn

    def booked(self) -> dict[str, Any]:
        return {"question": self.kind}


del KINDS[Asked.kind]  # other tests walk the registry

ROWS = {"y": [1, 0] * 200, "p": [0.8, 0.3] * 200}


def session(budget: str = "2") -> ho.Session:
    return ho.Session(ho.Dataset(ROWS, label="y", score="p"), budget=ho.Budget(epsilon=budget))


def laplace(epsilon: str, dimension: int) -> DiscreteLaplace:
    return DiscreteLaplace.for_epsilon(Fraction(epsilon), l1_sensitivity=2, dimension=dimension)


def two_steps(seen: list[Any], *, second: str = "1") -> Staged:
    """The label counts, then a threshold that these counts decide."""

    def first(answers: Answers) -> Step:
        seen.append(dict(answers))
        return Step(ThresholdCounts(thresholds=()), laplace("1/2", 2))

    def then(answers: Answers) -> Step:
        seen.append(dict(answers))
        threshold = 0.25 if answers["labels"][0] > 0 else 0.75
        return Step(ThresholdCounts(thresholds=(threshold,)), laplace(second, 4))

    return Staged(
        name="two steps",
        steps={
            "labels": Booked(laplace("1/2", 2).event(), first),
            "threshold": Booked(laplace("1", 4).event(), then),
        },
        parameters={},
        claim="staged",
        description={"name": "two draws"},
    )


def test_steps_are_booked_as_one_before_the_first_row_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = session()
    taken: list[str] = []
    for owner, name in ((door._ledger, "book"), (door._table, "_fetch")):
        original = getattr(owner, name)

        def noted(*words: Any, _name: str = name, _do: Any = original, **named: Any) -> Any:
            taken.append(_name)
            return _do(*words, **named)

        monkeypatch.setattr(owner, name, noted)
    drawn: Drawn = door.ask(Asked(epsilon="1", steps=two_steps([])))
    assert taken == ["book", "_fetch", "_fetch"]
    assert str(price(drawn.request.event())) == "epsilon 1.5"
    assert str(door.remaining) == "epsilon 0.5"


def test_a_step_sees_the_answers_before_it_and_no_row() -> None:
    seen: list[Any] = []
    drawn = session().ask(Asked(epsilon="1", steps=two_steps(seen)))
    assert seen[0] == {}
    assert list(seen[1]) == ["labels"]
    assert np.array_equal(seen[1]["labels"], drawn.values["labels"])
    assert list(drawn.values) == ["labels", "threshold"]


@pytest.mark.parametrize("price", ["2", "1/2"])
def test_a_step_that_costs_something_else_than_was_booked_reads_nothing(price: str) -> None:
    door = session()
    fetched: list[str] = []
    original = door._table._fetch
    door._table._fetch = lambda body: fetched.append(body) or original(body)  # type: ignore[func-returns-value,method-assign]
    with pytest.raises(AnswerLost, match="differs from the booked price"):
        door.ask(Asked(epsilon="1", steps=two_steps([], second=price)))
    assert len(fetched) == 1
    assert str(door.remaining) == "epsilon 0.5"


def test_a_step_in_fewer_parts_than_were_booked_reads_nothing() -> None:
    """The price is the same in epsilon; under a budget of rho it would be twice as much."""
    halves = Event.composed([laplace("1/2", 2).event()] * 2)
    whole = Step(ThresholdCounts(thresholds=()), laplace("1", 2))
    steps = {"labels": Booked(halves, lambda answers: whole)}
    staged = Staged(name="parts", steps=steps, parameters={}, claim="staged", description={})
    with pytest.raises(AnswerLost, match="differs from the booked price"):
        session().ask(Asked(epsilon="1", steps=staged))


def test_what_cannot_be_paid_in_full_is_not_begun() -> None:
    seen: list[Any] = []
    door = session(budget="1")
    with pytest.raises(BudgetExceeded):
        door.ask(Asked(epsilon="1", steps=two_steps(seen)))
    assert seen == []
    assert str(door.remaining) == "epsilon 1"
