"""A small file beside the ledger that remembers its last entry.

A ledger that is restored from an old copy has a perfect chain; only something outside it can know
that there was more. The witness is written after each commit, so it is never ahead of an honest
ledger, and may be behind by the entries of a crash.
"""

import contextlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from heldout.errors import LedgerError

__all__ = ["Witness", "WitnessFile"]


@dataclass(frozen=True)
class Witness:
    """The last entry that was seen."""

    ledger: str
    sequence: int
    hash: str


@dataclass(frozen=True)
class WitnessFile:
    """Reads and replaces the witness; every reader sees a whole one."""

    path: Path

    def read(self) -> Witness | None:
        """The witness, or None if there is no file."""
        try:
            content = json.loads(self.path.read_text(encoding="ascii"))
            witness = Witness(content["ledger"], content["sequence"], content["hash"])
            if not isinstance(witness.sequence, int) or len(content) != 3:
                raise ValueError
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise LedgerError(
                "The ledger's witness must be a readable file that heldout wrote, got "
                f"'{self.path}'. Restore it from a copy that is as new as the ledger."
            ) from None
        return witness

    def write(self, witness: Witness) -> None:
        """Replace the witness, durably, unless it is already further on.

        Two processes may look and replace at once and leave the older of the two: the witness is
        then behind until the next booking, which is a weaker watch for a moment and no error.
        """
        current = self.read()
        if current and current.ledger == witness.ledger and current.sequence >= witness.sequence:
            return
        self.replace(witness)

    def replace(self, witness: Witness) -> None:
        """Replace the witness, durably, whatever it was."""
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            with temporary.open("x", encoding="ascii") as file:
                json.dump(vars(witness), file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise LedgerError(
                f"The ledger's witness must be writable, got '{self.path}'. What was booked stays "
                "booked; make its directory writable before you go on."
            ) from None
