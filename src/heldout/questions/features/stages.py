"""The steps of one private training, each chosen in the light of the public answers before it."""

from typing import Any, Protocol

from heldout.errors import ArgumentError
from heldout.kernel.door import Answers, Booked, Staged, Step
from heldout.kernel.events import Event, price
from heldout.questions.features.selection_methods import Plan

__all__ = ["Stages", "TrainingPlan"]

Features = tuple[int, ...] | None
"""The public features that a model is trained on; None is all of them."""


class TrainingPlan(Protocol):
    """How one model is trained in two steps, of public facts alone."""

    def prices(self) -> tuple[Event, Event]:
        """Of learning and of the cut; the same for any features."""

    def split(self) -> dict[str, str]:
        """What each step costs, in epsilon."""

    def learn(self, chosen: Features) -> Step:
        """What is asked of the rows first."""

    def understood(self, noisy: Any, chosen: Features) -> Any:
        """What the answer means: the model without its cut."""

    def cut(self, found: Any, chosen: Features) -> Step:
        """What is asked of the rows last: where the model calls a row positive."""

    def weights(self, found: Any) -> Any:
        """A weight for each feature it was trained on."""

    def told_apart(self, weights: Any) -> Any:
        """Which of these features count as selected."""


class Stages:
    """A selection, if there is one, then learning, then the cut; paid as one.

    After the draw `chosen` and `found` are what the public answers meant.
    """

    def __init__(self, plan: TrainingPlan, selection: Plan | None = None) -> None:
        self.plan, self.selection = plan, selection
        self.chosen: Features = None
        self.found: Any = None

    def request(self, name: str, *, claim: str, **words: Any) -> Staged:
        split = self.split()
        learning, cutting = self.plan.prices()
        # What cannot be drawn at this price is refused here, before anything is booked.
        self.plan.learn(None)
        steps = {"learning": Booked(learning, self._learn), "cut": Booked(cutting, self._cut)}
        if self.selection is not None:
            first = Step(self.selection.statistic, self.selection.mechanism)
            steps = {"selection": Booked.of(first)} | steps
        return Staged(
            name=name,
            steps=steps,
            parameters=words | split,
            claim=claim,
            description={"name": f"{name} in {len(steps)} steps", "split": split},
            reading=self,
        )

    def split(self) -> dict[str, str]:
        parts = self.plan.split()
        if self.selection is None:
            return parts
        return {"selection": str(price(self.selection.mechanism.event()).epsilon)} | parts

    def _learn(self, answers: Answers) -> Step:
        if self.selection is not None:
            indices = self.selection.read(answers["selection"]).indices
            # With nothing selected the model is one of the rows' sizes and of any one feature.
            self.chosen = tuple(sorted(int(each) for each in indices)) or (0,)
        return self.plan.learn(self.chosen)

    def _cut(self, answers: Answers) -> Step:
        self.found = self.plan.understood(answers["learning"], self.chosen)
        return self.plan.cut(self.found, self.chosen)

    def retell(self, answers: Answers) -> None:
        """Learn from kept answers what the draw learnt from them."""
        if self.found is None:
            asked: Any = self._learn(answers).statistic
            if len(answers["learning"]) != asked.dimension:
                raise ArgumentError(f"the model is learnt from {asked.dimension:,} numbers.")
            self._cut(answers)

    def __getstate__(self) -> dict[str, Any]:
        # How a selection was read is a function; a kept model needs what it read alone.
        return self.__dict__ | {"selection": None}
