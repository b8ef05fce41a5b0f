"""The command as a process of its own: what it costs, with compiled modules and without."""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HELDOUT = str(Path(sys.executable).with_name("heldout"))
ENVIRONMENT = dict(os.environ)
"""Of the commands; `compiled_in` changes it."""


def compiled_in(folder: str) -> None:
    """Let Python keep its compiled modules there, as pip does when it installs: all of them.

    A checkout where Python may not write them would compile the package at each start.
    """
    ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)
    ENVIRONMENT["PYTHONPYCACHEPREFIX"] = folder


@dataclass(frozen=True)
class Cost:
    """Wall seconds, processor seconds and peak memory (GiB)."""

    seconds: float
    work: float
    memory: float = 0.0


def run(*command: str) -> Cost:
    """One process, from start to end."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[:2]} failed")
    seconds = time.perf_counter() - start
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20)


def evaluate(path: Path, *options: str) -> Cost:
    # A thousand rows leave nothing to read at this price, which is no matter here: --yes.
    asked = ("--label", "y", "--score", "p", "--epsilon", "1", "--yes", *options)
    return run(HELDOUT, "evaluate", str(path), *asked)


def not_compiled(path: Path, *options: str) -> Cost:
    """The same where Python finds no compiled module and may keep none."""
    before = dict(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as empty:
        ENVIRONMENT.update(PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=empty)
        try:
            return evaluate(path, *options)
        finally:
            ENVIRONMENT.clear()
            ENVIRONMENT.update(before)
