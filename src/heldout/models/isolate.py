"""The parent's side of a keeper: starts it, sees that it is shut off, and hands it rows.

The parent waits until a time that was fixed before any row was read. A job that is not finished by
then is lost as a whole: no row's score depends on how long another row took.
"""

import ctypes
import json
import os
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from heldout import workers
from heldout.errors import NoSandbox, UnusableModel
from heldout.models import sandbox
from heldout.models.keeper import (
    CONFINED,
    DIED,
    DONE,
    NO_SANDBOX,
    READ,
    READY,
    Shared,
    Task,
    keep,
    shut_off,
)

if TYPE_CHECKING:
    from heldout.models.calls import Array

START = 60.0  # seconds that reading and loading a model may take
LOOK = 0.25  # seconds between two looks at a worker that says nothing
TRIES = 3  # at starting a keeper
MOST_ANSWER = 2**20
_TUNABLES = "GLIBC_TUNABLES"
_OF_PYTHON = ("PYTHON", "LD_", "DYLD_", "LC_", "LANG", "PATH", "TZ")
"""Prefixes of the variables by which an interpreter is found and started."""
_STARTING = threading.Lock()


class Lost(Exception):
    """The process is gone, does not answer in time, or says what no keeper says."""


def check_sandbox(isolation: str) -> bool:
    """Return whether a keeper is shut off; refuses where that cannot be and nobody insists."""
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
    """Return what a keeper says of a model, without any row."""
    try:
        with started(main, task, None) as (_, _, answers):
            report: dict[str, Any] = json.loads(heard(answers, START) or b"")
    except (Lost, ValueError):
        raise UnusableModel(
            f"The model cannot be read: its reader failed, or took more than {START:g} seconds or "
            f"{task.memory // 2**20} MB."
        ) from None
    return report


def standing_walls() -> dict[str, bool]:
    """Shut a process off, as a keeper is, and return which walls stand around it."""
    task = Task(content=b"", output=None, sandboxed=True, memory=2**28, seconds=10)
    return looked_at(task, main=_say_walls)


def _say_walls(task: Task, requests: Any, answers: Any, shared: None) -> None:
    if walls := shut_off(task, requests, answers):
        answers.send_bytes(json.dumps(walls).encode())


@contextmanager
def started(main: Any, task: Any, shared: Shared | None) -> Iterator[tuple[Any, Any, Any]]:
    """Start a keeper that is shut off, with its pipes; whatever happens, it is gone afterwards."""
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
        _let_read(process, requests, answers, sandboxed=task.sandboxed)
        yield process, requests, answers
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        for pipe in (requests, answers, requests_out, answers_in):
            pipe.close()


def _let_read(process: Any, requests: Any, answers: Any, *, sandboxed: bool) -> None:
    """Let a process read its file once every thread of it is seen to be shut off."""
    message = heard(answers, START) or b""
    if message.startswith(NO_SANDBOX):
        raise NoSandbox(f"No sandbox: {message[len(NO_SANDBOX) :].decode('utf-8', 'replace')}.")
    if message != CONFINED:
        raise Lost
    if sandboxed:
        sandbox.check_confined(process.pid)
    try:
        requests.send_bytes(READ)
    except OSError:
        raise Lost from None


@contextmanager
def _clean_memory() -> Iterator[None]:
    """Start processes that know no secret of ours, and take memory that is zeroed (by glibc).

    The environment holds passwords and keys, and stays in a process's memory whatever that process
    deletes. A hole in the runtime that reads memory before it writes it would see what an earlier
    row left.
    """
    from multiprocessing import util

    with _STARTING:
        usual = util.spawnv_passfds
        util.spawnv_passfds = _spawn  # type: ignore[assignment]
        try:
            yield
        finally:
            util.spawnv_passfds = usual


def _spawn(path: bytes, arguments: Sequence[Any], descriptors: Sequence[int]) -> int:
    """Start a program with these descriptors, and with what Python needs of the environment."""
    known = {name: value for name, value in os.environ.items() if name.startswith(_OF_PYTHON)}
    known["HOME"] = "/"  # where it is unset, Python asks a socket for it
    known[_TUNABLES] = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"
    child = subprocess.Popen(
        arguments, executable=path, env=known, pass_fds=tuple(descriptors), restore_signals=False
    )
    child.returncode = 0  # whoever asked for it waits for it
    return child.pid


