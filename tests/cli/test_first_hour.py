"""What newcomers stumble over on the command line: near misses, logits, percentages, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import heldout as ho
from heldout.errors import MissingColumn

EVALUATE = ("evaluate", "test.parquet", "--label", "readmitted", "--score", "risk_b")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evaluate test.parquet --lable readmitted --epsilon 1", "Did you mean --label?"),
        (
            "evaluate test.parquet --label readmitted --scoer risk_b --epsilon 1",
            "No option --scoer. Did you mean --score?",
        ),
        ("plan --rows 100 --epsilno 1", "Did you mean --epsilon?"),
        ("ledger show ledger.sqlite --lats 3", "Did you mean --last?"),
        ("evaluate test.parquet --qqqqqqq 1 --epsilon 1", "No option --qqqqqqq. Try"),
        ("ask test.parquet linear-regression --terms age", "No option --terms. Try"),
        ("evaluat test.parquet", 'Did you mean "evaluate"?'),
        ("ledger shwo", 'Did you mean "show"?'),
    ],
)
def test_a_near_miss_is_suggested(run, words, said):
    outcome = run(*words.split())
    assert outcome.code == 2
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_logits_are_told_of_the_map_and_percentages_of_the_declared_range(run, here):
    scores = np.linspace(0.01, 0.99, 600)
    rows = pd.DataFrame({"y": [0, 1, 1] * 200, "logit": np.log(scores / (1 - scores)),
                         "percent": 100 * scores})  # fmt: skip
    rows.to_parquet(here / "odd.parquet", index=False)
    words = ("evaluate", "odd.parquet", "--label", "y", "--epsilon", "2", "--sections", "confusion",
             "brier")  # fmt: skip
    for score in ("logit", "percent"):
        refused = run(*words, "--score", score)
        assert refused.code == 2
        assert "--score-map 0 1" in refused.err
        assert "(0, 100) for percentages" in refused.err
    assert run(*words, "--score", "logit", "--score-map", "0", "1").code == 0
    told = run(*words, "--score", "percent", "--score-range", "0", "100")
    assert "these are percentages: divide them by 100" in " ".join(told.out.split())


def test_the_index_that_pandas_writes_is_no_column_of_the_data(here):
    rows = pd.DataFrame({"y": [0, 1] * 300, "p": np.linspace(0, 1, 600)}).sample(frac=1)
    rows.to_parquet(here / "indexed.parquet")
    with pytest.raises(MissingColumn, match="is the index that pandas wrote") as missing:
        ho.Dataset(here / "indexed.parquet", label="y", score="q")
    assert "Columns: 'y', 'p'." in str(missing.value)
    ledger = ho.Ledger(here / "ledger.sqlite")
    first = ho.Dataset(here / "indexed.parquet", label="y", score="p")
    ho.Session(first, budget=ho.Budget(3), ledger=ledger).confusion(epsilon=1)
    frame = ho.Session(ho.Dataset(rows, label="y", score="p", name="the frame"), ledger=ledger)
    assert str(frame.remaining) == "epsilon 2", "the same rows have one budget"
    keyed = ho.Dataset(here / "indexed.parquet", label="y", score="p", row_key="__index_level_0__")
    assert str(ho.Session(keyed, ledger=ledger).remaining) == "epsilon 2"


def test_a_private_number_of_rows_may_be_guessed(run):
    words = (*EVALUATE, "--epsilon", "1", "--neighbours", "add-remove", "--sections", "confusion")
    assert "--expected-rows N" in run(*words).out
    assert "--expected-rows" not in run(*words, "--expected-rows", "2000").out
    drowned = run(*words[:6], "--epsilon", "1/500", *words[8:], "--expected-rows", "20")
    assert drowned.code == 2
    assert "Nothing was charged" in drowned.err


def test_completion_is_installed_for_a_shell(here):
    settings = {**os.environ, "HOME": str(here), "SHELL": "/bin/bash"}
    words = [sys.executable, "-m", "heldout", "--install-completion"]
    done = subprocess.run(words, env=settings, capture_output=True, text=True, check=True)
    assert "installed" in done.stdout
    script = next(here.rglob("completions/heldout")).read_text()
    for word in ("evaluate", "--score-range", "doctor", "register"):
        assert word in script


def test_the_doctor_looks_at_everything(run, here):
    assert run(*EVALUATE, "--epsilon", "1", "--sections", "confusion", "--ledger", "l.sqlite",
               "--budget", "3").code == 0  # fmt: skip
    outcome = run("doctor", "--ledger", "l.sqlite", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert {"python", "libraries", "exact noise", "sandbox for models", "Spark"} <= set(found)
    assert found["ledger"]["state"] == found["ledger key"]["state"] == "works"
    (here / "l.sqlite.key").unlink()
    lost = run("doctor", "--ledger", "l.sqlite")
    assert lost.code == 2
    assert "WRONG" in lost.out
    assert lost.err == "heldout: These checks failed: ledger key.\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["audit", "--all", "--samples", "50000", "--workers", "2"],
        ["separability", "big.csv", "big.csv", "--shuffles", "200"],
    ],
)
def test_ctrl_c_ends_a_command_with_one_line_and_nothing_goes_on(here, words):
    if words[0] == "separability":
        wide = pd.DataFrame(np.random.default_rng(1).random((4000, 30)))
        wide.add_prefix("c").to_csv("big.csv", index=False)
    started = subprocess.Popen(
        [sys.executable, "-m", "heldout", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while _processor(started.pid) < 2.5:  # it is under way, however busy the machine is
        assert started.poll() is None, "it was to be long"
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does: all of the group
    begun = time.monotonic()
    said = started.communicate(timeout=300)[1]
    assert time.monotonic() - begun < 60  # what it was at takes minutes
    assert started.returncode in (130, -signal.SIGINT), said  # a shell calls both 130
    assert said.splitlines() == ["heldout: interrupted. What was booked stays booked."]
    assert _living(started.pid) == []


def _of(group: int) -> dict[str, list[str]]:
    """What the system says of each process of the group."""
    every = {place.parent.name: _stat(place) for place in Path("/proc").glob("[0-9]*/stat")}
    return {name: words for name, words in every.items() if words and int(words[2]) == group}


def _processor(group: int) -> float:
    """The processor seconds of the group's processes and of those that they have waited for."""
    ticks = sum(int(each) for words in _of(group).values() for each in words[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _living(group: int) -> list[str]:
    """Processes of the group that are not dead, in a minute at most."""
    for _ in range(600):
        living = [name for name, words in _of(group).items() if words[0] not in "ZX"]
        if not living:
            return []
        time.sleep(0.1)
    return living


def _stat(place: Path) -> list[str]:
    try:
        return place.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def test_an_answer_that_is_a_file_is_not_paid_for_without_a_place(run, here):
    words = ("twin", "test.parquet", "--values", "risk_a=0,1", "--values", "risk_b=0,1",
             "--epsilon", "1", "--ledger", "twin.sqlite", "--budget", "1")  # fmt: skip
    refused = run(*words)
    assert refused.code == 2
    assert "--out must be given: the answer is a .csv file" in refused.err
    assert not (here / "twin.sqlite").exists(), "nothing is booked"
    assert run(*words, "--out", "twin.csv").code == 0
    assert (here / "twin.csv").read_text().startswith("risk_a,risk_b")


def test_a_budget_above_that_of_the_people_shows_what_is_left(run):
    place = ("people.sqlite", "clinic")
    unit = ("--unit", "patient_id", "--people", "patients")
    assert run("ledger", "register", *place, "--budget", "2", *unit).code == 0
    for words in (("raise", *place, "--budget", "3"), ("grant", *place, "dana", "--budget", "5")):
        said = " ".join(run("ledger", *words).out.split())
        assert f"budget epsilon {words[-1]}, spent epsilon 0, left epsilon 2 with" in said
    assert "left" not in run("ledger", "revoke", *place, "dana").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "hospital", "--rows", "nosuch"), "There is no folder 'nosuch'. Check --rows."),
        (("serve", "hospital", "--port", "99999"), "127.0.0.1:99999 (no such port)"),
        (("worker", "nosuch"), "There is no folder 'nosuch'. Start the server"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_work_says_so_at_once_and_makes_nothing(run, here, words, said):
    outcome = run(*words)
    assert outcome.code == 2
    assert said in outcome.err
    assert not any((here / words[1]).glob("*.sqlite"))
