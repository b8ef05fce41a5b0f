"""Work on all cores, or in this process."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

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
    from heldout.workers import context

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
def mapper(workers: int | None, jobs: int) -> Iterator[Callable[..., Any]]:
    """`map` over functions of a module and jobs that pickle, in any order."""
    from concurrent.futures import as_completed

    if min(cores(workers), jobs) <= 1:
        yield map
        return
    with pool(workers) as executor:

        def mapped(function: Callable[..., Any], jobs: Any) -> Iterator[Any]:
            futures = [executor.submit(function, job) for job in jobs]
            return (done.result() for done in as_completed(futures))

        yield mapped
