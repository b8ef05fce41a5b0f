"""`heldout reproduce`: found by entry point, in a distribution of its own (`heldout-papers`)."""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated, Any

from cyclopts import Parameter

from heldout.errors import MissingDependency

GROUP = "heldout.commands"
MISSING = (
    "The papers' figures come in a package of their own: pip install heldout-papers "
    "(from a checkout: pip install --editable papers)."
)


def absent(*words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]) -> None:
    """Redo the figures of the papers. Needs a package of its own: `pip install heldout-papers`."""
    del words
    raise MissingDependency(MISSING)


def found() -> Callable[..., Any]:
    """The command of heldout-papers, or one that says how to install it."""
    for point in entry_points(group=GROUP, name="reproduce"):
        command: Callable[..., Any] = point.load()
        return command
    return absent


reproduce = found()
