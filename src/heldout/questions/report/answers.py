"""The page of any answers: one section for each question."""

from collections.abc import Iterator
from typing import Any, Final

from heldout.drawing.page import rendered
from heldout.questions.answered import Answered
from heldout.questions.registry import places
from heldout.questions.report.report import Report

__all__ = ["answers_page"]

LEVEL: Final = 0.95


def answers_page(answered: Answered) -> str:
    """Return a self-contained page with every measure and picture of the answers."""
    parts, about = list(_parts(answered)), answered.drawn.about
    whose = f"{about.model} on {about.name}" if about.model is not None else about.name
    heading = f"How good is {whose}?" if about.model is not None else f"Answers about {whose}"
    return rendered(
        "answer.html",
        title=f"{whose}: private evaluation",
        heading=heading,
        about=about,
        level=LEVEL,
        parts=parts,
        receipt=answered.receipt,
        releases=[release for _, release in parts],
        standing=answered.standing,
    )


def _parts(answered: Answered) -> Iterator[tuple[str, Any]]:
    """Every release with a title; those of a report among other questions follow one another."""
    for at, release in enumerate(answered.releases, start=1):
        if isinstance(release, Report):
            for name, each in release.releases.items():
                yield f"{at}. {places()[name].section.title}", each
        else:
            kind = answered.questions[at - 1].kind.replace("-", " ")
            yield f"{at}. {kind[:1].upper()}{kind[1:]}", release
