"""Keepers that misbehave in the place of `heldout.models.keeper.keep`: started by tests."""

import ctypes
import errno
import json
import mmap
import os
import signal
import socket
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from heldout.models import sandbox
from heldout.models.keeper import CONFINED, DONE, READY, shut_off


def never_comes_up(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    time.sleep(600)


def dies_at_once(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    os._exit(1)


def never_answers(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(task, requests, answers)
    answers.send_bytes(READY)
    time.sleep(600)


def dies_of_every_request(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(task, requests, answers)
    answers.send_bytes(READY)
    requests.recv_bytes()
    os.kill(os.getpid(), signal.SIGKILL)


def says_a_gigabyte(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(task, requests, answers)
    answers.send_bytes(READY)
    requests.recv_bytes()
    for _ in range(1024):
        os.write(answers.fileno(), b"x" * 2**20)
    time.sleep(600)


def says_rubbish(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(task, requests, answers)
    answers.send_bytes(READY)
    while True:
        requests.recv_bytes()
        answers.send_bytes(b"\0rubbish")


def claims_more_rows_than_there_are(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(task, requests, answers)
    answers.send_bytes(READY)
    while True:
        requests.recv_bytes()
        shared.state[1] = 2**40
        answers.send_bytes(DONE)


def claims_fewer_rows_than_none(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(task, requests, answers)
    answers.send_bytes(READY)
    while True:
        requests.recv_bytes()
        shared.state[1] = -5
        answers.send_bytes(DONE)


def speaks_no_json(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(task, requests, answers)
    answers.send_bytes(b"{")


def speaks_too_long(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(task, requests, answers)
    answers.send_bytes(b" " * 2**22)


def tries_everything(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    """Reports what a process in the sandbox can still do."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent, path = os.getppid(), __file__.encode()
    inherited = os.open(__file__, os.O_RDONLY)
    shut_off(replace(task, memory=2**28, seconds=20), requests, answers)
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
        "copy a descriptor": lambda: os.dup(answers.fileno()),
        "use what was inherited": lambda: os.read(inherited, 1),
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


def writes_a_byte(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    """Write to a file that is open, and say which error came of it."""
    with tempfile.TemporaryFile(buffering=0) as file:
        shut_off(task, requests, answers)
        try:
            file.write(b"x")
            error = None
        except OSError as refused:
            error = refused.errno
        answers.send_bytes(json.dumps({"error": error}).encode())


def computes_for_ever(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    shut_off(replace(task, seconds=1), requests, answers)
    while True:
        pass


# --- native code, on the thread that was shut off and on another ---------------------------------

_NUMBERS = {
    "x86_64": {"open": 2, "openat": 257, "socket": 41, "execve": 59, "clone3": 435, "ptrace": 101,
               "process_vm_readv": 310, "process_vm_writev": 311, "kill": 62, "tgkill": 234,
               "memfd_create": 319, "io_uring_setup": 425, "pidfd_open": 434, "unshare": 272,
               "setns": 308, "mount": 165, "bpf": 321, "keyctl": 250, "dup": 32, "prctl": 157,
               "prlimit64": 302, "setuid": 105, "sendmsg": 46, "shmget": 29},
    "aarch64": {"openat": 56, "socket": 198, "execve": 221, "clone3": 435, "ptrace": 117,
                "process_vm_readv": 270, "process_vm_writev": 271, "kill": 129, "tgkill": 131,
                "memfd_create": 279, "io_uring_setup": 425, "pidfd_open": 434, "unshare": 97,
                "setns": 268, "mount": 40, "bpf": 280, "keyctl": 219, "dup": 23, "prctl": 167,
                "prlimit64": 261, "setuid": 146, "sendmsg": 211, "shmget": 194},
}[os.uname().machine]  # fmt: skip


def payload(parent: int, pipes: tuple[int, ...]) -> dict[str, bool]:
    """Call the kernel past Python, and return which calls had an effect."""
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = _NUMBERS
    path, local = ctypes.c_char_p(b"/etc/passwd"), ctypes.create_string_buffer(64)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(local), 8)
    none = (ctypes.c_char_p * 1)(None)
    arguments: dict[str, tuple[Any, ...]] = {
        "open": (path, 0),
        "openat": (-100, path, 0),
        "socket": (2, 1, 0),
        "execve": (ctypes.c_char_p(b"/bin/true"), none, none),
        "clone3": (local, 64),
        "ptrace": (16, parent, 0, 0),
        "process_vm_readv": (parent, vector, 1, vector, 1, 0),
        "process_vm_writev": (parent, vector, 1, vector, 1, 0),
        "kill": (parent, 0),
        "tgkill": (parent, parent, 0),
        "memfd_create": (ctypes.c_char_p(b"x"), 0),
        "io_uring_setup": (1, local),
        "pidfd_open": (parent, 0),
        "unshare": (0x10000000,),
        "setns": (0, 0),
        "mount": (path, path, path, 0, 0),
        "bpf": (0, local, 64),
        "keyctl": (0, -3, 0),
        "dup": (pipes[0],),
        "prctl": (4, 1, 0, 0, 0),
        "prlimit64": (0, 7, None, local),
        "setuid": (0,),
        "sendmsg": (pipes[1], local, 0),
        "shmget": (0, 4096, 0o1600),
    }
    refused = {name: _refused(libc, numbers[name], *arguments[name]) for name in numbers}
    effects = {name: not was for name, was in refused.items()}
    others = (number for number in range(3, 4096) if number not in pipes)
    effects["write to what was inherited"] = any(libc.write(n, b"x", 1) == 1 for n in others)
    word = ctypes.c_ulong()
    effects["start a thread"] = libc.pthread_create(ctypes.byref(word), None, libc.abs, None) == 0
    return effects


def _refused(libc: Any, number: int, *arguments: Any) -> bool:
    """Whether the filter refuses a call: any other error would come from the call itself."""
    ctypes.set_errno(0)
    return libc.syscall(number, *arguments) == -1 and ctypes.get_errno() == errno.EPERM


def runs_native_code(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    parent, pipes = os.getppid(), (requests.fileno(), answers.fileno())
    shut_off(task, requests, answers)
    answers.send_bytes(json.dumps(payload(parent, pipes)).encode())


def runs_native_code_on_a_second_thread(
    task: Any, requests: Any, answers: Any, shared: Any
) -> None:
    """Started without the parent's look; the thread is older than the walls."""
    parent, pipes, effects = os.getppid(), (requests.fileno(), answers.fileno()), {}
    walled = threading.Event()

    def later() -> None:
        walled.wait()
        effects.update(payload(parent, pipes))

    thread = threading.Thread(target=later)
    thread.start()
    sandbox._check_alone = lambda: None
    shut_off(replace(task, sandboxed=True), requests, answers)
    walled.set()
    thread.join()
    answers.send_bytes(json.dumps(effects).encode())


def has_a_second_thread(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    shut_off(task, requests, answers)
    time.sleep(600)


def hides_a_second_thread(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    sandbox._check_alone = lambda: None
    has_a_second_thread(task, requests, answers, shared)


def pretends_to_be_shut_off(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    answers.send_bytes(CONFINED)
    time.sleep(600)


def forks_for_ever(task: Any, requests: Any, answers: Any, shared: Any) -> None:
    """Count the processes that can be there at once beside this one."""
    shut_off(task, requests, answers)
    children = 0
    try:
        while children < 50:
            if os.fork() == 0:
                time.sleep(600)
            children += 1
    except OSError:
        pass
    answers.send_bytes(json.dumps({"children": children}).encode())


def _thread() -> None:
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
