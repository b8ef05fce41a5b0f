"""What was paid for is delivered or kept, and no message says otherwise."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from heldout import Ledger
from heldout.examples import readmission

# At epsilon 1 noise leaves no difference or curve to print now and then.
ASK = "test.parquet --label readmitted --score risk_a --epsilon 6 --ledger ledger.sqlite"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(readmission().slice(0, 1000), tmp_path / "test.parquet")
    return tmp_path


def started(folder: Path, command: str, **words: Any) -> "subprocess.Popen[str]":
    environment = {name: each for name, each in os.environ.items() if name != "HELDOUT_DEBUG"}
    environment |= words.pop("environment", {})
    return subprocess.Popen(
        [sys.executable, "-m", "heldout", *command.split()],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        **words,
    )


def kept(folder: Path, said: str) -> dict[str, Any]:
    """The answer in the file that the message names; its receipt is in the ledger."""
    place = Path(said.partition("It is kept in ")[2].partition(" Receipt:")[0].rstrip("."))
    assert place.parent == folder
    assert place.stat().st_mode & 0o777 == 0o600
    content: dict[str, Any] = json.loads(place.read_text())
    with Ledger.open(folder / "ledger.sqlite") as ledger:
        hashes = {entry.hash for entry in ledger.entries()}
    assert said.rstrip().rpartition(" ")[2] in hashes
    return content


COMMANDS = {
    "evaluate": (f"evaluate {ASK} --budget 9", "releases"),
    "compare": (f"compare {ASK} --rival risk_b --budget 9", "p_value"),
    "curves": (f"curves {ASK} --budget 9", "measures"),
}
each_command = pytest.mark.parametrize(
    ("command", "holds"),
    [
        pytest.param(*words, id=name, marks=[] if name == "evaluate" else pytest.mark.slow)
        for name, words in COMMANDS.items()
    ],
)


@each_command
def test_a_full_disk_keeps_the_answer(folder: Path, command: str, holds: str) -> None:
    with Path("/dev/full").open("w") as full:
        running = started(folder, command, stdout=full)
        said = running.communicate()[1]
    assert running.returncode == 2
    assert "No space left on device" in said
    assert "charged" not in said
    assert "again" not in said
    assert holds in kept(folder, said)


@each_command
def test_a_reader_that_went_away_finds_the_answer_in_a_file(
    folder: Path, command: str, holds: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    running = started(folder, command, stdout=writing)
    os.close(writing)
    said = running.communicate()[1]
    assert running.returncode == 2
    assert holds in kept(folder, said)


ASCII = {"PYTHONIOENCODING": "ascii"}
PLAIN = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        ("evaluate", ASCII),
        pytest.param("compare", ASCII, marks=pytest.mark.slow),
        pytest.param("curves", ASCII, marks=pytest.mark.slow),
        ("evaluate", PLAIN),
    ],
    ids=[*COMMANDS, "C locale"],
)
def test_a_terminal_without_the_sign_gets_plain_letters(
    folder: Path, command: str, environment: dict[str, str]
) -> None:
    asked = COMMANDS[command][0]
    running = started(folder, asked, stdout=subprocess.PIPE, environment=environment)
    out, said = running.communicate()
    assert (running.returncode, said) == (0, "")
    assert "+/-" in out
    assert out.isascii()


@pytest.mark.slow
def test_an_interrupt_after_the_booking_names_the_receipt(folder: Path) -> None:
    """Whenever Ctrl-C comes: printed, kept, or the receipt is named; or nothing was booked."""
    command = COMMANDS["evaluate"][0]
    for wait in (0.4, 0.8, 1.2, 1.6):
        for each in folder.glob("ledger*"):
            each.unlink()
        running = started(folder, command, stdout=subprocess.PIPE)
        time.sleep(wait)
        running.send_signal(signal.SIGINT)
        out, said = running.communicate()
        booked = []
        if (folder / "ledger.sqlite").exists():
            with Ledger.open(folder / "ledger.sqlite") as ledger:
                booked = ledger.entries()
        if running.returncode == 0:
            assert "Receipt" in out
        elif booked and booked[0].hash not in out:
            assert booked[0].hash in said or "What was booked stays booked" in said
        assert "Nothing was charged" not in said


def race(folder: Path, ledger: str, callers: int = 30, at_once: int = 6) -> tuple[int, int]:
    """How many of the callers got a whole report, and how many were refused unharmed."""
    command = "evaluate test.parquet --label readmitted --score risk_a --epsilon 1 --json"
    waiting = [f"{command} --ledger {ledger}"] * callers
    running: list[subprocess.Popen[str]] = []
    whole = refused = 0
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(started(folder, waiting.pop(), stdout=subprocess.PIPE))
        out, said = running.pop(0).communicate()
        if out:
            assert set(json.loads(out)["releases"]) >= {"auc", "confusion", "brier"}
            whole += 1
        else:
            assert "Nothing was charged" in said
            refused += 1
    return whole, refused


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_thirty_racing_reports_with_budget_for_ten_are_ten_whole_ones(
    folder: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    ledger = "ledger.sqlite" if engine == "sqlite" else request.getfixturevalue("postgres")
    opening = "evaluate test.parquet --label readmitted --score risk_a --epsilon 1 --budget 11"
    first = started(folder, f"{opening} --ledger {ledger} --json", stdout=subprocess.PIPE)
    assert first.communicate()[0]
    assert race(folder, ledger, 30 if engine == "sqlite" else 14) == (
        (10, 20) if engine == "sqlite" else (10, 4)
    )
    with Ledger.open(ledger if "://" in ledger else folder / ledger) as book:
        assert len(book.entries()) == 11


def test_a_reader_who_stops_after_two_lines_ends_it_quietly(folder: Path) -> None:
    line = f"{sys.executable} -m heldout {COMMANDS['evaluate'][0]} | head -2"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 2
    assert list(folder.glob("heldout-answer-*")) == []


@pytest.mark.parametrize("command", ["evaluate --help-all", "--help", "audit --list"])
def test_a_list_may_be_cut_short_by_its_reader(folder: Path, command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    running = started(folder, command, stdout=writing)
    os.close(writing)
    assert running.communicate()[1] == ""
    assert running.returncode == 0
