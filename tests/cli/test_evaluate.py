"""`heldout evaluate` prints what it bought, and buys what it prints."""

import json
from fractions import Fraction
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from tests.chances import louder

from heldout.kernel import Ledger

MEASURES = {
    "accuracy", "recall", "precision", "specificity", "prevalence", "F1 score",
    "negative predictive value", "true positives", "false positives", "false negatives",
    "true negatives",
}  # fmt: skip


def test_the_table_has_every_measure_and_the_price(evaluate):
    outcome = evaluate("--epsilon", "10")
    assert (outcome.code, outcome.err) == (0, "")
    for name in [*MEASURES, "Brier score"]:
        assert name in outcome.out
    assert "AUC 0." in outcome.out
    assert "Paid epsilon 10 (" in outcome.out
    assert "Nothing is remembered" in outcome.out
    assert outcome.out.count("Receipt: ") == 1


def test_json_is_json_alone_and_has_the_stable_keys(evaluate):
    outcome = evaluate("--epsilon", "1/2", "--threshold", "0.3", "--json")
    content = json.loads(outcome.out)
    assert set(content) == {
        "schema", "kind", "heldout", "time", "subject", "epsilon", "shares", "releases", "left_out",
        "ties", "budget", "spent", "remaining",
    }  # fmt: skip
    assert content["epsilon"] == "1/2"
    assert sum(map(Fraction, content["shares"].values())) == Fraction(1, 2)
    confusion = content["releases"]["confusion"]
    assert set(confusion["measures"]) >= MEASURES
    assert confusion["parameters"] == {"threshold": 0.3}
    for each in confusion["measures"].values():
        low, high = each["interval"]
        assert low <= each["value"] <= high
        assert set(each) == {"value", "level", "interval", "noise_interval", "informative"}
    assert set(confusion["receipt"]) == {"sequence", "hash"}
    assert content["subject"]["rows"] == 2000


@pytest.mark.chance(louder(0, 6, 20))
def test_a_csv_file_gives_the_same_kind_of_answer(run):
    words = "evaluate test.csv --label readmitted --score risk_b --epsilon 100 --json"
    from_csv = json.loads(run(*words.split()).out)
    from_parquet = json.loads(run(*words.replace(".csv", ".parquet").split()).out)
    for name in ("accuracy", "recall"):
        values = [
            each["releases"]["confusion"]["measures"][name]["value"]
            for each in (from_csv, from_parquet)
        ]
        assert values[0] == pytest.approx(values[1], abs=0.01)


def test_units_hide_the_row_count_and_cost_noise(evaluate):
    plain = json.loads(evaluate("--epsilon", "1", "--json").out)
    unit = ("--unit", "patient_id", "--rows-per-unit", "3", "--row-key", "encounter_id")
    with_units = json.loads(evaluate("--epsilon", "1", "--json", *unit).out)
    assert with_units["subject"]["rows"] is None
    assert with_units["subject"]["protection"]["unit_name"] == "patient_id"
    scales = [
        Fraction(each["releases"]["confusion"]["mechanism"]["scale"])
        for each in (plain, with_units)
    ]
    assert scales[1] == 3 * scales[0]


def test_add_remove_neighbours_are_said(evaluate):
    content = json.loads(evaluate("--epsilon", "1", "--neighbours", "add-remove", "--json").out)
    assert content["subject"]["protection"]["neighbours"] == "add-remove"
    assert content["subject"]["rows"] is None


def test_the_brier_score_is_left_out_for_scores_that_are_no_probabilities(run):
    words = "evaluate test.parquet --label readmitted --score age --epsilon 1 --score-range 0 120"
    outcome = run(*words.split())
    assert outcome.code == 0
    assert "Brier score is left out" in outcome.out
    content = json.loads(run(*words.split(), "--json").out)
    assert "brier" not in content["shares"]
    assert sum(map(Fraction, content["shares"].values())) == 1
    assert list(content["left_out"]) == ["brier"]
    assert content["releases"]["confusion"]["parameters"]["threshold"] == 60


