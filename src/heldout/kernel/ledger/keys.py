"""The secret under which a ledger remembers rows, and what it remembers: digests and sketches.

Whoever has the ledger and the key, and knows all rows but one, can test guesses of the last one.
So the key has a file of its own, or comes from the environment or a command (a vault); looking at
a ledger, verifying it and every registered account do without. Without the key, digests and
sketches are random bits.
"""

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, Self

from heldout.errors import LedgerKeyError
from heldout.kernel.ledger.journal import Books
from heldout.kernel.ledger.records import Identity

VARIABLE, COMMAND = "HELDOUT_LEDGER_KEY", "HELDOUT_LEDGER_KEY_COMMAND"
SKETCH_ITEMS: Final = 4096
ITEM_BYTES: Final = 8
DEEPEST_LEVEL: Final = 30


def check_of(key: bytes, ledger: str) -> str:
    """Return what a ledger stores to tell the right key from a wrong one."""
    return hmac.new(key, f"key of {ledger}".encode(), hashlib.sha256).hexdigest()


def mac_of(key: bytes, fingerprint: bytes) -> str:
    """Return how an account finds its rows again: useless without the ledger's own random key."""
    return hmac.new(key, b"rows " + fingerprint, hashlib.sha256).hexdigest()


def seal_of(key: bytes, account: str, mac: str) -> str:
    """Tie an account to its rows outside the chain, so that no hash depends on them."""
    return hmac.new(key, f"seal {account} {mac}".encode("ascii"), hashlib.sha256).hexdigest()


class KeyPlace:
    """Where the key of one ledger is: a variable, a command, or a file (in that order).

    `file` None means a file in the user's home, named after the ledger; `memory` keeps the key of
    a ledger in memory nowhere.
    """

    def __init__(self, file: Path | None, *, memory: bool = False) -> None:
        self._file = file
        self._memory = secrets.token_bytes(32) if memory else None

    def key_of(self, identity: Identity) -> bytes:
        """Return the key of a ledger, or refuse another one."""
        key = self.find(identity.ledger)
        if key is None or (
            identity.key_check and check_of(key, identity.ledger) != identity.key_check
        ):
            what = "is missing" if key is None else "is another one"
            raise LedgerKeyError(
                f"The key under which this ledger remembers rows {what}. Restore "
                f"'{self.file_of(identity.ledger)}' from a copy. If it is lost: heldout ledger "
                "rekey, and name accounts with account=. Registered accounts need no key."
            )
        return key

    def key_for(self, books: Books) -> bytes:
        """Return the key of a ledger; draw one where none was needed before."""
        identity = books.identity
        if identity.key_check:
            return self.key_of(identity)
        key = self.make(identity.ledger)
        books.set_key_check(check_of(key, identity.ledger))
        return key

    def renew(self, books: Books) -> None:
        """Draw a new key, and forget what only the old one could read."""
        self.put(books.identity.ledger, secrets.token_bytes(32), replace=True)
        books.tables.forget_rows()
        key = self.key_of(replace(books.identity, key_check=""))
        books.set_key_check(check_of(key, books.identity.ledger))

    def adopt(self, ledger: str, key: bytes) -> str:
        """Put the key of a ledger of the first version in its place; return its check."""
        if self.make(ledger, key=key) != key:
            raise LedgerKeyError(
                "Another key is stored where this ledger's key belongs "
                f"('{self.file_of(ledger)}', or the environment). Move it away, and open the "
                "ledger again."
            )
        return check_of(key, ledger)

    def file_of(self, ledger: str) -> Path:
        return self._file or Path.home() / ".heldout" / f"{ledger}.key"

    def find(self, ledger: str) -> bytes | None:
        """Return the key, or None if there is none yet."""
        if self._memory is not None:
            return self._memory
        if VARIABLE in os.environ:
            return _parsed(os.environ[VARIABLE], f"the variable {VARIABLE}")
        if COMMAND in os.environ:
            return _parsed(_output(os.environ[COMMAND]), f"the command of {COMMAND}")
        file = self.file_of(ledger)
        try:
            return _parsed(file.read_text(encoding="ascii"), f"'{file}'")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            raise LedgerKeyError(f"The ledger's key '{file}' cannot be read.") from None

    def make(self, ledger: str, *, key: bytes | None = None) -> bytes:
        """Return the key that is there, or write a new one (or `key`) to its file, mode 0600."""
        present = self.find(ledger)
        if present is None:
            self.put(ledger, secrets.token_bytes(32) if key is None else key)
            present = self.find(ledger)  # another process may have been first
            assert present is not None
        return present

    def put(self, ledger: str, key: bytes, *, replace: bool = False) -> None:
        """Write the key's file, whole or not at all; one that is there stays without `replace`."""
        if self._memory is not None:
            self._memory = key
            return
        file = self.file_of(ledger)
        temporary = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as writer:
                writer.write(key.hex() + "\n")
                writer.flush()
                os.fsync(writer.fileno())
            if replace:
                temporary.replace(file)
            else:
                with contextlib.suppress(FileExistsError):
                    os.link(temporary, file)
        except OSError:
            raise LedgerKeyError(
                f"The ledger's key cannot be written to '{file}'. Make its directory writable, or "
                f"set {VARIABLE} (64 hexadecimal digits) or {COMMAND}."
            ) from None
        finally:
            temporary.unlink(missing_ok=True)


