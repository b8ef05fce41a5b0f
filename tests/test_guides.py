"""The guides are followed word for word in a copy of the repository, and are what they say."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPIED = ["src", "papers", "tests", "proofs", "tools", "docs", "pyproject.toml", "mkdocs.yml",
          "README.md", "CHANGELOG.md", "CONTRIBUTING.md"]  # fmt: skip
STEP = re.compile(r"(?:^<!-- ([^\n]+?) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LISTED = re.compile(r"^- `([^`]+)`", re.MULTILINE)
PAGE = (ROOT / "docs" / "adding-a-question.md").read_text(encoding="utf-8")
GUIDES = dict(
    re.findall(r"^## (Adding [^\n]+)\n(.*?)(?=^## Adding |\Z)", PAGE, re.MULTILINE | re.DOTALL)
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    unwanted = shutil.ignore_patterns("__pycache__", ".*_cache", "*.pyc")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=unwanted)
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for name in COPIED for path in [folder / name, *(folder / name).rglob("*")]]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files
        if path.is_file() and not {"__pycache__", ".pytest_cache"} & set(path.parts)
    }


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=folder, env=settings, capture_output=True, text=True, check=False
    )


def write(word: str, text: str, folder: Path) -> None:
    """`file PATH`, `end of PATH`, or `in PATH, after: LINE`."""
    where, _, line = word.partition(", after: ")
    kind, _, name = where.rpartition(" ")
    path = folder / name
    if kind == "file":
        assert not path.exists(), f"{name} is there already"
        path.write_text(text, encoding="utf-8")
        return
    before = path.read_text(encoding="utf-8")
    if kind == "end of":
        path.write_text(before + text, encoding="utf-8")
        return
    assert kind == "in", f"what is {word!r}?"
    found = re.findall(rf"^ *{re.escape(line)}$\n", before, re.MULTILINE)
    assert len(found) == 1, f"{name} has {len(found)} lines {line!r}"
    path.write_text(before.replace(found[0], found[0] + text), encoding="utf-8")


def follow(guide: str, folder: Path) -> list[subprocess.CompletedProcess[str]]:
    """Write what the guide writes, in its order, then run what it runs."""
    steps = STEP.findall(guide)
    for word, _, text in steps:
        if word and word != "run":
            write(word, text, folder)
    commands = [
        [sys.executable, *shlex.split(line)[1:]]
        for word, _, text in steps
        if word == "run"
        for line in text.splitlines()
    ]
    shown = "".join(text for word, language, text in steps if not word and language == "python")
    return [run(command, folder) for command in [*commands, [sys.executable, "-c", shown]]]


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES.values(), ids=GUIDES)
def test_a_guide_can_be_followed_and_touches_the_files_that_it_lists(
    guide: str, copy: Path
) -> None:
    before = contents(copy)
    for done in follow(guide, copy):
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "no tests ran" not in done.stdout
    after = contents(copy)
    touched = {name for name in before | after if before.get(name) != after.get(name)}
    listed = guide.partition("### Files touched")[2].partition("\n### ")[0]
    assert touched == set(LISTED.findall(listed))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("return protection.rows_moved", "return 1", "the claim is too small"),
        ("return protection.rows_moved", "return 9", "the claim is too large"),
        ("return [cls(limit=0.5)]", "return []", "gives no examples() and names no test"),
    ],
)
def test_a_statistic_that_breaks_the_guides_rules_fails_the_suite(
    right: str, wrong: str, why: str, copy: Path
) -> None:
    file = "src/heldout/questions/confident_negatives.py"
    text = next(text for word, _, text in STEP.findall(PAGE) if word.endswith(file))
    assert right in text
    (copy / file).write_text(text.replace(right, wrong), encoding="utf-8")
    suite = ["tests/conformance/test_sensitivity.py", "-k", "RowsBelow"]
    done = run([sys.executable, "-m", "pytest", "-q", *suite], copy)
    assert done.returncode == 1
    assert why in done.stdout


def test_every_guide_is_followed() -> None:
    assert list(GUIDES) == ["Adding a question", "Adding an engine"]
    assert all("### Files touched" in guide for guide in GUIDES.values())


def test_the_guides_question_is_the_one_that_the_toy_package_adds() -> None:
    source = next(text for word, _, text in STEP.findall(PAGE) if "/questions/" in word)
    assert source == (ROOT / "tests" / "toy_questions" / "toy_heldout.py").read_text("utf-8")
