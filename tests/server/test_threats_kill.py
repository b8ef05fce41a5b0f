"""Kill -9 at random, in small; `python -m benchmarks.server_kill` does it at length."""

from pathlib import Path

import pytest
from benchmarks.server_kill import run


@pytest.mark.slow
def test_processes_that_are_killed_leave_the_books_right(tmp_path: Path) -> None:
    """Sixteen clients, two web processes, three workers, one budget that is too small for all."""
    found = run(tmp_path, clients=16, webs=2, workers=3, seconds=6, budget=6, pause=0.6)
    assert found.wrong == []
    assert found.spent <= found.budget
    assert found.bookings >= 2
    assert sum(found.killed.values()) >= 4


@pytest.mark.slow
def test_the_same_on_postgresql(tmp_path: Path, postgres: str) -> None:
    """Smaller: web processes and workers share a database that nobody kills."""
    found = run(tmp_path, clients=8, seconds=6, budget=6, pause=0.8, database=postgres)
    assert found.wrong == []
    assert found.spent <= found.budget
    assert found.bookings >= 2
    assert sum(found.killed.values()) >= 3
