"""What the fuzzers found, entry by entry, and stays found."""

from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.cli import main
from heldout.errors import ArgumentError

X, Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]]), [1, 0, 1, 0]


@pytest.mark.parametrize("value", [7, "x", [[1]], [], np.ones((4, 5)), np.array(1.0), None])
def test_a_selection_transforms_a_matrix_with_its_features_alone(value: Any) -> None:
    found = ho.features.select(X, Y, epsilon="1", k=1)
    assert found.transform(X).shape == (4, 1)
    assert found.transform([[1, 0]]).shape == (1, 1)
    with pytest.raises(ArgumentError):
        found.transform(value)


@pytest.mark.parametrize("value", [(), 1j, "x", 10**5000], ids=range(4))
def test_a_selections_level_is_a_level(value: Any) -> None:
    with pytest.raises(ArgumentError, match="level must lie"):
        ho.features.select(X, Y, epsilon="1", k=1).score_interval(value)


@pytest.mark.parametrize("value", [7, "a", {"a": 1}, object()])
def test_columns_of_features_are_named_in_a_list(value: Any) -> None:
    rows = {"y": Y, "a": [1, 0, 1, 1]}
    with pytest.raises(ArgumentError, match="features must be names"):
        ho.features.FeatureMatrix.from_table(rows, label="y", features=value)


@pytest.mark.parametrize("value", [0.5, -1, "1", 10**30])
def test_separability_starts_from_a_whole_number(value: Any) -> None:
    with pytest.raises(ArgumentError, match="random_state must be"):
        ho.separability(X, X, random_state=value)


@pytest.mark.parametrize("value", [7, 0.5, b"a", {"a": 1}, [1], np.zeros(2)])
def test_columns_of_separability_are_names(value: Any) -> None:
    with pytest.raises(ArgumentError, match="ignore must be names"):
        ho.private_separability(X, X, epsilon="1", ignore=value)


def test_a_ledger_with_a_name_too_long_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show", "p" * 5000]) == 2
    assert "No such " in capsys.readouterr().err


@pytest.mark.parametrize("value", ["Canaria", [[1.0]], [float("nan")], 7, [1j], [{}]], ids=str)
def test_an_attack_quotes_no_cell(value: Any) -> None:
    scores = [0.25, 0.5, 0.75, 1.0]
    asked = [
        lambda: ho.audit.exposure(value, scores),
        lambda: ho.audit.exposure(Y, value),
        lambda: ho.audit.label_from_auc(value, [0.5], 0.5),
        lambda: ho.audit.label_from_average_precision([0.5], value, 0.5),
        lambda: ho.audit.label_from_roc([0.5], [0.5], value),
    ]
    for each in asked:
        with pytest.raises(ArgumentError) as caught:
            each()
        assert "Canaria" not in f"{caught.value} {caught.value.__context__!r}"


ODD = [3, 1j, {"a": 1}, np.array([]), [[]]]


@pytest.mark.parametrize("value", ODD, ids=str)
def test_names_of_methods_sections_and_data_are_names(value: Any) -> None:
    rows = {"y": Y, "p": [0.1, 0.2, 0.3, 0.4]}
    session = ho.Session(ho.Dataset(rows, label="y", score="p"), budget=ho.Budget(epsilon=9))
    asked = [
        lambda: session.auc(epsilon="1", method=value),
        lambda: session.compare(score="p", epsilon="1", method=value),
        lambda: session.report(epsilon="1", sections=value),
        lambda: session.report(epsilon="1", curves=value),
        lambda: ho.features.select(X, Y, epsilon="1", method=value),
        lambda: ho.Dataset(rows, label="y", score="p", name=value),
        lambda: session._ledger.verify(receipt=value),
    ]
    for each in asked:
        with pytest.raises(ArgumentError):
            each()
    assert session.spent == ho.Loss.pure(0)


@pytest.mark.parametrize("epsilon", ["1e400", "5e-324", "1/1000001"])
def test_a_logistic_regression_refuses_a_price_that_no_double_holds(epsilon: str) -> None:
    with pytest.raises(ArgumentError, match="epsilon must lie between"):
        ho.features.PrivateLogisticRegression(epsilon=epsilon).fit(X, Y)


def test_a_count_of_rows_may_be_a_numpy_integer() -> None:
    found = ho.plan(
        rows=1000, positives=500, auc=0.8, target=0.05, unit=True, rows_per_unit=np.uint8(2)
    )  # type: ignore[arg-type]
    assert found.epsilon > 0


def test_a_confusion_matrix_is_read_at_any_epsilon_and_any_weight() -> None:
    """Noise of no width, and weights whose fourth powers are no doubles, overflowed."""
    found = ho.confusion_matrix([0, 1] * 200, [0, 1, 1, 0] * 100, epsilon="1e12")
    assert found.matthews_correlation.noise_interval() == (0.0, 0.0)
    heavy = ho.confusion_matrix(
        [0, 1, 2, 0], [0, 1, 1, 0], labels=[0, 1, 2], epsilon="1", neighbours="add-remove",
        sample_weight=[5e149] * 4, largest_weight=1e150,
    )  # fmt: skip
    assert all(-1 <= heavy.matthews_correlation.interval()[side] <= 1 for side in (0, 1))
