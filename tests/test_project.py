"""The project as a newcomer meets it: versions agree, forms parse, names need no decoding."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import heldout

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
YAML = sorted(
    [*ROOT.glob(".github/**/*.yml"), ROOT / "conda" / "recipe.yaml", ROOT / "CITATION.cff"]
)


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    assert heldout.__version__ == version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == version
    recipe = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    assert f"version: {version}\n" in recipe
    minor = ".".join(version.split(".")[:2])
    assert f"| {minor} | yes |" in (ROOT / "SECURITY.md").read_text("utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_each_release_of_the_changelog_fits_one_screen_and_begins_with_privacy() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for entry in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        lines = entry.strip().splitlines()
        headings = [line for line in lines if line.startswith("### ")]
        assert headings[0] == "### Privacy", lines[0]
        assert len(lines) <= 60, lines[0]
        assert max(map(len, lines)) <= 140, lines[0]


def test_the_recipe_needs_what_the_package_needs() -> None:
    named = {"duckdb": "python-duckdb"}
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
    listed = {line.replace(" ", "") for line in recipe["requirements"]["run"]} - {"python>=3.11"}
    wanted = set()
    for line in PROJECT["dependencies"]:
        name = re.match(r"[\w-]+", line)
        assert name is not None
        wanted.add(named.get(name[0], name[0]) + line[name.end() :].replace(" ", ""))
    assert listed == wanted


def test_the_docs_say_what_every_dependency_is_for() -> None:
    names = {re.split(r"[<>=\[]", one)[0] for one in PROJECT["dependencies"]}
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    table = page.partition("| package | MB |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([\w, -]+) \| \d+ \|", table, re.MULTILINE)
    assert {name for row in rows for name in row.split(", ")} == names
    extras = page.partition("Extras add to it:")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", extras)) == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_a_form_or_workflow_is_yaml(path: Path) -> None:
    content = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(content, dict)
    if "ISSUE_TEMPLATE" in path.parts and path.name != "config.yml":
        assert {"name", "description", "body"} <= set(content)


def test_the_release_is_published_without_a_stored_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    assert "secrets." not in text
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert any("attest" in str(step.get("uses")) for step in workflow["jobs"]["build"]["steps"])


FORBIDDEN = {"told", "held", "found", "kept", "each", "judged", "opened", "said"}
FIELDS = {
    ("server/boards.py", "each"),
    ("server/boards.py", "judged"),
    ("server/web_boards.py", "each"),
}
"""Names of JSON fields that clients read: they stay as they are."""


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a file gives: definitions, arguments, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name


def _docstrings(tree: ast.AST) -> Iterator[str]:
    documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
    for node in ast.walk(tree):
        if isinstance(node, documented):
            yield ast.get_docstring(node) or ""


def _vague(source: str) -> list[str]:
    """List forbidden names, and first words of docstrings that are no verb."""
    tree = ast.parse(source)
    starts = (re.match(r"(What|How|Whether)\b.*", text) for text in _docstrings(tree))
    names = [name for name in _names(tree) if name.strip("_") in FORBIDDEN]
    return names + [start[0] for start in starts if start is not None]


def test_names_and_docstrings_need_no_decoding() -> None:
    sources = ROOT / "src" / "heldout"
    vague = []
    for path in sorted(sources.rglob("*.py")):
        place = path.relative_to(sources).as_posix()
        words = _vague(path.read_text("utf-8"))
        vague += [(place, word) for word in words if (place, word) not in FIELDS]
    assert not vague


@pytest.mark.parametrize(
    "source",
    [
        "for each in rows: pass",
        "def judged(): pass",
        "class C:\n    def f(self, found): self._kept = found",
        "[said for said in words]",
        "import numpy as held",
        "try: pass\nexcept E as told: pass",
        "def f():\n    'Whether it is.'",
        "'What this file is.'",
    ],
)
def test_the_search_for_vague_names_finds_them(source: str) -> None:
    assert _vague(source)


TABLES = sorted((ROOT / "src" / "heldout").rglob("tuned.py"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_a_tuned_constant_says_since_when_it_is_so(path: Path) -> None:
    body = ast.parse(path.read_text("utf-8")).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" not in ast.unparse(node):
            assert isinstance(after, ast.Expr), ast.unparse(node)
            assert isinstance(after.value, ast.Constant), ast.unparse(node)
            assert re.search(r"20\d\d-\d\d-\d\d", str(after.value.value)), ast.unparse(node)
