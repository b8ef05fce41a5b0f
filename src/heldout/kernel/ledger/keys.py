"""The secret under which a ledger remembers rows: kept apart from the ledger.

Whoever has the ledger and the key, and knows all rows but one, can test guesses of the last one.
So the key has a file of its own, or comes from the environment or a command (a vault); looking at
a ledger, verifying it and every registered account do without.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import shlex
import subprocess
from pathlib import Path

from heldout.errors import LedgerKeyError

__all__ = ["KeyPlace", "check_of"]

VARIABLE, COMMAND = "HELDOUT_LEDGER_KEY", "HELDOUT_LEDGER_KEY_COMMAND"


def check_of(key: bytes, ledger: str) -> str:
    """What a ledger stores to tell the right key from a wrong one."""
    return hmac.new(key, f"key of {ledger}".encode(), hashlib.sha256).hexdigest()


class KeyPlace:
    """Where the key of one ledger is: a variable, a command, or a file (in that order).

    `file` None means a file in the user's home, named after the ledger; `memory` keeps the key of
    a ledger in memory nowhere.
    """

    def __init__(self, file: Path | None, *, memory: bool = False) -> None:
        self._file = file
        self._memory = secrets.token_bytes(32) if memory else None

    def file_of(self, ledger: str) -> Path:
        return self._file or Path.home() / ".heldout" / f"{ledger}.key"

    def find(self, ledger: str) -> bytes | None:
        """The key, or None if there is none yet."""
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
        """The key that is there; if there is none, a new one (or `key`) in its file, mode 0600."""
        found = self.find(ledger)
        if found is not None:
            return found
        self.put(ledger, secrets.token_bytes(32) if key is None else key)
        again = self.find(ledger)  # another process may have been first
        assert again is not None
        return again

    def put(self, ledger: str, key: bytes, *, replace: bool = False) -> None:
        """Write the key's file, whole or not at all; a file that is there stays unless told."""
        file = self.file_of(ledger)
        temporary = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as opened:
                opened.write(key.hex() + "\n")
                opened.flush()
                os.fsync(opened.fileno())
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
        raise LedgerKeyError(f"The command of {COMMAND} failed.") from None
    return done.stdout
