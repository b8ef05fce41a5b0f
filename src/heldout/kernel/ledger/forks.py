"""No connection to a ledger's file is open while the process forks.

SQLite keeps its locks by process: a child that inherits an open connection believes that it holds
locks which it does not hold. So connections are closed before every `os.fork`, once the booking
under way is done, and opened again where they are needed.
"""

import os
import threading
import weakref
from typing import TYPE_CHECKING

from heldout.errors import LedgerError

if TYPE_CHECKING:
    from heldout.kernel.ledger.storage import Storage

__all__ = ["refuse_inherited", "watch"]

PATIENCE = 10.0  # seconds for the transaction of another thread
_known: "weakref.WeakSet[Storage]" = weakref.WeakSet()
_quiet: "list[Storage]" = []  # those whose lock the forking thread holds
_inherited: list[bool] = []  # not empty in a child that has an open connection


def watch(storage: "Storage") -> None:
    """Close this storage's connection before a fork."""
    _known.add(storage)


def refuse_inherited() -> None:
    """Raise in a child that was forked while a transaction would not end."""
    if _inherited:
        raise LedgerError(
            "This process was forked while another thread was using a ledger file. "
            "Start the process before you open the ledger."
        )


def _before() -> None:
    for storage in list(_known):
        if storage.lock.acquire(timeout=PATIENCE):
            _quiet.append(storage)
            if storage.connected:
                storage._let_go()


def _in_parent() -> None:
    while _quiet:
        _quiet.pop().lock.release()


def _in_child() -> None:
    for storage in list(_known):
        _inherited.extend([True] if storage.connected else [])
        storage.lock = threading.RLock()
    _quiet.clear()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
