"""One durable booking on SQLite, witness included; how it grows with depth and with the ledger.

python -m benchmarks.ledger_booking
"""

import os
import tempfile
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from benchmarks.figure import judge, seconds
from heldout.drawing.ledger import summarise
from heldout.kernel import Account, Budget, Event, Ledger
from heldout.kernel.accountant import charge, compose
from heldout.kernel.ledger.journal import Balance, Books
from heldout.kernel.ledger.records import canonical
from heldout.kernel.noise import DiscreteLaplace

LARGE = Budget(epsilon=10**6)


def durable_write(file: Path) -> None:
    """What the disk itself takes to make 4 KiB durable: the floor of any ledger."""
    with file.open("ab") as handle:
        handle.write(b"\0" * 4096)
        handle.flush()
        os.fsync(handle.fileno())


def opened(file: Path) -> tuple[Ledger, Account, Account]:
    """A ledger with an account of depth 1 and one of depth 3."""
    ledger = Ledger.open(file)
    single = ledger.register("alone", budget=LARGE, unit="id")
    ledger.register("data", budget=LARGE, unit="id", people="people")
    return ledger, single, ledger.grant("data", analyst="ana", budget=LARGE)


def fill(ledger: Ledger, account: Account, event: Event, count: int) -> None:
    """Very many bookings in one transaction, as so many calls of `book` would leave them."""

    def many(books: Books) -> None:
        line, cost = books.line(account.id), charge(event, budget=LARGE)
        content = {"kind": "booking", "event": event.as_dict(), "loss": cost.as_dict(),
                   "charge": cost.as_dict(), "request": {"release": "auc", "model": "risk"},
                   "analyst": "ana"}  # fmt: skip
        for _ in range(count):
            after = [
                Balance(row, replace(state, spent=compose([state.spent, cost], budget=LARGE)))
                for row, state in line
            ]
            entry = books.write(after, content)
            line = [
                Balance(replace(row, state=canonical(state.as_dict()), head=entry.hash), state)
                for row, state in after
            ]

    ledger._journal.write(many)


def bookings(ledger: Ledger, accounts: list[Account], event: Event, count: int) -> list[float]:
    """The median time of a booking on each account, in turns, in milliseconds."""
    times: list[list[float]] = [[] for _ in accounts]
    for _ in range(count):
        for account, spent in zip(accounts, times, strict=True):
            start = time.perf_counter()
            ledger.book(account, event, request={"release": "confusion"})
            spent.append((time.perf_counter() - start) * 1e3)
    return [sorted(each)[count // 2] for each in times]


def main(count: int = 300, entries: int = 100_000) -> bool:
    event = DiscreteLaplace.for_epsilon(Fraction(1, 1000), l1_sensitivity=2, dimension=4).event()
    with tempfile.TemporaryDirectory() as folder:
        floor = seconds(lambda: durable_write(Path(folder) / "floor"), repeat=50)
        print(f"one fsync of this disk: {floor * 1e3:.2f} ms")
        small, single, share = opened(Path(folder) / "small.sqlite")
        large, large_single, large_share = opened(Path(folder) / "large.sqlite")
        fill(large, large_share, event, entries)
        empty, deep = bookings(small, [single, share], event, count)
        # In turns with the empty one: other programs on the machine slow down both.
        again, full = [], []
        for _ in range(10):
            again += bookings(small, [single], event, count // 10)
            full += bookings(large, [large_single], event, count // 10)
        empty_again, full_one = sorted(again)[5], sorted(full)[5]
        verdicts = [
            judge("one booking, median", empty, 5, unit=" ms"),
            judge("at depth 3, over depth 1", deep / empty, 1.5, unit=" times"),
            judge(f"with {entries:,} entries, over none", full_one / empty_again, 1.2,
                  unit=" times"),
            judge("show", seconds(lambda: summarise(large.history()), repeat=1), 2, unit=" s"),
            judge("verify", seconds(large.verify, repeat=1), 20, unit=" s"),
            judge("opening", seconds(lambda: Ledger.open(Path(folder) / "large.sqlite"),
                  repeat=3), 0.2, unit=" s"),
        ]  # fmt: skip
        large.close()
        small.close()
    return all(verdicts)


if __name__ == "__main__":
    main()
