"""The process that keeps an untrusted model: shut off first, then it reads the model.

It never reads a row. It forks workers, which do: one for all rows of a model that is proven, one
for each row of a model that is not. A worker that fails dies, and the next is forked from the same
untouched image. No clock decides on a row: only a model that is not proven has a limit per row,
and that is processor time of the row's own process.
"""

import contextlib
import gc
import json
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnxruntime

    from heldout.models.calls import Array

CONFINED, NO_SANDBOX, READ = b"confined", b"no sandbox: ", b"read"
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
    """Tells a keeper its work: the model, its limits, and what the rows look like."""

    content: bytes
    output: str | None
    sandboxed: bool
    memory: int
    seconds: int  # of processor time, for the whole job
    row_seconds: float = 0.0  # of processor time, for a row that has its own process
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
    """Live the whole life of a keeper."""
    silence()
    # Everything that is needed later is imported while files can be read.
    import numpy as np
    import numpy.ma  # NumPy itself does so late
    import onnxruntime

    from heldout.models import sandbox
    from heldout.models.verify import examine

    onnxruntime.disable_telemetry_events()
    _warm(onnxruntime)
    if not shut_off(task, requests, answers):
        return
    report, content = examine(task.content, output=task.output)
    session: Any = None
    if not report.get("unreadable"):
        try:
            session = _session(onnxruntime, content)
        except Exception:
            report["loads"] = False
    if shared is None:
        answers.send_bytes(json.dumps(report).encode())
        return
    answers.send_bytes(READY)
    if session is None:
        return
    desk = Desk(
        run=session._sess.run,
        wanted=[report["score"]],
        views=_views(np, task, shared),
        scores=np.frombuffer(shared.scores, np.float64).reshape(task.rows, task.width),
        state=np.frombuffer(shared.state, np.int64),
    )
    gc.freeze()  # a worker need not copy what it will never collect
    while True:
        worker = os.fork()
        if worker == 0:
            with contextlib.suppress(BaseException):
                if task.one_process_per_row:
                    signal.setitimer(signal.ITIMER_PROF, task.row_seconds)
                if task.sandboxed:
                    sandbox.forbid_fork()
                _work(task, desk, requests, answers)
            os._exit(1)
        status = os.waitpid(worker, 0)[1]
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return  # by the system, for want of memory: no fault of its row, so the job is lost
        if status != 0:
            answers.send_bytes(DIED)


def shut_off(task: Any, requests: Connection, answers: Connection) -> dict[str, bool]:
    """Confine this process, and wait until the parent has seen it: nothing was parsed before.

    Return the walls that stand; none at all means that this process must end.
    """
    from heldout.errors import NoSandbox
    from heldout.models import sandbox

    memory, seconds, walls = task.memory, task.seconds, {"limits": True}
    try:
        if task.sandboxed:
            pipes = requests.fileno(), answers.fileno()
            walls |= sandbox.confine(memory=memory, seconds=seconds, pipes=pipes)
        else:
            sandbox.limit_resources(memory=memory, seconds=seconds)
    except NoSandbox as error:
        answers.send_bytes(NO_SANDBOX + str(error).encode())
        return {}
    answers.send_bytes(CONFINED)
    return walls if requests.recv_bytes(64) == READ else {}


@dataclass(frozen=True)
class Desk:
    """Holds the model of a worker, and the shared memory as arrays."""

    run: Any
    wanted: list[str]
    views: dict[str, Any]
    scores: Any
    state: Any


def _work(task: Task, desk: Desk, requests: Connection, answers: Connection) -> None:
    """Score blocks, every row alone; a row that fails leaves no score behind."""
    texts = {field.name for field in task.fields if field.kind == "string"}
    run, wanted, scores, state = desk.run, desk.wanted, desk.scores, desk.state
    while True:
        start, stop = (int(number) for number in requests.recv_bytes(64).split())
        state[0] = 1
        for row in range(start, stop):
            feeds = {name: view[row : row + 1] for name, view in desk.views.items()}
            for name in texts:
                feeds[name] = _decoded(feeds[name])
            try:  # noqa: SIM105  suppress() would cost a microsecond per row
                scores[row] = run(wanted, feeds, None)[0].reshape(-1)[: task.width]
            except Exception:
                pass
            state[1] = row + 1
        answers.send_bytes(DONE)
        if task.one_process_per_row:
            os._exit(0)


def _decoded(texts: "Array") -> "Array":
    import numpy as np

    decoded = [text.decode("utf-8", "replace") for text in texts.reshape(-1).tolist()]
    return np.array(decoded, dtype=object).reshape(texts.shape)


def _views(np: Any, task: Task, shared: Shared) -> dict[str, Any]:
    """The inputs of a block as arrays over the shared memory."""
    views, place = {}, 0
    for field in task.fields:
        shape = (task.rows, field.width) if field.rank == 2 else (task.rows,)
        count = task.rows * field.width
        view = np.frombuffer(shared.rows, field.dtype, count, place).reshape(shape)
        views[field.name] = view
        place += task.rows * field.stride
    return views


def _session(runtime: Any, content: bytes) -> "onnxruntime.InferenceSession":
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Memory comes from the system each time, which zeroes it; a pool would hand on what is in it.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    # Numbers below the normal range are a hundred times slower: time would tell of them.
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _warm(onnxruntime: Any) -> None:
    """Read now what the runtime would read from files when it is first used."""
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "", value[:1], value[1:])
    opset = [helper.make_opsetid("", 13)]
    _session(
        onnxruntime,
        helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString(),
    )


def silence() -> None:
    """Send whatever is printed nowhere, and forget the environment."""
    from heldout.models.sandbox import QUIET

    sink = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(sink, stream)
    sys.stdout = sys.stderr = open(1, "w", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(QUIET)
