"""Private naive Bayes: what one row can move, what is booked, and what the model is worth."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from tests.chances import louder

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded, BudgetMismatch, DataError, UnknownLabel
from heldout.features import FeatureMatrix, HashedText, PrivateNaiveBayes, select
from heldout.kernel import Budget, price
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise.selection import PermuteAndFlip
from heldout.questions.features.plans import (
    STEP,
    Cuts,
    NaiveBayesPlan,
    Stages,
    features_to_take,
    log_odds,
    selection_share,
    shares_for,
    size_units,
)
from heldout.questions.features.statistics import (
    SIZES,
    UNIT,
    JointCounts,
    RightCalls,
    SummedScores,
    place_of,
)

FEATURES = 3
ROWS = [
    (label, features)
    for label in (0, 1)
    for size in range(FEATURES + 1)
    for features in itertools.combinations(range(FEATURES), size)
]
BY_ROW = [Protection(neighbours=each) for each in Neighbours]
BY_UNIT = [Protection(neighbours=each, unit=True, rows_per_unit=2) for each in Neighbours]


def columns(rows):
    """What a `FeatureMatrix` gives to a statistic."""
    matrix = np.zeros((len(rows), FEATURES), dtype=np.int8)
    for place, (_, features) in enumerate(rows):
        matrix[place, list(features)] = 1
    whole = csr_array(matrix)
    return {
        "label": np.array([label for label, _ in rows], dtype=np.int64),
        "matrix": whole,
        "restricted": lambda chosen, most: csr_array(matrix[:, list(chosen)]),
    }


def neighbours(protection):
    """Pairs of small data sets, one row kept beside those that leave and arrive."""
    kept = [(0, (0, 2))]
    for leave, arrive in protection.changes():
        for out in itertools.combinations_with_replacement(ROWS, leave):
            for new in itertools.combinations_with_replacement(ROWS, arrive):
                yield [*kept, *out], [*kept, *new]


@pytest.mark.parametrize("weight", [5, 2**13, 2**24])
def test_no_weight_makes_the_counts_of_many_rows_wrap(weight):
    """2^23 rows of weight 2^24 pass 64 bits; one row less would move them by 2^64."""
    try:
        statistic = JointCounts(FEATURES, weight, size_units(Fraction(1, 2), weight))
    except ArgumentError:
        assert weight == 2**24
        plan = NaiveBayesPlan(
            features=2**24, epsilon=Fraction(1), weight=weight, rows=1000, protection=BY_ROW[0]
        )
        with pytest.raises(ArgumentError, match="weight must be smaller"):
            Stages(plan).request("naive Bayes", claim="naive-bayes")
        return
    found = []
    for rows in (2**23, 2**23 - 1):
        empty = csr_array((rows, FEATURES), dtype=np.int8)
        label = np.zeros(rows, dtype=np.int64)
        found.append(statistic.read({"label": label, "matrix": empty}))
    moved = sum(abs(int(a) - int(b)) for a, b in zip(*found, strict=True))
    assert moved <= statistic.sensitivity(Protection(neighbours="add-remove"))


@pytest.mark.parametrize("protection", [*BY_ROW, BY_UNIT[1]], ids=str)
@pytest.mark.parametrize(
    ("weight", "chosen", "places"),
    [(1, None, None), (2, None, 2), (5, None, None), (5, None, 1), (1, (2, 0), None)],
)
def test_no_small_neighbours_move_the_counts_further_than_claimed(
    protection, weight, chosen, places
):
    features = FEATURES if chosen is None else len(chosen)
    statistic = JointCounts(features, weight, 1000, chosen, places)
    found = {row: statistic.read(columns([row])) for row in ROWS}
    none = statistic.read(columns([]))
    assert none.shape == (statistic.dimension,)
    assert not none.any()
    largest = 0
    for first, second in neighbours(protection):
        moved = sum(found[row] for row in first) - sum(found[row] for row in second)
        largest = max(largest, int(np.abs(moved).sum()))
    claimed = statistic.sensitivity(protection)
    assert largest <= claimed
    assert largest >= claimed - protection.rows_per_unit * 2 * FEATURES  # the floor's loss
    together = statistic.read(columns(ROWS))
    assert (together == sum(found.values())).all()  # each row adds what it adds alone


def test_a_row_with_many_features_weighs_no_more_than_one_with_few():
    statistic = JointCounts(FEATURES, 1, UNIT)
    for row in ROWS:
        cells = statistic.read(columns([row]))[2 * (len(SIZES) + 1) :]
        assert cells.sum() <= UNIT
        assert len(row[1]) == 0 or cells.sum() > UNIT - FEATURES


SCORES = SummedScores(
    np.array([3 * STEP, -2 * STEP, STEP]), np.arange(len(SIZES) + 1, dtype=np.int64) * STEP
)


def test_one_row_adds_0_or_1_to_every_cut():
    statistic = RightCalls(SCORES, Cuts(Fraction(1, 2)).places)
    empty = statistic.read(columns([]))
    assert len(empty) == len(statistic.cuts) + 2
    assert not empty.any()
    for row in ROWS:
        for kept in ROWS:
            added = statistic.read(columns([kept, row])) - statistic.read(columns([kept]))
            assert set(added.tolist()) <= {0, 1}
    positive = statistic.read(columns([(1, (0,))]))
    assert positive[0] == 1
    assert positive[-1] == 0


TIMES, WEIGHTS = np.polynomial.legendre.leggauss(64)


def law(scores, scale):
    """Permute-and-flip's probabilities, by integrating over the time of arrival."""
    accept = np.exp((scores - scores.max()) / scale)
    times, weights = (TIMES + 1) / 2, WEIGHTS / 2
    factors = 1 - times[:, None] * accept
    return np.array(
        [
            accept[i] * (weights * np.delete(factors, i, axis=1).prod(axis=1)).sum()
            for i in range(len(scores))
        ]
    )


