"""What a board keeps from one submission to the next, in the custodian's hands.

The bar's noise is secret; whoever knew it could tell more from the answers than was paid for. The
file is written whole or not at all, and is on disk before an answer is given.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heldout.errors import LedgerError

__all__ = ["State", "StateFile"]


@dataclass
class State:
    """The bar, and every submission in order."""

    secret: int
    paid: int
    submissions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"State(paid={self.paid}, submissions={len(self.submissions)})"

    @property
    def improvements(self) -> int:
        return sum(each["above"] for each in self.submissions.values())

    @property
    def shown(self) -> list[float]:
        return [each["score"] for each in self.submissions.values() if each["score"] is not None]


class StateFile:
    """One board's file; `held` keeps others out while a submission is judged."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def read(self) -> State | None:
        """The state, or None if there is none yet."""
        try:
            content = json.loads(self.path.read_text(encoding="ascii"))
            return State(int(content["secret"]), int(content["paid"]), content["submissions"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise LedgerError("The board's state cannot be read. Restore it from a copy.") from None

    def write(self, state: State) -> None:
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        handle = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(vars(state), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
