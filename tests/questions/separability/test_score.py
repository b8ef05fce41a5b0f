"""The score of two tables, whatever they hold."""

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow
import pytest

from heldout.errors import ArgumentError, EmptyTable, MissingColumn
from heldout.questions.separability.fits import balance
from heldout.questions.separability.score import public_table, separability


def sparse(rows=300, columns=20, seed=1, noise=4.0):
    rng = np.random.default_rng(seed)
    truth = rng.poisson(rng.gamma(0.2, 1, columns), (rows, columns))
    return truth, np.maximum(truth + rng.laplace(0, noise, truth.shape), 0)


@pytest.fixture(scope="module")
def noisy():
    truth, other = sparse()
    area = np.arange(len(truth)) % 7
    frames = [
        {"area": area, **{f"type {i}": table[:, i] for i in range(20)}} for table in (truth, other)
    ]
    return separability(*frames, groups="area", random_state=2, classifier="logistic")


def test_noise_on_empty_cells_is_found_and_explained(noisy):
    assert noisy.value > 0.5
    assert noisy.p_value == pytest.approx(1 / 21)
    assert noisy.interval()[0] > 0
    assert any(hint.startswith("Lost zeros") for hint in noisy.deep_dive.hints)
    assert any(hint.startswith("Fractions in") for hint in noisy.deep_dive.hints)
    strongest = noisy.deep_dive.clues[0]
    assert strongest.weight < 0
    assert strongest.nonzero_true < strongest.nonzero_privatized


def test_the_score_is_the_mean_of_the_papers_ratio_over_shuffles(noisy):
    ratios = [noisy.accuracy / each - 1 for each in noisy.numbers.shuffled]
    assert len(ratios) == 20
    assert noisy.value == pytest.approx(np.mean(ratios))
    assert noisy.spread == pytest.approx(np.std(ratios, ddof=1))
    assert noisy.value <= noisy.ceiling


def test_the_bound_is_twice_the_accuracy_less_one_and_wider_in_the_population(noisy):
    bound = noisy.error_bound
    assert bound.on_these_rows == pytest.approx(2 * noisy.accuracy - 1)
    slack = math.sqrt((2 / 300) * math.log(20) / 2)
    assert bound.in_population() == pytest.approx(min(1, bound.on_these_rows + slack))


def test_variances_within_and_between_groups_add_up_to_the_whole(noisy):
    (grouping,) = noisy.deep_dive.groups
    assert grouping.total == pytest.approx(noisy.deep_dive.probabilities["privatized"].variance)
    means = [group.probability for group in grouping.groups]
    assert means == sorted(means)
    assert sum(group.rows for group in grouping.groups) == 300


def test_every_face_of_the_plain_score_says_that_it_is_for_the_custodian_only(noisy):
    faces = [str(noisy), repr(noisy), noisy.as_dict()["audience"], noisy._repr_html_()]
    faces += [noisy.html().split("<main>")[0], repr(noisy.deep_dive), noisy.__doc__]
    for face in faces:
        assert "custodian only" in face


def test_json_is_json_and_a_page_needs_nothing_from_elsewhere(noisy, tmp_path):
    assert json.loads(json.dumps(noisy.as_dict(), allow_nan=False))["separability"] > 0.5
    page = noisy.save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4 + len(noisy.deep_dive.histograms)
    for foreign in ("<script", "<link", "@import", "url("):
        assert foreign not in page
    with pytest.raises(ArgumentError, match=r"must be saved as \.html"):
        noisy.save(tmp_path / "report.pdf")


def test_both_roc_curves_go_from_corner_to_corner(noisy):
    for curve in noisy.roc.values():
        assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
        assert list(curve.fpr) == sorted(curve.fpr)


def test_copies_score_below_zero_and_it_is_said_instead_of_clipped():
    truth, _ = sparse()
    found = separability(truth, truth, random_state=1)
    assert found.value < 0
    assert found.p_value == 1
    assert "copies" in str(found)


