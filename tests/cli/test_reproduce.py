"""`heldout reproduce` is found by entry point; without heldout-papers it says what to install."""

import importlib
from collections.abc import Iterator
from importlib import metadata

import pytest

from heldout.cli import first


@pytest.fixture
def without_papers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "entry_points", lambda **_: ())
        importlib.reload(first)
        yield
    importlib.reload(first)


@pytest.mark.usefixtures("without_papers")
@pytest.mark.parametrize(
    "words", [(), ("--list",), ("boyd-2014", "--figure", "3.1", "--json"), ("--data", "-1")]
)
def test_without_the_package_one_line_says_how_to_install_it(run, words):
    outcome = run("reproduce", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"heldout: {first.MISSING}\n"
    assert "pip install heldout-papers" in outcome.err


@pytest.mark.usefixtures("without_papers")
def test_without_the_package_help_names_it(run):
    outcome = run("reproduce", "--help")
    assert outcome.code == 0
    assert "pip install heldout-papers" in outcome.out


def test_the_entry_point_of_a_package_is_the_command(run, monkeypatch):
    def stand_in(name: str) -> None:
        print(f"made {name}")

    point = metadata.EntryPoint("reproduce", "elsewhere:command", first.GROUP)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda _: stand_in)
    monkeypatch.setattr(first, "entry_points", lambda **_: (point,))
    monkeypatch.setattr(first, "reproduce", first.find_reproduce())
    assert run("reproduce", "figure").out == "made figure\n"
