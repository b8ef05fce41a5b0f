"""What a form allows is answered: no kind takes a price and then fails, whatever the rows."""

import dataclasses
from random import Random
from typing import Any

from heldout import questions as q
from heldout.arguments import Whole
from heldout.audit.subjects import EVERYTHING
from heldout.audit.tables import _draw
from heldout.errors import HeldoutError
from heldout.questions.session import PrivateSession
from heldout.questions.worst_cases import MADE_UP


def sessions(kind: Any) -> list[PrivateSession]:
    """Return small made-up rows of each sort that the kind is asked of."""
    random, every = Random(1), []
    for made_up in (MADE_UP[rows] for rows in kind.of if rows in MADE_UP):
        columns = made_up.columns.items()
        table = {name: [_draw(column, random) for _ in range(30)] for name, column in columns}
        every.append(PrivateSession(made_up.open(table), budget=EVERYTHING))
    return every


def test_no_price_is_lost_at_the_ends_of_a_whole_number_in_a_form() -> None:
    """A histogram of 1,000 bins once was: its statement was 1,000 deep, which DuckDB refuses."""
    asked = set()
    for kind in q.registered():
        for field in kind.form():
            if not isinstance(field.rule, Whole):
                continue
            for end in (field.rule.least, field.rule.most):
                for session in sessions(kind):
                    try:
                        question = dataclasses.replace(kind.to_replay()[0], **{field.name: end})
                        question.check(session.dataset)
                        question.request(session.dataset)
                    except HeldoutError:  # refused before anything is booked
                        continue
                    session.answer(question)
                    asked.add((kind.kind, field.name, end))
    assert ("histogram", "bins", 1000) in asked
    assert len(asked) > 20
