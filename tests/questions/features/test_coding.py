"""Numbers and kinds in a logistic regression: their entries, the noise of groups, and manners."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from tests.chances import louder

from heldout.errors import ArgumentError
from heldout.features import Bins, FeatureMatrix, PrivateLogisticRegression, PrivatePipeline
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise.fits import (
    SLACK,
    Block,
    ObjectivePerturbation,
    grouped_noise,
    noise_of_blocks,
    point_within,
    points_within,
)
from heldout.questions.features.plans import (
    LATEST,
    MARGIN,
    RULES,
    LogisticLoss,
    LogisticPlan,
    TrainingRows,
)
from heldout.questions.features.questions import Training
from heldout.questions.features.statistics import RESOLUTION, Coding

CODINGS = [
    Coding((3,), (0,), 1),
    Coding((3, 1), (0,), 2),
    Coding((1, 3), (), 2),
    Coding((2, 3), (1,), 2),
]


def masks(features: int) -> Any:
    return np.array(list(itertools.product((0, 1), repeat=features)), dtype=np.int8)


def largest_group(coding: Coding, entries: Any) -> float:
    ends = np.cumsum([0, *coding.groups])
    sums = [np.abs(entries[..., a:b]).sum(axis=-1) for a, b in itertools.pairwise(ends)]
    return float(np.max(sums))


@pytest.mark.parametrize("coding", CODINGS)
def test_no_row_reaches_beyond_one_in_any_group(coding: Coding) -> None:
    every = masks(coding.features)
    entries = coding.coded(csr_array(every)) / RESOLUTION
    assert largest_group(coding, entries) == 1
    assert (np.square(entries).sum(axis=1) <= len(coding.groups)).all()
    alone = [coding.coded(csr_array(mask[None])) / RESOLUTION for mask in every]
    assert np.array_equal(np.concatenate(alone), entries)  # a row's entries are its own


@pytest.mark.parametrize("coding", CODINGS)
def test_weights_of_features_give_a_row_what_its_entries_give(coding: Coding) -> None:
    coefficients = np.arange(1.0, coding.entries + 1)
    weights, rest = coding.spread(coefficients)
    starts = np.cumsum([0, *coding.sizes])
    choices = [range(a, b) for a, b in itertools.pairwise(starts)]
    for chosen in itertools.product(*choices):
        mask = np.zeros((1, coding.features), dtype=np.int8)
        mask[0, list(chosen)] = 1
        own = coding.coded(csr_array(mask)) / RESOLUTION @ coefficients
        assert mask @ weights + rest == pytest.approx(own)


def loss_of(coding: Coding, **more: Any) -> LogisticLoss:
    words = {"weight": None, "ridge": Fraction(4), "rows": 64} | more
    return LogisticLoss(features=coding.features, coding=coding, **words)


def log_density(noise: ObjectivePerturbation, loss: LogisticLoss, rows: Any, at: Any) -> float:
    """Of the ideal minimum at a point, up to a constant: the noise's density times the Jacobian."""
    assert loss.coding is not None
    x = loss.coding.coded(csr_array(np.array([mask for _, mask in rows], dtype=np.int8)))
    x = np.column_stack([x / RESOLUTION, np.ones(len(rows))])
    y = np.array([2 * label - 1 for label, _ in rows])
    miss = 1 / (1 + np.exp(y * (x @ at) - MARGIN))
    ridge = float(loss.ridge)
    steps = np.rint(-(-(y * miss) @ x + ridge * at) / float(noise.step))
    hessian = (x * (miss * (1 - miss))[:, None]).T @ x + ridge * np.eye(len(at))
    assert noise.blocks is not None
    far = 0.0
    for block in noise.blocks:
        lengths = [np.abs(steps[list(group)]).sum() for group in block.groups]
        far += float(block.share) * max(lengths)
    return float(-far / float(noise.inner.scale) + np.linalg.slogdet(hessian)[1])


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("rules", [3, LATEST])
@pytest.mark.parametrize("columns", [((3,), ()), ((3,), (0,)), ((1, 1, 1), ()), ((1, 3), ())])
def test_the_density_of_the_ideal_minimum_moves_by_no_more_than_claimed(
    neighbours: Neighbours, columns: Any, rules: int
) -> None:
    protection, features = Protection(neighbours=neighbours), sum(columns[0])
    plan = LogisticPlan(
        rules=RULES[rules],
        features=features,
        features_per_row=3,
        epsilon=Fraction(2),
        weight=1,
        ridge=None,
        rows=64,
        most_rows=64,
        protection=protection,
        columns=columns[0],
        ordered=columns[1],
    )
    loss = plan.loss()
    noise = plan.mechanism(loss)
    several = list(itertools.product((0, 1), map(tuple, masks(features).tolist())))
    points = (-1.5, 0.0, 0.3, 1.5) if neighbours is Neighbours.ADD_REMOVE else (-1.5, 0.3)
    grid = [np.array(at) for at in itertools.product(points, repeat=loss.dimension)]
    common = [(0, (1, *[0] * (features - 1))), (1, (0, *[1] * (features - 1)))]

    @cache
    def densities(count: int) -> list[Any]:
        tables = [[*common, *rows] for rows in itertools.combinations(several, count)]
        points = grid[:: 3 if features == 3 else 32]
        return [np.array([log_density(noise, loss, rows, at) for at in points]) for rows in tables]

    most = max(
        np.abs(one - other).max()
        for leave, arrive in protection.changes()
        for one, other in itertools.product(densities(leave), densities(arrive))
    )
    claimed = float(plan.loss_epsilon * (1 - SLACK))
    assert claimed / 4 < most <= claimed  # a claim a quarter as large would fail


