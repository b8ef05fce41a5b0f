"""No public entry without awkward input: what is added must be added to the fuzzers' entries."""

import contextlib
import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import heldout
from heldout import (
    audit,
    client,
    examples,
    features,
    integrations,
    judged,
    models,
    precision_recall,
    questions,
    regression,
    survival,
)
from heldout.cli import COMMANDS
from heldout.errors import HeldoutError

entries: Any = importlib.import_module("fuzz_entries")
commands: Any = importlib.import_module("fuzz_commands")
ALL = {**entries.ENTRIES, **commands.ENTRIES}

ROOMS: dict[str, ModuleType] = {
    "audit": audit,
    "client": client,
    "examples": examples,
    "features": features,
    "integrations": integrations,
    "judged": judged,
    "models": models,
    "precision_recall": precision_recall,
    "questions": questions,
    "regression": regression,
    "survival": survival,
}
# The first takes a Subject of the caller's own making: code, which nobody can check; the other
# takes nothing.
NO_INPUT = {"audit.register", "features.PricedEstimator", "models.available"}


def public() -> set[str]:
    """Every public name that is not a room: `heldout.Session`, `features.select`, a command."""
    found = {f"heldout.{name}" for name in heldout.__all__ if name not in {*ROOMS, "errors"}}
    for room, module in ROOMS.items():
        found |= {f"{room}.{name}" for name in module.__all__}
    return found | {f"heldout {name}" for name in COMMANDS}


def test_every_public_entry_is_fuzzed() -> None:
    covered = {name for each in ALL.values() for name in each.covers}
    assert public() - covered == NO_INPUT
    assert covered <= public(), "an entry covers what is not public"


def test_every_room_of_the_package_is_looked_at() -> None:
    found = {name: getattr(heldout, name) for name in heldout.__all__}
    # `heldout.separability` is called: the room of its name answers as the function.
    rooms = {name for name, each in found.items() if inspect.ismodule(each) and not callable(each)}
    assert rooms == {*ROOMS, "errors"}


@pytest.mark.parametrize("name", ["heldout.Session", "regression.RegressionSession"])
def test_every_question_of_a_session_is_asked(name: str) -> None:
    room, kind = name.split(".")
    session = getattr(heldout if room == "heldout" else ROOMS[room], kind)
    questions = [
        each
        for each, value in vars(session).items()
        if not each.startswith("_") and inspect.isfunction(value)
    ]
    source = Path(entries.__file__).read_text()
    assert [each for each in questions if f".{each}" not in source] == []


def test_what_is_called_public_says_so_itself() -> None:
    """A canary in a private entry's answer fails; this shows that the check can fail."""
    leaky = entries.Entry("leaky", (), lambda cell: f"got {cell}", {"cell": ("column", 1)})
    with pytest.raises(AssertionError):
        entries.refusal(leaky, {"cell": "Canaria"})
    with contextlib.suppress(HeldoutError):
        assert entries.refusal(leaky, {"cell": "other"}) is None
