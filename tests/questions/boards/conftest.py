"""Rows, a ledger and a board."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.board import Board, Plan

ROWS = 2000
LABELS = np.arange(ROWS) % 2


def scored(right: int) -> ho.Dataset:
    """A model that calls this many rows rightly."""
    calls = np.where(np.arange(ROWS) < right, LABELS, 1 - LABELS)
    return ho.Dataset({"y": LABELS, "p": 0.1 + 0.8 * calls}, label="y", score="p")


@pytest.fixture
def plan() -> Plan:
    return Plan(rows=ROWS, price=8, improvements=3, submissions=20)


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with ho.Ledger.open(tmp_path / "ledger.sqlite") as found:
        found.register("readmissions", budget=ho.Budget(epsilon=10))
        yield found


@pytest.fixture
def opened(plan: Plan, ledger: Any, tmp_path: Path) -> Callable[[], Board]:
    """Opens the board, or takes it up again."""

    def open_it() -> Board:
        state = tmp_path / "board.json"
        return Board("spring", plan=plan, ledger=ledger, account="readmissions", state=state)

    return open_it
