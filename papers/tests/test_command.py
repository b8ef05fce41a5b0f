"""The command as people meet it."""

from pathlib import Path

import pytest

import heldout_papers
from heldout.cli import COMMANDS, first, main
from heldout_papers.command import reproduce


def test_the_product_finds_this_package_by_its_entry_point() -> None:
    assert first.find_reproduce() is reproduce


def test_the_product_does_not_carry_it() -> None:
    import heldout

    assert "reproduce" in COMMANDS
    assert Path(heldout.__file__).parent not in Path(heldout_papers.__file__).parents
    for file in Path(heldout.__file__).parent.rglob("*.py"):
        assert "heldout_papers" not in file.read_text(encoding="utf-8"), file


def test_help_teaches_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--help"]) == 0
    page = capfd.readouterr().out
    for words in ("heldout reproduce", "Examples:", "--json", "--list", "--figure"):
        assert words in page
