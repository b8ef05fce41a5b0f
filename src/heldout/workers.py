"""Work on several cores, in fresh interpreters that do not run the caller's script again.

A worker of `multiprocessing` imports the script that started it. A script without the guard `if
__name__ == "__main__"` would so run again in every worker: its bookings would be made again, and
the workers, which must not start workers of their own, would die and be replaced for ever. Ours
need only this package.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

_NAMES = ("__file__", "__spec__")  # what a worker finds the caller's script by
_STARTING = threading.Lock()


@contextmanager
def mapper(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """`map` over functions of a module of this package and jobs that pickle, in any order.

    >>> with mapper(1) as mapped:
    ...     list(mapped(abs, [-1, 2]))
    [1, 2]
    """
    if workers <= 1:
        yield map
        return
    # A fresh interpreter a worker: forking a process that has threads may hang.
    with context().Pool(workers) as pool:
        yield pool.imap_unordered


def context() -> SpawnContext:
    """Return the context to make a pool with: `ProcessPoolExecutor(mp_context=context())`."""
    return _Context()


@contextmanager
def _without_script() -> Iterator[None]:
    """For this long the running script cannot be found by a process that is started."""
    script = sys.modules["__main__"]
    with _STARTING:
        hidden = {name: vars(script)[name] for name in _NAMES if name in vars(script)}
        vars(script).update(dict.fromkeys(hidden))
        try:
            yield
        finally:
            vars(script).update(hidden)


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C: whoever started them hears it, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _without_script(), _deaf():
            return SpawnProcess._Popen(process_obj)


class _Context(SpawnContext):
    Process = _Process
