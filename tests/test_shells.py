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
PRESETS = {f"cli/{name}.py" for name in ("evaluate", "presets")} | {"survival.py"}
OTHER_NAMES = {
    "__init__.py": "a public name of the package",
    "audit/attacks.py": "metrics that others publish without noise",
    "audit/subjects.py": "sensitivities of noise laws",
    "audit/samplers.py": "sensitivities of noise laws",
    "intervals/areas.py": "metrics of a ranking, by their variance",
    "kernel/ranking/concordance.py": "a metric of a ranking",
    "kernel/ranking/statistic.py": "metrics of a ranking",
    "kernel/ranking/tuned.py": "metrics of a ranking",
    "planning.py": "the metric that a plan is for",
    "pooling/curves.py": "a field of a release's JSON",
    "precision_recall/__init__.py": "a public function",
    "precision_recall/estimators.py": "an estimator of an area, and a field of its JSON",
}
"""Files that use such a word for something else."""
OTHER_FAMILIES = {
    "boards.py": "measures that a board is judged by",
    "classes.py": "the kind that it stands for in a report of several classes",
    "curves": "the kinds beside it in a report",
    "linear": "a function in a claim",
    "prediction_errors.py": "a measure of two models",
    "ranking": "measures of two models",
    "regression": "a reading of a plot",
    "report": "the sections that know of ties",
    "session.py": "the measure of a comparison",
    "twin.py": "its field for a separability",
}
"""Families that use a word of another one, and for what."""
ANY_FREE = (
    "kernel",
    "cli",
    "pooling",
    "precision_recall",
    "client",
    "one_off",
    "planning",
    "board",
)
"""Rooms in which no function answers `Any`."""
MOST_ANY = 60
"""How many functions may in all: at the edges of libraries without types."""


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


def test_a_kind_is_named_in_its_own_family_alone() -> None:
    kinds, away = set(q.kinds()), {"cli/ask.py", "client.py", "server/asking.py", "data/table.py"}
    files = {name for name in trees() if not name.startswith("questions/")} - PRESETS
    assert away < files
    assert {name for name in files if named(trees()[name], kinds)} == set(OTHER_NAMES)


def test_a_family_names_another_ones_kind_for_a_reason_only() -> None:
    own: dict[str, set[str]] = {}
    for question in q.registered():
        own.setdefault(family(question.__module__), set()).add(question.kind)
    found = set()
    for name, tree in trees().items():
        if name.startswith("questions/"):
            place = family("heldout." + name.replace("/", "."))
            if named(tree, set(q.kinds()) - own.get(place, set())):
                found.add(place)
    assert {place.removeprefix("questions.") for place in found} == {
        name.removesuffix(".py") for name in OTHER_FAMILIES
    }


def family(module: str) -> str:
    """Return the folder or the file of `questions` that a module is in."""
    return ".".join(module.split(".")[1:3])


@pytest.mark.parametrize("name", ["Log loss", "log_loss", "LogLoss", "log-", ""])
def test_a_kind_has_one_spelling(name: str) -> None:
    with pytest.raises(TypeError, match="small words"):
        type("Misspelt", (q.Question,), {"kind": name})


def answering_any(tree: ast.AST) -> list[str]:
    """Functions that say of their answer only that it is something."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.returns is not None
        and "Any" in ast.unparse(node.returns).split("[")[0].split(".")
    ]


def test_an_answer_without_a_type_would_be_noticed() -> None:
    source = "def f() -> Any: ...\nasync def g() -> typing.Any: ...\ndef h() -> list[Any]: ..."
    assert answering_any(ast.parse(source)) == ["f", "g"]


def test_only_edges_answer_any() -> None:
    found = {name: answering_any(tree) for name, tree in trees().items()}
    assert not [name for name in found if found[name] and name.startswith(ANY_FREE)]
    assert sum(map(len, found.values())) <= MOST_ANY


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
