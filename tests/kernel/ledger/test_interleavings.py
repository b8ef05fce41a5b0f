"""No account on any path is ever over its budget, and every visible answer was booked before."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "interleave.py"
ROUNDS = 12


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_analysts_who_are_interleaved_and_killed_never_overspend(kind, request, tmp_path):
    where = tmp_path / "ledger.sqlite" if kind == "file" else request.getfixturevalue("postgres")
    seed = random.getrandbits(32)
    command = [sys.executable, str(PROGRAM), str(where), str(ROUNDS), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["answers"] > ROUNDS
    assert found["killed"] > 0
