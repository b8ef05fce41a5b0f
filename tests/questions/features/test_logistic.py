"""Private logistic regression: the density of its minimum, its solver's slack, its manners."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.chances import louder
from tests.questions.features.test_naive_bayes import separable

from heldout.errors import ArgumentError, DataError
from heldout.features import FeatureMatrix, PrivateLogisticRegression
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise.fits import SLACK, ObjectivePerturbation, even_noise
from heldout.kernel.statistic import Sealed
from heldout.questions.features.plans import MARGIN, LogisticLoss, LogisticPlan, TrainingRows
from heldout.questions.features.statistics import UNIT, row_units

FEATURES = 2
ROWS = [(label, mask) for label in (0, 1) for mask in itertools.product((0, 1), repeat=FEATURES)]


def loss_of(weight=1, ridge=Fraction(4), rows=64, features=FEATURES):
    return LogisticLoss(features, weight, ridge, rows)


def matrix_of(rows, features=FEATURES):
    return csr_array(np.array([mask for _, mask in rows], dtype=np.int8).reshape(-1, features))


def rows_of(loss, rows):
    return TrainingRows(
        loss, matrix_of(rows), np.array([label for label, _ in rows], dtype=np.int64)
    )


def whole(loss, found, noise):
    """What is let out, but for the noise at the end."""
    return [round(Fraction(float(v)) / loss.lattice) - z for v, z in zip(found, noise, strict=True)]


def log_density(mechanism, loss, rows, at):
    """Of the ideal minimum at a point, up to a constant: the noise's density times the Jacobian."""
    x = np.array([vector(loss.weight, mask) for _, mask in rows])
    y = np.array([2 * label - 1 for label, _ in rows])
    miss = 1 / (1 + np.exp(y * (x @ at) - MARGIN))
    ridge = float(loss.ridge)
    b = -(-(y * miss) @ x + ridge * at)
    steps = np.rint(b / float(mechanism.step))
    hessian = (x * (miss * (1 - miss))[:, None]).T @ x + ridge * np.eye(len(at))
    far = np.abs(steps).max() if mechanism.even else np.abs(steps).sum()
    return -far / float(mechanism.inner.scale) + np.linalg.slogdet(hessian)[1]


def vector(weight, mask):
    """A row's entries, the constant last."""
    if weight is None:
        return [*(np.array(mask) - 0.5), 0.5]
    return [*(np.array(mask) * min(1, weight / max(sum(mask), 1))), 0.5]


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4)])
@pytest.mark.parametrize("even", [False, True])
def test_the_density_of_the_ideal_minimum_moves_by_no_more_than_claimed(neighbours, epsilon, even):
    protection = Protection(neighbours=neighbours)
    plan = LogisticPlan(
        features=FEATURES,
        features_per_row=FEATURES,
        epsilon=epsilon,
        weight=1,
        ridge=None,
        rows=64,
        most_rows=64,
        protection=protection,
    )
    loss = plan.loss()
    assert loss.weight is None  # two features are few
    if not even:
        loss = replace(loss, weight=1)
        loss = replace(loss, ridge=plan.ridge_for(loss))
    mechanism = plan.mechanism(loss)
    grid = [np.array(at) for at in itertools.product((-3.0, -0.7, 0.0, 0.01, 0.9, 3.0), repeat=3)]
    kept = [(0, (1, 0)), (1, (1, 1))]

    @cache
    def densities(count):
        tables = [[*kept, *rows] for rows in itertools.combinations(ROWS, count)]
        return [
            np.array([log_density(mechanism, loss, rows, at) for at in grid]) for rows in tables
        ]

    most = max(
        np.abs(one - other).max()
        for leave, arrive in protection.changes()
        for one, other in itertools.product(densities(leave), densities(arrive))
    )
    claimed = float(plan.loss_epsilon * (1 - SLACK))
    assert most <= claimed
    assert most > claimed / 3  # a claim a third as large would fail


def test_a_row_reaches_no_further_than_its_claimed_length():
    for weight in (1, 2, 5):
        matrix = csr_array(np.tri(30, 40, 3, dtype=np.int8))
        lengths = row_units(matrix, weight) * np.diff(matrix.indptr)
        assert lengths.max() <= weight * UNIT
        assert (row_units(matrix, weight) <= UNIT).all()


