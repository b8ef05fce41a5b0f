"""Linear regression: moments and influences brute-forced, what a fit means, what it costs."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests import chances

import heldout as ho
from heldout import questions as q
from heldout.data import sql
from heldout.errors import ArgumentError, PrivacyError
from heldout.kernel import Neighbours, Protection, price
from heldout.kernel.accountant import charge
from heldout.kernel.statistic import STEPS, Sealed, Statistic
from heldout.questions.linear.design import Design, parse_formula, parse_term
from heldout.questions.linear.fit import BilinearNoise, FitPlan, Fitted
from heldout.questions.linear.moments import Influences, Moments

BOUNDS = {"y": (0.0, 1.0), "x": (-2.0, 2.0), "s": (0.0, 1.0)}
PLACES = {"y": 0, "x": 1, "s": 2}
DESIGNS = [
    Design("y", tuple(map(parse_term, terms)), PLACES, BOUNDS)
    for terms in (("x",), ("x", "s"), ("x", "x^2"), ("s", "x", "s:x"))
]
VALUES = list(itertools.product((0.0, 1.0, 0.5, 7.0), (-2.0, 0.0, 2.0, -9.0), (0.0, 1.0)))
PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2))
]


def vectors(statistic: Statistic) -> Any:
    """The statistic of each row alone, by its own statement: it is a sum over rows."""
    names = [f"value_{place}" for place in range(3)]
    columns = dict(zip(names, map(list, zip(*VALUES, strict=True)), strict=True))
    connection = duckdb.connect()
    connection.register("rows", pa.table({"which": list(range(len(VALUES))), **columns}))
    rows = sql.assemble("SELECT * FROM rows WHERE rows.which = whole.which", statistic.body())
    found = connection.execute(
        f"SELECT whole.which AS which, answer.* FROM range({len(VALUES)}) AS whole(which),"
        f" LATERAL ({rows}) AS answer ORDER BY 1"
    ).fetchnumpy()
    each = [
        statistic.read({name: column[at : at + 1] for name, column in found.items()})
        for at in range(len(VALUES))
    ]
    return np.array(each)


def changes(protection: Protection) -> Any:
    """Which rows may leave and arrive: up to k of each, as `Protection` says."""
    most = protection.rows_per_unit
    for leave, arrive in protection.changes():
        if max(leave, arrive) <= most:
            yield leave, arrive


@pytest.mark.parametrize("design", DESIGNS, ids=lambda each: "+".join(each.names))
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_no_neighbours_move_the_moments_further_than_claimed_and_some_do_as_far(
    design: Design, protection: Protection
) -> None:
    statistic = Moments(design)
    size = statistic.size
    above, right = np.triu_indices(size)
    matrices = np.zeros((len(VALUES), size, size))
    entries = vectors(statistic)
    matrices[:, above, right] = matrices[:, right, above] = entries
    traces = np.trace(matrices, axis1=1, axis2=2)
    assert (np.linalg.eigvalsh(matrices)[:, 0] > -1e-3).all(), "a row adds a positive matrix"
    largest = 0.0
    for leave, arrive in changes(protection):
        largest = max(largest, leave * traces.max() + arrive * traces.max())
        # All pairs, with the same row several times: the trace norm is never more than that.
        moved = arrive * matrices[:, None] - leave * matrices[None, :]
        norms = np.abs(np.linalg.eigvalsh(moved)).sum(axis=2)
        assert norms.max() <= statistic.trace(protection) * (1 + 1e-12)
    assert largest == statistic.trace(protection), "the claim is too large: noise for nothing"


@pytest.mark.parametrize("design", DESIGNS, ids=lambda each: "+".join(each.names))
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_no_neighbours_move_the_entries_further_than_claimed_in_squares_and_some_nearly_do(
    design: Design, protection: Protection
) -> None:
    statistic = Moments(design)
    entries = vectors(statistic).astype(float)
    largest = 0.0
    for leave, arrive in changes(protection):
        moved = arrive * entries[:, None] - leave * entries[None, :]
        largest = max(largest, float((moved**2).sum(axis=2).max()))
    claimed = float(statistic.l2_squared(protection))
    assert largest <= claimed * (1 + 1e-12)
    # Rows at the corners of bounds attain it but for a product that is not quite zero.
    assert largest > 0.8 * claimed, "the claim is too large: noise for nothing"


INFLUENCES = [
    Influences(DESIGNS[0], weights=((0.5, 3.0), (2.0, -1.0)), fit=(0.0, 0.25)),
    Influences(DESIGNS[1], weights=((3.0, 3.0, -3.0),) * 3, fit=(0.1, 0.0, 0.0)),
]


@pytest.mark.parametrize("statistic", INFLUENCES, ids=["two", "three"])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_no_neighbours_move_the_influences_further_than_claimed_and_some_do_as_far(
    statistic: Influences, protection: Protection
) -> None:
    entries = vectors(statistic)
    assert entries.min() >= 0
    largest = 0
    for leave, arrive in changes(protection):
        moved = np.abs(arrive * entries[:, None] - leave * entries[None, :]).sum(axis=2)
        largest = max(largest, int(moved.max()))
    assert largest == statistic.sensitivity(protection)


@pytest.mark.parametrize("statistic", INFLUENCES, ids=["two", "three"])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_no_neighbours_move_influences_further_than_claimed_in_squares(
    statistic: Influences, protection: Protection
) -> None:
    entries = vectors(statistic)
    largest = 0
    for leave, arrive in changes(protection):
        moved = arrive * entries[:, None] - leave * entries[None, :]
        largest = max(largest, int((moved**2).sum(axis=2).max()))
    assert largest == statistic.l2_squared(protection)


# --- what a fit means ----------------------------------------------------------------------------

GENERATOR = np.random.default_rng(35)


def people(count: int = 4000) -> dict[str, Any]:
    age = GENERATOR.integers(16, 91, count).astype(float)
    sex = GENERATOR.integers(0, 2, count)
    pay = 20_000 + 3_000 * age - 25 * age**2 - 6_000 * sex + GENERATOR.normal(0, 8_000, count)
    return {"age": age, "sex": sex, "pay": pay, "who": np.arange(count) // 2}


FEATURES: dict[str, Any] = {"age": (16, 90), "sex": (0, 1)}
ROWS = people()


def least_squares(*columns: Any) -> Any:
    design = np.column_stack([np.ones(len(ROWS["pay"])), *columns])
    return np.linalg.lstsq(design, ROWS["pay"], rcond=None)[0]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_at_a_high_price_a_fit_is_that_of_least_squares(relation: str) -> None:
    model = ho.regression.fit(
        ROWS,
        outcome="pay",
        features=FEATURES,
        terms=["age", "age^2", "sex", "age:sex"],
        bounds=(-50_000, 250_000),
        epsilon=10**6,
        neighbours=relation,
    )
    age, sex = ROWS["age"], ROWS["sex"]
    exact = least_squares(age, age**2, sex, age * sex)
    released = [model.intercept, *model.coefficients.values()]
    assert np.array(released) == pytest.approx(exact, rel=0.02)
    row = {"age": 40, "sex": 1}
    own = exact @ [1, 40, 1600, 1, 40]
    assert model.predict(row).value == pytest.approx(own, rel=0.01)
    assert model.residual_deviation == pytest.approx(8_000, rel=0.05)
    # Without noise the standard errors are those of the textbook.
    design = np.column_stack([np.ones(4000), age, age**2, sex, age * sex])
    errors = 8_000 * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    assert list(model.standard_errors.values()) == pytest.approx(errors, rel=0.12)


def test_words_of_a_column_may_be_features() -> None:
    rows = {**ROWS, "sex": np.where(ROWS["sex"] == 1, "F", "M")}
    model = ho.regression.fit(
        rows,
        outcome="pay",
        features={"age": (16, 90), "sex": {"M": 0, "F": 1}},
        bounds=(-50_000, 250_000),
        epsilon=10**6,
    )
    assert model.coefficients["sex"].value == pytest.approx(
        least_squares(ROWS["age"], ROWS["sex"])[2], rel=0.02
    )
    assert model.kind == "linear-regression"
    assert "raises" in str(model.finding()) or "lowers" in str(model.finding())


def test_noise_that_hides_everything_gives_intervals_without_ends_and_json_without_infinity() -> (
    None
):
    model = ho.regression.fit(
        ROWS, outcome="pay", features=FEATURES, bounds=(-50_000, 250_000), epsilon="0.001"
    )
    assert not model.identified
    assert model.coefficients["age"].interval() == (-math.inf, math.inf)
    assert not model.coefficients["age"].informative
    assert "no information at this price" in str(model)
    content = json.loads(model.to_json())
    assert content["measures"]["coefficient of age"]["interval"] == [None, None]
    assert "Noise hides" in str(model.finding())
    assert model._repr_html_()


@pytest.mark.parametrize("unit", [{}, {"unit": "who", "rows_per_unit": 2}])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_ledger_takes_exactly_epsilon(relation: str, unit: dict[str, Any]) -> None:
    values = {**FEATURES, "pay": (-50_000, 250_000)}
    rows = ho.Dataset(ROWS, values=values, neighbours=relation, **unit)
    session = ho.Session(rows, budget=ho.Budget(epsilon=2))
    release = session.linear_regression("pay", ["age", "sex"], epsilon="1/3")
    assert price(release._drawn.request.event()) == ho.Loss.pure(Fraction(1, 3))
    assert session.remaining == ho.Loss.pure(Fraction(5, 3))


def test_a_budget_of_rho_pays_half_the_square_of_each_part() -> None:
    rows = ho.Dataset(ROWS, values={**FEATURES, "pay": (-50_000, 250_000)})
    session = ho.Session(rows, budget=ho.Budget(rho=1))
    session.linear_regression("pay", ["age", "sex"], epsilon=1)
    assert session.spent == ho.Loss.zcdp((Fraction(9, 10) ** 2 + Fraction(1, 10) ** 2) / 2)


def test_gaussian_noise_costs_half_the_square_of_epsilon_in_rho_and_is_refused_elsewhere() -> None:
    rows = ho.Dataset(ROWS, values={**FEATURES, "pay": (-50_000, 250_000)})
    session = ho.Session(rows, budget=ho.Budget(rho=1))
    release = session.linear_regression("pay", ["age", "sex"], epsilon="1/3", noise="gaussian")
    assert release.loss == session.spent == ho.Loss.zcdp(Fraction(1, 18))
    assert release.parameters["noise"] == "gaussian"
    assert "rho 1/18" in str(release)
    pure = ho.Session(rows, budget=ho.Budget(epsilon=3, delta="1e-6"))
    with pytest.raises(PrivacyError, match=r"Budget\(rho"):
        pure.linear_regression("pay", ["age", "sex"], epsilon=1, noise="gaussian")
    assert pure.remaining == ho.Loss.approximate(3, "1e-6")


@pytest.mark.parametrize("design", DESIGNS, ids=lambda each: "+".join(each.names))
def test_gaussian_noise_is_less_than_half_as_wide_for_the_same_rho(design: Design) -> None:
    words: dict[str, Any] = {"design": design, "protection": PROTECTIONS[0], "rows": 4000}
    own = [FitPlan(epsilon=Fraction(1), noise=noise, **words) for noise in ("pure", "gaussian")]
    left, right = np.ones(design.size + 1), np.arange(design.size + 1.0)
    wide, narrow = (BilinearNoise.of(left, right, plan.moments_noise).reach(0.95) for plan in own)
    assert narrow < 0.5 * wide
    charged = [charge(plan.staged().event(), budget=ho.Budget(rho=1)).rho for plan in own]
    assert charged == [Fraction(41, 100), Fraction(1, 2)]


@pytest.mark.chance(1e-7, "a binomial tail of 5e-8 on both sides")
def test_the_noise_of_a_gaussian_fit_lies_within_its_interval_as_often_as_it_says() -> None:
    plan = FitPlan(
        design=DESIGNS[1],
        epsilon=Fraction(1, 10),
        protection=PROTECTIONS[0],
        rows=None,
        noise="gaussian",
    )
    size, noise = plan.moments.size, plan.moments_noise
    left, right = np.array([0.5, -1.0, 2.0, 0.0]), np.array([1.0, 0.25, -2.0, 1.0])
    law = BilinearNoise.of(left, right, noise)
    above, across = np.triu_indices(size)
    inside, runs = 0, 4000
    for _ in range(runs):
        matrix = np.zeros((size, size))
        matrix[above, across] = matrix[across, above] = noise.sample(Sealed([0] * len(above)))
        inside += abs(left @ matrix @ right) <= law.reach(0.5)
    assert chances.improbability(inside, runs, 0.5) > 5e-8


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize("entry", [0, 1, -1, 2**62, -(2**62), 10**9])
def test_a_fit_of_any_noise_can_be_read(entry: int, noise: str) -> None:
    """Whatever was drawn: weights of the second step are finite, and nothing fails to print."""
    for design in DESIGNS:
        plan = FitPlan(
            design=design,
            epsilon=Fraction(1),
            protection=Protection(neighbours="add-remove"),
            rows=None,
            noise=noise,
        )
        entries = plan.moments.size * (plan.moments.size + 1) // 2
        fitted = Fitted(plan, (entry,) * entries)
        weights, coded = fitted.influence_weights
        assert np.isfinite(weights).all()
        assert np.isfinite(coded).all()
        assert np.isfinite(fitted.factors(np.full(design.size, entry))).all()
        Influences(design, weights, coded).body()


def test_a_quote_is_close_to_what_is_released() -> None:
    values = {**FEATURES, "pay": (-50_000, 250_000)}
    session = ho.Session(ho.Dataset(ROWS, values=values), budget=ho.Budget(epsilon=100))
    question = q.LinearRegression(outcome="pay", features=["age", "sex"], epsilon=50)
    quoted = session.quote(question).half_widths[0]
    release = session.ask(question)
    for name, measure in release.measures.items():
        low, high = measure.interval()
        assert 0.1 < quoted[name].whole / ((high - low) / 2) < 10


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (["age^2"], "must have age"),
        (["age", "age"], "all different"),
        (["age + sex"], "A term must be"),
        (["pay"], "must not be a term"),
        (["height"], "No column"),
        ([], "name a column"),
        (["age:"], "A term must be"),
        (["__import__('os')"], "A term must be"),
    ],
)
def test_models_that_cannot_be_fitted_are_refused(features: list[str], words: str) -> None:
    values = {**FEATURES, "pay": (-50_000, 250_000)}
    session = ho.Session(ho.Dataset(ROWS, values=values), budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match=words):
        session.linear_regression("pay", features, epsilon=1)
    assert session.remaining == ho.Loss.pure(1)


def test_bounds_that_no_double_can_square_are_refused_before_they_are_paid() -> None:
    rows = {"a": [0.0, 1e100], "b": [0.0, 1e-141], "c": [0.0, 1.0]}
    values = {"a": (-1e140, 1e140), "b": (0, 1e-140), "c": (-1e140, 1e140)}
    door = ho.Session(ho.Dataset(rows, values=values), budget=ho.Budget(epsilon=2))
    with pytest.raises(ArgumentError, match="other units"):
        door.linear_regression("a", ["b"], epsilon=1)
    with pytest.raises(ArgumentError, match="other units"):
        door.conclusion("root_mean_squared_error('a', 'c') < 1", epsilon=1)
    assert door.spent == ho.Loss.pure(0)
    assert json.loads(door.linear_regression("c", ["a"], epsilon=1).to_json())


@pytest.mark.parametrize("text", ["pay", "~ age", "pay ~", "pay ~ age +", "pay ~ age^3", "a b ~ c"])
def test_formulas_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_formula(text)


def test_a_name_with_spaces_goes_in_backquotes() -> None:
    outcome, terms = parse_formula("`net pay` ~ `hours per week` + `hours per week`^2")
    assert outcome == "net pay"
    assert [term.name for term in terms] == ["hours per week", "hours per week^2"]
    question = q.LinearRegression(outcome="y", features=["`a b`", "`a b`^2"], epsilon=1)
    assert q.from_dict(question.as_dict()) == question
    assert STEPS == 2**20


def test_a_fit_prints_every_coefficient_and_its_terms_once() -> None:
    rows = {"a": [0.25, 0.5, 0.75, 1.0] * 50, "b": [0.0, 1.0] * 100}
    fit = ho.regression.fit(rows, outcome="a", features={"b": (0, 1)}, bounds=(0, 1), epsilon="1")
    first, *lines = str(fit).splitlines()
    assert first == "a, linear regression, epsilon 1, replace-one neighbours"
    assert [
        line.strip().startswith(name) for line, name in zip(lines, fit.measures, strict=True)
    ] == [True, True]