def test_mixed_types_missing_values_and_unseen_categories():
    rng = np.random.default_rng(4)
    truth = pyarrow.table(
        {
            "age": pyarrow.array([None if i % 9 == 0 else float(i % 50) for i in range(200)]),
            "town": ["Lyon" if i % 3 else None for i in range(200)],
            "code": [f"{i % 5:03d}" for i in range(200)],
            "huge": [1e300 * (i % 2) for i in range(200)],
            "alive": [bool(i % 2) for i in range(200)],
            "day": pyarrow.array(range(200), pyarrow.int32()).cast(pyarrow.date32()),
            "same": [3] * 200,
            "nothing": pyarrow.nulls(200),
        }
    )
    order = rng.permutation(200)
    alike = truth.take(pyarrow.array(order))
    towns = ["Atlantis" if i % 2 else "Lyon" for i in range(200)]
    changed = alike.set_column(1, "town", pyarrow.array(towns))
    assert separability(truth, alike, random_state=1).value < 0.05
    found = separability(truth, changed, random_state=1)
    assert found.value > 0.2
    assert found.deep_dive.clues[0].column == "town"
    assert any(
        "Categories of town that the truth does not have" in h for h in found.deep_dive.hints
    )
    assert set(found.deep_dive.constant) == {"same", "nothing"}
    assert "code = 001" in {clue.name for clue in found.deep_dive.clues}


