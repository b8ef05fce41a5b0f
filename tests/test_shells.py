"""Shells derive: no command, page, client or audit lists kinds of questions by hand."""

import ast
import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tests.source import trees

from heldout import questions as q

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "heldout"
PRESETS = {f"cli/{name}.py" for name in ("evaluate", "residuals", "select", "twin")}
OTHER_NAMES = {
    "audit/attacks.py": "metrics that others publish without noise",
    "audit/subjects.py": "sensitivities of noise laws",
    "audit/samplers.py": "sensitivities of noise laws",
    "pooling/curves.py": "a field of a release's JSON",
}
"""Files that use such a word for something else."""
SHELLS = ("cli", "server", "client", "audit", "drawing", "pooling")


def questions_table() -> Any:
    """Return the tool that writes the tables of questions."""
    path = ROOT / "tools" / "questions_table.py"
    specification = importlib.util.spec_from_file_location("questions_table", path)
    assert specification is not None
    assert specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    return tool


def named(tree: ast.AST, kinds: set[str]) -> list[str]:
    """Kinds that stand in the source as text."""
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in kinds
    ]


def test_a_list_of_kinds_by_hand_would_be_noticed() -> None:
    assert named(ast.parse('ASKABLE = ("auc", "curves")'), set(q.kinds())) == ["auc", "curves"]


@pytest.mark.parametrize("shell", SHELLS)
def test_no_shell_names_a_kind(shell: str) -> None:
    kinds = set(q.kinds())
    for name, tree in trees().items():
        if name.startswith(f"{shell}/") and name not in PRESETS and name not in OTHER_NAMES:
            assert named(tree, kinds) == [], name


def test_an_editor_knows_the_type_of_every_kind() -> None:
    """A family is loaded when it is used, so its names are written down for type checkers."""
    tool = questions_table()
    listed = tool.FAMILIES.search(tool.TYPED.read_text(encoding="utf-8")).group()
    assert listed == tool.families(), "run tools/questions_table.py --write"
    for question in q.registered():
        names = importlib.import_module(question.__module__).__all__
        assert question.__name__ in names, question.kind


def test_no_page_names_a_kind() -> None:
    for file in sorted((SOURCE / "server" / "pages").glob("*.html")):
        text = file.read_text(encoding="utf-8")
        marks = [
            f"{mark}{kind}{end}" for kind in q.kinds() for mark, end in (('"', '"'), ("=", "&"))
        ]
        found = [mark for mark in marks if mark in text]
        # The guess of an AUC is a field of `Guess`.
        assert found in ([], ['"auc"']), file.name


def test_every_cell_of_the_table_of_shells_has_a_reason_or_is_yes() -> None:
    tool = questions_table()
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.where() in page, "run tools/questions_table.py --write"
    for question in q.registered():
        reasons = tool.why_not(question)
        assert reasons["library"] is None
        assert all(reason is None or reason.endswith(".") for reason in reasons.values())
        assert all(f". {reason}\n" in page for reason in reasons.values() if reason)
