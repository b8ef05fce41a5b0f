"""`heldout curves`: one release, printed, as JSON, as a page and as a picture."""

import json
import re
from pathlib import Path

import pytest
from tests.chances import louder

# At epsilon 1 noise hides the curves of 2,000 rows once in a hundred times.
ASK = ("curves", "test.parquet", "--label", "readmitted", "--score", "risk_b", "--epsilon", "4")


@pytest.mark.chance(louder(0, 14, 10))
def test_it_prints_the_measures_the_curve_and_the_price(run):
    outcome = run(*ASK)
    assert (outcome.code, outcome.err) == (0, "")
    for text in (
        "AUC of the curve",
        "AUCNPR",
        "KS",
        "false positive rate",
        "Paid epsilon 4",
        "Receipt: ",
    ):
        assert text in outcome.out


@pytest.mark.chance(1e-7)
def test_curves_that_noise_fills_are_asked_for_twice_and_not_drawn(run):
    drowned = (*ASK[:-1], "1/100000", "--out", "curves.html")
    refused = run(*drowned)
    assert refused.code == 2
    assert "noise would hide the AUC of the curve. Ask for epsilon" in refused.err
    assert "Nothing was charged" in refused.err
    assert not Path("curves.html").exists()
    bought = run(*drowned, "--yes")
    assert bought.code == 0
    assert "no information at this price" in " ".join(bought.out.split())
    assert "true positive rate" not in bought.out
    assert "<svg" not in Path("curves.html").read_text().partition("<main")[2]


@pytest.mark.chance(louder(0, 6, 20))
def test_its_json_holds_the_curves(run):
    found = json.loads(run(*ASK, "--json").out)
    assert found["loss"] == {"epsilon": "4", "delta": "0"}
    assert set(found["curves"]) == {"roc", "precision_recall", "calibration"}
    assert found["curves"]["roc"]["fpr"][0] == 0
    assert found["curves"]["roc"]["fpr"][-1] == 1
    assert found["noisy"]["edges"][0] == 0
    assert found["remaining"] == {"epsilon": "0", "delta": "0"}


@pytest.mark.chance(louder(0, 14, 10))
def test_named_thresholds_are_printed_and_go_into_the_json(run):
    named = ("--thresholds", "0.2", "0.5")
    printed = run(*ASK, *named)
    assert printed.code == 0
    assert "recall at 0.2" in printed.out
    found = json.loads(run(*ASK, *named, "--json").out)
    assert [each["threshold"] for each in found["thresholds"]] == [0.2, 0.5]
    assert len(found["noisy"]["named"]["edges"]) == 2, "they are counts of their own"


def test_curves_of_groups_are_printed_with_gaps_and_written_as_a_page(run):
    divided = (
        "--groups",
        "prior_admissions=0,1",
        "--by",
        "prior_admissions",
        "--thresholds",
        "0.2",
    )
    printed = run(*ASK, *divided, "--out", "groups.html")
    assert (printed.code, printed.err) == (0, "")
    for text in ("AUC of the curve, other", "gap in KS", "recall at 0.2, 1", "Paid epsilon 4"):
        assert text in " ".join(printed.out.split()), text
    assert "Curves by group" in Path("groups.html").read_text(encoding="utf-8")
    found = json.loads(run(*ASK, *divided, "--json").out)
    assert set(found["groups"]) == set(found["thresholds"]) == {"0", "1", "other"}
    refused = run(*ASK, *divided, "--out", "groups.svg")
    assert refused.code == 2
    assert ".html with --by" in refused.err


@pytest.mark.chance(louder(0, 6, 20))
def test_it_writes_a_page_with_three_curves(run):
    assert run(*ASK, "--out", "curves.html").code == 0
    page = Path("curves.html").read_text(encoding="utf-8")
    assert len(re.findall(r"<svg", page)) >= 3
    assert "ROC curve" in page
    assert "Reliability diagram" in page


@pytest.mark.chance(louder(0, 6, 20))
def test_it_writes_a_picture(run):
    assert run(*ASK, "--kind", "precision-recall", "--out", "curve.svg").code == 0
    assert Path("curve.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.chance(louder(0, 6, 20))
def test_a_place_that_cannot_be_written_costs_nothing(run):
    line = (*ASK, "--ledger", "l.sqlite", "--budget", "4")
    outcome = run(*line, "--out", "curves.pdf")
    assert outcome.code == 2
    assert ".html or .svg" in outcome.err
    assert run(*line).code == 0, "all of the budget is left"


def test_evaluate_shows_curves_when_asked(run):
    outcome = run("evaluate", *ASK[1:], "--curves", "--json")
    found = json.loads(outcome.out)
    assert found["shares"]["curves"] == "11/10"
    assert "curves" in found["releases"]


@pytest.mark.chance(louder(0, 3, 40))
def test_declared_scores_are_the_bins(run):
    asked = ("curves", "test.parquet", "--label", "readmitted", "--score", "comorbidities")
    asked += ("--score-range", "0", "9", "--epsilon", "4", "--json")
    values = ",".join(map(str, range(10)))
    found = json.loads(run(*asked, "--score-values", values).out)
    assert len(found["noisy"]["positives"]) == 10
    assert found["parameters"]["score_values"] == list(range(10))
    refused = run(*asked, "--score-values", "1,eleven")
    assert refused.code == 2
    assert "score_values must be numbers" in refused.err


def test_the_binormal_curve_costs_an_area_and_is_drawn(run):
    whole = run(*ASK, "--method", "binormal", "--out", "roc.svg", "--json")
    assert whole.code == 0, whole.err
    found = json.loads(whole.out)
    assert found["kind"] == "auc"
    assert found["loss"]["epsilon"] == "4"
    curve = found["binormal_roc"]
    assert curve["tpr"][0] == 0
    assert curve["tpr"][-1] == 1
    assert all(
        low <= tpr <= high
        for low, tpr, high in zip(*(curve[name] for name in ("low", "tpr", "high")), strict=True)
    )
    assert Path("roc.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    "more",
    [("--by", "sex"), ("--thresholds", "0.5"), ("--kind", "calibration"), ("--out", "a.html")],
)
def test_the_binormal_curve_refuses_what_one_area_cannot_give(run, more):
    refused = run(*ASK, "--method", "binormal", *more)
    assert refused.code == 2
    assert "binormal" in refused.err