@pytest.mark.parametrize("protection", [*BY_ROW, BY_UNIT[1]], ids=str)
def test_no_small_neighbours_choose_a_cut_with_more_than_epsilon(protection):
    cuts = Cuts(Fraction(1), near=3, far=())
    statistic = RightCalls(SCORES, cuts.places)
    epsilon = Fraction(3, 2)
    step = cuts.step(SCORES, epsilon=epsilon, protection=protection)
    assert isinstance(step.mechanism, PermuteAndFlip)
    scale = float(step.mechanism.scale)
    found = {row: statistic.read(columns([row])) for row in ROWS}
    largest = 0.0
    for first, second in itertools.islice(neighbours(protection), 0, None, 1 + protection.unit * 7):
        one, other = (law(sum(found[row] for row in rows), scale) for rows in (first, second))
        largest = max(largest, float(np.abs(np.log(one / other)).max()))
    assert largest <= float(epsilon) + 1e-9
    assert largest > float(epsilon) / 3


@pytest.mark.chance(louder(0, 6, 20))
def test_the_steps_cost_epsilon_together_and_no_more():
    for protection in (*BY_ROW, *BY_UNIT):
        for epsilon in (Fraction(1, 100), Fraction(1), Fraction(7)):
            plan = NaiveBayesPlan(
                features=50, epsilon=epsilon, weight=5, rows=1000, protection=protection
            )
            weights = np.zeros(50, dtype=np.int64), np.zeros(len(SIZES) + 1, dtype=np.int64)
            steps = (plan.learn(), plan.cut(weights))
            spent = [price(step.mechanism.event()).epsilon for step in steps]
            assert sum(spent) == epsilon
            assert [price(each).epsilon for each in plan.prices()] == spent
            counts = steps[0].statistic
            assert steps[0].mechanism.l1_sensitivity == counts.sensitivity(protection)


def test_a_fit_is_booked_once_and_a_budget_that_is_gone_refuses_the_next(tmp_path):
    X, y = separable(400)
    ledger = tmp_path / "ledger.sqlite"
    model = PrivateNaiveBayes(epsilon="1/2", ledger=ledger, budget=ho.Budget(epsilon="3/4"))
    model.fit(X, y)
    assert str(model.release_.loss) == "epsilon 0.5"
    assert sum(Fraction(each) for each in model.split_.values()) == Fraction(1, 2)
    assert model.release_.receipt.sequence is not None
    with pytest.raises(BudgetExceeded):
        model.fit(X, y)
    assert "epsilon 0.5" in str(model.release_)
    assert model.release_.as_dict()["split"] == model.split_


