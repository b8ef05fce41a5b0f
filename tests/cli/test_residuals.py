"""`heldout residuals`, as its user types it, with good and with bad input."""

import json

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.chances import louder

from heldout.cli.presets import parsed_bounds
from heldout.errors import ArgumentError
from heldout.examples import salaries

COLUMNS = ("--observed", "salary", "--predicted", "fitted", "--scale", "1000")


@pytest.fixture
def pay(here):
    place = here / "pay.parquet"
    pyarrow.parquet.write_table(salaries(2000), place)
    return place


def test_a_verdict_a_table_and_a_page(run, pay, here):
    outcome = run("residuals", "pay.parquet", *COLUMNS, "--epsilon", "1", "--out", "plot.html")
    assert (outcome.code, outcome.err) == (0, "")
    for text in ("fan", "curvature", "residuals at", "share of rows outside", "Receipt: "):
        assert text in outcome.out
    assert "Paid epsilon 1, replace-one neighbours" in outcome.out
    assert "Nothing is remembered" in outcome.out
    assert (here / "plot.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_json_holds_the_figure_and_the_numbers_and_nothing_else(run, pay):
    outcome = run("residuals", "pay.parquet", *COLUMNS, "--epsilon", "1/2", "--json")
    content = json.loads(outcome.out)
    assert content["loss"]["epsilon"] == "1/2"
    assert content["figure"]["svg"].startswith("<svg")
    assert content["verdict"]["sentence"]
    assert content["counts"]
    assert content["remaining"]["epsilon"] == "0"


def test_what_was_paid_for_is_printed_though_the_disk_is_full(run, pay, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    outcome = run("residuals", "pay.parquet", *COLUMNS, "--epsilon", "1", "--out", "plot.svg")
    assert outcome.code == 2
    assert "path must be a file that can be written" in outcome.err
    assert "It is kept in " in outcome.err
    assert "Receipt: " in outcome.out


def test_error_measures_for_a_further_price(run, pay):
    words = ("--epsilon", "1", "--metrics", "1/2")
    outcome = run("residuals", "pay.parquet", *COLUMNS, *words, "--json")
    content = json.loads(outcome.out)
    assert content["metrics"]["loss"]["epsilon"] == "1/2"
    assert content["remaining"]["epsilon"] == "0"
    outcome = run("residuals", "pay.parquet", *COLUMNS, *words)
    assert "mean absolute error" in outcome.out
    assert "Paid epsilon 0.5 for these" in outcome.out


def test_plots_and_errors_by_group(run, pay, here):
    words = ("--epsilon", "2", "--metrics", "2", "--groups", "education=12,16", "--by", "education")
    outcome = run("residuals", "pay.parquet", *COLUMNS, *words, "--out", "groups.html")
    assert (outcome.code, outcome.err) == (0, "")
    for text in ("gap in mean residual", "p-value", "mean absolute error, other", "Receipt: "):
        assert " ".join(text.split()) in " ".join(outcome.out.split())
    assert "Residuals by group" in (here / "groups.html").read_text(encoding="utf-8")
    outcome = run("residuals", "pay.parquet", *COLUMNS, *words[:2], "--by", "education")
    assert outcome.code == 2
    assert "declared groups" in outcome.err
    assert "--groups" in outcome.err


def test_one_picture_as_svg(run, pay, here):
    words = ("--epsilon", "1", "--kind", "spread", "--out", "spread.svg")
    assert run("residuals", "pay.parquet", *COLUMNS, *words).code == 0
    assert (here / "spread.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_ledger_keeps_count(run, pay):
    words = ("residuals", "pay.parquet", *COLUMNS, "--epsilon", "1", "--ledger", "l.sqlite")
    first = run(*words)
    assert first.code == 2
    assert "--budget must be given the first time a ledger sees these rows" in first.err
    assert run(*words, "--budget", "3/2").code == 0
    again = run(*words)
    assert again.code == 1
    assert again.err.count("\n") == 1


@pytest.mark.chance(louder(0, 14, 10))
def test_what_cannot_be_paid_in_full_is_not_begun(run, pay):
    words = ("residuals", "pay.parquet", *COLUMNS, "--epsilon", "1", "--ledger", "l.sqlite")
    refused = run(*words, "--metrics", "1", "--budget", "3/2")
    assert refused.code == 1
    assert "This costs epsilon 2, and epsilon 1.5 is left. Nothing was charged" in refused.err
    assert "Left: epsilon 0.5" in run(*words).out  # nothing was taken


def test_bounds_that_error_measures_cannot_use_are_searched_instead(run, pay):
    words = ("--epsilon", "1", "--metrics", "1", "--bounds", "residual=-50000:90000")
    assert run("residuals", "pay.parquet", *COLUMNS, *words).code == 0


@pytest.mark.chance(louder(0, 6, 20))
def test_units_relations_and_declared_bounds(run, pay):
    words = ("--unit", "person_id", "--rows-per-unit", "3", "--neighbours", "add-remove")
    declared = ("--bounds", "predicted=0:120000,residual=60000", "--expected-rows", "2000")
    outcome = run("residuals", "pay.parquet", *COLUMNS, "--epsilon", "1", *words, *declared)
    assert outcome.code == 0
    assert "protecting each person_id with at most 3 rows" in outcome.out
    assert "predictions 0 to 120,000, residuals -60,000 to 60,000" in outcome.out


def test_the_papers_method_gives_a_plot_and_no_verdict(run, pay):
    outcome = run("residuals", "pay.parquet", *COLUMNS, "--epsilon", "1", "--method", "dawa")
    assert outcome.code == 0
    assert "No verdict" in outcome.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--observed", "pay", "--predicted", "fitted"), "pay"),
        ((*COLUMNS, "--bounds", "residual=a"), "--bounds must be like"),
        ((*COLUMNS[:4], "--scale", "-1"), "scale must be a positive number"),
        ((*COLUMNS, "--budget", "3"), "--budget requires --ledger"),
        ((*COLUMNS, "--out", "none/plot.html"), "path must be a file that can be written"),
        ((*COLUMNS, "--out", "none/plot.svg"), "path must be a file that can be written"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, pay, words, said):
    outcome = run("residuals", "pay.parquet", *words, "--epsilon", "1")
    assert outcome.code == 2
    assert outcome.out == ""
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_price_that_is_not_one_is_refused(run, pay):
    for epsilon in ("0", "-1", "much"):
        outcome = run("residuals", "pay.parquet", *COLUMNS, "--epsilon", epsilon)
        assert outcome.code == 2
        assert outcome.err.startswith("heldout: ")


def test_bounds_are_read_as_typed():
    assert parsed_bounds("residual=-1:2") == {"residual": (-1.0, 2.0)}
    for text in ("predicted=1", "residual=1,residual=2", "x=1:2", "residual=1:2:3", ""):
        with pytest.raises(ArgumentError, match="must be like"):
            parsed_bounds(text)


def test_a_model_may_predict_the_rows_first(run, here):
    rows = {"y": [float(at % 50) for at in range(600)], "x": [at % 50 + 0.5 for at in range(600)]}
    pyarrow.csv.write_csv(pyarrow.table(rows), here / "lines.csv")
    (here / "line.json").write_text('{"coefficients": {"x": 1.0}, "intercept": -0.5}')
    words = ("residuals", "lines.csv", "--observed", "y", "--predicted", "yhat", "--epsilon", "4")
    outcome = run(*words, "--model", "line.json", "--metrics", "4", "--yes", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["kind"] == "residual-plot"