def test_a_negative_score_range_is_read(run):
    words = "evaluate test.parquet --label readmitted --score age --epsilon 1 --json"
    content = json.loads(run(*words.split(), "--score-range", "-20", "120").out)
    assert content["subject"]["score_range"] == [-20, 120]


@pytest.mark.chance(louder(0, 37, 6))
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([True, False], ["--positive", "true"]),
        (["yes", "no"], ["--positive", "yes", "--negative", "no"]),
        ([2, 1], ["--positive", "2", "--negative", "1"]),
        (["1", "0"], ["--positive", "'1'", "--negative", "'0'"]),
    ],
)
def test_labels_are_read_as_they_are_meant(run, here, labels, words):
    table = pyarrow.table({"y": labels * 200, "p": [0.9, 0.1] * 200})
    pyarrow.parquet.write_table(table, here / "labels.parquet")
    line = "evaluate labels.parquet --label y --score p --epsilon 10 --json"
    content = json.loads(run(*line.split(), *words).out)
    assert content["releases"]["confusion"]["value"] > 0.97


def test_the_ledger_keeps_count_across_calls(evaluate, here):
    book = ("--ledger", "ledger.sqlite")
    first = json.loads(evaluate("--epsilon", "1", *book, "--budget", "3", "--json").out)
    second = json.loads(evaluate("--epsilon", "1.5", *book, "--json").out)
    assert first["remaining"]["epsilon"] == "2"
    assert second["remaining"]["epsilon"] == "1/2"
    refused = evaluate("--epsilon", "1", *book)
    assert refused.code == 1
    assert refused.err.startswith("heldout: This costs epsilon ")
    with Ledger.open(here / "ledger.sqlite") as ledger:
        assert len(ledger.entries()) == 2, "a report is one booking, a refused one is none"


def test_a_first_meeting_with_a_ledger_needs_a_budget(evaluate):
    outcome = evaluate("--epsilon", "1", "--ledger", "ledger.sqlite")
    assert outcome.code == 2
    assert "--budget must be given" in outcome.err


def test_a_budget_without_a_ledger_is_refused(evaluate):
    outcome = evaluate("--epsilon", "1", "--budget", "3")
    assert outcome.code == 2
    assert "--budget requires --ledger" in outcome.err