def separable(rows, features=30):
    y = np.arange(rows) % 2
    X = np.zeros((rows, features), dtype=int)
    X[y == 1, 3] = 1
    X[y == 0, 5] = 1
    X[:, 7] = 1
    return X, y


@pytest.mark.chance(louder(1, 120, 4))
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_plain_signal_is_found_and_words_without_one_weigh_nothing(neighbours):
    X, y = separable(4000)
    model = PrivateNaiveBayes(epsilon="2", neighbours=neighbours, expected_rows=4000)
    model.fit(csr_array(X), y)
    assert (model.predict(X) == y).mean() > 0.99
    assert model.weights_[3] > 1
    assert model.weights_[5] < -1
    assert abs(model.weights_[7]) < 0.5
    assert model.release_.strongest(2)[0][0] in (3, 5)
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert ((probabilities[:, 1] >= 0.5) == (model.predict(X) == 1)).all()
    assert (model.predict(csr_array(X)) == model.predict(X)).all()


@pytest.mark.chance(louder(0, 6, 20))
def test_units_and_a_feature_matrix_are_trained_on_alike():
    X, y = separable(2000)
    unit = np.arange(2000) // 2
    model = PrivateNaiveBayes(epsilon="8", rows_per_unit=2).fit(X, y, unit=unit)
    assert model.release_.protection.rows_per_unit == 2
    private = FeatureMatrix(X, y, unit=unit, rows_per_unit=2)
    other = PrivateNaiveBayes(epsilon="8").fit(private)
    assert (other.predict(X) == y).mean() > 0.95
    with pytest.raises(ArgumentError, match="y, unit and row_keys"):
        PrivateNaiveBayes(epsilon="1").fit(private, y)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((10, 4)), [0, 1] * 5),
        (np.ones((10, 4)), [1] * 10),
        (np.eye(10), [0] * 10),
        (np.ones((1, 1)), [1]),
    ],
    ids=["empty rows", "one class", "the other class", "one cell"],
)
@pytest.mark.parametrize("epsilon", ["0.01", "50"])
def test_few_rows_no_features_or_one_class_never_fail(X, y, epsilon):
    model = PrivateNaiveBayes(epsilon=epsilon).fit(X, y)
    assert set(model.predict(X)) <= {0, 1}
    assert np.isfinite(model.predict_proba(X)).all()


def test_what_is_wrong_is_refused_before_anything_is_booked():
    X, y = separable(40)
    with pytest.raises(ArgumentError, match="epsilon must be given"):
        PrivateNaiveBayes().fit(X, y)
    with pytest.raises(ArgumentError, match="epsilon must be"):
        PrivateNaiveBayes(epsilon="0").fit(X, y)
    with pytest.raises(UnknownLabel):
        PrivateNaiveBayes(epsilon="1", classes=("ham", "spam")).fit(X, y.astype(str))
    with pytest.raises(ArgumentError, match="classes must be two labels"):
        PrivateNaiveBayes(epsilon="1", classes=(1, 1)).fit(X, y)
    with pytest.raises(ArgumentError, match="weight must be"):
        PrivateNaiveBayes(epsilon="1", weight=0).fit(X, y)
    with pytest.raises(DataError):
        PrivateNaiveBayes(epsilon="1").fit(X, y, unit=[1])
    words = PrivateNaiveBayes(epsilon="1", classes=("ham", "spam"))
    assert set(words.fit(X, np.where(y, "spam", "ham")).predict(X)) <= {"ham", "spam"}


def test_no_message_of_the_checks_quotes_a_cell():
    labels = [0, 1, 0, 1]
    odd = [
        pd.DataFrame([[1, 0], [0, 1], [1, 1], ["CANARY", 1]]),
        np.array([[987654j, 1]] * 4),
        [987654, 1, 2, 3],
        pd.DataFrame({"a": [{"CANARY": 1}] * 4}),
    ]
    for X in odd:
        with pytest.raises((TypeError, ValueError)) as found:
            PrivateNaiveBayes(epsilon="1").fit(X, labels)
        error = found.value
        assert error.__context__ is None
        assert "CANARY" not in str(error)
        assert "987654" not in str(error)


