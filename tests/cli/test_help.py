"""`--help` teaches every command, and what it teaches works."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from heldout.cli import COMMANDS

LEDGER = ("register", "grant", "revoke", "raise", "close", "rekey", "show", "verify")
OWN = ("demo", "evaluate", "curves", "plan", "pr", *(f"ledger {each}" for each in LEDGER))
"""Commands whose examples need nothing but the bundled data."""


def examples(page: str) -> list[str]:
    """The example lines of a help page, continued lines joined."""
    joined = re.sub(r"\\\s*\n\s*", "", page)
    found = re.findall(r"^\s*(heldout .*\S)", joined, flags=re.MULTILINE)
    return [re.sub(r"\s+", " ", line) for line in found]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "reproduce"])
def test_every_command_has_help(run, command):
    outcome = run(command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"heldout {command}" in outcome.out
    if command not in ("board", "ledger", "model", "server"):  # whose commands have their own
        assert "Examples:" in outcome.out
        if command not in ("serve", "worker"):  # which answer nothing, and run until they are ended
            assert "--json" in outcome.out


def test_the_front_page_lists_every_command_with_a_line_of_its_own(run):
    page = run("--help").out
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"{name}\s+{re.escape(line)}", page)
    assert page.index("demo") < page.index("reproduce")


@pytest.mark.chance(1e-7)
@pytest.mark.parametrize("command", OWN)
@pytest.mark.slow
def test_every_example_of_the_help_runs(run, here, command, monkeypatch):
    page = run(*command.split(), "--help-all").out
    lines = examples(page)
    assert len(lines) >= 2, "a help page has two examples at least"
    if command.startswith("ledger"):
        receipt = _make_ledger(run)
        monkeypatch.setenv("RECEIPT", receipt)
        words = "ledger register ledger.sqlite readmissions --budget 3 --unit patient_id"
        if command != "ledger register":
            assert run(*words.split()).code == 0
        words = "ledger grant ledger.sqlite readmissions analyst-7 --budget 1"
        if command not in ("ledger register", "ledger grant"):
            assert run(*words.split()).code == 0
    for line in (each for each in lines if "--server " not in each):  # those need a server
        words = [os.path.expandvars(word) for word in shlex.split(line)]
        assert words[0] == "heldout"
        assert len(line) < 300
        outcome = run(*words[1:])
        assert outcome.code == 0, (line, outcome.err)
        assert outcome.out


def _make_ledger(run) -> str:
    line = "evaluate test.parquet --label readmitted --score risk_a --epsilon 1 --budget 3"
    outcome = run(*line.split(), "--ledger", "ledger.sqlite")
    assert outcome.code == 0
    found = re.search(r"Receipt[^:]*: (\w+)", outcome.out)
    assert found
    return found[1]


@pytest.mark.parametrize("command", [f"ledger {each}" for each in LEDGER])
def test_the_commands_of_a_ledger_take_json(run, command):
    assert "--json" in run(*command.split(), "--help").out


@pytest.mark.parametrize("command", ["evaluate", "compare", "curves", "residuals", "ask auc"])
def test_the_options_of_a_command_that_asks_stand_in_groups(run, command):
    page = run(*command.split(), "--help").out
    groups = ("The rows", "The ledger, and who pays", "A model to score the rows with",
              "A server with the rows", "What to do with the answer")  # fmt: skip
    places = [page.index(f"─ {group} ─") for group in groups]
    assert places == sorted(places)
    assert page.index("--ledger STR", places[1]) < places[2]


def test_help_begins_with_what_a_first_hour_needs_and_help_all_has_the_rest(run):
    short, whole = run("evaluate", "--help").out, run("evaluate", "--help-all").out
    options = set(re.findall(r"│[ *]+(--[\w-]+)", whole))
    shown = set(re.findall(r"│[ *]+(--[\w-]+)", short))
    assert shown < options
    assert len(options) > 40
    assert {"--label", "--score", "--epsilon", "--ledger", "--out"} <= shown
    assert len(shown) <= 26
    assert len(examples(short)) == 3
    assert len(examples(whole)) > 3
    rest = sum(int(found) for found in re.findall(r"(\d+) more: --help-all", short))
    assert rest == len(options) - len(shown)


@pytest.mark.parametrize("command", ["ledger", "model", "server", "board"])
def test_a_group_of_commands_shows_examples(command):
    # In a process of its own: a list of commands that was printed before replaces the group's help.
    words = [sys.executable, "-m", "heldout", command, "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert len(examples(done.stdout)) >= 2


def test_the_version_is_that_of_the_package(run):
    import heldout

    assert run("--version").out.strip() == heldout.__version__


def test_help_loads_no_command_and_no_heavy_library():
    program = (
        "import sys; from heldout.cli import main; main(['--help']);"
        "heavy = {'numpy', 'duckdb', 'pyarrow', 'sqlalchemy', 'opendp', 'altair', 'scipy',"
        " 'heldout.cli.evaluate', 'heldout.cli.plan', 'heldout.questions.session'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.strip() == "[]"


def test_the_installed_program_runs_and_returns_its_exit_code():
    words = [sys.executable, "-m", "heldout", "evaluate", "nowhere.parquet"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("heldout: ")
    assert "Traceback" not in done.stderr