@pytest.mark.parametrize("size", [1.0, 40.0, 200.0])
def test_a_computed_gradient_errs_less_than_the_bound(size: float) -> None:
    from tests.questions.features.test_logistic import sigmoid

    random = np.random.default_rng(3)
    coding = Coding((5, 1, 4, 2), (0,), 2)
    dense = (random.random((40, 12)) < 0.4).astype(np.int8)
    label = random.integers(0, 2, 40)
    loss = loss_of(coding, rows=40, ridge=Fraction(8))
    at = random.normal(0, size, loss.dimension)
    noise = [int(entry) for entry in random.integers(-(10**6), 10**6, loss.dimension)]
    computed, _ = TrainingRows(loss, csr_array(dense), label).slope(at, noise)
    whole = [Fraction(float(a)) - loss.lattice * z for a, z in zip(at, noise, strict=True)]
    exact = [loss.ridge * Fraction(float(a)) for a in at]
    for entries, y in zip(coding.coded(csr_array(dense)), 2 * label - 1, strict=True):
        x = [Fraction(int(entry), RESOLUTION) for entry in entries] + [Fraction(1)]
        margin = sum(a * b for a, b in zip(x, whole, strict=True))
        miss = sigmoid(Fraction(MARGIN) - int(y) * margin)
        exact = [a - int(y) * miss * b for a, b in zip(exact, x, strict=True)]
    pairs = zip(computed, exact, strict=True)
    error = math.sqrt(sum(float(Fraction(float(a)) - b) ** 2 for a, b in pairs))
    assert error <= float(loss.error) < 1e-6


def test_two_solutions_of_one_minimum_lie_within_the_slack() -> None:
    random = np.random.default_rng(4)
    coding = Coding((5, 1, 4), (0,), 2)
    dense = (random.random((60, 10)) < 0.3).astype(np.int8)
    label = random.integers(0, 2, 60)
    loss = loss_of(coding, rows=60)
    for size in (10**3, 10**9, 10**15):
        noise = [int(entry) for entry in random.integers(-size, size, loss.dimension)]
        one, other = (
            loss.read({"label": label[order], "matrix": csr_array(dense[order])})(noise)
            for order in (np.arange(60), random.permutation(60))
        )
        assert np.abs(one - other).sum() <= loss.slack


def test_the_whole_vectors_within_a_sum_are_counted_right() -> None:
    for far, size in itertools.product(range(5), (1, 2, 3)):
        cube = itertools.product(range(-far, far + 1), repeat=size)
        assert points_within(far, size) == sum(sum(map(abs, z)) <= far for z in cube)
    assert points_within(10**30, 2) == 2 * 10**60 + 2 * 10**30 + 1


