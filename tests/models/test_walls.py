"""Every thread of a process that meets an untrusted file is shut off, and native code sees it."""

import importlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heldout.errors import NoSandbox
from heldout.models import isolate, sandbox
from heldout.models.isolate import Scorer, looked_at, standing_walls, started
from heldout.models.reader import Inherited, Reading, read

attacks: Any = importlib.import_module("attacks")
hostile: Any = importlib.import_module("hostile_keepers")

pytestmark = pytest.mark.skipif(not sandbox.available()["seccomp"], reason="no seccomp here")

TASK = attacks.harmless_task()


def check_shut_off(process: int) -> None:
    """One thread, a filter on it, two pipes, and no socket."""
    proc = Path(f"/proc/{process}")
    (thread,) = (proc / "task").iterdir()
    status = (thread / "status").read_text().splitlines()
    assert "Seccomp:\t2" in status
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status
    targets = {int(file.name): str(file.readlink()) for file in (proc / "fd").iterdir()}
    assert {targets.pop(stream) for stream in (0, 1, 2)} == {os.devnull}
    assert len(targets) == 2
    assert all(target.startswith("pipe:") for target in targets.values()), targets
    if standing_walls()["network"]:
        devices = (proc / "net/dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    if os.geteuid() == 0 and standing_walls()["user"]:
        assert not any(line.startswith(("Uid:\t0", "Gid:\t0")) for line in status)


def test_a_keeper_its_worker_and_a_reader_have_one_thread_that_is_shut_off(tmp_path: Path) -> None:
    scorer = Scorer(TASK, until=time.monotonic() + 60)
    try:
        scorer.score({"x": np.zeros((5, 4), np.float32)}, 5)
        keeper = scorer._process.pid
        check_shut_off(keeper)
        (worker,) = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        check_shut_off(int(worker))
    finally:
        scorer.close()
    path = tmp_path / "sent.csv"
    path.write_text("key,score\n" + "".join(f"{n},0.5\n" for n in range(100_000)))
    with path.open("rb") as file:
        task = Reading(Inherited(file.fileno()), 10**6, True, 2**29, 60)
        with started(read, task, None) as (process, _, answers):
            assert answers.recv_bytes()[:1] == b"N", "it reads, and waits for the parent"
            check_shut_off(process.pid)


def test_native_code_has_no_effect_outside_the_sandbox() -> None:
    effects = looked_at(TASK, main=hostile.runs_native_code)
    assert len(effects) >= 24
    assert not any(effects.values()), effects


def test_native_code_on_a_thread_older_than_the_walls_has_none_either() -> None:
    trusting = replace(TASK, sandboxed=False)  # the parent would refuse the second thread
    effects = looked_at(trusting, main=hostile.runs_native_code_on_a_second_thread)
    assert len(effects) >= 24
    assert not any(effects.values()), effects


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("has_a_second_thread", "started a second thread"),
        ("hides_a_second_thread", "has a second thread"),
        ("pretends_to_be_shut_off", "has no filter"),
    ],
)
def test_a_process_with_a_thread_outside_the_walls_is_refused(name: str, words: str) -> None:
    with pytest.raises(NoSandbox, match=words):
        looked_at(TASK, main=getattr(hostile, name))


def test_a_keeper_has_one_process_beside_it() -> None:
    if not standing_walls()["processes"]:
        pytest.skip("this system counts the processes of all users together")
    assert looked_at(TASK, main=hostile.forks_for_ever) == {"children": 1}


def test_what_is_shut_off_is_gone_when_its_parent_lets_go() -> None:
    scorer = Scorer(TASK, until=time.monotonic() + 60)
    keeper = scorer._process.pid
    scorer.close()
    assert not Path(f"/proc/{keeper}").exists()
    assert isolate.check_sandbox("sandbox")
