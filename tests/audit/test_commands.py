"""`heldout audit`, and the page of the long audit."""

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heldout import errors
from heldout.audit.auditor import LongAudit
from heldout.audit.events import AuditResult, Finding
from heldout.audit.samplers import Check
from heldout.cli import main
from heldout.cli.audit import _line_by_line
from heldout.kernel.loss import Loss

ROOT = Path(__file__).resolve().parents[2]


def test_the_list_names_every_subject(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--list", "--json"]) == 0
    kinds = {each["name"]: each["kind"] for each in json.loads(capfd.readouterr().out)}
    assert kinds["auc"] == "release"
    assert kinds["private-threshold-testing"] == "planted violator"
    assert main(["audit", "--list"]) == 0


def test_an_audit_prints_a_bound_and_a_violator_is_not_an_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = ["--samples", "2000", "--workers", "1"]
    assert main(["audit", "half-the-scale", "discrete-laplace", *words, "--json"]) == 0
    planted, own = json.loads(capfd.readouterr().out)
    assert planted["violated"]
    assert not own["violated"]
    assert own["confidence"] == pytest.approx(0.9995)
    assert main(["audit", "half-the-scale", *words]) == 0
    assert "caught" in capfd.readouterr().out


@pytest.mark.parametrize(
    "words", [[], ["horoscope"], ["auc", "--samples", "3"], ["auc", "--door", "back"]]
)
def test_what_is_wrong_is_one_line(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *words, "--workers", "1"]) == 2
    assert capfd.readouterr().err.startswith("heldout: ")


def result(name: str, kind: str, epsilon: float) -> AuditResult:
    finding = Finding("a pair", "first", "number 1 >= 2", 9, 1, 100, epsilon)
    return AuditResult(name, kind, Loss.pure(1), [finding], 200, 0.999, "replay", 1.0)


def page(own: float, planted: float, passed: bool) -> LongAudit:
    results = [result("auc", "release", own), result("seeded", "planted violator", planted)]
    checks = [Check("lattice", passed, "so many")]
    later = {"later": "it is not there yet"}
    return LongAudit(results, results[:1], later, checks, 0.999, "public", 60.0)


def test_the_page_says_what_was_found_and_what_was_missed() -> None:
    good = page(0.9, 5.0, True)
    assert good.bad == []
    text = good.markdown()
    assert "0 of 1 releases and mechanisms flagged; 1 of 1 planted violators caught" in text
    assert "later: it is not there yet." in text
    assert "| auc | epsilon 1 | 0.900 | 90% | a pair |" in text
    assert "asked of a session: booked, read and drawn anew" in text
    assert page(1.1, 0.5, False).bad == ["auc", "seeded", "auc", "lattice"]
    assert "**missed**" in page(0.9, 0.5, True).markdown()


def test_a_low_bound_comes_with_a_word() -> None:
    finding = Finding("a pair", "first", "number 1 >= 2", 9, 1, 100, 0.2)
    low = AuditResult("auc-cauchy", "release", Loss.pure(1), [finding], 200, 0.999, "public", 1.0)
    text = LongAudit([low], [], {}, [], 0.999, "public", 60.0).markdown()
    assert "| auc-cauchy | epsilon 1 | 0.200 | 20% |" in text
    assert "| 200 | tails wider than privacy needs |" in text


def test_a_long_audit_keeps_to_its_time_and_gives_the_slow_fewer_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import heldout.audit.auditor
    from heldout.audit.auditor import long_audit
    from heldout.audit.subjects import Pair, Subject, find, register

    # A clock that answers alone move on: a busy machine must not decide what they cost.
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def subject(name: str, kind: str, takes: float) -> Subject:
        def draw(pair, side, epsilon, count, door):
            clock[0] += takes * count
            return side + np.random.default_rng().laplace(size=count).round()

        cases = (Pair("a pair", 0, 1), Pair("another", 0, 1))
        return register(Subject(name, kind, cases, Loss.pure, draw))

    def broken(pair, side, epsilon, count, door):
        if count > 1100:
            raise ValueError("a secret")
        return np.zeros(count)

    case = (Pair("a pair", 0, 1),)
    there = [
        register(Subject("test-broken", "mechanism", case, Loss.pure, broken)),
        subject("test-quick", "release", 0.0),
        subject("test-slow", "release", 0.0003),
        find("half-the-scale"),
    ]
    monkeypatch.setattr(heldout.audit.auditor, "present", lambda: (there, {"later": "why"}))
    monkeypatch.setattr(heldout.audit.auditor, "samplers", list)
    monkeypatch.setattr(heldout.audit.auditor, "check_streams", lambda: Check("streams", True, ""))
    done = long_audit(samples=4000, minutes=0.08, lattice=2000, workers=1)
    assert clock[0] < 60 * 0.08
    quick, slow, planted = done.results
    assert quick.samples == 4000
    assert 400 <= slow.samples < 4000
    assert planted.violated
    assert done.bad == ["test-broken"]
    assert quick.confidence == pytest.approx(1 - 0.001 / 3)
    assert "later: why." in done.markdown()
    assert "test-broken: it ended with ValueError." in done.markdown()
    with pytest.raises(errors.ArgumentError, match="minutes must be more than 0"):
        long_audit(samples=400, minutes=0)


def test_a_broken_promise_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import heldout.audit.auditor

    monkeypatch.setattr(heldout.audit.auditor, "long_audit", lambda **_: page(1.1, 5.0, True))
    assert main(["audit", "--all"]) == 2
    assert "Less private than claimed" in capfd.readouterr().err


def test_the_published_audit_found_nothing_against_us_and_missed_nothing() -> None:
    text = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    found = re.search(r"\*\*0 of (\d+) .* flagged; (\d+) of (\d+) planted .*; (\d+) of (\d+)", text)
    assert found, "the first lines of docs/audit.md give the verdict"
    _, caught, planted, passed, checks = (int(each) for each in found.groups())
    assert caught == planted
    assert passed == checks


def test_a_named_kind_is_replayed_on_few_pairs_and_all_of_them_on_many(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from heldout.audit import replay
    from heldout.audit.replay_page import Cell, Replay

    asked = []

    def replayed(**options: Any) -> Replay:
        asked.append(options["pairs"])
        return Replay(cells={("confusion", "replace-one", "none", "list"): Cell(pairs=10, worst=1)})

    monkeypatch.setattr(replay, "replay_everywhere", replayed)
    for words in (["confusion"], [], ["confusion", "--pairs", "3"]):
        assert main(["audit", *words, "--replay"]) == 0
    assert asked == [10, 200, 3]
    assert "10 pairs: nothing but un-noised numbers differed" in capfd.readouterr().out


def test_a_long_audit_says_how_far_it_is_where_no_bar_can_move(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 1.0, 11.0, 11.0, 12.0])
    monkeypatch.setattr("heldout.cli.audit.time.monotonic", lambda: next(clock))
    say = _line_by_line()
    for done in (1, 2, 3):
        say("auc", done, 66)
    assert capsys.readouterr().err == "heldout: 2 of 66 parts done (auc).\n"