def test_a_csv_file_is_read_as_the_frame_it_came_from(tmp_path):
    truth, other = sparse(rows=120, columns=5)
    paths = []
    for name, table in (("truth", truth), ("privatized", other)):
        path = tmp_path / f"{name}.csv"
        np.savetxt(path, table, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.17g")
        paths.append(path)
    frames = [{n: t[:, i] for i, n in enumerate("abcde")} for t in (truth, other)]
    from_files = separability(*paths, random_state=3)
    assert from_files.value == separability(*frames, random_state=3).value


def test_different_row_counts_are_balanced_by_weight():
    assert balance(np.array([True] * 1 + [False] * 9)).tolist() == [5.0] + [10 / 18] * 9
    rng = np.random.default_rng(8)
    found = separability(rng.normal(size=(900, 3)), rng.normal(size=(100, 3)), random_state=1)
    low, high = found.interval()
    assert low <= 0 <= high
    assert 0.4 < found.accuracy < 0.65  # calling every row true would reach 0.9 unbalanced


def test_a_classifier_without_weights_gets_the_longer_side_thinned():
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(8)
    found = separability(
        rng.normal(size=(90, 2)),
        rng.normal(3, 1, size=(60, 2)),
        classifier=KNeighborsClassifier(5),
        shuffles=5,
        random_state=1,
    )
    assert found.dropped_rows == 30
    assert found.numbers.rows == (60, 60)
    assert found.value > 0.2
    assert found.deep_dive.method == "permutation"


def test_a_tree_finds_what_is_not_linear():
    rng = np.random.default_rng(8)
    truth, other = rng.normal(size=(400, 2)), rng.normal(size=(400, 2))
    other[:, 1] = np.sign(rng.normal(size=400)) * (2 + rng.normal(size=400) * 0.1)
    line = separability(truth, other, classifier="logistic", random_state=1)
    tree = separability(truth, other, classifier="tree", random_state=1)
    assert line.value < 0.1
    assert "each column by itself" in line.verdict
    assert tree.value > 0.4
    assert tree.deep_dive.method == "impurity"


def test_tables_without_a_varying_column_score_0():
    found = separability(np.ones((30, 2)), np.ones((40, 2)), shuffles=5)
    assert (found.value, found.p_value, found.interval()) == (0, 1, (0, 0))
    assert "cannot tell" in found.html()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shuffles": 1}, ArgumentError, "shuffles must be a whole number from 2"),
        ({"classifier": "forest"}, ArgumentError, "classifier must be 'both', 'logistic', 'tree'"),
        ({"classifier": object()}, ArgumentError, "classifier must be"),
        ({"groups": "nowhere"}, MissingColumn, "groups must name columns"),
        ({"ignore": ["0", "1", "2"]}, ArgumentError, "tables must have a column to compare"),
        ({"privatized": np.ones((5, 2))}, MissingColumn, "the same columns, got 2 on one side"),
        ({"privatized": np.ones((0, 3))}, EmptyTable, "privatized must have at least one row"),
        ({"privatized": np.ones(3)}, ArgumentError, "two dimensions"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, error, message):
    arguments = {"truth": np.ones((5, 3)), "privatized": np.zeros((5, 3)), **change}
    with pytest.raises(error, match=message):
        separability(**arguments)


@pytest.mark.parametrize("first", ["pass", "import heldout.questions.separability.result"])
def test_the_package_of_that_name_does_not_hide_the_function(first: str) -> None:
    code = f"{first}\nimport heldout as ho\nprint(callable(ho.separability))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


# --- the forest beside it ------------------------------------------------------------------------


def joined(rows, *, seed):
    """Three columns that go together."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=rows)
    second = first + rng.normal(size=rows) * 0.3
    return np.stack([first, second, np.sign(first * second) + rng.normal(size=rows) * 0.3], axis=1)


def test_a_copy_with_independent_columns_is_seen_and_ranked_below_a_good_one():
    truth, good = joined(600, seed=1), joined(600, seed=2)
    rng = np.random.default_rng(3)
    crude = np.stack([rng.permutation(column) for column in joined(600, seed=4).T], axis=1)
    found = {
        name: separability(truth, copy, shuffles=5, random_state=1)
        for name, copy in (("good", good), ("crude", crude))
    }
    assert found["crude"].value > 0.3
    assert found["good"].value < 0.15
    assert found["crude"].p_value == found["crude"].least_p_value == 1 / 6, "five shuffles"
    assert found["crude"].ensemble.p_value < 0.001
    page = found["crude"].html()
    assert "The random forest on held-out rows, whose number the headline is" in page
    assert f"{found['crude'].paper_value:.3f}" in page
    assert found["crude"].deep_dive.method == "impurity", "of the headline's classifier"
    assert next(iter(found["crude"].as_dict()["roc"])) == "random forest on held-out rows"
    assert "easily" in found["crude"].verdict or "partly" in found["crude"].verdict
    assert found["crude"].paper_value < 0.1, "a linear classifier is blind to it"
    assert "forest" in str(found["crude"])
    assert found["crude"].as_dict()["ensemble"]["detection_auc"] > 0.7


@pytest.mark.slow
def test_on_alike_tables_the_forest_keeps_to_its_size():
    from heldout.questions.separability import fits as ensemble

    rng = np.random.default_rng(9)
    labels = np.arange(80) < 40
    seen = [
        ensemble.fit_forest(rng.normal(size=(80, 2)), labels, seed=each).p_value < 0.2
        for each in range(20)
    ]
    # At a fifth each, ten or more of 20 have a chance of 3 in 1,000; none has one of 1 in 100.
    assert sum(seen) < 10


def test_a_handful_of_rows_has_no_forest():
    found = separability(np.eye(3), np.eye(3) + 1, shuffles=2, random_state=1)
    assert found.ensemble is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_index_that_pandas_wrote_is_no_feature(tmp_path, kind):
    rng = np.random.default_rng(3)
    for name, start in (("truth", 0), ("copy", 10_000)):
        index = rng.permutation(200) + start
        frame = pd.DataFrame({"age": rng.integers(20, 60, 200)}, index=index)
        getattr(frame, f"to_{kind}")(tmp_path / f"{name}.{kind}")
    pair = (tmp_path / f"truth.{kind}", tmp_path / f"copy.{kind}")
    found = separability(*pair, shuffles=5, random_state=0)
    assert found.columns == 1
    assert found.value < 0.3, "the numbers of the rows would tell every row"
    assert set(public_table(pair[1], ignore=(), categorical=()).numbers) == {"age"}
    [name] = found.left_out
    assert f"Left out as an index: {name!r}" in str(found)
    assert found.as_dict()["left_out"] == [name]
    ignored = separability(*pair, ignore=name, shuffles=5, random_state=0)
    assert ignored.left_out == ()
    assert "Left out" not in str(ignored)