def heard(answers: Any, seconds: float) -> bytes | None:
    """One answer, or None if none comes in time, or it is not one that a keeper gives."""
    with suppress(OSError, EOFError):
        if answers.poll(seconds):
            answer: bytes = answers.recv_bytes(MOST_ANSWER)
            return answer
    return None


def in_memory(kind: Any) -> Any:
    """Return zeros that a process which is started can share, in memory of their own.

    An array of `multiprocessing` lies in a file in /dev/shm: where that is small, as in containers,
    in one on disk, in the clear. And it shares its file with arrays of earlier jobs, all of which
    the process would see.
    """
    from multiprocessing import heap
    from multiprocessing.sharedctypes import rebuild_ctype  # type: ignore[attr-defined]

    if not hasattr(os, "memfd_create"):
        return workers.context().RawArray(kind._type_, kind._length_)
    size = ctypes.sizeof(kind)
    file = os.memfd_create("heldout")
    os.ftruncate(file, size)
    arena: Any = heap.Arena(size, file)
    weakref.finalize(arena, os.close, file)
    block: Any = heap.BufferWrapper.__new__(heap.BufferWrapper)
    block._state = ((arena, 0, size), size)
    return rebuild_ctype(kind, block, None)


class Scorer:
    """Scores blocks of rows; what cannot be scored stays NaN, and nothing says why.

    Whether a row gets its score depends on that row alone. A worker that dies of a row is replaced.
    A keeper, which never saw a row, is not: without it, or at the time `until`, the job is `Lost`.
    """

    def __init__(self, task: Task, *, until: float, main: Callable[..., None] = keep) -> None:
        self._task, self._until = task, until
        size = sum(task.rows * field.stride for field in task.fields)
        self._shared = Shared(
            rows=in_memory(ctypes.c_char * max(size, 1)),
            scores=in_memory(ctypes.c_double * (task.rows * task.width)),
            state=in_memory(ctypes.c_int64 * 2),
        )
        self._closing = ExitStack()
        self._process, self._requests, self._answers = self._started(main)

    def _started(self, main: Callable[..., None]) -> tuple[Any, Any, Any]:
        for _ in range(TRIES):
            with ExitStack() as closing, suppress(Lost):
                keeper = closing.enter_context(started(main, self._task, self._shared))
                if heard(keeper[2], min(START, self._until - time.monotonic())) == READY:
                    self._closing = closing.pop_all()
                    return keeper
            if time.monotonic() > self._until:
                break
        raise Lost

    def close(self) -> None:
        self._closing.close()

    def score(self, block: Mapping[str, "Array"], rows: int) -> "Array":
        """Return the scores of a block; NaN where a row has none."""
        import numpy as np

        place = 0
        for field in self._task.fields:
            view = np.frombuffer(self._shared.rows, field.dtype, rows * field.width, place)
            view[:] = block[field.name].reshape(-1)
            place += self._task.rows * field.stride
        scores = np.frombuffer(self._shared.scores, np.float64)
        scores[:] = np.nan
        state = np.frombuffer(self._shared.state, np.int64)
        begin, copy = 0, np.full((rows, self._task.width), np.nan)
        while begin < rows:
            state[:] = 0, begin
            # What a worker left behind counts only as far as it says that it got.
            end = min(max(self._until_quiet(begin, rows, state), begin), rows)
            copy[begin:end] = scores.reshape(self._task.rows, self._task.width)[begin:end]
            begin = end + 1  # the row at which it stopped has no score
        return copy

    def _until_quiet(self, begin: int, rows: int, state: Any) -> int:
        """Wait for a worker to finish rows, or to die of one; return how many are finished."""
        try:
            self._requests.send_bytes(b"%d %d" % (begin, rows))
            while not self._answers.poll(LOOK):
                if time.monotonic() > self._until or not self._process.is_alive():
                    raise Lost
            answer = self._answers.recv_bytes(MOST_ANSWER)
        except (OSError, EOFError):
            raise Lost from None
        if time.monotonic() > self._until:
            raise Lost
        if answer == DONE or (answer == DIED and state[0] == 1):
            return int(state[1])
        raise Lost