def test_another_threshold_or_a_selection_is_paid_from_the_same_budget(tmp_path):
    rng = np.random.default_rng(7)
    X, y = rng.poisson(0.7, (300, 12)).astype(float), rng.integers(0, 2, 300)
    shared = {"ledger": tmp_path / "ledger.sqlite", "budget": Budget(epsilon=3)}
    PrivateNaiveBayes(epsilon="1", **shared).fit(X, y)
    sparse = csr_array(X)
    PrivateNaiveBayes(epsilon="1", binarize=1.0, **shared).fit(sparse, y == 1)
    assert np.array_equal(sparse.toarray(), X), "a fit leaves the caller's matrix as it is"
    select(X[::-1], y[::-1], epsilon="1", features_per_row=12, **shared)
    with pytest.raises(BudgetExceeded):
        PrivateNaiveBayes(epsilon="1", binarize=2.0, **shared).fit(X, [str(each) for each in y])
    with pytest.raises(BudgetExceeded):
        PrivateNaiveBayes(epsilon="1", binarize=2.0, **shared).fit(X.astype(int), y.astype(float))
    X[0, 0] += 1
    with pytest.raises(BudgetMismatch, match="other rows called 'data'"):
        PrivateNaiveBayes(epsilon="1", binarize=2.0, **shared).fit(X, y)


@pytest.mark.chance(louder(0, 120, 4))
def test_columns_of_a_frame_are_named_in_the_release():
    pandas = pytest.importorskip("pandas")
    X, y = separable(1000)
    frame = pandas.DataFrame(X, columns=[f"word {each}" for each in range(X.shape[1])])
    model = PrivateNaiveBayes(epsilon="20").fit(frame, y)
    assert {name for name, _ in model.release_.strongest(2)} == {"word 3", "word 5"}
    assert (model.predict(frame) == y).all()


def test_a_fitted_model_can_be_kept_and_holds_no_rows():
    X, y = separable(200)
    model = PrivateNaiveBayes(epsilon="1").fit(X, y)
    assert model.release_._drawn.standing is not None
    kept = pickle.loads(pickle.dumps(model))
    assert kept.release_._drawn.standing is None
    assert kept.release_.receipt == model.release_.receipt
    assert kept.release_.receipt.standing is None  # what its account has is not passed on with it
    assert (kept.predict(X) == model.predict(X)).all()
    assert not [each for each in vars(model).values() if isinstance(each, FeatureMatrix)]


def test_shrinkage_tells_a_strong_feature_from_thousands_that_are_noise():
    rng = np.random.default_rng(3)
    noisy = rng.laplace(0, 10, (2, 5000))
    noisy[:, 17] += (5, 300)
    weights = log_odds(noisy, scale=10.0, rows=(1000, 1000))
    assert weights[17] > 2
    assert np.abs(np.delete(weights, 17)).mean() < 0.3


def test_words_that_share_a_place_weigh_the_same_and_cost_no_more():
    common = {"epsilon": Fraction(1), "weight": 5, "rows": 5000, "protection": BY_ROW[0]}
    plans = [NaiveBayesPlan(features=features, **common) for features in (4096, 10_000)]
    for plan, sums in zip(plans, (4096, 2048), strict=True):
        asked = plan.learn()
        assert asked.statistic.dimension == 2 * (sums + len(SIZES) + 1)
        assert asked.mechanism.scale == plans[0].learn().mechanism.scale
    noisy = np.zeros(asked.statistic.dimension)
    noisy[: 2 * (len(SIZES) + 1)] = 100 * plan.size_units
    noisy[-1] = 300 * UNIT  # the last place, in positive rows
    weights = plan.weights(plan.understood(noisy))
    last = place_of(10_000, 2048) == 2047
    assert 1 < last.sum() < 20
    assert len(set(weights[last])) == 1
    assert weights[last][0] > 2 > np.abs(weights[~last]).max()


