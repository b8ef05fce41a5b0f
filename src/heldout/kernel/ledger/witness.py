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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from heldout.errors import LedgerError, LedgerTampered
from heldout.kernel.ledger.records import Identity, first_hash, tampered
from heldout.kernel.ledger.storage import Storage
from heldout.kernel.ledger.tables import Tables

T = TypeVar("T")

_SLOT: Final = 256  # bytes
_A_MINUTE: Final = 60


@dataclass(frozen=True)
class Witness:
    """The last entry that was seen."""

    ledger: str
    sequence: int
    hash: str

    @classmethod
    def of(cls, identity: Identity) -> "Witness":
        """Return where the chain of a ledger ends."""
        return cls(identity.ledger, identity.sequence, identity.head)

    def encode(self) -> bytes:
        """Return one line of fixed length that shows whether it is whole."""
        text = json.dumps(vars(self))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{text} {digest}".ljust(_SLOT - 1).encode("ascii") + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> "Witness | None":
        """Read a line; None if it is not whole. The first version had no digest."""
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
        """Return the witness, or None if there is no file."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            content = b""
        lines = [content[at : at + _SLOT] for at in range(0, len(content), _SLOT)]
        whole = [witness for witness in map(Witness.decode, lines) if witness is not None]
        if not whole or len(lines) > 2:
            raise LedgerError(
                "The ledger's witness must be a readable file that heldout wrote, got "
                f"'{self.path}'. Restore it from a copy that is as new as the ledger."
            )
        return max(whole, key=lambda witness: witness.sequence)

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
        for path in self.path.parent.iterdir():
            if leftover.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    if time.time() - path.stat().st_mtime > _A_MINUTE:
                        path.unlink()


class Watch:
    """Remembers the furthest entry that this process saw, and asks the witness file as well."""

    def __init__(self, storage: Storage, witness: WitnessFile | None) -> None:
        self._storage = storage
        self._witness = witness
        self._seen: Witness | None = None
        self._owed: Witness | None = None  # what the witness file lacks
        self._missing: dict[tuple[str, int, str], Witness] = {}  # receipts without an entry

    def begin(self) -> int:
        """Make the ledger's tables, unless the witness knows that there were some.

        Returns the version of the schema.
        """
        file = self._storage.file
        if file is not None and not file.exists():
            self._refuse_to_begin_again()
        return self._storage.create(refuse=self._refuse_to_begin_again)

    def _refuse_to_begin_again(self) -> None:
        if self._witness is not None and self._witness.read() is not None:
            place = self._witness.path
            raise tampered(None, f"it is gone or empty while its witness '{place}' is there")

    def open(self, *, renew: bool) -> None:
        """Look at the ledger for the first time; with `renew`, take it as it is for the truth."""
        witness = self._witness
        if witness is not None and renew and not self._storage.read_only:
            self._storage.write(lambda tables: witness.replace(Witness.of(tables.end()[0])))
        with self._storage.lock:
            self.remember(Witness.of(self.look(self.check)))

    @property
    def ledger(self) -> str:
        """Return the name of the ledger, once it is open."""
        return "" if self._seen is None else self._seen.ledger

    def remember(self, seen: Witness) -> None:
        """Notice from now on if an entry that was committed or verified is gone."""
        self._keep(seen)
        if self._witness is not None and not self._storage.read_only:
            self._witness.write(seen)

    def _keep(self, seen: Witness) -> None:
        if self._seen is None or seen.sequence > self._seen.sequence:
            self._seen = seen

    def expect(self, tables: Tables, seen: Witness) -> None:
        """Refuse a ledger without an entry that somebody has a receipt for, now and later on."""
        receipt = (seen.ledger, seen.sequence, seen.hash)
        self._missing[receipt] = seen  # until its entry is there, nothing is booked
        self.check(tables)
        del self._missing[receipt]
        self._keep(seen)

    def settle(self) -> None:
        """Before anything is written: refuse if the witness cannot be."""
        if self._witness is None or self._storage.read_only:
            return
        self._witness.check_writable()
        if self._owed is not None:
            self._witness.write(self._owed)
            self._owed = None

    def remember_written(self, seen: Witness) -> None:
        """As `remember`, of an entry that was just committed: what was paid for is delivered.

        A witness that cannot be written now is behind, as after a crash; this object knows the
        entry all the same, and `settle` refuses the next one until the file has it.
        """
        try:
            self.remember(seen)
        except LedgerError:
            self._owed = seen

    def look(self, work: Callable[[Tables], T]) -> T:
        """Run on a snapshot that is at least as new as the witness.

        Others may book and move the witness while we read: a snapshot older than the witness is
        taken again, and tells of a roll-back only if the new one still lacks the same entry. (A
        writer holds the lock, so nobody can have moved the witness past what it reads.)
        """
        needed = 0
        while True:
            try:
                return self._storage.read(work)
            except _Behind as error:
                if error.end < needed:
                    raise
                needed = error.witnessed

    def check(self, tables: Tables) -> Identity:
        """Check that the chain ends where the ledger says, and has what was seen before."""
        identity, last, entry = tables.end()
        if last != identity.sequence:
            raise tampered(min(last, identity.sequence) + 1, "the chain ends elsewhere")
        if entry is not None:
            entry.check()
        if identity.head != (first_hash(identity.ledger) if entry is None else entry.hash):
            raise tampered(last, "it is not the last one that the ledger wrote")
        if self._seen is not None:
            self._check_seen(tables, identity, self._seen, "this ledger object")
        for receipt in self._missing.values():
            self._check_seen(tables, identity, receipt, "a receipt")
        if self._witness is not None:
            self._check_witness(tables, identity, self._witness)
        return identity

    def _check_witness(self, tables: Tables, identity: Identity, file: WitnessFile) -> None:
        witness = file.read()
        if witness is None:
            if identity.sequence:
                raise tampered(
                    None,
                    f"its witness '{file.path}' is gone (it belongs beside the ledger; "
                    "renew_witness=True accepts the ledger as it is)",
                )
        elif witness.ledger == identity.ledger and witness.sequence > identity.sequence:
            raise _behind(witness, identity)
        else:
            self._check_seen(tables, identity, witness, f"its witness '{file.path}'")

    def _check_seen(self, tables: Tables, identity: Identity, seen: Witness, who: str) -> None:
        if seen.ledger != identity.ledger:
            raise tampered(None, f"it is not the ledger that {who} knows")
        if (seen.sequence, seen.hash) == (identity.sequence, identity.head) or not seen.sequence:
            return
        entry = tables.entry_at(seen.sequence)
        if entry is None or entry.hash != seen.hash:
            raise tampered(seen.sequence, f"it was deleted or changed after {who} saw it")


class _Behind(LedgerTampered):
    """The witness knows of an entry beyond the end of what was read."""

    end = 0
    witnessed = 0


def _behind(witness: Witness, identity: Identity) -> _Behind:
    plain = tampered(witness.sequence, "its witness has seen it, and it is gone")
    error = _Behind(str(plain))
    error.sequence, error.end = plain.sequence, identity.sequence
    error.witnessed = witness.sequence
    return error
