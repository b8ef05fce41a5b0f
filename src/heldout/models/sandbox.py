"""Shuts a process off: one thread, no file, no network, no new program; memory and time bounded.

Linux alone: Landlock (no path can be opened, no port, no signal beyond the process's own) and a
seccomp filter (a short list of system calls; every other fails). Neither needs privileges, and
neither can be undone, by the process or by what it starts. Where the system allows it, the process
has a network of its own with nothing in it, and a user of its own.

Landlock covers the calling thread and what that thread starts. So the process must have one thread
when it is shut off, and can start no other afterwards: `confine` refuses a process with two.
"""

import contextlib
import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from heldout.errors import NoSandbox

QUIET = {
    "HOME": "/",
    "XDG_CACHE_HOME": os.devnull,  # where onnxruntime would keep what it wants to send
    "ORT_DISABLE_TELEMETRY": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
"""The environment in which the libraries start no thread, open no socket and write no file."""

_NO_NEW_PRIVILEGES, _GET_SECCOMP, _PARENT_DEATH = 38, 21, 1  # for prctl
_SECCOMP_FILTER, _EVERY_THREAD = 1, 1  # for seccomp
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446  # the same on every architecture
_FORK_FLAGS = 0x01200011  # what fork() passes to clone(): a new process, in no new namespace
_EXECUTABLE = 4  # PROT_EXEC
_NEW_NETWORK, _NEW_USER = 0x40000000 | 0x08000000, 0x10000000  # and System V's queues
_CAPABILITIES = 0x20080522  # the version of capset's header
_NOBODY, _OWN_USERS = 65534, 0x70000000
_SIGKILL = 9

# What scoring needs once everything is imported: memory, pipes that are open, time, fork and exit.
_CALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        **{"read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9},
        **{"mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14},
        **{"rt_sigreturn": 15, "sched_yield": 24, "mremap": 25, "madvise": 28, "setitimer": 38},
        **{"getpid": 39, "clone": 56, "exit": 60, "wait4": 61, "gettid": 186},
        **{"sigaltstack": 131, "futex": 202, "sched_getaffinity": 204, "restart_syscall": 219},
        **{"clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "seccomp": 317},
        **{"getrandom": 318, "set_robust_list": 273, "membarrier": 324, "rseq": 334},
    },
    "aarch64": {
        **{"read": 63, "write": 64, "close": 57, "fstat": 80, "ppoll": 73, "lseek": 62},
        **{"mmap": 222, "mprotect": 226, "munmap": 215, "brk": 214, "rt_sigaction": 134},
        **{"rt_sigprocmask": 135, "rt_sigreturn": 139, "sched_yield": 124, "mremap": 216},
        **{"madvise": 233, "setitimer": 103, "getpid": 172, "clone": 220, "exit": 93},
        **{"wait4": 260, "gettid": 178, "sigaltstack": 132, "futex": 98, "seccomp": 277},
        **{"sched_getaffinity": 123, "restart_syscall": 128, "clock_gettime": 113},
        **{"clock_nanosleep": 115, "exit_group": 94, "getrandom": 278, "set_robust_list": 99},
        **{"membarrier": 283, "rseq": 293},
    },
}
_KEEPER_ONLY = ("clone", "seccomp", "setitimer", "rt_sigaction")
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def available() -> dict[str, bool]:
    """Say which of the two walls that need no trial this machine has.

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


def confine(*, memory: int, seconds: int, pipes: Iterable[int] = ()) -> dict[str, bool]:
    """Shut this process off for good, and say which walls stand.

    It may fork, compute, and use `pipes`: every other descriptor is closed. `memory` bytes more
    than it has now, and `seconds` of processor time, are all that it gets. A process with a second
    thread is refused.
    """
    walls = available()
    if not walls["seccomp"]:
        raise NoSandbox("this machine has no seccomp")
    _check_alone()
    _close_all_but(pipes)
    libc = ctypes.CDLL(None, use_errno=True)
    walls |= _move_out(libc)
    limit_resources(memory=memory, seconds=seconds)
    walls["processes"] = _limit_processes(alone=walls["network"] or walls["user"])
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise NoSandbox("the system refused no_new_privs")
    version = _landlock_version(libc)
    if version > 0:
        _landlock(libc, version)
    _lower(resource.RLIMIT_NOFILE, 0)  # what is open can be used; nothing more can be opened
    _seccomp(libc, _CALLS[platform.machine()])
    return walls


def forbid_fork() -> None:
    """Add a wall: this process stays the only one, with its timer, and takes no further filter."""
    calls = _CALLS[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    _seccomp(libc, {name: call for name, call in calls.items() if name not in _KEEPER_ONLY})


def check_confined(process: int) -> None:
    """Look from outside: a process has one thread, with a filter that cannot be undone."""
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        states = [(thread / "status").read_text() for thread in threads]
    except OSError:
        raise NoSandbox("the threads of a process that was shut off cannot be seen") from None
    if len(states) != 1:
        raise NoSandbox("a process that was shut off has a second thread")
    lines = states[0].splitlines()
    if "Seccomp:\t2" not in lines or "NoNewPrivs:\t1" not in lines:
        raise NoSandbox("a thread of a process that was shut off has no filter")


def limit_resources(*, memory: int, seconds: int) -> None:
    """Bound what is counted; the only wall where a custodian insists on having none."""
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


# --- the process itself --------------------------------------------------------------------------


def _check_alone() -> None:
    try:
        threads = len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        raise NoSandbox("/proc is not there, so that threads cannot be counted") from None
    if threads != 1:
        raise NoSandbox("a library started a second thread, which the walls would not cover")


def _close_all_but(pipes: Iterable[int]) -> None:
    """Close what was inherited or left open; 0, 1 and 2 lead nowhere already."""
    start = 3
    for pipe in sorted(pipes):
        os.closerange(start, pipe)
        start = pipe + 1
    os.closerange(start, 2**20)


def _move_out(libc: ctypes.CDLL) -> dict[str, bool]:
    """Leave the network and the user of the parent, as far as the system allows it."""
    network, user = libc.unshare(_NEW_NETWORK) == 0, False
    if os.geteuid() == 0:
        for number in (_OWN_USERS + os.getpid(), _NOBODY):
            with contextlib.suppress(OSError):
                os.setgroups([])
                os.setresgid(number, number, number)
                os.setresuid(number, number, number)
                user = True
                break
    if not network:
        network = libc.unshare(_NEW_USER | _NEW_NETWORK) == 0
    # A namespace of one's own comes with every right in it: none is needed.
    libc.capset(struct.pack("Ii", _CAPABILITIES, 0), bytes(24))
    libc.prctl(_PARENT_DEATH, _SIGKILL, 0, 0, 0)
    return {"network": network, "user": user}


def _limit_processes(*, alone: bool) -> bool:
    """Allow one process beside this one. Where the user is shared, others count, and it is no wall.

    Whether the system counts this user's processes apart is tried with a limit that can be raised.
    """
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if not alone or os.geteuid() == 0 or (hard != resource.RLIM_INFINITY and hard < 2):
        return False
    resource.setrlimit(resource.RLIMIT_NPROC, (2, hard))
    try:
        child = os.fork()
    except OSError:
        resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    _lower(resource.RLIMIT_NPROC, 2)
    return True


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
    os.close(ruleset)


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
            condition: Sequence[tuple[int, int, int, int]] = [
                (_LOAD, 0, 0, _THIRD),
                (_ANY_BIT, 0, 1, _EXECUTABLE),
                (_RETURN, 0, 0, _REFUSE),
            ]
        elif name in ("clone", "seccomp"):  # a plain fork; a further filter
            wanted = _FORK_FLAGS if name == "clone" else _SECCOMP_FILTER
            condition = [(_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, wanted), (_RETURN, 0, 0, _REFUSE)]
        else:
            condition = []
        program += [(_EQUAL, 0, len(condition) + 1, number), *condition, (_RETURN, 0, 0, _ALLOW)]
    return [*program, (_RETURN, 0, 0, _REFUSE)]


def _seccomp(libc: ctypes.CDLL, calls: dict[str, int]) -> None:
    """Put a filter on every thread of this process."""
    code = b"".join(struct.pack("HBBI", *step) for step in _allowing(calls))
    buffer = ctypes.create_string_buffer(code)
    head = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    number = _CALLS[platform.machine()]["seccomp"]
    if libc.syscall(number, _SECCOMP_FILTER, _EVERY_THREAD, head) != 0:
        raise NoSandbox("the system refused a seccomp filter")