def test_shares_and_k_follow_from_public_facts_and_stay_in_bounds():
    for epsilon, rows, protection, features in itertools.product(
        (Fraction(1, 1000), Fraction(1), Fraction(100)),
        (1, 100, 10**7),
        (*BY_ROW, *BY_UNIT),
        (1, 10**5),
    ):
        shares = shares_for(epsilon, rows=rows, protection=protection, features=features)
        assert 0 < shares.cut <= Fraction(7, 20)
        assert 0 < shares.sizes <= Fraction(3, 5)
        k = features_to_take(epsilon, rows=rows, features=300, protection=protection)
        assert 1 <= k <= 300
    assert selection_share(None, method="noisy-counts") == Fraction(1, 2)
    with pytest.raises(ArgumentError, match="split must lie"):
        selection_share("1", method="noisy-counts")


def test_labels_that_were_not_declared_are_told_how_to_be() -> None:
    X, y = np.eye(4, dtype=int), np.array(["ham", "spam", "ham", "spam"])
    with pytest.raises(UnknownLabel, match=r"0 and 1, and no other. Pass classes=\(negative,"):
        PrivateNaiveBayes(epsilon="1").fit(X, y)
    model = PrivateNaiveBayes(epsilon="1", classes=("ham", "spam")).fit(X, y)
    assert model.classes_.tolist() == ["ham", "spam"]


@pytest.mark.chance(louder(0, 6, 20))
def test_a_model_of_texts_predicts_texts_and_never_rows_that_are_private() -> None:
    texts = ["win cash now", "see you soon"] * 200
    table = {"message": texts, "spam": [1, 0] * 200}
    private = FeatureMatrix.from_table(
        table, label="spam", text="message", space=HashedText(size=256), features_per_row=5
    )
    model = PrivateNaiveBayes(epsilon="20").fit(private)
    # Any cut between the two kinds of rows is as right as another, so the kinds that were learnt
    # are called right, and texts that share words with them are put in order.
    likely = model.predict_proba(["win cash today", "see you later"])[:, 1]
    assert likely[0] > likely[1]
    assert model.predict(np.array(["win cash now", "see you soon"])).tolist() == [1, 0]
    with pytest.raises(ArgumentError, match="private rows"):
        model.predict_proba(private)
    plain = PrivateNaiveBayes(epsilon="1").fit(np.eye(4, dtype=int), [0, 1, 0, 1])
    with pytest.raises(ArgumentError, match="Texts need"):
        plain.predict(["cash"])


def test_training_and_evaluation_pay_from_one_account(tmp_path) -> None:
    ledger = ho.Ledger.open(tmp_path / "ledger.sqlite")
    ledger.register("messages", budget=ho.Budget(epsilon="3"))
    rng = np.random.default_rng(1)
    y = np.arange(400) % 2
    X = (rng.random((400, 6)) < np.where(y[:, None] == 1, 0.7, 0.3)).astype(int)
    model = PrivateNaiveBayes(epsilon="1", ledger=ledger, account="messages").fit(X[:200], y[:200])
    held = {"y": y[200:], "p": model.predict_proba(X[200:])[:, 1]}
    session = ho.Session(ho.Dataset(held, label="y", score="p"), ledger=ledger, account="messages")
    assert session.remaining.epsilon == 2
    session.auc(epsilon="1")
    kept = select(X[:200], y[:200], epsilon="1/2", k=2, ledger=ledger, account="messages")
    assert len(kept.indices) <= 2
    assert session.remaining.epsilon == Fraction(1, 2)


def test_sizes_that_no_row_can_have_are_taken_for_noise() -> None:
    plan = NaiveBayesPlan(
        features=3,
        epsilon=Fraction(1),
        weight=5,
        rows=1000,
        protection=Protection(neighbours=Neighbours.REPLACE_ONE),
    )
    clean = np.zeros(2 * (len(SIZES) + 1 + 3))
    clean[[2, len(SIZES) + 3]] = 500 * plan.size_units
    clean[-6:] = UNIT * np.array([100, 300, 400, 400, 300, 100])
    noisy = clean.copy()
    noisy[5 : len(SIZES) + 1] = 10**4 * plan.size_units  # rows of six features and more
    for seen, expected in zip(plan.understood(noisy), plan.understood(clean), strict=True):
        assert (seen == expected).all()
