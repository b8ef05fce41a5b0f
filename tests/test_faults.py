"""Every fault that `make mutants` plants fits today's source, and its tests are there."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def mutants() -> ModuleType:
    path = ROOT / "tools" / "mutants.py"
    specification = importlib.util.spec_from_file_location("mutants", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["mutants"] = module  # where dataclasses look their annotations up
    specification.loader.exec_module(module)
    return module


def test_every_fault_can_be_planted_and_has_tests_that_look_for_it(mutants: ModuleType) -> None:
    for fault in mutants.faults():
        assert fault.place(ROOT).is_file()
        assert fault.selections(ROOT)
        assert fault.old != fault.new


def test_a_fault_whose_text_is_gone_would_be_noticed(mutants: ModuleType) -> None:
    gone = mutants.Fault("gone", "noise", "no such text", "", ("conformance",))
    with pytest.raises(SystemExit, match="must stand once in src, got 0 times"):
        gone.place(ROOT)