def test_out_writes_the_report_and_says_where(evaluate, here):
    outcome = evaluate("--epsilon", "1", "--out", "report.html")
    assert outcome.code == 0
    assert "Report: report.html" in outcome.out
    assert (here / "report.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("place", ["nowhere/report.html", "report.pdf", "."])
def test_a_report_that_cannot_be_written_costs_nothing(evaluate, here, place):
    book = ("--ledger", "ledger.sqlite", "--budget", "3")
    outcome = evaluate("--epsilon", "1", *book, "--out", place)
    assert outcome.code == 2
    assert not (here / "ledger.sqlite").exists()


def test_only_the_sections_that_are_named_are_bought(evaluate):
    outcome = evaluate("--epsilon", "1", "--sections", "auc", "confusion", "--json")
    content = json.loads(outcome.out)
    assert list(content["releases"]) == ["auc", "confusion"]
    assert sum(map(Fraction, content["shares"].values())) == 1
    assert evaluate("--epsilon", "1", "--sections", "everything").code == 2


def test_ranking_on_the_grid_is_told_with_its_bound(evaluate):
    outcome = evaluate("--epsilon", "20", "--sections", "auc", "--scores", "grid")
    assert outcome.code == 0
    words = " ".join(outcome.out.split())
    assert "The order of rows within a cell can move the AUC by at most" in words


def test_scores_of_any_size_are_mapped_or_clipped_as_declared(run):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet

    generator = np.random.default_rng(2)
    labels = generator.integers(0, 2, 600)
    scores = generator.normal(3.0 * labels, 2.0)
    pyarrow.parquet.write_table(pa.table({"y": labels, "x": scores}), "logits.parquet")
    asked = ("evaluate", "logits.parquet", "--label", "y", "--score", "x", "--epsilon", "10")
    refused = run(*asked)
    assert refused.code == 2
    assert "score_range" in refused.err
    mapped = json.loads(run(*asked, "--score-map", "1.5", "2", "--json").out)
    assert mapped["subject"]["score_map"] == [1.5, 2.0]
    assert mapped["releases"]["confusion"]["parameters"]["threshold"] == 1.5
    assert mapped["releases"]["auc"]["value"] > 0.7
    nothing = run(*asked, "--score-map", "0", "1", "--sections", "brier")
    assert nothing.code == 2
    assert nothing.err.startswith("heldout: No section applies (brier: ")
    assert set(mapped["left_out"]) == {"brier"}
    clipped = json.loads(run(*asked, "--score-range", "-1", "4", "--clip", "--json").out)
    assert clipped["subject"]["out_of_range"] == "clip"
    assert clipped["subject"]["score_range"] == [-1.0, 4.0]
    both = run(*asked, "--score-range", "-1", "4", "--score-map", "0", "1")
    assert both.code == 2
    assert both.err.startswith("heldout: Pass either --score-range or --score-map")


@pytest.mark.chance(louder(0, 14, 10))
@pytest.mark.parametrize("command", ["evaluate", "curves"])
def test_what_is_paid_for_is_kept_though_the_reader_or_the_disk_fails(
    run, here, monkeypatch, command
):
    from heldout.cli import evaluate as presets
    from heldout.errors import ArgumentError
    from heldout.questions.report import Report

    line = f"{command} test.parquet --label readmitted --score risk_a --epsilon 1 --out kept.html"
    words = line.split()

    def failing(*_: object, **__: object) -> None:
        raise ArgumentError("full")

    with monkeypatch.context() as patched:
        patched.setattr(presets, "print_report", failing)
        patched.setattr(presets, "_print", failing)
        assert run(*words).code == 2
    assert (here / "kept.html").read_text().startswith("<!DOCTYPE html>")
    monkeypatch.setattr(Report, "save", failing)
    outcome = run(*words)
    assert outcome.code == 2
    assert outcome.err.startswith("heldout: The answer was booked and drawn, but could not be")
    assert ": full. It is kept in " in outcome.err
    assert "AUC" in outcome.out


def test_a_report_is_titled_and_named_and_a_wrong_name_is_refused_before_paying(evaluate, here):
    words = ("--epsilon", "1", "--out", "named.html", "--ledger", "l.sqlite", "--budget", "1")
    wrong = evaluate(*words, "--labels", "risk=The model")
    assert wrong.code != 0
    assert "labels must name some of" in wrong.err
    done = evaluate(
        *words, "--title", "After a year", "--labels", "risk_b=Model B", "readmitted=Back"
    )
    assert (done.code, done.err) == (0, "")
    page = (here / "named.html").read_text(encoding="utf-8")
    assert "<h1>After a year</h1>" in page
    assert "Model B (<code>risk_b</code>)" in page


def test_decisions_by_group_are_a_section_of_their_own(evaluate):
    words = ("--groups", "prior_admissions=0,1,2", "--by", "prior_admissions", "--epsilon", "2")
    content = json.loads(evaluate(*words, "--json").out)["releases"]["confusion-by-group"]
    assert set(content["groups"]) == {"0", "1", "2", "other"}
    assert 0 <= content["fairness"]["equal_opportunity"]["p_value"] <= 1
    dear = ("--sections", "confusion", "--out", "page.html", "--epsilon", "1000")
    assert "gap in recall, p-value" in evaluate(*words[:-2], *dear).out
    assert "Gap in recall, p-value" in Path("page.html").read_text(encoding="utf-8")


def test_a_group_that_is_not_declared_is_refused(evaluate):
    for words in (("--by", "sex"), ("--groups", "sex"), ("--groups", "sex=F,,M")):
        outcome = evaluate("--epsilon", "1", *words)
        assert outcome.code != 0
        assert "--groups" in outcome.err


def test_what_noise_would_leave_nothing_of_is_not_bought_unasked(evaluate):
    outcome = evaluate("--epsilon", "1/100")
    assert outcome.code != 0
    assert "Nothing was charged" in outcome.err
    assert "--yes" in outcome.err
    bought = json.loads(evaluate("--epsilon", "1/100", "--yes", "--json").out)
    accuracy = bought["releases"]["confusion"]["measures"]["accuracy"]
    assert accuracy["informative"] is False
    assert "no information at this price" in evaluate("--epsilon", "1/100", "--yes").out


@pytest.mark.chance(louder(0, 14, 10))
def test_several_classes_have_a_matrix_areas_and_ranks(run, here):
    truth = [each % 3 for each in range(600)]
    scores = [[0.7 if at == each else 0.1 + 0.01 * (place % 7) for at in range(3)]
              for place, each in enumerate(truth)]  # fmt: skip
    columns = {f"p{at}": [row[at] for row in scores] for at in range(3)}
    said = ["abc"[each] for each in truth]
    table = pyarrow.table({"y": said, "said": said, "sex": ["F", "M"] * 300, **columns})
    pyarrow.parquet.write_table(table, here / "classes.parquet")
    words = "evaluate classes.parquet --label y --classes a,b,c --epsilon 4 --json"
    content = json.loads(run(*words.split(), "--scores", "p0,p1,p2").out)
    sections = {"class-confusion", "class-auc", "top-k", "brier"}
    assert set(content["releases"]) == sections
    assert content["subject"]["classes"] == ["a", "b", "c"]
    confusion = content["releases"]["class-confusion"]
    assert len(confusion["matrix"]) == 3
    assert confusion["measures"]["accuracy"]["value"] > 0.9
    called = json.loads(run(*words.split(), "--prediction", "said").out)
    assert set(called["releases"]) == {"class-confusion"}
    assert "no scores" in called["left_out"]["brier"]
    named = ("--sections", "brier", "log_loss", "--scores", "p0,p1,p2")
    judged = json.loads(run(*words.split(), *named).out)["releases"]
    assert set(judged) == {"brier", "log-loss"}
    assert 0 < judged["log-loss"]["value"] < 0.69
    named = ("class_average_precision", "average_precision", "curves", "--scores", "p0,p1,p2")
    ranked = json.loads(run(*words.split(), "--sections", *named).out)
    assert set(ranked["releases"]) == {"class-average-precision"}
    assert set(ranked["left_out"]) == {"average-precision", "curves"}
    assert "these are rows with a label of several classes" in ranked["left_out"]["curves"]
    divided = ("--prediction", "said", "--groups", "sex=F,M", "--by", "sex")
    by_group = json.loads(run(*words.split(), *divided).out)["releases"]["class-confusion-by-group"]
    assert set(by_group["groups"]) == {"F", "M", "other"}
    assert 0 <= by_group["measures"]["gap in accuracy"]["p_value"] <= 1
    # It has no row; noise makes one up once in a thousand times (tests/intervals/test_groups.py).
    assert set(by_group["drowned"]) <= {"other"}
    page = run(*words.split()[:-1], *divided, "--out", "classes.html")
    assert "gap in accuracy" in page.out
    assert "Decisions by group" in (here / "classes.html").read_text()
    assert run(*words.split(), "--scores", "p0,p1").err == (
        "heldout: scores must be 3 columns, one for each class, got 2.\n"
    )


SURVEY = "evaluate survey.parquet --label y --score p --weight w --largest-weight 5 --json"


@pytest.mark.chance(louder(0, 6, 20))
def test_rows_count_by_their_weight_and_what_has_no_weighted_form_is_left_out(run, here):
    content = json.loads(run(*SURVEY.split(), "--epsilon", "100").out)
    assert set(content["releases"]) == {"confusion", "brier"}
    assert set(content["left_out"]) == {"auc", "average-precision"}
    confusion = content["releases"]["confusion"]
    assert confusion["parameters"] == {"threshold": 0.5, "weight": "w", "largest_weight": 5.0}
    # By weight 5 of 8 rows are right, by number 2 of 4; noise is a thousandth at this price.
    assert confusion["measures"]["accuracy"]["value"] == pytest.approx(5 / 8, abs=0.02)
    brier = (4 * 0.01 + 0.04 + 0.36 + 2 * 0.49) / 8
    assert content["releases"]["brier"]["value"] == pytest.approx(brier, abs=0.02)
    words = ("--epsilon", "4", "--sections", "confusion", "--out", "weighted.html")
    told = run(*SURVEY.split()[:-1], *words)
    assert "a row counts for its w, at most 5; counts are sums of it" in told.out
    assert "a row counts for its w, at most 5" in (here / "weighted.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--weight w", "--weight and --largest-weight must be given together"),
        ("--largest-weight 5", "--weight and --largest-weight must be given together"),
        ("--weight w --largest-weight 3", "weight 'w' must lie within"),
        ("--weight nothing --largest-weight 3", "No column 'nothing'"),
        ("--weight w --largest-weight 5 --sections auc", "it has no weighted form"),
    ],
)
def test_weights_that_cannot_be_are_refused(run, words, said):
    line = "evaluate survey.parquet --label y --score p --epsilon 1"
    outcome = run(*line.split(), *words.split())
    assert outcome.code != 0
    assert said in outcome.err


