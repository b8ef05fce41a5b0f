"""Asks a private question and dies on the way. Run by test_crash.py; imports everything once.

Reads one JSON request a line, forks a child for it, and answers with one JSON line: what the child
managed to say before it was killed.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import opendp.measurements

import heldout as ho
from heldout.data import duckdb
from heldout.kernel import Ledger
from heldout.kernel.ledger import witness
from heldout.kernel.ledger.storage import Storage
from heldout.kernel.ledger.tables import Tables
from heldout.kernel.noise import DiscreteLaplace

assert opendp.measurements
duckdb.SETTINGS["threads"] = 1  # a process with threads must not fork


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


class Trap:
    """Lets a function pass some times, and kills the process at its next call."""

    def __init__(self, owner: Any, name: str, *, after: bool) -> None:
        self.owner, self.name, self.after = owner, name, after
        self.original = getattr(owner, name)

    def set(self) -> None:
        original, after = self.original, self.after

        def trapped(*arguments: Any, **keywords: Any) -> Any:
            if not after:
                die()
            result = original(*arguments, **keywords)
            die()
            return result

        setattr(self.owner, self.name, trapped)


STAGES: dict[str, Trap | None] = {
    "before the booking": Trap(Ledger, "book", after=False),
    "reserved, not committed": Trap(Tables, "append", after=True),
    "committed": Trap(Storage, "write", after=True),
    "half a witness": Trap(witness.os, "pwrite", after=True),
    "booked": Trap(Ledger, "book", after=True),
    "before reading": Trap(ho.Dataset, "_fetch", after=False),
    "before drawing": Trap(DiscreteLaplace, "sample", after=False),
    "drawn": Trap(DiscreteLaplace, "sample", after=True),
    "before responding": None,
    "responded": None,
    "any time": None,
    "while opening": None,
}


def ask_and_die(
    session: ho.Session, stage: str, answered: int, say: Callable[[dict[str, Any]], None]
) -> None:
    """Get some answers, then one more that is cut short at the stage."""

    def ask() -> dict[str, Any]:
        release = session.confusion(epsilon="1/8")
        receipt = release.receipt
        return {"sequence": receipt.sequence, "hash": receipt.hash, "value": release.value}

    for _ in range(answered):
        say(ask())
    trap = STAGES[stage]
    while stage in ("any time", "while opening"):
        say(ask())
    if trap is not None:
        trap.set()
    answer = ask()
    if stage == "responded":
        say(answer)
    die()


def child(request: dict[str, Any], dataset: ho.Dataset, pipe: int) -> None:
    def say(answer: dict[str, Any]) -> None:
        os.write(pipe, (json.dumps(answer) + "\n").encode())

    session = ho.Session(dataset, budget=ho.Budget(epsilon=1000), ledger=request["ledger"])
    ask_and_die(session, request["stage"], request["answered"], say)


def main() -> None:
    rows = {"y": [1, 0, 0, 1], "p": [0.9, 0.2, 0.4, 0.6]}
    dataset = ho.Dataset(rows, label="y", score="p")
    for line in sys.stdin:
        request = json.loads(line)
        read, write = os.pipe()
        victim = os.fork()
        if victim == 0:
            try:
                child(request, dataset, write)
            finally:
                os._exit(1)
        os.close(write)
        with os.fdopen(read) as said:
            first = said.readline() if request["stage"] == "any time" else ""
            if request["stage"] in ("any time", "while opening"):
                time.sleep(request["wait"])
                os.kill(victim, signal.SIGKILL)
            answers = [json.loads(each) for each in [first, *said] if each.endswith("\n")]
        _, status = os.waitpid(victim, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print(json.dumps({"answers": answers, "killed": killed}), flush=True)


if __name__ == "__main__":
    main()
