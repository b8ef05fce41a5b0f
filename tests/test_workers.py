"""Workers are fresh interpreters that know this package and not the script that started them."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from heldout.kernel.loss import show
from heldout.workers import context, mapper

with Path("runs.txt").open("a") as runs:
    runs.write("run\\n")
before = __file__, __spec__
with mapper(2) as mapped:
    assert sorted(mapped(show, range(40))) == sorted(map(str, range(40)))
with ProcessPoolExecutor(2, mp_context=context()) as pool:
    assert list(pool.map(show, range(4))) == ["0", "1", "2", "3"]
assert before == (__file__, __spec__)
"""


def test_a_script_without_a_guard_is_run_once_and_its_workers_work(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, script], cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "runs.txt").read_text() == "run\n"
