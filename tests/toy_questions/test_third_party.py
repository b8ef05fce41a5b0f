"""A kind that a package adds is everywhere that kinds are, without a line of heldout changed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from toy import KIND, install  # noqa: E402

ASKED = """
import json, sys
import heldout as ho
from heldout import questions as q
from heldout.audit.subjects import find
from heldout.questions.answers import Answered

sys.path.insert(0, "tools")
import questions_table

rows = {"y": [1, 0] * 200, "p": [0.8, 0.05] * 200}
session = lambda: ho.Session(ho.Dataset(rows, label="y", score="p"), budget=ho.Budget(epsilon="99"))
question = q.from_dict({"question": KIND, "epsilon": "8", "limit": 0.1})
answered = session().answer(question)
kept = Answered.from_dict(json.loads(json.dumps(answered.as_dict())))
subject = find(KIND)
drawn = [subject.draw(subject.pairs[0], side, 1, 3, door).shape for side in (0, 1)
         for door in ("public", "replay")]
report = session().report(epsilon="40")
print(json.dumps({
    "kinds": q.kinds(),
    "schema": q.find(KIND).schema(),
    "release": kept.releases[0].as_dict(),
    "quote": session().quote(question).as_dict()["half_widths"],
    "report": report.as_dict()["releases"][KIND],
    "page": report.html(),
    "pooled": ho.pool([session().report(epsilon="40") for _ in range(2)])[KIND].as_dict(),
    "claim": str(subject.claim(1)),
    "drawn": drawn,
    "table": questions_table.table(),
}, allow_nan=False))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    settings = install(tmp_path_factory.mktemp("installed"))
    code = ASKED.replace("KIND", repr(KIND))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=settings, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def test_without_the_package_there_is_no_such_kind() -> None:
    from heldout import questions as q

    assert KIND not in q.kinds()


def test_it_is_a_kind_with_a_schema(seen: dict[str, Any]) -> None:
    assert seen["kinds"][-1] == KIND, "after our own"
    assert seen["schema"]["properties"]["limit"]["description"].startswith("Scores below")


def test_it_is_asked_quoted_stored_and_read_again(seen: dict[str, Any]) -> None:
    assert seen["release"]["kind"] == KIND
    assert seen["release"]["value"] == pytest.approx(0.5, abs=0.05)
    assert seen["quote"][0]["confident negatives"]["noise"] < 0.05


def test_it_has_a_section_in_reports(seen: dict[str, Any]) -> None:
    assert seen["report"]["kind"] == KIND
    assert "leaves alone with confidence" in seen["page"]


def test_it_is_pooled(seen: dict[str, Any]) -> None:
    assert seen["pooled"]["kind"] == KIND
    assert seen["pooled"]["value"] == pytest.approx(0.5, abs=0.05)


def test_it_is_audited(seen: dict[str, Any]) -> None:
    assert seen["claim"] == "epsilon 1"
    assert seen["drawn"] == [[3, 2]] * 4


def test_it_is_in_the_table_of_questions(seen: dict[str, Any]) -> None:
    assert f"| `{KIND}` | How many rows does it leave alone with confidence?" in seen["table"]
