"""A small file beside the ledger that remembers its last entry.

A ledger that is restored from an old copy has a perfect chain; only something outside it can know
that there was more. The witness is written after each commit, so it is never ahead of an honest
ledger, and may be behind by the entries of a crash.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from heldout.errors import LedgerError

__all__ = ["Witness", "WitnessFile"]

_SLOT: Final = 256  # bytes
_A_MINUTE: Final = 60


@dataclass(frozen=True)
class Witness:
    """The last entry that was seen."""

    ledger: str
    sequence: int
    hash: str

    def encode(self) -> bytes:
        """One line of fixed length that shows whether it is whole."""
        text = json.dumps(vars(self))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{text} {digest}".ljust(_SLOT - 1).encode("ascii") + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> "Witness | None":
        """None if the line is not whole. The first version had no digest."""
        try:
            content = json.loads(line[: line.rindex(b"}") + 1])
            witness = cls(content["ledger"], content["sequence"], content["hash"])
            if not isinstance(witness.sequence, int) or len(content) != 3:
                return None
        except (ValueError, KeyError, TypeError):
            return None
        return witness if line.endswith(b"}") or line == witness.encode() else None


@dataclass(frozen=True)
class WitnessFile:
    """Two lines, written in turn: while one is being written, or is torn, the other stands.

    A line is handed to the operating system before `write` returns, which outlives this process;
    it is not forced to the disk. After a power failure the witness may be behind, as after any
    crash; it is never unreadable.
    """

    path: Path

    def read(self) -> Witness | None:
        """The witness, or None if there is no file."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            content = b""
        lines = [content[at : at + _SLOT] for at in range(0, len(content), _SLOT)]
        found = [each for each in map(Witness.decode, lines) if each is not None]
        if not found or len(lines) > 2:
            raise LedgerError(
                "The ledger's witness must be a readable file that heldout wrote, got "
                f"'{self.path}'. Restore it from a copy that is as new as the ledger."
            )
        return max(found, key=lambda each: each.sequence)

    def write(self, witness: Witness) -> None:
        """Move the witness on, unless it is already further.

        Two processes may look and write at once and leave the older of the two: the witness is
        then behind until the next booking, which is a weaker watch for a moment and no error.
        """
        current = self.read()
        if current and current.ledger == witness.ledger and current.sequence >= witness.sequence:
            return
        if current is None or current.ledger != witness.ledger:
            self.replace(witness)
            return
        try:
            handle = os.open(self.path, os.O_WRONLY)
            try:
                os.pwrite(handle, witness.encode(), _SLOT * (witness.sequence % 2))
            finally:
                os.close(handle)
        except OSError:
            raise self._unwritable("What was booked stays booked") from None

    def check_writable(self) -> None:
        """Refuse a file that cannot be opened to be written; whether one is there is not asked."""
        try:
            os.close(os.open(self.path, os.O_WRONLY))
        except FileNotFoundError:
            return
        except OSError:
            raise self._unwritable("Nothing was booked") from None

    def replace(self, witness: Witness) -> None:
        """Make the witness anew, durably, whatever it was."""
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            with temporary.open("xb") as file:
                file.write(witness.encode() * 2)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise self._unwritable("What was booked stays booked") from None

    def _unwritable(self, what: str) -> LedgerError:
        return LedgerError(
            f"The ledger's witness must be writable, got '{self.path}'. {what}; make the file and "
            "its directory writable before you go on."
        )

    def tidy(self) -> None:
        """Remove what processes that were killed while they wrote have left behind."""
        leftover = re.compile(re.escape(self.path.name) + r"\.[0-9]+\.[0-9a-f]{8}")
        for each in self.path.parent.iterdir():
            if leftover.fullmatch(each.name):
                with contextlib.suppress(OSError):
                    if time.time() - each.stat().st_mtime > _A_MINUTE:
                        each.unlink()
