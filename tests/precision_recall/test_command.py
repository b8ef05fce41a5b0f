"""`heldout pr`: the report, its files and its one-line errors."""

import json

import numpy as np
import pytest

from heldout import errors
from heldout import precision_recall as pr
from heldout.cli.plan import pr as command


@pytest.fixture
def rows():
    random = np.random.default_rng(1)
    truth = np.repeat([1, 0], [20, 80])
    return truth, np.concatenate([random.normal(1, 1, 20), random.normal(0, 1, 80)])


def write(path, truth, score):
    lines = [f"{t},{s!r}" for t, s in zip(truth, np.asarray(score).tolist(), strict=True)]
    path.write_text("\n".join(["y,p", *lines]) + "\n")
    return path


def asked(capsys, *arguments, **options):
    command(*arguments, **options, as_json=True)
    return json.loads(capsys.readouterr().out)


def test_the_json_report_says_what_the_functions_say(tmp_path, rows, capsys):
    file = write(tmp_path / "a.csv", *rows)
    facts = asked(capsys, file, label="y", score="p")
    truth, score = rows
    assert facts["area"] == pytest.approx(pr.auc(truth, score), abs=1e-12)
    assert facts["areas"] == pytest.approx(pr.estimates(truth, score), abs=1e-9)
    low, high = pr.interval(y_true=truth, y_score=score)
    assert (facts["interval"]["low"], facts["interval"]["high"]) == pytest.approx((low, high))
    assert facts["area_for_free"] == pytest.approx(pr.minimum_auc(prevalence=0.2))


def test_the_text_report_recommends_and_warns(tmp_path, rows, capsys):
    file = write(tmp_path / "a.csv", *rows)
    command(file, label="y", score="p", out=tmp_path / "curve.svg")
    said = capsys.readouterr().out
    assert "nothing private" in said
    assert "for free" in said
    assert "recommended (chosen)" in said
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")


def test_the_page_has_the_curve_and_every_estimator_and_needs_nothing_else(tmp_path, rows, capsys):
    file = write(tmp_path / "<a>.csv", *rows)
    command(file, label="y", score="p", out=tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "&lt;a&gt;.csv" in page
    assert "<svg" in page
    assert all(name.replace("-", " ") in page for name in pr.ESTIMATORS)
    assert not any(each in page for each in ("<script", "@import", "src=", "<a>"))


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, rows):
    file = write(tmp_path / "a.csv", *rows)
    with pytest.raises(errors.ArgumentError, match="out must be a file that can be written"):
        command(file, label="y", score="p", out=file / "curve.svg")


@pytest.mark.parametrize(
    ("spelling", "positive"),
    [
        (("1", "0"), "1"),
        (("1.0", "0.0"), "1"),
        (("true", "FALSE"), "1"),
        (("yes", "no"), "yes"),
        (("2", "1"), "2"),
    ],
)
def test_labels_may_be_numbers_booleans_or_text(tmp_path, rows, capsys, spelling, positive):
    truth, score = rows
    file = write(tmp_path / "a.csv", [spelling[1 - t] for t in truth], score)
    facts = asked(capsys, file, label="y", score="p", positive=positive)
    assert facts["positives"] == 20


@pytest.mark.parametrize("labels", ["integers", "booleans", "text"])
def test_parquet_is_read_too(tmp_path, rows, capsys, labels):
    import pyarrow as pa
    import pyarrow.parquet

    truth, score = rows
    column = {
        "integers": truth,
        "booleans": truth == 1,
        "text": np.where(truth == 1, "1", "0").tolist(),
    }[labels]
    pyarrow.parquet.write_table(pa.table({"y": column, "p": score}), tmp_path / "a.parquet")
    facts = asked(capsys, tmp_path / "a.parquet", label="y", score="p")
    assert facts["area"] == pytest.approx(pr.auc(truth, score))


@pytest.mark.parametrize(
    ("text", "options", "kind"),
    [
        ("y,p\n", {}, errors.EmptyTable),
        ("y,p\n1,0.5\n,0.4\n", {}, errors.MissingLabel),
        ("y,p\n1,0.5\n0,\n", {}, errors.MissingScore),
        ("y,p\n1,0.5\n0,nan\n", {}, errors.MissingScore),
        ("y,p\n1,0.5\n0,inf\n", {}, errors.InfiniteScore),
        ("y,p\n1,0.5\n0,high\n", {}, errors.UnreadableTable),
        ("y,p\n1,0.5\n0,1\n2,1\n", {}, errors.UnknownLabel),
        ("y,p\nyes,0.5\nno,1\n", {}, errors.UnknownLabel),
        ("y,p\n1,0.5\n0,1\n", {"label": "z"}, errors.MissingColumn),
        ("y,p\n1,0.5\n1,1\n", {}, errors.ArgumentError),
        ("y,p\n1,0.5\n0,1\n", {"estimator": "best"}, errors.ArgumentError),
        ("y,p\n1,0.5\n0,1\n", {"interval": "best"}, errors.ArgumentError),
        ("y,p\n1,0.5\n0,1\n", {"out": "curve.jpg"}, errors.ArgumentError),
    ],
)
def test_errors_are_typed_and_one_line(tmp_path, text, options, kind):
    from pathlib import Path

    file = tmp_path / "a.csv"
    file.write_text(text)
    given = {"label": "y", "score": "p", **options}
    if "out" in given:
        given["out"] = Path(given["out"])
    with pytest.raises(kind) as caught:
        command(file, **given)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_tables_are_refused(tmp_path):
    with pytest.raises(errors.UnreadableTable, match="No such file"):
        command(tmp_path / "none.csv", label="y", score="p")
    with pytest.raises(errors.UnreadableTable, match="must end in"):
        command(tmp_path / "none.xls", label="y", score="p")
    (tmp_path / "no.parquet").write_text("this is text")
    with pytest.raises(errors.UnreadableTable, match="readable"):
        command(tmp_path / "no.parquet", label="y", score="p")


def test_an_estimator_without_a_value_is_null_in_json(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n0,1\n0,2\n")
    facts = asked(capsys, tmp_path / "a.csv", label="y", score="p")
    assert facts["areas"]["binormal"] is None


def test_odd_names_are_quoted(tmp_path, capsys):
    file = tmp_path / "it's.csv"
    file.write_text('"the ""label""",p q\n1,0.5\n0,0.1\n')
    assert asked(capsys, file, label='the "label"', score="p q")["area"] == 1.0
