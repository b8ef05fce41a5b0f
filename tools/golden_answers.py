"""Stores an answer of every kind of question that has none yet, for tests/golden/answers.

    python tools/golden_answers.py

What is stored is never written again: later versions must still read it.
"""

import json
import sys
from pathlib import Path

from heldout import questions as q
from heldout.kernel import Budget
from heldout.questions.session import PrivateSession

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "answers"


def stored_kinds() -> set[str]:
    """Return the kinds of which an answer is stored."""
    contents = (json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json"))
    return {asked["question"] for each in contents for asked in each["answer"]["questions"]}


def main() -> int:
    for kind in sorted(set(q.kinds()) - stored_kinds()):
        question, rows = q.find(kind).with_rows(epsilon="1")
        session = PrivateSession(rows, budget=Budget(epsilon=1))
        answered = session.answer(question)
        content = {"answer": answered.as_dict(), "release": answered.releases[0].as_dict()}
        text = json.dumps(content, indent=1, allow_nan=False)
        (FOLDER / f"{kind}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{kind}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
