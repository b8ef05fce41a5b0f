"""The registry of question kinds: whatever a family declares, and what installed packages add.

A kind is declared by its class alone (`heldout.questions.base.Question`). Every shell walks
`registered()`; none lists kinds.
"""

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from heldout.arguments import is_one_of, no_such
from heldout.errors import ArgumentError
from heldout.questions.base import KINDS, Question, Section

GROUP: Final = "heldout.questions"
"""The entry point group by which a package adds kinds: the name of a module that declares them."""


def registered() -> tuple[type[Question[Any]], ...]:
    """Return every kind of question: our own in the order of their names, then those of packages.

    >>> "auc" in [question.kind for question in registered()]
    True
    """
    for module in _families():
        _import(module)
    for point in _added():
        _load(point)
    return tuple(sorted(KINDS.values(), key=_place))


def kinds() -> list[str]:
    """Return the identifier of every kind, the same in JSON, ledgers, commands and pages."""
    return [question.kind for question in registered()]


def find(kind: object) -> type[Question[Any]]:
    """Return the kind with this identifier; the error lists what there is."""
    if not is_one_of(kind, KINDS):
        registered()
    if not is_one_of(kind, KINDS):
        raise ArgumentError(no_such("question", kind, kinds(), most=99))
    return KINDS[str(kind)]


def kind_of(content: Any) -> type[Question[Any]] | None:
    """Return the kind that a release's JSON answers; None if that is not clear.

    JSON from before releases carried their kind is recognised by what they were called.

    >>> kind_of({"release": "NDCG at 10"}).kind, kind_of({"kind": "log-loss"}).kind
    ('ndcg', 'log-loss')
    """
    if not isinstance(content, Mapping):
        return None
    kind, called = content.get("kind"), content.get("release")
    if kind is not None:
        return next((question for question in registered() if question.kind == kind), None)
    return next((question for question in registered() if _was_called(question, called)), None)


def _was_called(question: type[Question[Any]], called: object) -> bool:
    names = (question.kind, question.title, *question.formerly)
    patterns = (re.sub(r"\\{\w+\\}", r"\\d+", re.escape(name)) for name in names)
    return isinstance(called, str) and any(re.fullmatch(pattern, called) for pattern in patterns)


def find_class(name: str) -> type[Question[Any]] | None:
    """Return our question class of this name; families are loaded until it is there."""
    for module in _families():
        importlib.import_module(module)
        for question in KINDS.values():
            if question.__name__ == name and question.__module__.startswith("heldout."):
                return question
    return None


@dataclass(frozen=True)
class Place:
    """A question's place in reports, for all rows or by group."""

    name: str
    """The kind, with "-by-group" behind it where it is by group."""
    question: type[Question[Any]]
    section: Section
    by_group: bool = False

    @property
    def old_name(self) -> str:
        """Return its name before reports went by kinds."""
        return self.section.old_name or self.name.replace("-", "_")


def places() -> dict[str, Place]:
    """Return every place that a question has in reports, by name, in the order of a report."""
    several = []
    for question in registered():
        if question.section is not None:
            several.append(Place(question.kind, question, question.section))
        if question.section_by_group is not None:
            name, section = f"{question.kind}-by-group", question.section_by_group
            several.append(Place(name, question, section, by_group=True))
    ordered = sorted(several, key=lambda place: place.section.place)
    return {place.name: place for place in ordered}


def section_name(name: str) -> str:
    """Return today's name of a section of a report; an unknown one is returned as it is.

    >>> section_name("average_precision"), section_name("groups")
    ('average-precision', 'confusion-by-group')
    """
    every = places()
    old = {place.old_name: place.name for place in every.values()}
    return name if name in every else old.get(name, name)


@cache
def _families() -> tuple[str, ...]:
    from heldout import questions

    names = []
    for module in pkgutil.iter_modules(questions.__path__, f"{questions.__name__}."):
        name = f"{module.name}.questions" if module.ispkg else module.name
        if not module.ispkg or importlib.util.find_spec(name) is not None:
            names.append(name)
    return tuple(names)


@cache
def _import(module: str) -> None:
    """Import once: every stored answer asks for the registry, many times."""
    importlib.import_module(module)


@cache
def _added() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


@cache
def _load(point: EntryPoint) -> None:
    """Load what a package adds; one that cannot be loaded is refused by name, not skipped."""
    package = point.dist.name if point.dist is not None else point.value
    before = set(KINDS)
    try:
        point.load()
    except Exception as error:
        raise ArgumentError(
            f"The package {package!r} adds questions to heldout and cannot be loaded: "
            f"{type(error).__name__}. Update it, or uninstall it."
        ) from error
    if set(KINDS) == before:
        raise ArgumentError(
            f"The package {package!r} says that {point.value!r} adds questions to heldout, but it "
            "declares none. Uninstall it."
        )


def _place(question: type[Question[Any]]) -> tuple[bool, str]:
    return not question.__module__.startswith("heldout."), question.kind
