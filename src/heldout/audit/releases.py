"""The releases of every kind of question, with the neighbours that are the worst we know for it.

A kind declares its cases itself (`Question.worst_cases`); nothing is listed here.
"""

from fractions import Fraction
from typing import Any

from heldout.audit.doors import claimed, no_postgres, session_on
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.kernel.loss import Loss
from heldout.questions import Question, registered
from heldout.questions.worst_cases import WorstCase

__all__ = ["subject_of"]


def subject_of(question: type[Question[Any]], case: WorstCase) -> Subject:
    """Return one way to ask a question as a subject of the audit."""

    def claim(epsilon: Fraction) -> Loss:
        session = session_on(case, case.pairs[0], 0, "public")
        return claimed(question.of_case(case, epsilon), session)

    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        asked, outcomes = question.of_case(case, epsilon), []
        for start in range(0, count, case.answers_each):
            session = session_on(case, pair, side, door)
            for _ in range(min(case.answers_each, count - start)):
                outcomes.append(case.read(pair, session.ask(asked)))
        return stacked(outcomes)

    return Subject(
        name="-".join(part for part in (question.kind, case.name) if part),
        kind=RELEASE,
        pairs=case.pairs,
        claim=claim,
        draw=draw,
        missing=no_postgres if case.on == "postgres" else lambda: None,
        note=case.note,
        epsilon=case.epsilon,
        why=case.why,
        formerly=case.formerly,
    )


for _question in registered():
    for _case in _question.worst_cases():
        register(subject_of(_question, _case))