@pytest.mark.chance(1.2e-6, "chi-squared of 20 degrees above 65: 1.17e-6; 165 of 1,300: 4e-9")
def test_grouped_noise_has_the_law_that_its_largest_group_needs() -> None:
    """All of it at a small scale, where the acceptance matters; another scale would be seen."""
    draws, groups = 1_500, (1, 2)
    seen = Counter(
        (max(abs(a), abs(b) + abs(c)), b == 0)
        for a, b, c in (grouped_noise(Fraction(3, 2), groups) for _ in range(draws))
    )
    every = Counter(
        (max(abs(a), abs(b) + abs(c)), b == 0)
        for a, b, c in itertools.product(range(-25, 26), repeat=3)
    )

    def missed(scale: float) -> float:
        weight = {key: count * math.exp(-key[0] / scale) for key, count in every.items()}
        whole = sum(weight.values())
        common = [key for key in weight if weight[key] / whole > 0.005]
        off, rest = 0.0, (1.0, draws)
        for key in common:
            expected = draws * weight[key] / whole
            off += (seen[key] - expected) ** 2 / expected
            rest = rest[0] - weight[key] / whole, rest[1] - seen[key]
        return off + (rest[1] - draws * rest[0]) ** 2 / (draws * rest[0])

    assert missed(1.5) < 65  # chi-squared of 20 degrees
    assert missed(1.5 * 1.3) > 65  # noncentral by 273: below it with 2e-21
    drawn = Counter(tuple(point_within(2, 2)) for _ in range(1_300))
    assert len(drawn) == 13  # one that is drawn 100 times on average is missed once in e^100 runs
    assert max(drawn.values()) < 165


ONE_BLOCK = [(tuple(range(100)),), tuple((place,) for place in range(100))]
HALVES = (
    Block(Fraction(1, 3), tuple((place,) for place in range(40))),
    Block(Fraction(2, 3), (tuple(range(40, 90)), tuple(range(90, 100)))),
)


@pytest.mark.parametrize("blocks", [*((Block(Fraction(1), one),) for one in ONE_BLOCK), HALVES])
def test_the_parts_of_the_price_add_up_to_epsilon(blocks: tuple[Block, ...]) -> None:
    noise = ObjectivePerturbation(
        epsilon=Fraction(1),
        moved=2,
        rows_per_unit=1,
        row=1,
        square=7,
        dimension=100,
        ridge=Fraction(64),
        step=Fraction(1, 2**24),
        slack=1000,
        blocks=blocks,
    )
    # One step of rounding in every entry.
    rounded = sum(block.share * max(block.sizes) for block in blocks)
    reach = noise.moved * noise.row / noise.step + rounded
    curved = Fraction(noise.rows_per_unit * noise.square) / (4 * noise.ridge)
    assert reach / noise.inner.scale + curved + noise.slack / noise.outer.scale == 1
    for wrong in ((Block(Fraction(1), (tuple(range(50)),)),), (*blocks, blocks[0])):
        with pytest.raises(ArgumentError, match="every coefficient once"):
            replace(noise, blocks=wrong)
    with pytest.raises(ArgumentError, match="positive"):
        replace(noise, blocks=tuple(replace(block, share=Fraction(0)) for block in blocks))


@pytest.mark.parametrize("coding", CODINGS)
def test_the_shares_of_blocks_sum_to_one_and_no_row_is_longer(coding: Coding) -> None:
    words: dict[str, Any] = {"features_per_row": 8, "epsilon": Fraction(1), "weight": 5}
    words |= {"ridge": None, "rows": 64, "most_rows": 64, "columns": coding.sizes}
    words |= {"protection": Protection(neighbours=Neighbours.REPLACE_ONE)}
    plan = LogisticPlan(features=coding.features, ordered=coding.ordered, **words)
    blocks = plan.blocks(coding)
    assert sum(block.share for block in blocks) == 1
    places = [place for block in blocks for place in block.places]
    assert sorted(places) == list(range(coding.entries + 1))
    noise = replace(plan.mechanism(plan.loss()), blocks=blocks, dimension=coding.entries + 1)
    entries = coding.coded(csr_array(masks(coding.features)))
    lengths = [noise.norm([*row, RESOLUTION]) for row in entries.tolist()]
    assert max(lengths) == RESOLUTION * noise.row


