"""A linear model as JSON: what R and statsmodels print is understood, all else is refused."""

import json
import math
from typing import Any

import pytest

import heldout as ho
from heldout.errors import HeldoutError, UnusableModel
from heldout.models.model import LinearModel

ROWS = {"age": [40.0, 60.0, None], "sex": ["F", "M", "M"], "dose": [1, 2, 3]}


def scores(model: Any, rows: Any = ROWS, default: float = -9.0) -> list[float]:
    found = ho.models.score(ho.models.load(model), rows, default=default)
    return [float(each) for each in found.to_arrow()["score"].to_pylist()]


@pytest.mark.parametrize(
    ("link", "mean"),
    [
        ("identity", lambda z: z),
        ("logit", lambda z: 1 / (1 + math.exp(-z))),
        ("probit", lambda z: 0.5 * math.erfc(-z / math.sqrt(2))),
        ("log", math.exp),
    ],
)
def test_each_link_gives_the_mean(link: str, mean: Any) -> None:
    found = scores({"coefficients": {"age": 0.01}, "intercept": -0.5, "link": link})
    assert found == pytest.approx([mean(-0.1), mean(0.1), -9.0], abs=1e-12)


@pytest.mark.parametrize(
    "coefficients",
    [
        {"(Intercept)": 1.0, "sexM": 0.5},
        {"Intercept": 1.0, "sex[T.M]": 0.5},
        {"const": 1.0, "C(sex)[T.M]": 0.5},
    ],
)
def test_names_that_r_and_statsmodels_give_to_levels_are_understood(coefficients: Any) -> None:
    model = {"coefficients": coefficients, "levels": {"sex": ["F", "M"]}}
    assert scores(model) == [1.0, 1.5, 1.5]
    assert scores(json.dumps(model).encode()) == [1.0, 1.5, 1.5]


def test_a_level_that_is_not_declared_gets_the_default() -> None:
    assert scores({"coefficients": {"sex": {"F": 2.0}}}) == [2.0, -9.0, -9.0]


def test_a_number_counts_by_its_bin_and_what_is_missing_gets_the_default() -> None:
    steps = {"edges": [40, 50], "weights": [1, 2, 4]}
    model = {"coefficients": {"age": steps, "dose": 0.5}}
    assert scores(model) == [2.5, 5.0, -9.0], "a value on an edge is in the bin above it"
    assert scores(model, {"age": [-1e9, 49.9, 1e9], "dose": [0, 0, 0]}) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "steps",
    [
        {"edges": [2, 1], "weights": [0, 0, 0]},
        {"edges": [1], "weights": [0]},
        {"edges": 1, "weights": [0]},
        {"edges": ["x"], "weights": [0, 1]},
    ],
)
def test_bins_that_make_no_sense_are_refused(steps: Any) -> None:
    with pytest.raises(UnusableModel, match="age"):
        LinearModel.parse({"coefficients": {"age": steps}})


def test_a_row_is_scored_alike_wherever_it_stands() -> None:
    model = {"coefficients": {"age": 0.013, "dose": 0.7}, "link": "logit"}
    many = {"age": [41.5] * 37, "dose": [2] * 37}
    (alone,) = scores(model, {"age": [41.5], "dose": [2]})
    assert scores(model, many) == [alone] * 37


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"coefficients": {}},
        {"coefficients": {"a": "1"}},
        {"coefficients": {"a": True}},
        {"coefficients": {"a": math.inf}},
        {"coefficients": {"a": 10**400}},
        {"coefficients": {"a": 1}, "link": "cloglog"},
        {"coefficients": {"a": 1}, "link": ["logit"]},
        {"coefficients": {"a": 1}, "levels": {"a": ["x"]}},
        {"coefficients": {"a": 1}, "levels": {"b": []}},
        {"coefficients": {"a": 1}, "levels": {"b": ["x", "x"]}},
        {"coefficients": {"a": 1}, "levels": ["b"]},
        {"coefficients": {"a": 1}, "weights": [1]},
        {"coefficients": {f"a{i}": 1 for i in range(5000)}},
        {"coefficients": {"(Intercept)": 1}},
        b'{"coefficients": {"a": 1, "a": 2}}',
        b'{"coefficients": {"a": NaN}}',
        b'{"coefficients": ' + b"[" * 10_000,
        b"{",
        b"{" + b" " * 2**21 + b"}",
    ],
)
def test_what_is_no_linear_model_is_refused(content: Any) -> None:
    with pytest.raises(UnusableModel):
        ho.models.load(content)


def test_numbers_too_large_for_the_link_give_the_default() -> None:
    model = {"coefficients": {"age": 1e300}, "link": "log"}
    assert scores(model, {"age": [1e300, 1.0, 0.0]}) == [-9.0, -9.0, 1.0]


def test_a_text_where_a_number_is_declared_is_refused_by_its_type() -> None:
    with pytest.raises(HeldoutError, match="is of kind text"):
        scores({"coefficients": {"sex": 1.0}})


def test_numbers_by_column_alone_are_a_model_with_the_identity_link() -> None:
    plain = LinearModel.parse({"intercept": 20, "age": 3})
    assert plain == LinearModel.parse({"coefficients": {"age": 3}, "intercept": 20})
    assert plain.link == "identity"
