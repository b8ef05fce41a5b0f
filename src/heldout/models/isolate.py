"""The parent's side of a keeper: starts it, hands it rows, and is patient for a fixed time only."""

import ctypes
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from heldout import workers
from heldout.errors import NoSandbox, UnusableModel
from heldout.models import sandbox
from heldout.models.keeper import DIED, DONE, READY, Shared, Task, keep

__all__ = ["Scorer", "check_sandbox", "heard", "looked_at", "started"]

START = 60.0  # seconds that reading and loading a model may take
LOOK = 0.25  # seconds between two looks at a worker that says nothing
GRACE = 2.0  # beyond a row's own limit, at which the worker ends itself
TRIES = 3  # at starting a keeper
MOST_ANSWER = 2**20
_TUNABLES = "GLIBC_TUNABLES"
_STARTING = threading.Lock()


def check_sandbox(isolation: str) -> bool:
    """Whether a keeper is shut off; refuses where that cannot be and nobody insists."""
    if isolation == "none":
        return False
    walls = sandbox.available()
    if not walls["seccomp"]:
        raise NoSandbox(
            "An untrusted model needs a sandbox, and this machine has none (Linux with seccomp; "
            "Landlock is used too where it is there). Score on Linux, or, for a model that you "
            "trust, pass isolation='none'."
        )
    return True


def looked_at(task: Task, *, main: Callable[..., None] = keep) -> dict[str, Any]:
    """What a keeper says of a model, without any row."""
    with started(main, task, None) as (process, _, answers):
        found = heard(answers, START)
        process.join(0.1)
    try:
        report: dict[str, Any] | None = None if found is None else json.loads(found)
    except ValueError:
        report = None
    if report is None:
        raise UnusableModel(
            f"The model cannot be read: its reader failed, or took more than {START:g} seconds or "
            f"{task.memory // 2**20} MB."
        )
    if "no_sandbox" in report:
        raise NoSandbox(f"No sandbox: {report['no_sandbox']}.")
    return report


@contextmanager
def started(main: Any, task: Any, shared: Shared | None) -> Iterator[tuple[Any, Any, Any]]:
    """A keeper with its pipes; whatever happens, it is gone afterwards."""
    context = workers.context()
    requests_out, requests = context.Pipe(duplex=False)
    answers, answers_in = context.Pipe(duplex=False)
    process = context.Process(
        target=main, args=(task, requests_out, answers_in, shared), daemon=True
    )
    try:
        with _clean_memory():
            process.start()
        requests_out.close()
        answers_in.close()
        yield process, requests, answers
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        for each in (requests, answers, requests_out, answers_in):
            each.close()


@contextmanager
def _clean_memory() -> Iterator[None]:
    """What starts now gets memory that is zeroed each time it is taken (glibc's, on Linux).

    A hole in the runtime that reads memory before it writes it would see what an earlier row left.
    """
    with _STARTING:
        before = os.environ.get(_TUNABLES)
        os.environ[_TUNABLES] = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_TUNABLES]
            else:
                os.environ[_TUNABLES] = before


def heard(answers: Any, seconds: float) -> bytes | None:
    """One answer, or None if none comes in time, or it is not one that a keeper gives."""
    with suppress(OSError, EOFError):
        if answers.poll(seconds):
            found: bytes = answers.recv_bytes(MOST_ANSWER)
            return found
    return None


class Scorer:
    """Scores blocks of rows; what cannot be scored stays NaN, and nothing says why.

    Whether a row gets its score depends on that row alone: its worker has `row_seconds` for it,
    the next row's begin anew, and a keeper, which never saw a row, is started again if it is lost.
    """

    def __init__(self, task: Task, *, until: float, main: Callable[..., None] = keep) -> None:
        self._task, self._until, self._main = task, until, main
        context = workers.context()
        size = sum(task.rows * each.stride for each in task.fields)
        self._shared = Shared(
            rows=context.RawArray(ctypes.c_char, max(size, 1)),
            scores=context.RawArray(ctypes.c_double, task.rows * task.width),
            state=context.RawArray(ctypes.c_int64, 2),
        )
        self._keeper: Any = None
        self._lost = 0  # keepers that did not come up, one after the other
        self._start()

    @property
    def started(self) -> bool:
        return self._keeper is not None

    def close(self) -> None:
        if self._keeper is not None:
            keeper, self._keeper = self._keeper, None
            keeper[0].__exit__(None, None, None)

    def _start(self) -> None:
        self.close()
        while self._lost < TRIES and time.monotonic() < self._until:
            manager = started(self._main, self._task, self._shared)
            process, requests, answers = manager.__enter__()
            patience = min(START, self._until - time.monotonic())
            if heard(answers, patience) == READY:
                self._keeper, self._lost = (manager, process, requests, answers), 0
                return
            manager.__exit__(None, None, None)
            self._lost += 1

    def score(self, block: dict[str, Any], rows: int) -> Any:
        """The scores of a block; NaN where a row has none."""
        import numpy as np

        place = 0
        for each in self._task.fields:
            view = np.frombuffer(self._shared.rows, each.dtype, rows * each.width, place)
            view[:] = block[each.name].reshape(-1)
            place += self._task.rows * each.stride
        scores = np.frombuffer(self._shared.scores, np.float64)
        scores[:] = np.nan
        state = np.frombuffer(self._shared.state, np.int64)
        begin, kept = 0, np.full((rows, self._task.width), np.nan)
        while begin < rows and self._keeper is not None:
            state[:] = 0, begin
            finished = self._until_quiet(begin, rows, state)
            # What a worker left behind counts only as far as it says that it got.
            finished = min(max(finished, begin), rows)
            found = scores.reshape(self._task.rows, self._task.width)
            kept[begin:finished] = found[begin:finished]
            begin = finished + 1  # the row at which it stopped has no score
        return kept

    def _until_quiet(self, begin: int, rows: int, state: Any) -> int:
        """Wait for a worker to finish rows, or to end; how many rows of the block are finished."""
        _, process, requests, answers = self._keeper
        try:
            requests.send_bytes(b"%d %d" % (begin, rows))
        except OSError:
            self._start()
            return begin
        seen, since = begin, time.monotonic()
        while True:
            answer = b""
            try:
                if answers.poll(LOOK):
                    answer = answers.recv_bytes(MOST_ANSWER)
            except (OSError, EOFError):
                answer = b"lost"
            now, reached = time.monotonic(), int(state[1])
            if answer == DONE:
                return reached
            if answer == DIED and state[0] == 1:
                return reached
            if reached != seen:
                seen, since = reached, now
            late = now - since > self._task.row_seconds + GRACE
            if answer or late or now > self._until or not process.is_alive():
                self._start()
                return reached
