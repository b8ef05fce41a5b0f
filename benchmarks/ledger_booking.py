"""One durable booking on SQLite, witness included.

python -m benchmarks.ledger_booking
"""

import os
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from benchmarks.figure import judge, seconds
from heldout.mechanisms import DiscreteLaplace
from heldout.privacy import Budget, Ledger


def durable_write(file: Path) -> None:
    """What the disk itself takes to make 4 KiB durable: the floor of any ledger."""
    with file.open("ab") as handle:
        handle.write(b"\0" * 4096)
        handle.flush()
        os.fsync(handle.fileno())


def main(bookings: int = 300) -> bool:
    event = DiscreteLaplace.for_epsilon(Fraction(1, 1000), l1_sensitivity=2, dimension=4).event()
    with tempfile.TemporaryDirectory() as folder:
        floor = seconds(lambda: durable_write(Path(folder) / "floor"), repeat=50)
        ledger = Ledger.open(Path(folder) / "ledger.sqlite")
        account = ledger.account(b"rows", budget=Budget(epsilon=100))
        times = []
        for _ in range(bookings):
            start = time.perf_counter()
            ledger.book(account, event, request={"release": "confusion"})
            times.append(time.perf_counter() - start)
    times.sort()
    median, late = times[bookings // 2], times[int(bookings * 0.95)]
    print(
        f"one fsync of this disk: {floor * 1e3:.2f} ms; 95% of bookings within {late * 1e3:.2f} ms"
    )
    return judge("one booking, median", median * 1e3, 5, unit=" ms")


if __name__ == "__main__":
    main()
