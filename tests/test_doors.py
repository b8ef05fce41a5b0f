"""A message speaks the language of the door at which its reader stands."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import heldout
from heldout.doors import as_json, as_typed

SOURCE = Path(heldout.__file__).parent
TYPED = ("cli", "server/run.py", "server/backups.py")
"""Where messages are raised for the command line alone."""
OPTION = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"\b(heldout|inspect log|make audit)\b")
"""What names a whole command may name its options: it can be typed wherever the reader stands."""


def texts_of(path: Path) -> Iterator[str]:
    """Yield each text of a module but docstrings, with gaps for what is filled in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    passed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed |= {id(part) for part in node.values}
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values
            )
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in passed:
            yield str(node.value)


def test_only_the_command_line_names_options() -> None:
    """So no refusal of Python, of the API or of a page does."""
    wrong = [
        f"{path.relative_to(SOURCE)}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not str(path.relative_to(SOURCE)).startswith(TYPED)
        for text in texts_of(path)
        if " " in text and OPTION.search(text) and not COMMAND.search(text)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "json", "typed"),
    [
        ("Pass new=True.", 'Pass "new": true.', "Pass --new."),
        ("Give people='a b'.", 'Give "people": "a b".', "Give --people 'a b'."),
        ("Try groups={'sex': [...]}.", 'Try "groups": {"sex": ["..."]}.', "Try --groups sex=...."),
        ("Raise budget=, or ask.", 'Raise "budget", or ask.', "Raise --budget, or ask."),
        ("Use out_of_range='clip'.", 'Use "out_of_range": "clip".', "Use --clip."),
        ("Pass Budget(epsilon=3).", "Pass Budget(epsilon=3).", "Pass Budget(epsilon=3)."),
        (
            "such as age=0,120, or a=b:1.",
            "such as age=0,120, or a=b:1.",
            "such as age=0,120, or a=b:1.",
        ),
        ("must be like x, got 'a=1'.", "must be like x, got 'a=1'.", "must be like x, got 'a=1'."),
        ("No. Add groups={'a': [1]}.", 'No. Add "groups": {"a": [1]}.', "No. Add --groups a=1."),
        ("Wrong. Pass nowhere=1. Ask.", 'Wrong. Pass "nowhere": 1. Ask.', "Wrong. Ask."),
    ],
)
def test_an_argument_is_written_as_its_door_writes_it(text: str, json: str, typed: str) -> None:
    options = {"--new", "--people", "--groups", "--budget", "--clip"}
    assert as_json(text) == json
    assert as_typed(text, options, {"out_of_range": "--clip "}) == typed


STRANGE = ("{[]: 1}", "{(1, 2): 3}", "{1j: 1}", "[1e999]", "[" + "-" * 4000 + "1]", "{b'x': 1}")
"""What stands in a name that somebody chose, and is no value of an argument."""


@pytest.mark.parametrize("value", STRANGE)
def test_a_name_that_looks_like_an_argument_is_no_failure(value: str) -> None:
    text = f"No column 'x a={value} b'."
    assert as_json(text) == text
    assert as_typed(text, {"--a"}, {}).startswith("No column 'x ")


@pytest.mark.parametrize("part", ["w", "a=[ ", "a(", "a=1 b() "])
def test_a_long_name_is_not_read_for_long(part: str) -> None:
    text = part * (100_000 // len(part))
    assert as_json(text) == text


def test_an_option_is_one_word_of_the_shell_whatever_a_column_is_called() -> None:
    text = "Declare values={'$(rm x)': {'no; ls': 0, 'yes': 1}} or groups={'a b': ['`ls`', 2]}."
    typed = as_typed(text, {"--values", "--groups"}, {})
    _, option, values, _, other, *groups = shlex.split(typed.removesuffix("."))
    assert (option, values) == ("--values", "$(rm x)=no; ls:0,yes:1")
    assert (other, groups) == ("--groups", ["a b=`ls`,2"])
    assert "'$(rm x)'=" in typed
    assert "'`ls`'" in typed
