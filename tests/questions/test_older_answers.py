"""Answers that version 0.1 stored and published are read by today's code."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import heldout as ho
from heldout import questions as q
from heldout.kernel.ranking.statistic import NEGATIVES_FIRST
from heldout.questions.answers import Answered
from heldout.questions.registry import kind_of, section_name

FOLDER = Path(__file__).parents[1] / "golden" / "answers"
OLDER = sorted(path.stem for path in FOLDER.glob("*.json"))


def older(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return content


def as_published(content: Any) -> Any:
    """What 0.1 published: no kinds, and the old version of a report."""
    later = ("kind", "finding", "lower_bound", "sees")
    content = {name: value for name, value in content.items() if name not in later}
    if "measures" in content:  # B minus A was called "less" then
        content["measures"] = {
            name.replace(" minus ", " less "): value for name, value in content["measures"].items()
        }
    if "releases" in content:
        del content["schema"], content["heldout"], content["left_out"]
        del content["ties"]  # read off the curves
        content["releases"] = {
            section_name(name): as_published(each) for name, each in content["releases"].items()
        }
        content["shares"] = {section_name(name): x for name, x in content["shares"].items()}
    return content


def alike(now: Any, before: Any, *, anew: bool = False) -> bool:
    """All but floats is the same, and floats nearly: processors add them in their own order.

    Curves of answers without readings are read anew, so that the released counts are the same and
    what is read off them lies within its interval.
    """
    if anew and isinstance(now, dict) and str(now.get("release")).startswith("curves"):
        return same_counts(now, before)
    scalar = isinstance(now, dict) and isinstance(now.get("noise_interval", [[]])[0], float)
    if scalar and "value" in now:
        return wider(now, before)
    if isinstance(now, dict):
        return now.keys() == before.keys() and all(alike(now[k], before[k], anew=anew) for k in now)
    if isinstance(now, list):
        return len(now) == len(before) and all(
            alike(one, other, anew=anew) for one, other in zip(now, before, strict=True)
        )
    if isinstance(now, float):
        return bool(now == pytest.approx(before, rel=1e-6, abs=3e-4))
    return bool(now == before)


def wider(now: dict[str, Any], before: dict[str, Any]) -> bool:
    """The same number; intervals may have become wider: areas are clamped before they are.

    Counts may be rounded to the other side: they add up to the rows now.
    """
    ends, counts = ("interval", "noise_interval"), before["value"] == round(before["value"])
    same = all(alike(now[name], before[name]) for name in before if name not in (*ends, "value"))
    same &= now["value"] == pytest.approx(before["value"], abs=1.0 if counts else 1e-5)
    return same and all(
        now[name][0] <= before[name][0] + 1e-5 and now[name][1] >= before[name][1] - 1e-5
        for name in ends
    )


def same_counts(now: dict[str, Any], before: dict[str, Any]) -> bool:
    # How it was drawn is said by the question, which draws otherwise now.
    read = {"value", "measures", "curves", "ties", "nothing_assumed", "mechanism"}
    drawn = [
        {name: part for name, part in each.items() if name not in read} for each in (now, before)
    ]
    for name, measure in before.get("measures", {}).items():
        low, high = now["measures"][name]["interval"]
        slack = (high - low) / 2  # of two readings of the same counts
        if not low - slack <= measure["value"] <= high + slack:
            return False
    names = {each for each in drawn[1] if each != "release"}
    return all(alike(drawn[0][name], drawn[1][name]) for name in names)


def test_an_answer_of_every_kind_is_here() -> None:
    asked = {each["question"] for name in OLDER for each in older(name)["answer"]["questions"]}
    assert asked >= {question.kind for question in q.registered()}


@pytest.mark.parametrize("name", OLDER)
def test_an_older_answer_gives_the_same_release(name: str) -> None:
    content = older(name)
    answered = Answered.from_dict(content["answer"])
    now = json.loads(json.dumps(answered.releases[0].as_dict()))
    assert now["kind"] == answered.questions[0].kind
    # Since answers carry what was read, curves are shown as they were printed.
    anew = "readings" not in content["answer"]
    assert alike(as_published(now), as_published(content["release"]), anew=anew)


BEFORE_KINDS = [name for name in OLDER if "kind" not in older(name)["release"]]


@pytest.mark.parametrize("name", [name for name in BEFORE_KINDS if not name.startswith("report")])
def test_older_json_is_recognised_by_what_the_release_was_called(name: str) -> None:
    content = older(name)
    assert "kind" not in content["release"]
    question = kind_of(content["release"])
    assert question is not None
    assert question.kind == content["answer"]["questions"][0]["question"]


def test_an_older_report_is_read_by_both_spellings_of_its_sections() -> None:
    [report] = Answered.from_dict(older("report")["answer"]).releases
    assert report["average_precision"] is report["average-precision"]
    assert report["groups"] is report["confusion-by-group"]
    assert report["grid_ties"] is report["grid-ties"]


def test_older_and_newer_releases_are_pooled_together() -> None:
    before = older("brier")["release"]
    rows = {"y": [1, 0] * 200, "p": [0.8, 0.3] * 200}
    session = ho.Session(ho.Dataset(rows, label="y", score="p"), budget=ho.Budget(epsilon="20"))
    pooled = ho.pool([before, session.brier(epsilon="8")])
    assert pooled.as_dict()["kind"] == "brier"


def test_an_older_and_a_newer_report_are_pooled_section_by_section() -> None:
    before = older("report-named")["release"]
    rows = {"y": [1, 0] * 200, "p": [0.8, 0.3] * 200, "id": [k // 2 for k in range(400)]}
    declared = {"label": "y", "score": "p", "unit": "id", "rows_per_unit": 2}
    session = ho.Session(ho.Dataset(rows, **declared), budget=ho.Budget(epsilon="20"))
    names = ["auc", "average-precision", "log-loss", "ndcg", "precision-at-k"]
    pooled = ho.pool([before, session.report(epsilon="20", sections=names, k=2)])
    # The older one ranks the negatives of a tie first.
    assert list(pooled.answers) == [name for name in names if name != "average-precision"]
    assert set(pooled.left_out) == {"average-precision", "confusion", "brier"}


def test_an_older_average_precision_ranks_the_negatives_of_a_tie_first() -> None:
    [before] = Answered.from_dict(older("average-precision")["answer"]).questions
    rows = ho.Dataset({"y": [1, 0], "p": [0.5, 0.5]}, label="y", score="p").description
    statistics = [before._statistic(rows), q.AveragePrecision(epsilon=1)._statistic(rows)]
    assert statistics[0].metric == NEGATIVES_FIRST
    assert statistics[1].ranked.metric == "average-precision"
    by_group = q.By(q.AveragePrecision(epsilon=1), "g").under(1)
    assert by_group.question.in_group(Fraction(1, 2)).rules == 1
    [report] = Answered.from_dict(older("report")["answer"]).questions
    assert report.rules < q.AveragePrecision.reported_since[1]
