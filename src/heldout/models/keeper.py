"""The process that keeps an untrusted model: shut off first, then it reads the model.

It never reads a row. It forks workers, which do: one for all rows of a model that is proven, one
for each row of a model that is not. A worker that fails or is late dies, and the next is forked
from the same untouched image.
"""

import contextlib
import gc
import json
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["DIED", "DONE", "READY", "Task", "keep"]

READY, DONE, DIED = b"ready", b"done", b"died"
TEXT = 256
"""Bytes of one text; a longer one is no category that a model could know."""


@dataclass(frozen=True)
class Field:
    """One input of the model, as it lies in the shared memory: a block of `rows` rows."""

    name: str
    kind: str
    width: int
    rank: int

    @property
    def dtype(self) -> str:
        return f"S{TEXT}" if self.kind == "string" else self.kind

    @property
    def stride(self) -> int:
        import numpy as np

        return int(np.dtype(self.dtype).itemsize) * self.width


@dataclass(frozen=True)
class Task:
    """What a keeper is told: the model, how to shut itself off, and what a row may cost."""

    content: bytes
    output: str | None
    sandboxed: bool
    memory: int
    seconds: int  # of processor time, for the whole job
    row_seconds: float = 0.0
    one_process_per_row: bool = False
    rows: int = 0  # of a block; none: only look at the model
    fields: tuple[Field, ...] = ()
    width: int = 1


@dataclass
class Shared:
    """Memory that parent and worker both see: the rows of a block, their scores, how far it is."""

    rows: Any
    scores: Any
    state: Any  # whether the block was begun, and how many rows are finished


def keep(task: Task, requests: Connection, answers: Connection, shared: Shared | None) -> None:
    """The whole life of a keeper."""
    silence()
    # Everything that is needed later is imported while files can be read.
    import numpy as np
    import numpy.ma  # NumPy itself does so late
    import onnxruntime

    from heldout.errors import NoSandbox
    from heldout.models import sandbox
    from heldout.models.examine import examine

    _warm(onnxruntime)
    try:
        if task.sandboxed:
            sandbox.confine(memory=task.memory, seconds=task.seconds)
        else:
            sandbox.limit_resources(memory=task.memory, seconds=task.seconds)
    except NoSandbox as error:
        answers.send_bytes(json.dumps({"no_sandbox": str(error)}).encode())
        return
    found, content = examine(task.content, output=task.output)
    session: Any = None
    if not found.get("unreadable"):
        try:
            session = _session(onnxruntime, content)
        except Exception:
            found["loads"] = False
    if shared is None:
        answers.send_bytes(json.dumps(found).encode())
        return
    answers.send_bytes(READY)
    if session is None:
        return
    desk = Desk(
        run=session._sess.run,
        wanted=[found["score"]],
        views=_views(np, task, shared),
        scores=np.frombuffer(shared.scores, np.float64).reshape(task.rows, task.width),
        state=np.frombuffer(shared.state, np.int64),
    )
    gc.freeze()  # a worker need not copy what it will never collect
    while True:
        worker = os.fork()
        if worker == 0:
            with contextlib.suppress(BaseException):
                if task.sandboxed:
                    sandbox.forbid_fork()
                _work(task, desk, requests, answers)
            os._exit(1)
        if os.waitpid(worker, 0)[1] != 0:
            answers.send_bytes(DIED)


@dataclass(frozen=True)
class Desk:
    """What a worker has before it: the model, and the shared memory as arrays."""

    run: Any
    wanted: list[str]
    views: dict[str, Any]
    scores: Any
    state: Any


def _work(task: Task, desk: Desk, requests: Connection, answers: Connection) -> None:
    """Score blocks, every row alone; a row that fails leaves no score behind."""
    texts = {each.name for each in task.fields if each.kind == "string"}
    run, wanted, scores, state = desk.run, desk.wanted, desk.scores, desk.state
    while True:
        start, stop = (int(each) for each in requests.recv_bytes(64).split())
        state[0] = 1
        for row in range(start, stop):
            signal.setitimer(signal.ITIMER_REAL, task.row_seconds)
            feeds = {name: view[row : row + 1] for name, view in desk.views.items()}
            for name in texts:
                feeds[name] = _decoded(feeds[name])
            try:  # noqa: SIM105  suppress() would cost a microsecond a row
                scores[row] = run(wanted, feeds, None)[0].reshape(-1)[: task.width]
            except Exception:
                pass
            state[1] = row + 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.send_bytes(DONE)
        if task.one_process_per_row:
            os._exit(0)


def _decoded(texts: Any) -> Any:
    import numpy as np

    found = [each.decode("utf-8", "replace") for each in texts.reshape(-1).tolist()]
    return np.array(found, dtype=object).reshape(texts.shape)


def _views(np: Any, task: Task, shared: Shared) -> dict[str, Any]:
    """The inputs of a block as arrays over the shared memory."""
    views, place = {}, 0
    for each in task.fields:
        shape = (task.rows, each.width) if each.rank == 2 else (task.rows,)
        count = task.rows * each.width
        view = np.frombuffer(shared.rows, each.dtype, count, place).reshape(shape)
        views[each.name] = view
        place += task.rows * each.stride
    return views


def _session(onnxruntime: Any, content: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Memory comes from the system each time, which zeroes it; a pool would hand on what is in it.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    # Numbers below the normal range are a hundred times slower: time would tell of them.
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _warm(onnxruntime: Any) -> None:
    """What the runtime reads from files when it is first used is read now."""
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "", value[:1], value[1:])
    opset = [helper.make_opsetid("", 13)]
    _session(
        onnxruntime,
        helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString(),
    )


def silence() -> None:
    """Whatever is printed goes nowhere."""
    sink = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(sink, stream)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    os.environ.clear()
