"""Work on several cores, in fresh interpreters that do not run the caller's script again.

A worker of `multiprocessing` imports the script that started it. A script without the guard `if
__name__ == "__main__"` would so run again in every worker: its bookings would be made again, and
the workers, which must not start workers of their own, would die and be replaced for ever. Ours
need only this package.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

_NAMES = ("__file__", "__spec__")  # what a worker finds the caller's script by
_STARTING = threading.Lock()


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


# --- work on all cores, or in this process --------------------------------------------------------


Progress = Callable[[str, int, int], None]
"""progress(label, done, total)."""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def cores(workers: int | None) -> int:
    return (os.cpu_count() or 1) if workers is None else max(1, workers)


class InThisProcess(Executor):
    """Does at once what it is given."""

    def submit(self, fn: Callable[..., Any], /, *words: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*words, **named))
        except Exception as problem:
            done.set_exception(problem)
        return done


@contextmanager
def pool(workers: int | None) -> Iterator[Executor]:
    """Processes for functions of a module and words that pickle; one a core, one thread each."""
    count = cores(workers)
    if count == 1:
        yield InThisProcess()
        return

    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        # A fresh interpreter a worker: forking a process that has threads may hang.
        with ProcessPoolExecutor(count, mp_context=context()) as executor:
            try:
                yield executor
            except BaseException:  # Ctrl-C: jobs that take a minute are not waited for
                _end(executor)
                raise
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _end(executor: ProcessPoolExecutor) -> None:
    """Stop what runs, and start nothing more."""
    running = list((executor._processes or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    for process in running:
        process.terminate()


@contextmanager
def mapper(workers: int | None, jobs: int | None = None) -> Iterator[Callable[..., Any]]:
    """Yield a `map` over functions of a module and jobs that pickle, in any order.

    >>> with mapper(1) as mapped:
    ...     list(mapped(abs, [-1, 2]))
    [1, 2]
    """
    from concurrent.futures import as_completed

    if min(cores(workers), cores(workers) if jobs is None else jobs) <= 1:
        yield map
        return
    with pool(workers) as executor:

        def mapped(function: Callable[..., Any], jobs: Any) -> Iterator[Any]:
            futures = [executor.submit(function, job) for job in jobs]
            return (done.result() for done in as_completed(futures))

        yield mapped
