"""Answers that can be kept: as JSON, and back to the same releases without rows or a ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from heldout import questions as q
from heldout.data.description import Description
from heldout.errors import ArgumentError, HeldoutError
from heldout.kernel import Budget, Loss, Receipt, price
from heldout.kernel.door import Drawn, Standing
from heldout.questions.kept import from_plain, plain
from heldout.questions.quote import booked_together

__all__ = ["Answered"]

SCHEMA = 1
FIELDS = {"schema", "questions", "about", "values", "receipt", "budget", "spent", "remaining"}
RULES = "rules"  # one number a question, left out where all are 1, as all were at first


@dataclass(frozen=True, eq=False)
class Answered:
    """Questions that were booked as one, and what was drawn for them. All of it is public.

    >>> import heldout as ho, json
    >>> rows = ho.Dataset({"y": [1, 0] * 500, "p": [0.8, 0.3] * 500}, label="y", score="p")
    >>> answered = ho.Session(rows, budget=ho.Budget(epsilon=1)).answer(q.Confusion(epsilon=1))
    >>> content = json.dumps(answered.as_dict())
    >>> [kept], [drawn] = Answered.from_dict(json.loads(content)).releases, answered.releases
    >>> kept.as_dict() == drawn.as_dict()
    True
    """

    questions: tuple[q.Question[Any], ...]
    drawn: Drawn

    @cached_property
    def releases(self) -> tuple[Any, ...]:
        """What people read, one for each question."""
        if len(self.questions) == 1:
            return (self.questions[0].release(self.drawn),)
        return tuple(
            question.release(self.drawn.part(str(at))) for at, question in enumerate(self.questions)
        )

    @property
    def receipt(self) -> Receipt:
        assert self.drawn.receipt is not None
        return self.drawn.receipt

    @property
    def standing(self) -> Standing:
        """The account right after it paid."""
        assert self.drawn.standing is not None
        return self.drawn.standing

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, exact and complete: `from_dict` gives the same releases."""
        standing, rules = self.standing, [each.rules for each in self.questions]
        return {
            "schema": SCHEMA,
            "questions": [each.as_dict() for each in self.questions],
            "about": plain(self.drawn.about),
            "values": plain(self.drawn.values),
            "receipt": self.receipt.as_dict(),
            "budget": standing.budget.as_dict(),
            "spent": standing.spent.as_dict(),
            "remaining": standing.remaining.as_dict(),
            **({} if set(rules) == {1} else {RULES: rules}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `as_dict` wrote, from wherever it comes; anything else is refused."""
        if not isinstance(content, Mapping) or set(content) - {RULES} != FIELDS:
            raise ArgumentError("An answer must be an object as Answered.as_dict() gives it.")
        if content["schema"] != SCHEMA or isinstance(content["schema"], bool):
            raise ArgumentError(
                f"The schema of an answer must be {SCHEMA}. Use a version of heldout that knows "
                "this one."
            )
        try:
            found = cls._rebuilt(content)
            for each in found.releases:  # reads all of the values
                measures = each.measures() if callable(each.measures) else each.measures
                _ = [float(measure.value) for measure in measures.values()]
        except HeldoutError as error:
            raise ArgumentError(f"This answer cannot be read: {error}") from None
        except Exception:
            raise ArgumentError("This answer cannot be read: its values are malformed.") from None
        return found

    @classmethod
    def _rebuilt(cls, content: Mapping[str, Any]) -> Self:
        asked = [q.from_dict(each) for each in content["questions"]]
        rules = content.get(RULES, [1] * len(asked))
        questions = tuple(each.under(own) for each, own in zip(asked, rules, strict=True))
        about = from_plain(content["about"])
        if not isinstance(about, Description):
            raise ArgumentError("about must describe rows.")
        request = booked_together(questions, about)
        receipt = Receipt.from_dict(content["receipt"])
        if receipt.loss != price(request.event()):
            raise ArgumentError("the receipt's price is not that of the questions.")
        amounts = (content[name] for name in ("spent", "remaining"))
        standing = Standing(Budget.from_dict(content["budget"]), *map(Loss.from_dict, amounts))
        values = from_plain(content["values"])
        terms = about.protection.terms(receipt.loss)
        return cls(questions, Drawn(request, values, receipt, about, standing, terms))
