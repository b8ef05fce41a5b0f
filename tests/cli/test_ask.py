"""`heldout ask` asks every registered kind of question, and says what is wrong in words."""

import json

import pyarrow
import pyarrow.csv
import pytest
from tests.chances import louder
from tests.toy import KIND, toy_question

from heldout import questions as q
from heldout.cli.rows import options_for

ASK = ("ask", "test.parquet", "auc", "--label", "readmitted", "--score", "risk_b")
ROWS = {
    "ScoredOptions": "test.parquet --label readmitted --score risk_a --unit patient_id "
    "--rows-per-unit 3",
    "classes": "flowers.parquet --label species --classes a,b,c --class-scores pa,pb,pc",
    "FittedOptions": "pay.csv --observed pay --predicted fitted",
    "FeatureOptions": "flags.csv --label paid --columns urgent,late",
    "TruthOptions": "truth.csv",
    "MeasuredRows": "measured.csv --values a=0,1 b=0,1",
    "SurvivalRows": "measured.csv --time days --event died --score risk --values a=0,1 b=0,1 "
    "--groups g=x,y",
}
NEEDED = {"--rival": "risk_b", "--privatized": "copy.csv"}


@pytest.fixture
def tables(here):
    count = 300
    numbers = [float(at * 7 % 100) for at in range(count)]
    pay = {"pay": [each + at % 5 for at, each in enumerate(numbers)], "fitted": numbers}
    flags = {
        "urgent": [at % 2 for at in range(count)],
        "late": [at % 3 == 0 for at in range(count)],
    }
    flags |= {"late": [int(each) for each in flags["late"]], "paid": [1, 0, 0] * 100}
    truth, copy = {"size": numbers, "kind": ["a", "b", "c"] * 100}, {"size": numbers[::-1]}
    copy |= {"kind": ["a", "a", "b"] * 100}
    measured = {
        "a": [each / 100 for each in numbers],
        "b": [(at * 3 % 7) / 7 for at in range(count)],
    }
    measured |= {"days": numbers, "died": flags["paid"], "risk": numbers[::-1]}
    measured |= {"g": ["x", "y", "y"] * 100}
    tables = {"pay": pay, "flags": flags, "truth": truth, "copy": copy, "measured": measured}
    for name, columns in tables.items():
        pyarrow.csv.write_csv(pyarrow.table(columns), here / f"{name}.csv")
    return here


def words_of(kind: str) -> list[str]:
    question = q.find(kind)
    options = options_for(question.of)
    assert options is not None
    of_classes = [rows.__name__ for rows in question.of] == ["ClassifiedRows"]
    file, *rows = ROWS["classes" if of_classes else options.__name__].split()
    needed = [each.option for each in question.form() if each.required and each.option in NEEDED]
    own = NEEDED | ({"--rival": "species"} if of_classes else {})
    given = [word for option in needed for word in (option, own[option])]
    for each in question.form():
        if each.name in question.example and each.option not in own:
            value = question.example[each.name]
            several = value if isinstance(value, list | tuple) else [value]
            given += [each.option, *map(str, several)]
    return ["ask", file, kind, *rows, *given, "--epsilon", "4", "--yes"]


@pytest.mark.parametrize("kind", q.kinds())
def test_every_kind_is_asked_of_a_table(run, tables, kind):
    outcome = run(*words_of(kind), "--json", "--out", "page.html")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["remaining"]["epsilon"] == "0"
    assert found.get("kind", kind) == kind
    assert "</html>" in (tables / "page.html").read_text()


@pytest.mark.parametrize("kind", ["auc", "regression-metrics", "selection", "report"])
def test_an_answer_is_printed_with_its_price(run, tables, kind):
    outcome = run(*words_of(kind))
    assert outcome.code == 0, outcome.err
    assert "epsilon 4" in outcome.out
    assert "Receipt: " in outcome.out


def test_the_list_has_every_kind_and_what_it_asks(run):
    page = run("ask", "--help").out
    flat = " ".join(page.replace("│", " ").split())
    for question in q.registered():
        assert f" {question.kind} {question.asks} " in flat


