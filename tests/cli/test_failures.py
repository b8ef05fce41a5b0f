"""Whatever goes wrong is one line on standard error, with an exit code and no traceback."""

import pyarrow
import pyarrow.parquet
import pytest

from heldout.cli import main
from heldout.cli.output import one_line

SECRET = 4711.25


@pytest.mark.parametrize(
    "words",
    [
        "evaluate",
        "evaluate nowhere.parquet --label y --score p --epsilon 1",
        "evaluate test.parquet --label nothing --score risk_a --epsilon 1",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon much",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon 0",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon -1",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon 1e-30",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon 1 --threshold 2",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon 1 --treshold 1",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon 1 --neighbours none",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon 1 --score-range 1 0",
        "evaluate test.parquet --label readmitted --score risk_a --epsilon 1 --rows-per-unit 2",
        "evaluate test.parquet --label readmitted --score age --epsilon 1",
        "evaluate test.parquet --label patient_id --score risk_a --epsilon 1",
        "plan",
        "plan --rows 100 --metric recall --value 0.5",
        "plan --rows 100 --metric nonsense --value 0.5 --target 0.1",
        "ledger show nowhere.sqlite",
        "ledger verify test.csv",
        "dance",
    ],
)
def test_an_error_is_one_line_and_exit_code_2(run, words):
    outcome = run(*words.split())
    assert outcome.code == 2
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) == 1
    assert outcome.err.startswith("heldout: ")
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.err


def test_an_option_that_is_missing_is_called_missing_and_where_help_is(run):
    outcome = run(*["evaluate", "test.parquet", "--label", "readmitted", "--score", "risk_a"])
    wanted = "heldout: --epsilon must be given. Try 'heldout evaluate --help'.\n"
    assert outcome.err == wanted


@pytest.mark.parametrize("command", ["evaluate", "compare", "curves", "residuals"])
def test_a_command_without_a_word_shows_its_first_example(run, command):
    outcome = run(command)
    assert outcome.code == 2
    assert outcome.err.startswith("heldout: Give the rows and a price, such as 'heldout ")
    assert f"such as 'heldout {command} test.parquet --" in outcome.err
    assert "--epsilon 1" in outcome.err


def test_no_private_value_is_in_a_message(run, here):
    table = pyarrow.table({"y": ["yes", "no", "Mr Smith"], "p": [0.5, SECRET, 0.1]})
    pyarrow.parquet.write_table(table, here / "private.parquet")
    line = "evaluate private.parquet --label y --score p --epsilon 1 --positive yes --negative no"
    outcome = run(*line.split())
    assert outcome.code == 2
    assert "Smith" not in outcome.err
    assert str(SECRET) not in outcome.err


def test_an_unexpected_error_is_one_line_without_its_message(run, monkeypatch):
    import heldout.data

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("row 17 is Mr Smith")

    monkeypatch.setattr(heldout.data, "Dataset", broken)
    words = "evaluate test.parquet --label readmitted --score risk_a --epsilon 1"
    outcome = run(*words.split())
    assert outcome.code == 2
    assert outcome.err.startswith("heldout: internal error (RuntimeError).")
    assert "Smith" not in outcome.err
    assert len(outcome.err.splitlines()) == 1
    monkeypatch.setenv("HELDOUT_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(words.split())


def test_a_hostile_column_name_stays_text(run, here):
    name = "[red]p[/red]\x1b[31m\n<script>"
    table = pyarrow.table({"y": [1, 0] * 500, name: [0.9, 0.1] * 500})
    pyarrow.parquet.write_table(table, here / "hostile.parquet")
    outcome = run("evaluate", "hostile.parquet", "--label", "y", "--score", name, "--epsilon", "1")
    assert outcome.code == 0
    assert "[red]p[/red]" in outcome.out, "not read as markup"
    assert "\x1b" not in outcome.out, "not sent to the terminal"
    missing = run("evaluate", "hostile.parquet", "--label", name + "x", "--score", "y",
                  "--epsilon", "1")  # fmt: skip
    assert missing.code == 2
    assert "\x1b" not in missing.err
    assert len(missing.err.splitlines()) == 1


def test_an_interrupt_is_one_line(run, monkeypatch):
    import heldout.cli

    def interrupted(words: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(heldout.cli, "_run", interrupted)
    outcome = run("demo")
    assert outcome.code == 130
    assert outcome.err == "heldout: interrupted. What was booked stays booked.\n"


ASKED = ("evaluate", "test.csv", "--label", "readmitted", "--epsilon", "1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*ASKED, "--score", "nosuch"), "No column 'nosuch'. Columns: "),
        ((*ASKED, "--score", "age"), " --clip counts scores beyond it as its ends"),
        (
            (*ASKED, "--score", "risk_b", "--positive", "9"),
            "--positive yes --negative no.",
        ),
        (
            (*ASKED, "--score", "risk_b", "--positive", "1", "--negative", "2"),
            "Declare --positive and --negative, or drop",
        ),
        ((*ASKED, "--model", "model.json", "--score", "age"), "another name with --score."),
        (
            ("plan", "--rows", "500", "--metric", "recall", "--value", "0.8", "--target", "0.1"),
            "--positives",
        ),
        (("ledger", "verify", "test.sqlite", "--receipt", "0123456789"), "64 hexadecimal digits"),
    ],
)
def test_a_refusal_says_what_to_type(run, words, said):
    if words[0] == "ledger":
        run(*ASKED, "--score", "risk_b", "--ledger", "test.sqlite")
    outcome = run(*words)
    assert outcome.code == 2
    assert said in outcome.err


def test_the_number_of_a_port_is_no_password():
    assert one_line("http://localhost:8000/a cannot") == "http://localhost:8000/a cannot"
    for secret in ("http://me:8000x@host", "pg://me:a&b/c@host", "pg://me:secret", "pg://m:1@h"):
        assert "***" in one_line(secret)
        assert all(each not in one_line(secret) for each in ("8000x", "a&b", "b/c", "secret"))


def test_bounds_of_a_column_of_words_are_refused_with_how_to_write_them(run, tmp_path):
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    rows = pyarrow.table({"region": ["private north", "private south"] * 50})
    pyarrow.csv.write_csv(rows, tmp_path / "rows.csv")
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet")
    for name, where in (
        ("rows.csv", "Column 'region' must hold numbers"),
        ("rows.parquet", "It is stored as VARCHAR. Words need a number each"),
    ):
        words = ("ask", str(tmp_path / name), "mean", "--column", "region", "--epsilon", "1")
        outcome = run(*words, "--values", "region=0,1")
        assert outcome.code == 2
        assert where in outcome.err
        assert "--values region=no:0,yes:1." in outcome.err
        assert "private" not in outcome.err
