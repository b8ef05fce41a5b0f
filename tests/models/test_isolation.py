"""Whatever the child does, the job ends in time, with default scores, and says nothing of rows."""

import ctypes
import errno
import gc
import importlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heldout.errors import UnusableModel
from heldout.models import isolate, sandbox
from heldout.models.isolate import Lost, Scorer, looked_at
from heldout.models.keeper import Task, keep

attacks: Any = importlib.import_module("attacks")
hostile: Any = importlib.import_module("hostile_keepers")

pytestmark = pytest.mark.skipif(not sandbox.available()["seccomp"], reason="no seccomp here")

TASK = attacks.harmless_task()
ROWS = np.arange(20, dtype=np.float32).reshape(5, 4)


def scored(main: Any, *, seconds: float = 60.0, task: Task = TASK) -> Any:
    scorer = Scorer(task, until=time.monotonic() + seconds, main=main)
    try:
        return scorer.score({"x": ROWS}, len(ROWS))
    finally:
        scorer.close()


def test_a_keeper_that_behaves_scores_every_row() -> None:
    found = scored(isolate.keep)
    assert np.array_equal(found, ROWS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "never_comes_up",
        "dies_at_once",
        "never_answers",
        "dies_of_every_request",
        "says_a_gigabyte",
        "says_rubbish",
    ],
)
def test_a_keeper_that_misbehaves_loses_the_job_and_takes_no_longer_than_declared(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolate, "START", 6.0)
    began = time.monotonic()
    with pytest.raises(Lost):
        scored(getattr(hostile, name), seconds=6)
    assert time.monotonic() - began < 6 + 60  # of a busy machine; the keeper sleeps for 600


@pytest.mark.parametrize("name", ["claims_more_rows_than_there_are", "claims_fewer_rows_than_none"])
def test_a_count_that_lies_is_held_to_the_block(name: str) -> None:
    found = scored(getattr(hostile, name))
    assert found.shape == ROWS.shape
    assert np.isnan(found).all()


@pytest.mark.parametrize("name", ["speaks_no_json", "speaks_too_long", "dies_at_once"])
def test_a_reader_that_misbehaves_makes_the_model_unusable(name: str) -> None:
    with pytest.raises(UnusableModel, match="cannot be read"):
        looked_at(TASK, main=getattr(hostile, name))


def test_the_sandbox_leaves_only_memory_time_and_the_pipes() -> None:
    found = looked_at(TASK, main=hostile.tries_everything)
    assert found.pop("fork") is True, "the keeper forks its workers"
    assert not any(found.values()), found
    assert len(found) >= 19


def test_processor_time_is_bounded() -> None:
    began = time.monotonic()
    with pytest.raises(UnusableModel, match="cannot be read"):
        looked_at(TASK, main=hostile.computes_for_ever)
    assert time.monotonic() - began < isolate.START / 2  # one second of a busy processor


def test_a_machine_without_walls_refuses_unless_the_custodian_insists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: {"landlock": False, "seccomp": False})
    with pytest.raises(isolate.NoSandbox, match="isolation='none'"):
        isolate.check_sandbox("sandbox")
    assert isolate.check_sandbox("none") is False


def test_without_a_sandbox_a_trusted_model_still_runs() -> None:
    found = scored(isolate.keep, task=replace(TASK, sandboxed=False))
    assert np.array_equal(found, ROWS)


def test_without_a_sandbox_no_byte_is_written_to_a_file() -> None:
    found = looked_at(replace(TASK, sandboxed=False), main=hostile.writes_a_byte)
    assert found == {"error": errno.EFBIG}


def test_what_the_runtime_does_not_write_holds_nothing_of_an_earlier_row() -> None:
    # The model is refused; here it is run all the same, many rows in one process.
    content = attacks.ATTACKS["a_tree_that_leaves_a_score_unwritten"]()
    task = replace(TASK, content=content, width=2)
    cells = np.ones((8, 4), np.float32)
    cells[1::2] = -1.0  # every other row gets one score only
    scorer = Scorer(task, until=time.monotonic() + 60)
    try:
        found = scorer.score({"x": cells}, 8)
    finally:
        scorer.close()
    assert (found[::2] > 0.6).all(), "scores that an earlier row leaves behind"
    assert (found[1::2, 0] == found[1, 0]).all()
    assert found[1::2, 1].tolist() == [0.0] * 4, "memory that was zeroed"


def test_rows_lie_in_no_file_and_in_no_memory_of_another_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shared array is a file in /dev/shm; in a container, where that is small, one on disk."""

    def refuse(*_: object, **named: object) -> None:
        raise AssertionError(f"rows would lie in a file: {named}")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(2):
        assert np.array_equal(scored(keep, seconds=60), ROWS)
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= opened + 1  # what watches over resources
    first, second = isolate.in_memory(ctypes.c_char * 8), isolate.in_memory(ctypes.c_char * 8)
    assert first._wrapper._state[0][0] is not second._wrapper._state[0][0]
    assert bytes(second) == bytes(8)


def test_a_process_that_meets_a_model_never_had_the_secrets_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a process was started with stays in its memory, whatever it deletes."""
    monkeypatch.setenv("HELDOUT_SERVER_ROWS_KEY", "the key of the rows")
    monkeypatch.setenv("CLINIC", "postgresql://reader:password@rows/clinic")
    with isolate.started(keep, TASK, None) as (process, _, _):
        given = Path(f"/proc/{process.pid}/environ").read_text()
    assert "GLIBC_TUNABLES" in given
    assert "HOME=/\0" in given
    hidden = [name for name in os.environ if not name.startswith((*isolate._OF_PYTHON, "HOME"))]
    assert {"CLINIC", "HELDOUT_SERVER_ROWS_KEY"} <= set(hidden)
    assert not set(hidden) & {variable.partition("=")[0] for variable in given.split("\0")}
    assert "password" not in given
