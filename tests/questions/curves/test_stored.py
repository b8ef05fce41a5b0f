"""A stored curve is shown as it was printed, whatever later versions read off the same counts."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.errors import ArgumentError
from heldout.questions.answers import Answered
from heldout.questions.curves.posterior import Posterior

GOLDEN = Path(__file__).parents[2] / "golden" / "answers" / "curves-read.json"


def stored() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(GOLDEN.read_text())
    return content


def refuse(*_: object) -> None:
    raise AssertionError("rows were drawn")


def test_what_was_printed_is_shown_without_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Posterior, "_walk", refuse)
    content = stored()
    [release] = Answered.from_dict(content["answer"]).releases
    shown, printed = json.loads(json.dumps(release.as_dict())), content["release"]
    # What holds with nothing assumed is worked out anew, the same but for the last bits.
    for name, ends in shown.pop("nothing_assumed").items():
        before = printed["nothing_assumed"][name]
        assert all(ends[kind] == pytest.approx(before[kind], abs=1e-9) for kind in before)
    assert shown == {name: part for name, part in printed.items() if name != "nothing_assumed"}
    assert release.stored_readings() == content["answer"]["readings"][0]
    assert release.threshold_for(recall=0.9) > 0
    assert str(release.auc)
    with pytest.raises(AssertionError, match="rows were drawn"):
        release.auc.interval(0.8)


def test_at_other_levels_a_stored_curve_is_read_anew() -> None:
    [release] = Answered.from_dict(stored()["answer"]).releases
    for measure in release.measures.values():
        low, high = measure.interval(0.8)
        assert low <= measure.value <= high
    assert (release.roc.band(0.8).low <= release.roc.tpr).all()
    assert release.nothing_assumed.auc.value != release.auc.value


def test_groups_and_reports_carry_what_was_read() -> None:
    rows = {"y": [1, 0, 0, 1] * 100, "p": [0.8, 0.3, 0.4, 0.6] * 100, "g": ["a", "b"] * 200}
    data = ho.Dataset(rows, label="y", score="p", groups={"g": ["a", "b"]})
    asked = (
        q.By(q.Curves(epsilon=6), "g"),
        q.Report(epsilon=4, sections=["auc", "confusion", "curves"]),
    )
    for question in asked:
        answered = ho.Session(data, budget=ho.Budget(epsilon=9)).answer(question)
        content = json.loads(json.dumps(answered.as_dict()))
        again = Answered.from_dict(content)
        now, then = (each.releases[0].as_dict() for each in (again, answered))
        assert json.dumps(now) == json.dumps(then)


def change(where: tuple[Any, ...], value: object) -> Callable[[dict[str, Any]], None]:
    def apply(readings: dict[str, Any]) -> None:
        inner: Any = readings
        for name in where[:-1]:
            inner = inner[name]
        inner[where[-1]] = value

    return apply


@pytest.mark.parametrize(
    "wrong",
    [
        change(("level",), 0.9),
        change(("more",), 1),
        change(("curve", "fpr"), [0.0, 1.0]),
        change(("curve", "tpr", 3), 7.0),
        change(("curve", "positives"), "many"),
        change(("measures", "KS", "interval"), [0.9, 0.1]),
        change(("measures", "KS", "value"), float("nan")),
        change(("measures", "another"), {}),
        change(("bands", "roc", "low"), None),
    ],
)
def test_readings_of_another_form_are_refused(wrong: Callable[[dict[str, Any]], None]) -> None:
    answer = copy.deepcopy(stored()["answer"])
    wrong(answer["readings"][0])
    with pytest.raises(ArgumentError, match="cannot be read"):
        Answered.from_dict(answer)


def test_an_answer_that_the_noisy_numbers_decide_carries_none() -> None:
    data = ho.Dataset({"y": [1, 0] * 90, "p": [0.8, 0.3] * 90}, label="y", score="p")
    session = ho.Session(data, budget=ho.Budget(epsilon=9))
    answered = session.answer(q.Confusion(epsilon=1), q.Curves(epsilon=2, method="laplace"))
    assert "readings" not in answered.as_dict()


def test_readings_hang_on_the_release_alone() -> None:
    """The same at each call; other processors differ in last bits, which stored answers hide."""
    answer = stored()["answer"]
    del answer["readings"]
    fresh = [Answered.from_dict(answer).releases[0].stored_readings() for _ in range(2)]
    assert fresh[0] == fresh[1]
    assert np.isfinite(fresh[0]["measures"]["KS"]["value"])
