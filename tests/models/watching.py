"""Runs a program and records every file, socket and program that it and its children ask for.

The kernel asks us before each of these calls (a seccomp filter with a listener), and we let each
go on. It needs no privilege and no tool, and sees native code as well as Python.
"""

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_CALLS = {
    "x86_64": {"open": 2, "openat": 257, "openat2": 437, "creat": 85, "socket": 41, "connect": 42,
               "socketpair": 53, "execve": 59, "mkdir": 83, "mkdirat": 258, "unlink": 87,
               "unlinkat": 263, "rename": 82},
    "aarch64": {"openat": 56, "openat2": 437, "socket": 198, "connect": 203, "socketpair": 199,
                "execve": 221, "mkdirat": 34, "unlinkat": 35},
}[os.uname().machine]  # fmt: skip
_NAMES = {number: name for name, number in _CALLS.items()}
_SECCOMP = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
_ASK, _ALLOW, _LISTENER = 0x7FC00000, 0x7FFF0000, 8
_RECEIVE, _SEND, _GO_ON = 0xC0502100, 0xC0182101, 1


@dataclass(frozen=True)
class Asked:
    """One call: by which command line, its name, its path where it has one, and its flags."""

    command: bytes
    call: str
    path: str
    flags: int


def watched(arguments: Sequence[str], environment: dict[str, str]) -> tuple[int, list[Asked]]:
    """Run a program to its end; return its exit code and what was asked for."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            socket.send_fds(theirs, [b"x"], [_listener()])
            os.execve(arguments[0], list(arguments), environment)
        finally:
            os._exit(99)
    theirs.close()
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    asked: list[Asked] = []
    watcher = threading.Thread(target=_listen, args=(listener, asked))
    watcher.start()
    status = os.waitpid(child, 0)[1]
    watcher.join(20)
    assert not watcher.is_alive(), "a process outlives the program"
    os.close(listener)
    return os.waitstatus_to_exitcode(status), asked


def _listener() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    program = [(0x20, 0, 0, 0)]
    for number in _CALLS.values():
        program += [(0x15, 0, 1, number), (0x06, 0, 0, _ASK)]
    code = b"".join(struct.pack("HBBI", *step) for step in [*program, (0x06, 0, 0, _ALLOW)])
    buffer = ctypes.create_string_buffer(code)
    head = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    listener: int = libc.syscall(_SECCOMP, 1, _LISTENER, head)
    assert listener >= 0
    return listener


def _listen(listener: int, asked: list[Asked]) -> None:
    while True:
        notice = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, notice)
        except OSError:  # nobody is left who could ask
            return
        identity, process, _, number, _, _, *values = struct.unpack("QIIiIQ6Q", notice)
        name = _NAMES[number]
        asked.append(_understood(process, name, values))
        try:
            fcntl.ioctl(listener, _SEND, bytearray(struct.pack("Qqii", identity, 0, 0, _GO_ON)))
        except OSError:
            continue  # it was killed meanwhile


def _understood(process: int, name: str, values: list[int]) -> Asked:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        command = b""
    if name in ("socket", "socketpair", "connect"):
        return Asked(command, name, "", values[0])
    place = values[1] if name.endswith(("at", "at2")) else values[0]
    flags = values[2] if name.endswith("at") else values[1]
    return Asked(command, name, _text(process, place), flags)


def _text(process: int, place: int) -> str:
    try:
        with Path(f"/proc/{process}/mem").open("rb", 0) as memory:
            memory.seek(place)
            text = memory.read(4096 - place % 4096)  # the next page may not be there
            if b"\0" not in text:
                text += memory.read(4096)
            return text.split(b"\0")[0].decode("utf-8", "replace")
    except OSError:
        return "?"