@pytest.mark.parametrize("weight", [1, None])
@pytest.mark.parametrize("size", [0, 3, 10**4, 10**12, 10**17])
def test_two_solutions_of_one_minimum_lie_within_the_slack(size, weight):
    """Other rows, other noise, the same exact minimum: what is rounded lies within the slack."""
    loss = loss_of(weight=weight, ridge=Fraction(2))
    first = ROWS[1:6]
    noise = [size, -size + 5, size // 3]
    rows = rows_of(loss, first)
    at = loss.minimum(rows, noise)
    slope, _ = rows.slope(at, noise)
    assert np.linalg.norm(slope) <= float(loss.tolerance)
    one = whole(loss, at, noise)
    # The neighbour's noise that has its minimum at the same place, to the nearest step.
    second = [*first, ROWS[7]]
    with_more = rows_of(loss, second)
    slope_there, _ = with_more.slope(at, noise)
    shift = [round(Fraction(float(g)) / loss.step) for g in slope_there]
    moved = [z - s for z, s in zip(noise, shift, strict=True)]
    there = loss.minimum(with_more, moved)
    other = [
        round(Fraction(float(v)) / loss.lattice) - z for v, z in zip(there, moved, strict=True)
    ]
    assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= loss.slack


def test_noise_beyond_53_bits_is_not_rounded_where_it_would_be_seen():
    """A coefficient of 1/4 left of two numbers of a million: rounding one of them shows."""
    loss = loss_of(features=2**16, ridge=Fraction(1, 2), rows=2**22)
    far = 2**20
    noise = [far * int(1 / loss.lattice) + 2**8 + 1, *[0] * 2**16]
    assert float(noise[0]) != noise[0]
    at = np.zeros(2**16 + 1)
    at[0] = far
    rows = TrainingRows(loss, csr_array(([1], ([0], [0])), shape=(1, 2**16), dtype=np.int8), [1])
    exact = far - loss.lattice * noise[0]
    allowed = float(loss.row) / 2.0 ** (loss.grain - 1)
    assert abs(Fraction(float(rows.margins(at, noise)[0])) - exact) <= allowed * 2**-20


def test_a_minimum_beyond_64_bits_is_still_a_whole_number():
    loss = loss_of(features=1, ridge=Fraction(1), rows=2**20)
    object.__setattr__(loss, "step", Fraction(1, 2**70))
    rows = {"label": np.ones(2**10, dtype=np.int64), "matrix": csr_array(np.ones((2**10, 1)))}
    found = loss.read(rows)([0, 0])
    assert all(isinstance(each, int) and each > 2**64 for each in found)


def test_the_order_of_rows_moves_the_answer_by_less_than_the_slack():
    rng = np.random.default_rng(1)
    dense = (rng.random((300, 20)) < 0.3).astype(np.int8)
    label = rng.integers(0, 2, 300)
    loss = loss_of(weight=3, rows=300, features=20, ridge=Fraction(8))
    noise = [int(each) for each in rng.integers(-(10**9), 10**9, 21)]
    order = rng.permutation(300)
    one, other = (
        loss.read({"label": label[each], "matrix": csr_array(dense[each])})(noise)
        for each in (np.arange(300), order)
    )
    assert np.abs(one - other).sum() <= loss.slack


@pytest.mark.parametrize("weight", [3, None])
@pytest.mark.parametrize("size", [1.0, 40.0, 200.0])
def test_a_computed_gradient_errs_less_than_the_bound(size, weight):
    rng = np.random.default_rng(2)
    dense = (rng.random((60, 12)) < 0.4).astype(np.int8)
    label = rng.integers(0, 2, 60)
    loss = loss_of(weight=weight, rows=60, features=12, ridge=Fraction(8))
    rows = TrainingRows(loss, csr_array(dense), label)
    at = rng.normal(0, size, 13)
    noise = [int(each) for each in rng.integers(-(10**6), 10**6, 13)]
    found, _ = rows.slope(at, noise)
    units = row_units(csr_array(dense), 3)
    half = Fraction(1, 2)
    whole = [Fraction(float(a)) - loss.lattice * z for a, z in zip(at, noise, strict=True)]
    exact = [loss.ridge * Fraction(float(a)) for a in at]
    for row, unit, y in zip(dense, units, 2 * label - 1, strict=True):
        if weight is None:
            x = [int(each) - half for each in row] + [half]
        else:
            x = [Fraction(int(unit), UNIT) * int(each) for each in row] + [half]
        margin = sum(a * b for a, b in zip(x, whole, strict=True))
        miss = sigmoid(Fraction(MARGIN) - int(y) * margin)
        exact = [a - int(y) * miss * b for a, b in zip(exact, x, strict=True)]
    error = math.sqrt(
        sum(float(Fraction(float(a)) - b) ** 2 for a, b in zip(found, exact, strict=True))
    )
    assert error <= float(loss.error)
    assert float(loss.error) < 1e-6


def sigmoid(x):
    """To 60 digits or so, in rationals."""
    from flint import arb, ctx, fmpq

    before, ctx.prec = ctx.prec, 400
    try:
        value = 1 / (1 + (-arb(fmpq(x.numerator, x.denominator))).exp())
        mantissa, exponent = value.mid().man_exp()
        return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    finally:
        ctx.prec = before


@pytest.mark.parametrize("even", [False, True])
def test_the_parts_of_the_price_add_up_to_epsilon(even):
    for protection in (
        Protection(neighbours="replace-one"),
        Protection(neighbours="add-remove", unit=True, rows_per_unit=3),
    ):
        noise = ObjectivePerturbation(
            epsilon=Fraction(1),
            moved=protection.rows_moved,
            rows_per_unit=protection.rows_per_unit,
            row=6,
            square=7,
            dimension=100,
            ridge=Fraction(64),
            step=Fraction(1, 2**24),
            slack=1000,
            even=even,
        )
        reach = noise.moved * noise.row / noise.step + (1 if even else noise.dimension)
        curved = Fraction(noise.rows_per_unit * noise.square) / (4 * noise.ridge)
        parts = reach / noise.inner.scale + curved + noise.slack / noise.outer.scale
        assert parts == 1
    with pytest.raises(ArgumentError, match="ridge must be larger"):
        ObjectivePerturbation(Fraction(1), 1, 1, 6, 6, 10, Fraction(1), Fraction(1, 2**20), 10)


@pytest.mark.chance(6.2e-07, "gamma tails of 4,000 draws at 5 in 63")
def test_the_drawn_noise_has_the_size_that_the_price_needs():
    noise = ObjectivePerturbation(
        Fraction(1), 1, 1, 6, 6, 4000, Fraction(16), Fraction(1, 2**20), 4000
    )
    drawn = noise.sample(Sealed(lambda z: np.zeros(len(z), dtype=np.int64))) * float(noise.step)
    scale = float(noise.inner.scale * noise.step)
    # Mean |Laplace| of 4,000 draws: standard error scale/63, so 5 of them fail 6 times in 10^7.
    assert abs(np.abs(drawn).mean() / scale - 1) < 5 / 63


@pytest.mark.chance(
    5e-7, "chi-squared of 12 degrees above 55: 1.8e-7; the rest by simulation, below"
)
def test_even_noise_has_the_law_that_its_largest_entry_needs():
    """All of it at a small scale, where the acceptance matters; another scale would be seen."""
    draws, scale = 1_500, Fraction(2)
    seen = Counter(max(map(abs, even_noise(scale, 2))) for _ in range(draws))

    def missed(scale):
        shells = np.array([(2 * r + 1) ** 2 - max(2 * r - 1, 0) ** 2 for r in range(200)])
        law = shells * np.exp(-np.arange(200) / scale)
        law /= law.sum()
        expected = draws * np.append(law[:12], law[12:].sum())
        found = [*(seen[r] for r in range(12)), sum(seen[r] for r in seen if r >= 12)]
        return ((np.array(found) - expected) ** 2 / expected).sum()

    assert missed(2.0) < 55  # chi-squared of 12 degrees: twice in 10^7 runs
    assert missed(2.0 * 1.3) > 55  # 175 is expected, and less than 95 was not seen in 200,000
    entries = np.array([even_noise(Fraction(1000), 40) for _ in range(50)])
    shares = entries / np.abs(entries).max(axis=1, keepdims=True)
    assert abs(np.abs(shares).mean() - 0.5) < 0.05  # spread evenly within the largest


@pytest.mark.parametrize("declared", [None, 1])
def test_a_table_of_few_features_gets_noise_for_the_largest_entry(declared):
    X, y = np.arange(4000).reshape(-1, 10) % 3 == 0, np.arange(400) % 2
    rows = FeatureMatrix(X.astype(int), y, features_per_row=declared)
    told = PrivateLogisticRegression(epsilon="1").fit(rows).release_
    plan = told._drawn.request.reading.plan
    assert (plan.loss().weight is None) == (declared is None)


@pytest.mark.chance(louder(0, 40, 6))
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_plain_signal_is_found(neighbours):
    X, y = separable(3000)
    model = PrivateLogisticRegression(epsilon="2", neighbours=neighbours, expected_rows=3000)
    model.fit(csr_array(X), y)
    assert (model.predict(X) == y).mean() > 0.99
    assert model.coef_[0, 3] > 0.5
    assert model.coef_[0, 5] < -0.5
    assert str(model.release_.loss) == "epsilon 2"
    assert sum(Fraction(each) for each in model.split_.values()) == 2


@pytest.mark.parametrize(
    ("X", "y"),
    [(np.zeros((10, 4)), [0, 1] * 5), (np.ones((10, 4)), [1] * 10), (np.ones((1, 1)), [1])],
    ids=["empty rows", "one class", "one cell"],
)
@pytest.mark.parametrize("epsilon", ["0.01", "50"])
def test_few_rows_no_features_or_one_class_never_fail(X, y, epsilon):
    model = PrivateLogisticRegression(epsilon=epsilon).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_what_is_wrong_is_refused_before_anything_is_booked():
    X, y = separable(40)
    with pytest.raises(ArgumentError, match="needs a public bound on the number of rows"):
        PrivateLogisticRegression(epsilon="1").fit(FeatureMatrix(X, y, neighbours="add-remove"))
    with pytest.raises(DataError, match="expected_rows"):
        PrivateLogisticRegression(epsilon="1", neighbours="add-remove", expected_rows=1).fit(X, y)
    with pytest.raises(ArgumentError, match="expected_rows must be"):
        PrivateLogisticRegression(epsilon="1", neighbours="add-remove", expected_rows=0).fit(X, y)
    with pytest.raises(ArgumentError, match="weight must be"):
        PrivateLogisticRegression(epsilon="1", weight=0).fit(X, y)
    with pytest.raises(ArgumentError, match="epsilon must lie between"):
        PrivateLogisticRegression(epsilon="1e-12").fit(X, y)
