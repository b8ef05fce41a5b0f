"""From its first import to its exit, what meets a model asks for no socket and writes no file."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from heldout.models import sandbox

watching: Any = importlib.import_module("watching")

pytestmark = pytest.mark.skipif(not sandbox.available()["seccomp"], reason="no seccomp here")

PROGRAM = """
import sys
import heldout as ho
model = ho.models.load(sys.argv[1])
assert model.row_wise
rows = {"a": [float(n) for n in range(50)], "b": [1.0] * 50, "c": [1.0] * 50, "d": [1.0] * 50}
ho.models.score(model, rows, features=list("abcd"))
sent = ho.models.read_predictions(sys.argv[2], out=sys.argv[3])
assert sent.rows == 2
"""
SYSTEM = ("/usr/", "/lib/", "/lib64/", "/etc/ld.so.", "/etc/localtime", "/proc/", "/sys/")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def test_no_socket_and_no_file_outside_the_libraries_from_import_to_exit(tmp_path: Path) -> None:
    attacks: Any = importlib.import_module("attacks")
    (tmp_path / "model.onnx").write_bytes(attacks.model([attacks.node("Relu", ["x"], ["y"])]))
    (tmp_path / "sent.csv").write_text("key,score\n1,2\n2,3\n")
    home = tmp_path / "home"
    home.mkdir()
    files = [str(tmp_path / name) for name in ("model.onnx", "sent.csv", "out.parquet")]
    code, asked = watching.watched(
        [sys.executable, "-c", PROGRAM, *files],
        # No sign of a test run: libraries keep quiet by themselves under some of these.
        {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert code == 0
    ours = [call for call in asked if b"spawn_main" in call.command]
    opened = [call for call in ours if call.call.startswith(("open", "creat"))]
    assert any("onnxruntime" in call.path for call in opened), "the watch sees the import"
    assert any("pyarrow" in call.path for call in opened)
    others = {(call.call, call.path, call.flags) for call in ours if call not in opened}
    assert not others, "no socket, no program, no folder made"
    writing = {call.path for call in opened if call.flags & WRITES and call.call != "openat2"}
    assert writing <= {os.devnull}
    libraries = (*SYSTEM, *(f"{folder}/" for folder in {sys.prefix, sys.base_prefix, *sys.path}))
    links = tuple(f"{Path(folder).resolve()}/" for folder in libraries)
    listed = {str(parent) for folder in (*libraries, *links) for parent in Path(folder).parents}
    read = {call.path for call in opened if not call.path.startswith((*libraries, *links))}
    read -= {os.devnull, "/dev/urandom", "/etc/os-release", "/etc/ssl/openssl.cnf", *sys.path}
    assert not {path for path in read if path.rstrip("/") not in listed}
    assert list(home.iterdir()) == [], "no cache, no database"


def test_the_watch_sees_what_it_must() -> None:
    program = "import socket; socket.socket(); open('/dev/null', 'w')"
    code, asked = watching.watched([sys.executable, "-c", program], dict(os.environ))
    assert code == 0
    assert any(call.call == "socket" and call.flags == 2 for call in asked)
    assert any(call.path == "/dev/null" and call.flags & os.O_WRONLY for call in asked)
