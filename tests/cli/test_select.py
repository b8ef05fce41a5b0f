"""`heldout select`, as somebody with a file of messages would use it."""

import json
import re
import shlex

import pytest

MESSAGES = [
    ("win a cash prize now", 1),
    ("claim your free prize", 1),
    ("see you at lunch", 0),
    ("are you home now", 0),
] * 100


@pytest.fixture
def messages(here):
    lines = ["message,label", *(f"{text},{label}" for text, label in MESSAGES)]
    (here / "messages.csv").write_text("\n".join(lines) + "\n")
    (here / "words.txt").write_text("cash\nprize\nLunch\nyou\nprize\n\n")
    flags = ["urgent,paid,late,label", *(["1,0,1,1", "0,0,1,0"] * 100)]
    (here / "flags.csv").write_text("\n".join(flags) + "\n")
    return here


WORDS = ("select", "messages.csv", "--text", "message", "--label", "label")


def test_every_example_of_the_help_runs(run, messages):
    page = re.sub(r"\\\s*\n\s*", "", run("select", "--help").out)
    lines = [re.sub(r"\s+", " ", each) for each in re.findall(r"^\s*(heldout .*\S)", page, re.M)]
    lines = [each for each in lines if "select " in each and "COMMAND" not in each][:4]
    ran = 0
    for line in lines:
        words = shlex.split(line)
        if words[1] != "select" or len(words) < 5:
            continue
        outcome = run(*words[1:])
        assert outcome.code == 0, (line, outcome.err)
        assert outcome.out
        ran += 1
    assert ran == 3


def test_declared_words_come_out_by_name_with_price_and_receipt(run, messages):
    words = ("--words", "words.txt", "--epsilon", "1000", "--k", "2", "--ledger", "l.sqlite")
    outcome = run(*WORDS, *words, "--budget", "1500")
    assert outcome.code == 0
    assert "2 of 4 features by total-count" in outcome.out
    assert "prize" in outcome.out
    assert "you" in outcome.out
    assert "left: epsilon 500" in outcome.out
    refused = run(*WORDS, *words)
    assert refused.code == 1
    assert "Nothing was charged" in refused.err


def test_json_holds_the_features_and_nothing_else_is_printed(run, messages):
    outcome = run(*WORDS, "--epsilon", "1000", "--k", "1", "--legend", "words.txt", "--json")
    said = json.loads(outcome.out)
    assert said["private"] is True
    assert said["loss"]["epsilon"] == "1000"
    assert said["remaining"]["epsilon"] == "0"
    assert list(said["meanings"].values()) in ([["prize"]], [["you"]], [])


def test_columns_are_features_by_their_names(run, messages):
    outcome = run("select", "flags.csv", "--columns", "urgent, paid,late", "--label", "label",
                  "--epsilon", "1000", "--k", "1", "--json")  # fmt: skip
    assert json.loads(outcome.out)["features"] == ["late"]


def test_what_is_not_private_is_refused_and_marked(run, messages):
    cut = (*WORDS, "--epsilon", "1", "--method", "noisy-cut", "--threshold", "50")
    refused = run(*cut)
    assert refused.code == 2
    assert "not" in refused.err
    marked = run(*cut, "--not-private", "--words", "words.txt")
    assert marked.code == 0
    assert marked.out.startswith("NOT PRIVATE")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--text", "message", "--columns", "message"),
        ("--text", "nope"),
        ("--columns", "nope"),
        ("--columns", "message", "--words", "words.txt"),
        ("--text", "message", "--words", "nope.txt"),
        ("--text", "message", "--legend", "nope.txt"),
        ("--text", "message", "--legend", "words.txt", "--words", "words.txt"),
        ("--text", "message", "--k", "0"),
        ("--text", "message", "--hash-size", "1"),
        ("--text", "message", "--budget", "3"),
        ("--text", "message", "--ledger", "new.sqlite"),
        ("--text", "message", "--positive", "spam"),
        ("--text", "message", "--method", "hope"),
    ],
)
def test_bad_words_are_a_line_or_two_on_standard_error_without_a_value(run, messages, words):
    outcome = run("select", "messages.csv", "--label", "label", "--epsilon", "1", *words)
    assert outcome.code == 2
    assert outcome.out == ""
    assert len(outcome.err.strip().splitlines()) <= 2
    assert "cash" not in outcome.err
