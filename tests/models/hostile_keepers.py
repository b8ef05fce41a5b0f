"""Keepers that misbehave in the place of `heldout.models.keeper.keep`: started by tests."""

import ctypes
import json
import mmap
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

from heldout.models import sandbox
from heldout.models.keeper import DONE, READY


def never_comes_up(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    time.sleep(600)


def dies_at_once(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    os._exit(1)


def never_answers(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(READY)
    time.sleep(600)


def dies_of_every_request(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(READY)
    requests.recv_bytes()
    os.kill(os.getpid(), signal.SIGKILL)


def says_a_gigabyte(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(READY)
    requests.recv_bytes()
    for _ in range(1024):
        os.write(answers.fileno(), b"x" * 2**20)
    time.sleep(600)


def says_rubbish(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(READY)
    while True:
        requests.recv_bytes()
        answers.send_bytes(b"\0rubbish")


def claims_more_rows_than_there_are(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(READY)
    while True:
        requests.recv_bytes()
        shared.state[1] = 2**40
        answers.send_bytes(DONE)


def claims_fewer_rows_than_none(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(READY)
    while True:
        requests.recv_bytes()
        shared.state[1] = -5
        answers.send_bytes(DONE)


def speaks_no_json(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(b"{")


def speaks_too_long(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(b" " * 2**22)


def tries_everything(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    """Reports what a process in the sandbox can still do."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent, path = os.getppid(), __file__.encode()
    inherited = os.open(__file__, os.O_RDONLY)
    sandbox.confine(memory=2**28, seconds=20)
    found = {}
    attempts: dict[str, Any] = {
        "read a file": lambda: os.open(path, os.O_RDONLY),
        "write a file": lambda: os.open(b"/tmp/escaped", os.O_WRONLY | os.O_CREAT),
        "list a folder": lambda: os.scandir("/"),
        "ask about a file": lambda: Path(__file__).stat(),
        "open a socket": lambda: socket.socket(socket.AF_INET),
        "open a local socket": lambda: socket.socket(socket.AF_UNIX),
        "run a program": lambda: os.execv("/bin/true", ["true"]),
        "signal the parent": lambda: os.kill(parent, signal.SIGTERM),
        "signal itself": lambda: os.kill(os.getpid(), 0),
        "start a thread": _thread,
        "trace a process": lambda: _zero(libc.ptrace(0, 0, 0, 0)),
        "make a namespace": lambda: _zero(libc.unshare(0x10000000)),
        "run memory": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC),
        "raise its limits": _raise_limits,
        "take a gigabyte": lambda: bytearray(2**30),
        "copy a descriptor": lambda: os.dup(inherited),
        "open memory as a file": lambda: os.memfd_create("x"),
        "undo no_new_privs": lambda: _zero(libc.prctl(38, 0, 0, 0, 0)),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            found[name] = True
        except (OSError, MemoryError, RuntimeError, ValueError):
            found[name] = False
    found["fork"] = _forks()
    sandbox.forbid_fork()
    found["fork after the second wall"] = _forks()
    answers.send_bytes(json.dumps(found).encode())


def computes_for_ever(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    sandbox.confine(memory=2**28, seconds=1)
    while True:
        pass


def _thread() -> None:
    import threading

    threading.Thread(target=time.time).start()


def _zero(code: int) -> None:
    if code != 0:
        raise OSError(code)


def _raise_limits() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))


def _forks() -> bool:
    try:
        child = os.fork()
    except OSError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True
