"""What every transaction of a ledger checks first: that nothing seen before is gone."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from heldout.errors import LedgerError, LedgerTampered
from heldout.kernel.ledger.chain import Identity, first_hash, tampered
from heldout.kernel.ledger.witness import Witness, WitnessFile

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from heldout.kernel.ledger.storage import Storage

__all__ = ["Watch"]

T = TypeVar("T")


class Watch:
    """Remembers the furthest entry that this process saw, and asks the witness file as well."""

    def __init__(self, storage: "Storage", witness: WitnessFile | None) -> None:
        self._storage = storage
        self._witness = witness
        self._seen: Witness | None = None
        self._owed: Witness | None = None  # what the witness file could not be told yet

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

    def renew(self) -> None:
        """Take the ledger as it is now for the truth."""
        if self._witness is not None:
            witness = self._witness
            self._storage.write(lambda connection: witness.replace(self._now(connection)))

    def _now(self, connection: "Connection") -> Witness:
        identity, _, _ = self._storage.end(connection)
        return Witness(identity.ledger, identity.sequence, identity.head)

    def end(self, connection: "Connection") -> Witness:
        """Where the chain ends, checked."""
        identity = self.check(connection)
        return Witness(identity.ledger, identity.sequence, identity.head)

    @property
    def ledger(self) -> str:
        """The name of the ledger, once it is open."""
        return "" if self._seen is None else self._seen.ledger

    def remember(self, seen: Witness) -> None:
        """The entry was committed or verified: it must never be gone again."""
        if self._seen is None or seen.sequence > self._seen.sequence:
            self._seen = seen
        if self._witness is not None and not self._storage.read_only:
            self._witness.write(seen)

    def expect(self, connection: "Connection", seen: Witness) -> None:
        """Refuse a ledger without an entry that somebody has a receipt for, now and later on."""
        if self._seen is None or seen.sequence > self._seen.sequence:
            self._seen = seen
        identity = self.check(connection)
        self._still_there(connection, identity, seen, "a receipt")

    def settle(self) -> None:
        """Before a booking: refuse, while nothing is taken, if the witness cannot be written."""
        if self._witness is None or self._storage.read_only:
            return
        self._witness.check_writable()
        if self._owed is not None:
            self._witness.write(self._owed)
            self._owed = None

    def remember_paid(self, seen: Witness) -> None:
        """As `remember`, of a booking that was committed: what was paid for must be delivered.

        A witness that cannot be written now is behind, as after a crash; this object knows the
        entry all the same, and `settle` refuses the next booking until the file has it.
        """
        try:
            self.remember(seen)
        except LedgerError:
            self._owed = seen

    def look(self, function: Callable[["Connection"], T]) -> T:
        """Run on a snapshot that is at least as new as the witness.

        Others may book and move the witness while we read: a snapshot older than the witness is
        taken again, and tells of a roll-back only if the new one still lacks the same entry. (A
        writer holds the lock, so nobody can have moved the witness past what it reads.)
        """
        needed = 0
        while True:
            try:
                return self._storage.read(function)
            except _Behind as error:
                if error.found < needed:
                    raise
                needed = error.witnessed

    def check(self, connection: "Connection") -> Identity:
        """The chain ends where the ledger says, and holds what was seen before."""
        identity, last, entry = self._storage.end(connection)
        if last != identity.sequence:
            raise tampered(min(last, identity.sequence) + 1, "the chain ends elsewhere")
        if entry is not None:
            entry.check()
        if identity.head != (first_hash(identity.ledger) if entry is None else entry.hash):
            raise tampered(last, "it is not the last one that the ledger wrote")
        if self._seen is not None:
            self._still_there(connection, identity, self._seen, "this ledger object")
        if self._witness is not None:
            self._check_witness(connection, identity, self._witness)
        return identity

    def _check_witness(
        self, connection: "Connection", identity: Identity, file: WitnessFile
    ) -> None:
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
            self._still_there(connection, identity, witness, f"its witness '{file.path}'")

    def _still_there(
        self, connection: "Connection", identity: Identity, seen: Witness, who: str
    ) -> None:
        if seen.ledger != identity.ledger:
            raise tampered(None, f"it is another ledger than the one that {who} knows")
        if (seen.sequence, seen.hash) == (identity.sequence, identity.head) or not seen.sequence:
            return
        entry = self._storage.entry_at(connection, seen.sequence)
        if entry is None or entry.hash != seen.hash:
            raise tampered(seen.sequence, f"{who} has seen it, and it is gone or another one")


class _Behind(LedgerTampered):
    """The witness knows of an entry beyond the end of what was read."""

    found = 0
    witnessed = 0


def _behind(witness: Witness, identity: Identity) -> _Behind:
    plain = tampered(witness.sequence, "its witness has seen it, and it is gone")
    error = _Behind(str(plain))
    error.sequence, error.found = plain.sequence, identity.sequence
    error.witnessed = witness.sequence
    return error