def _parsed(text: str, where: str) -> bytes:
    with contextlib.suppress(ValueError):
        key = bytes.fromhex(text.strip())
        if len(key) == 32:
            return key
    raise LedgerKeyError(f"A ledger's key is 64 hexadecimal digits; {where} holds something else.")


def _output(command: str) -> str:
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        raise LedgerKeyError(f"The command in {COMMAND} failed.") from None
    return done.stdout


# --- sketches: which accounts know the same people, for the custodian's eyes ---------------------


class Individuals(Protocol):
    """A table that can say who is in it; `heldout.data.table.People` is one."""

    def individuals(self, level: int) -> tuple[int, list[int]]:
        """Return how many there are, and one in 2^level of them, the same ones in every table."""


@dataclass(frozen=True)
class Overlap:
    """About how many of the people of a table are also in an account."""

    account: str
    name: str
    shared: int
    people: int

    def __str__(self) -> str:
        return (
            f"about {_round(self.shared):,} of these {_round(self.people):,} are also in account "
            f"'{self.name}'"
        )


@dataclass(frozen=True)
class Sample:
    """One in 2^level of a table's individuals, the same ones in every table.

    A sketch of it has their HMACs under the ledger's key, filled up with random items to a fixed
    size: without the key it does not even tell how many people there are.
    """

    table: Individuals
    count: int
    level: int
    people: Sequence[int]

    @classmethod
    def of(cls, table: Individuals) -> Self:
        """Draw as many as a sketch has room for."""
        count, _ = table.individuals(DEEPEST_LEVEL)
        level = max(0, (count // (SKETCH_ITEMS * 3 // 4)).bit_length())
        while len(people := table.individuals(level)[1]) >= SKETCH_ITEMS:
            level += 1
        return cls(table, count, level, people)

    def sketch(self, key: bytes, account: str) -> str:
        """Return the sample as a text of fixed length."""
        items = {_item(key, person) for person in self.people} | {_mark(key, account, self.level)}
        while len(items) < SKETCH_ITEMS:
            items.add(secrets.token_bytes(ITEM_BYTES))
        return base64.b64encode(b"".join(sorted(items))).decode("ascii")

    def shared_with(self, key: bytes, account: str, sketch: str) -> int:
        """Return about how many of the table's people are in the sketch of an account."""
        packed = base64.b64decode(sketch)
        items = {packed[at : at + ITEM_BYTES] for at in range(0, len(packed), ITEM_BYTES)}
        own = next((level for level in range(64) if _mark(key, account, level) in items), None)
        if own is None:
            return 0  # a sketch under another key
        both = max(own, self.level)
        people = self.table.individuals(both)[1]
        return sum(_item(key, person) in items for person in people) << both


def _item(key: bytes, person: int) -> bytes:
    return hmac.new(key, b"person %d" % person, hashlib.sha256).digest()[:ITEM_BYTES]


def _mark(key: bytes, account: str, level: int) -> bytes:
    return hmac.new(key, f"level {level} {account}".encode(), hashlib.sha256).digest()[:ITEM_BYTES]


def _round(count: int) -> int:
    """Round to two digits, as an estimate deserves."""
    return count if count < 100 else int(float(f"{count:.2g}"))