LISTS = "evaluate results.parquet --label relevant --score p --sections ndcg precision_at_k"


def test_the_rows_of_a_unit_are_a_ranked_list(run, here):
    words = (*LISTS.split(), "--unit", "query", "--rows-per-unit", "4", "--epsilon", "50")
    content = json.loads(run(*words, "--k", "3", "--json").out)
    assert set(content["releases"]) == {"ndcg", "precision-at-k"}
    ndcg = (1 + 1 / 2) / (1 + 0.6309297535714575)
    assert content["releases"]["ndcg"]["value"] == pytest.approx(ndcg, abs=0.02)
    precision = content["releases"]["precision-at-k"]
    assert precision["value"] == pytest.approx(2 / 3, abs=0.02)
    assert precision["parameters"]["k"] == 3
    told = run(*words, "--out", "lists.html")
    assert "NDCG at 10" in told.out
    assert "precision at 10" in told.out
    assert "Ranked lists: NDCG" in (here / "lists.html").read_text()


def test_lists_need_a_unit_and_one_score(run):
    alone = run(*LISTS.split(), "--epsilon", "1")
    assert "a list is the rows of one unit" in alone.err
    line = "evaluate flowers.parquet --label species --classes a,b,c --scores pa,pb,pc --epsilon 4"
    several = run(*line.split(), "--sections", "confusion", "ndcg")
    assert several.code == 0
    assert "Ranked lists: NDCG is left out: it needs rows with a label of two" in several.out


def test_lists_that_noise_would_drown_are_asked_about_first(run):
    unit = ("--unit", "query", "--rows-per-unit", "4", "--expected-rows", "1600")
    outcome = run(*LISTS.split(), *unit, "--epsilon", "1/200")
    assert outcome.code != 0
    assert "Nothing was charged" in outcome.err


def test_a_section_that_the_rows_cannot_have_is_said_to_be_left_out(evaluate):
    outcome = evaluate("--epsilon", "1", "--sections", "auc", "top_k")
    assert outcome.code == 0
    assert "Top-k accuracy is left out: it needs rows with a label of several" in outcome.out
    alone = evaluate("--epsilon", "1", "--sections", "top_k")
    assert "top-k: it needs rows with a label of several classes" in alone.err


def test_a_wrong_section_lists_every_section_that_a_report_may_have(evaluate):
    from heldout.questions.registry import places

    outcome = evaluate("--epsilon", "1", "--sections", "acu")
    assert outcome.code == 2
    assert all(name in outcome.err for name, place in places().items() if not place.by_group)
