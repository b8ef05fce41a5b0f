"""Shuts a process off: no file, no network, no new program; memory and processor time bounded.

Linux alone: Landlock (no path can be opened, no port, no signal beyond the process's own) and a
seccomp filter (a short list of system calls; every other fails). Neither needs privileges, and
neither can be undone, by the process or by what it starts.
"""

import ctypes
import platform
import resource
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from heldout.errors import NoSandbox

__all__ = ["available", "confine", "forbid_fork"]

_NO_NEW_PRIVILEGES, _GET_SECCOMP, _SET_SECCOMP, _FILTER = 38, 21, 22, 2
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446  # the same on every architecture
_FORK_FLAGS = 0x01200011  # what fork() passes to clone(): a new process, in no new namespace
_EXECUTABLE = 4  # PROT_EXEC

# What scoring needs once everything is imported: memory, pipes that are open, time, fork and exit.
_CALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        **{"read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9},
        **{"mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14},
        **{"rt_sigreturn": 15, "sched_yield": 24, "mremap": 25, "madvise": 28, "setitimer": 38},
        **{"getpid": 39, "clone": 56, "exit": 60, "wait4": 61, "prctl": 157, "gettid": 186},
        **{"sigaltstack": 131, "futex": 202, "sched_getaffinity": 204, "restart_syscall": 219},
        **{"clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "getrandom": 318},
        **{"set_robust_list": 273, "membarrier": 324, "rseq": 334},
    },
    "aarch64": {
        **{"read": 63, "write": 64, "close": 57, "fstat": 80, "ppoll": 73, "lseek": 62},
        **{"mmap": 222, "mprotect": 226, "munmap": 215, "brk": 214, "rt_sigaction": 134},
        **{"rt_sigprocmask": 135, "rt_sigreturn": 139, "sched_yield": 124, "mremap": 216},
        **{"madvise": 233, "setitimer": 103, "getpid": 172, "clone": 220, "exit": 93},
        **{"wait4": 260, "prctl": 167, "gettid": 178, "sigaltstack": 132, "futex": 98},
        **{"sched_getaffinity": 123, "restart_syscall": 128, "clock_gettime": 113},
        **{"clock_nanosleep": 115, "exit_group": 94, "getrandom": 278, "set_robust_list": 99},
        **{"membarrier": 283, "rseq": 293},
    },
}
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def available() -> dict[str, bool]:
    """Which walls this machine has.

    >>> sorted(available())
    ['landlock', 'seccomp']
    """
    if sys.platform != "linux":
        return {"landlock": False, "seccomp": False}
    libc = ctypes.CDLL(None, use_errno=True)
    known = platform.machine() in _ARCHITECTURES
    return {
        "landlock": _landlock_version(libc) > 0,
        "seccomp": known and libc.prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0,
    }


def confine(*, memory: int, seconds: int) -> None:
    """Shut this process off for good. It may fork, compute, and use the pipes it has.

    `memory` bytes more than it has now, and `seconds` of processor time, are all that it gets.
    """
    if not available()["seccomp"]:
        raise NoSandbox("this machine has no seccomp")
    limit_resources(memory=memory, seconds=seconds)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise NoSandbox("the system refused no_new_privs")
    version = _landlock_version(libc)
    if version > 0:
        _landlock(libc, version)
    calls = _CALLS[platform.machine()]
    _seccomp(libc, _allowing(calls))


def forbid_fork() -> None:
    """One wall more: this process stays the only one, and no filter can be added."""
    calls = _CALLS[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    _seccomp(libc, _allowing({k: v for k, v in calls.items() if k not in ("clone", "prctl")}))


def limit_resources(*, memory: int, seconds: int) -> None:
    """What a sandbox bounds by count; the only wall where a custodian insists on having none."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        _lower(resource.RLIMIT_AS, pages * resource.getpagesize() + memory)
    _lower(resource.RLIMIT_CPU, seconds)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


# --- Landlock ------------------------------------------------------------------------------------


def _landlock_version(libc: ctypes.CDLL) -> int:
    return int(libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1))


def _landlock(libc: ctypes.CDLL, version: int) -> None:
    """Every kind of access that this kernel knows is handled, and none is granted."""
    files = 13 + (version >= 2) + (version >= 3) + (version >= 5)  # one bit a right
    rights = struct.pack(
        "QQQ", (1 << files) - 1, 3 if version >= 4 else 0, 3 if version >= 6 else 0
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(_LANDLOCK_CREATE, rights[:size], ctypes.c_size_t(size), 0)
    if ruleset < 0 or libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) != 0:
        raise NoSandbox("the system refused Landlock")


# --- seccomp -------------------------------------------------------------------------------------

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # refuse: EPERM
_NUMBER, _ARCHITECTURE, _FIRST, _THIRD = 0, 4, 16, 32  # where the kernel puts them


def _allowing(calls: dict[str, int]) -> list[tuple[int, int, int, int]]:
    """A filter program: these calls pass, some with certain arguments only; the rest fail."""
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[platform.machine()]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for name, number in calls.items():
        if name in ("mmap", "mprotect"):  # no memory that can be run
            judged: Sequence[tuple[int, int, int, int]] = [
                (_LOAD, 0, 0, _THIRD),
                (_ANY_BIT, 0, 1, _EXECUTABLE),
                (_RETURN, 0, 0, _REFUSE),
            ]
        elif name in ("clone", "prctl"):  # a plain fork; a further filter
            wanted = _FORK_FLAGS if name == "clone" else _SET_SECCOMP
            judged = [(_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, wanted), (_RETURN, 0, 0, _REFUSE)]
        else:
            judged = []
        program += [(_EQUAL, 0, len(judged) + 1, number), *judged, (_RETURN, 0, 0, _ALLOW)]
    return [*program, (_RETURN, 0, 0, _REFUSE)]


def _seccomp(libc: ctypes.CDLL, program: Iterable[tuple[int, int, int, int]]) -> None:
    code = b"".join(struct.pack("HBBI", *each) for each in program)
    buffer = ctypes.create_string_buffer(code)
    head = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    if libc.prctl(_SET_SECCOMP, _FILTER, head, 0, 0) != 0:
        raise NoSandbox("the system refused a seccomp filter")