@pytest.mark.chance(1.2e-9, "chi-squared of 24 degrees above 90: 1.2e-9")
def test_blocks_have_noise_of_their_own_in_inverse_proportion_to_their_shares() -> None:
    blocks = Block(Fraction(2, 3), ((0,), (2,))), Block(Fraction(1, 3), ((1,),))
    draws = 2_000
    seen = Counter(
        (min(max(abs(a), abs(c)), 4), min(abs(b), 4))
        for a, b, c in (noise_of_blocks(Fraction(1), blocks) for _ in range(draws))
    )
    every = range(-60, 61)
    both = Counter(max(abs(a), abs(c)) for a in every for c in every)

    def missed(first: float, second: float) -> float:
        pair = np.array([both[far] * math.exp(-first * far) for far in range(60)])
        alone = np.array([(2 - (far == 0)) * math.exp(-second * far) for far in range(60)])
        laws = [np.append(law[:4], law[4:].sum()) / law.sum() for law in (pair, alone)]
        expected = draws * np.outer(*laws)
        counts = np.array([[seen[a, b] for b in range(5)] for a in range(5)])
        return float(((counts - expected) ** 2 / expected).sum())

    assert missed(2 / 3, 1 / 3) < 90
    assert missed(1 / 3, 2 / 3) > 90  # shares the wrong way round


def people(rows: int, seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    age, pay, job = (
        random.uniform(20, 65, rows),
        random.gamma(2, 20, rows),
        random.integers(0, 4, rows),
    )
    risk = 0.08 * (age - 42) - 0.03 * pay + np.array([0, 1, -1, 0])[job]
    return np.column_stack([age, pay, job]), (risk + random.logistic(0, 1, rows) > 0).astype(int)


BOUNDS = [(20, 65), (0, 10, 20, 40, 80, 400), 4]


@pytest.mark.chance(louder(0, 120, 4))
def test_numbers_and_kinds_are_learnt_from_where_bins_drown() -> None:
    (X, y), (fresh, truth) = people(2_000, 1), people(4_000, 2)
    model = PrivateLogisticRegression(epsilon="1", bounds=BOUNDS).fit(X, y)
    assert roc_auc_score(truth, model.predict_proba(fresh)[:, 1]) > 0.75  # 0.80 without privacy
    assert model.n_features_in_ == 3
    assert len(model.weights_) == 32 + 5 + 4
    assert str(model.release_.loss) == "epsilon 1"
    assert model.release_.parameters["sizes"] == [32, 5, 4]


def test_a_pipeline_takes_a_regression_with_bounds_and_clones_it() -> None:
    X, y = people(300, 3)
    inner = PrivateLogisticRegression(bounds=BOUNDS)
    pipeline = clone(PrivatePipeline(classifier=inner, select=None, epsilon="1")).fit(X, y)
    assert pipeline.predict_proba(X).shape == (300, 2)
    assert pipeline.release_.parameters["ordered"] == [0, 1]


def test_more_rows_let_numbers_bend() -> None:
    words: dict[str, Any] = {"features": 8, "features_per_row": 8, "epsilon": Fraction(1)}
    words |= {"weight": 5, "ridge": None, "protection": Protection(neighbours="replace-one")}
    words |= {"columns": (5, 3), "ordered": (0,)}
    few, many = (LogisticPlan(rows=n, most_rows=n, **words).coding for n in (100, 10**5))
    assert few is not None
    assert many is not None
    assert (few.degree, many.degree) == (1, 2)


@pytest.mark.parametrize(
    "words",
    [
        {"sizes": (3,), "classifier": "naive-bayes"},
        {"sizes": (3,), "classifier": "logistic", "select": "noisy-top-k"},
        {"sizes": (3,), "classifier": "logistic", "ordered": (1,)},
        {"sizes": (0,), "classifier": "logistic"},
    ],
)
def test_columns_that_cannot_be_read_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        Training(epsilon="1", **words)


def test_columns_of_another_number_of_features_are_refused_before_anything_is_booked() -> None:
    rows = FeatureMatrix([[1, 0, 0], [0, 1, 0]], [1, 0])
    asked = Training(epsilon="1", classifier="logistic", sizes=(2,))
    with pytest.raises(ArgumentError, match="all 3 features"):
        asked.request(rows.description)


@pytest.mark.parametrize("bound", [1, (3, 3), (0, 2, 1), "ab", None, ()])
def test_bounds_that_say_nothing_are_refused(bound: Any) -> None:
    with pytest.raises(ArgumentError):
        Bins(bounds=[bound]).transform([[1.0]])