def test_a_kind_shows_its_fields_with_their_help_wherever_the_rows_stand(run):
    for words in (("ask", "confusion", "--help"), ("ask", "test.parquet", "confusion", "--help")):
        page = run(*words).out
        flat = " ".join(page.replace("│", " ").split())
        for form_field in q.find("confusion").form():
            assert form_field.option in flat
            assert form_field.help in flat


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ask", "test.parquet", "acu"), "No question 'acu'. Did you mean 'auc'? Questions: "),
        (("ask", "test.parquet"), "Name a question after the rows: auc, "),
        ((*ASK, "--epsilon", "1", "--labl", "y"), "No option --labl. Did you mean --label? "
         "Try 'heldout ask auc --help'."),
        (ASK, "--epsilon must be given. Try 'heldout ask auc --help'."),
        (("ask", "auc", "--epsilon", "1"), "TABLE must be given."),
        (("ask", "test.parquet", "auc", "--epsilon", "1"), "--label must be given."),
        ((*ASK[:-1], "risk", "--epsilon", "1"), "No column 'risk'. Did you mean 'risk_"),
        ((*ASK, "--epsilon", "1000"), "epsilon must be at most 100, got 1000."),
        ((*ASK, "--epsilon", "1", "--method", "x"), "--method must be one of piecewise-laplace, "),
        ((*ASK, "--epsilon", "1/1000"), "This data set has 2,000 rows. At epsilon 0.001, noise "
         "would hide the AUC. Ask for epsilon"),
        (("ask", "test.parquet", "class-auc", "--label", "readmitted", "--score", "risk_a",
          "--epsilon", "1"), "The question 'class-auc' cannot be asked of these rows: it needs "
         "rows with a label of several classes, and these are rows with a label of two values"),
        ((*ASK, "--epsilon", "1", "--weight", "age", "--largest-weight", "99"),
         "--weight goes with --weighted"),
        ((*ASK, "--epsilon", "1", "--server", "http://localhost:1"), "The server has the rows"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_words_and_nothing_is_charged(run, words, told):
    outcome = run(*words, "--json") if "--epsilon" in words else run(*words)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"heldout: {told}" in outcome.err


def test_an_option_of_the_rows_that_a_question_has_too_goes_by_another_name(run, tables):
    page = run("ask", "log-loss", "--help-all").out
    assert "--clip STR" in page
    assert "--rows-clip" in page


def test_a_kind_of_another_package_is_asked_like_any_other(run, tables):
    with toy_question() as toy:
        assert f"{KIND} " in run("ask", "--help").out
        page = run("ask", KIND, "--help").out
        assert all(each.option in page for each in toy.form())
        words = words_of(KIND)
        outcome = run(*words, "--alarm-at", "0.3", "--sort", "silent", "--urgent", "--json")
        assert outcome.code == 0, outcome.err
        assert json.loads(outcome.out)["parameters"]["threshold"] == 0.3
        wrong = run(*words, "--sort", "quiet")
        assert "--sort must be one of loud, silent, got 'quiet'." in wrong.err


CLAIMS = {
    "coefficient('b') > 0": ("a ~ b + c", "holds"),
    "0.5 < coefficient('b') < 1.5": ("a ~ b + c", "holds"),
    "significant('b')": ("a ~ b + c", "holds"),
    "mean('a', c=1) < mean('a', c=0)": (None, "does not hold"),
    "mean_absolute_error('a', 'b') < 0.3": (None, "holds"),
}


@pytest.mark.chance(louder(0, 6, 20))
def test_each_kind_of_claim_is_asked_on_the_command_line(run, here):
    b = [at * 7 % 100 / 200 for at in range(2000)]
    c = [at % 2 for at in range(2000)]
    a = [one + 0.2 * two + (at % 11) / 200 for at, (one, two) in enumerate(zip(b, c, strict=True))]
    pyarrow.csv.write_csv(pyarrow.table({"a": a, "b": b, "c": c}), here / "claims.csv")
    declared = ["--values", "a=0,1", "b=0,1", "c=0,1"]
    for claim, (formula, verdict) in CLAIMS.items():
        given = ["--claim", claim, *(() if formula is None else ("--formula", formula))]
        words = ["ask", "claims.csv", "conclusion", *declared, *given, "--epsilon", "1000"]
        told = run(*words, "--yes")
        assert told.code == 0, told.err
        assert f"{claim}: {verdict}" in told.out.replace("\n", " ")
        assert ("above 0.999" if verdict == "holds" else "below 0.001") in told.out
        assert "0.9999" not in told.out
