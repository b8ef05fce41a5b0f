"""kill -9 anywhere: nothing was released that is not booked, and the ledger is whole."""

import itertools
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded

#                         how many bookings are there beyond the answers
STAGES = {
    "before the booking": {0},
    "reserved, not committed": {0},
    "committed": {1},
    "half a witness": {1},
    "booked": {1},
    "before reading": {1},
    "before drawing": {1},
    "drawn": {1},
    "before responding": {1},
    "responded": {0},
    "any time": {0, 1},
    "while opening": {0, 1},
}
BY_THE_CLOCK = ("any time", "while opening")
KILLS = int(os.environ.get("HELDOUT_TEST_KILLS", "4"))  # at each stage, twice as many by the clock


class Victims:
    """A process that forks children which die where they are told to."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("crash_victim.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    found = Victims()
    yield found
    assert found.process.stdin is not None
    found.process.stdin.close()
    found.process.wait(timeout=30)


# Where the order of booking and drawing could go wrong; the other stages with the slow tests.
OFTEN = ("reserved, not committed", "committed", "before drawing", "any time")


@pytest.mark.parametrize(
    "stage",
    [pytest.param(each, marks=[pytest.mark.slow] * (each not in OFTEN)) for each in STAGES],
)
def test_nothing_is_released_that_is_not_booked(
    stage: str, victims: Victims, tmp_path: Path
) -> None:
    place = tmp_path / "ledger.sqlite"
    answered = itertools.cycle([0, 0, 1, 2])
    heard: list[dict[str, Any]] = []
    booked_before = 0
    for _ in range(KILLS * (2 if stage in BY_THE_CLOCK else 1)):
        asked = 0 if stage in BY_THE_CLOCK else next(answered)
        wait = random.uniform(0, 0.03)
        said = victims.ask(ledger=str(place), stage=stage, answered=asked, wait=wait)
        assert said["killed"], "the child must have been killed, not have failed"
        with ho.Ledger.open(place) as ledger:  # verifies every hash, price and total
            entries = {entry.sequence: entry for entry in ledger.entries()}
        for answer in said["answers"]:
            entry = entries[answer["sequence"]]
            assert entry.hash == answer["hash"]
            assert entry.loss == ho.Loss.pure("1/8")
        booked = len(entries) - booked_before
        assert booked - len(said["answers"]) in STAGES[stage]
        if stage not in BY_THE_CLOCK:
            assert len(said["answers"]) == asked + (stage == "responded")
        booked_before = len(entries)
        heard += said["answers"]
    assert len({answer["sequence"] for answer in heard}) == len(heard), "one booking an answer"
    if entries:
        spent = entries[max(entries)].spent
        assert spent.epsilon is not None
        assert spent.epsilon * 8 == len(entries), "the total is that of all bookings"
    assert entries or stage == "while opening"


def dump(place: Path) -> list[str]:
    with sqlite3.connect(f"file:{place}?mode=ro", uri=True) as connection:
        return list(connection.iterdump())


def test_a_refused_request_leaves_every_row_of_the_ledger_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    dataset = ho.Dataset({"y": [1, 0], "p": [0.5, 0.25]}, label="y", score="p")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1), ledger=place)
    session.confusion(epsilon="3/4")
    before = dump(place)
    witness = place.with_name(place.name + ".witness").read_bytes()
    with pytest.raises(BudgetExceeded):
        session.confusion(epsilon="1/2")
    with pytest.raises(ArgumentError):
        session.confusion(threshold=7, epsilon="1/8")
    assert dump(place) == before
    assert place.with_name(place.name + ".witness").read_bytes() == witness
    session.confusion(epsilon="1/4")
    assert dump(place) != before, "the comparison can fail"
