"""Questions as values: `session.ask(Auc(epsilon="1/2"))`, and JSON to send, store and price them.

>>> from heldout.questions import Confusion
>>> question = Confusion(threshold=0.3, epsilon="1/2")
>>> question.as_dict()
{'question': 'confusion', 'version': 1, 'epsilon': '1/2', 'threshold': 0.3}
>>> from_dict(question.as_dict()) == question
True
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heldout.arguments import guess, shown
from heldout.errors import ArgumentError
from heldout.questions.base import VERSION, Question
from heldout.questions.groups import By
from heldout.questions.quote import Guess, HalfWidths, Quote
from heldout.questions.registry import find, find_class, kinds, registered

__all__ = [
    "By",
    "Guess",
    "HalfWidths",
    "Question",
    "Quote",
    "find",
    "from_dict",
    "kinds",
    "registered",
]

if TYPE_CHECKING:  # at run time a family is loaded when one of its questions is first used
    from heldout.questions.classes import *  # noqa: F403
    from heldout.questions.counts import *  # noqa: F403
    from heldout.questions.curves.questions import *  # noqa: F403
    from heldout.questions.features.questions import *  # noqa: F403
    from heldout.questions.linear.questions import *  # noqa: F403
    from heldout.questions.lists import *  # noqa: F403
    from heldout.questions.pass_at_k import *  # noqa: F403
    from heldout.questions.prediction_errors import *  # noqa: F403
    from heldout.questions.ranking.questions import *  # noqa: F403
    from heldout.questions.regression.questions import *  # noqa: F403
    from heldout.questions.report.questions import *  # noqa: F403
    from heldout.questions.separability.questions import *  # noqa: F403
    from heldout.questions.survival import *  # noqa: F403
    from heldout.questions.survival_brier import *  # noqa: F403
    from heldout.questions.thresholds import *  # noqa: F403
    from heldout.questions.twin import *  # noqa: F403
    from heldout.questions.values import *  # noqa: F403


def __getattr__(name: str) -> type[Question[Any]]:
    question = None if name.startswith("_") else find_class(name)
    if question is None:
        known = () if name.startswith("_") else (find(kind).__name__ for kind in kinds())
        near = guess(name, known).rstrip(".")
        raise AttributeError(f"module 'heldout.questions' has no attribute {name!r}.{near}")
    globals()[name] = question
    return question


def from_dict(content: Mapping[str, Any]) -> Question[Any]:
    """Read a question that `as_dict` wrote; unknown kinds, versions and fields are refused."""
    if not isinstance(content, Mapping):
        raise ArgumentError(f"A question must be an object, got {shown(content)}.")
    kind, version = content.get("question"), content.get("version", VERSION)
    question = find(kind)
    if version != VERSION or isinstance(version, bool):
        raise ArgumentError(
            f"version must be {VERSION}, got {shown(version)}. Use a version of heldout that "
            "knows this one."
        )
    rest = {name: value for name, value in content.items() if name not in ("question", "version")}
    return question.of_fields(rest)
