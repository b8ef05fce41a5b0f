"""Private rows of features: what is cut, what is public, what is refused."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import heldout as ho
from heldout.data.feature_matrix import FeatureMatrix, HashedText, Vocabulary, bounded
from heldout.errors import ArgumentError, DataError, DuplicateRowKey, MissingColumn, UnknownLabel
from heldout.questions.features.statistics import WHOLE_ROWS
from heldout.questions.session import PrivateSession

rows_of_sets = st.lists(
    st.frozensets(st.integers(0, 30), max_size=12).map(sorted), min_size=1, max_size=12
)


def matrix_of(sets: list[list[int]], features: int = 31) -> csr_array:
    dense = np.zeros((len(sets), features), dtype=np.int8)
    for row, members in enumerate(sets):
        dense[row, members] = 1
    return csr_array(dense)


def sets_of(matrix: csr_array) -> list[frozenset[int]]:
    return [frozenset(np.flatnonzero(row).tolist()) for row in matrix.toarray()]


@settings(max_examples=40, deadline=None)
@given(rows_of_sets, rows_of_sets, st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_row_is_cut_by_itself_alone(sets, others, most, random) -> None:
    alone = {tuple(row): sets_of(bounded(matrix_of([row]), most))[0] for row in sets}
    together = [*sets, *others]
    random.shuffle(together)
    for row, kept in zip(together, sets_of(bounded(matrix_of(together), most)), strict=True):
        assert kept <= set(row)
        assert len(kept) == min(len(row), most)
        if tuple(row) in alone:
            assert kept == alone[tuple(row)]


def test_neighbours_stay_neighbours_for_every_small_matrix() -> None:
    rows = [list(each) for size in range(4) for each in itertools.combinations(range(3), size)]

    def after(sets: tuple[list[int], ...]) -> Counter[frozenset[int]]:
        return Counter(sets_of(bounded(matrix_of(list(sets), 3), 1)))

    for data in itertools.product(rows, repeat=2):
        for arriving in rows:
            more = after((*data, arriving))
            assert sum((more - after(data)).values()) == 1, "one row more stays one row more"
            replaced = after((data[0], arriving))
            assert sum((replaced - after(data)).values()) <= 1


def test_every_feature_of_long_rows_is_kept_about_equally_often() -> None:
    """A cut that prefers some features would lose the others everywhere."""
    random = np.random.default_rng(5)
    dense = (random.random((4000, 40)) < 0.5).astype(np.int8)
    kept = np.asarray(bounded(csr_array(dense), 5).sum(axis=0)).ravel()
    expected = 4000 * 5 / 40
    assert np.abs(kept - expected).max() < 5 * np.sqrt(expected)


def test_counts_and_booleans_and_sparse_rows_mean_the_same() -> None:
    counts = matrix_of([[], [0, 3, 9], [1, 2, 3, 4, 5, 6], [30]]).toarray() * 7
    seen = [
        FeatureMatrix(x, [1, 0, 1, 0], features_per_row=3)._fetch(WHOLE_ROWS)["matrix"].toarray()
        for x in (counts, counts > 0, csr_array(counts), counts.astype(float))
    ]
    assert seen[0].sum() == 7
    for other in seen[1:]:
        assert np.array_equal(seen[0], other)


def test_a_frame_names_its_features() -> None:
    import pandas
    import polars

    for kind in (pandas.DataFrame, polars.DataFrame):
        private = FeatureMatrix(kind({"a": [1, 0], "b": [0, 3]}), [1, 0])
        assert private.feature_names == ("a", "b")
        assert private._fetch(WHOLE_ROWS)["matrix"].toarray().tolist() == [[1, 0], [0, 1]]
    assert FeatureMatrix([[1, 0]], [1]).feature_names is None


def test_rows_keep_their_labels_when_there_are_many() -> None:
    rows = 300_000  # more than one block of the engine
    numbers = np.arange(rows) % 251
    X = csr_array((np.ones(rows, dtype=np.int8), numbers, np.arange(rows + 1)), shape=(rows, 251))
    fetched = FeatureMatrix(X, (numbers % 2 == 1).astype(int))._fetch(WHOLE_ROWS)
    assert np.array_equal(fetched["matrix"].indices % 2, fetched["label"])


def test_a_unit_keeps_its_bound_and_whole_rows_of_its_own() -> None:
    X = np.eye(9, dtype=int)
    unit = ["a"] * 5 + ["b"] * 3 + ["c"]
    private = FeatureMatrix(X, [1] * 9, unit=unit, rows_per_unit=2, row_keys=range(9))
    assert private.public_rows is None
    fetched = private._fetch(WHOLE_ROWS)["matrix"].toarray()
    assert fetched.shape == (5, 9)
    assert fetched[:, :5].sum() == 2
    assert fetched[:, 5:8].sum() == 2


def test_seen_through_some_features_rows_are_cut_afterwards() -> None:
    X = np.ones((3, 10), dtype=int)
    private = FeatureMatrix(X, [1, 0, 1], features_per_row=2, feature_names=list("abcdefghij"))
    some = private.restricted([7, 2], features_per_row=2)
    assert some.feature_names == ("h", "c")
    assert some._fetch(WHOLE_ROWS)["matrix"].toarray().tolist() == [[1, 1]] * 3
    assert some.restricted([1])._fetch(WHOLE_ROWS)["matrix"].shape == (3, 1)
    assert some.restricted([1]).feature_names == ("c",)
    assert some._fingerprints == private._fingerprints, "the same rows have the same budget"
    for wrong in ([], [10], [-1], [1, 1], [0.5], "ab"):
        with pytest.raises(ArgumentError):
            private.restricted(wrong)


def test_the_same_rows_have_one_budget_in_any_order_and_under_any_bound() -> None:
    random = np.random.default_rng(1)
    X, y = (random.random((50, 8)) < 0.3).astype(int), random.integers(0, 2, 50)
    order = random.permutation(50)
    first = FeatureMatrix(X, y, features_per_row=2)
    second = FeatureMatrix(csr_array(X[order] * 3), y[order], features_per_row=5, name="other")
    assert first._fingerprints[:-1] == second._fingerprints[:-1], "as 0 and 1 they are the same"
    changed = X.copy()
    changed[3, 3] = 1 - changed[3, 3]
    assert not set(FeatureMatrix(changed, y)._fingerprints) & set(first._fingerprints)


def test_a_table_of_texts_has_the_budget_of_the_data_set_of_the_same_table(tmp_path) -> None:
    file = tmp_path / "messages.csv"
    file.write_text("message,label,score\nwin cash prize,spam,0.9\nsee you at lunch,ham,0.1\n")
    schema = {"message": "VARCHAR", "label": "VARCHAR", "score": "DOUBLE"}
    private = FeatureMatrix.from_table(
        file,
        label="label",
        text="message",
        space=Vocabulary(("cash", "lunch")),
        positive="spam",
        negative="ham",
        schema=schema,
    )
    rows = ho.Dataset(
        file, label="label", score="score", positive="spam", negative="ham", schema=schema
    )
    assert private._fingerprints == rows._fingerprints
    fetched = private._fetch(WHOLE_ROWS)
    assert fetched["matrix"].toarray().tolist() == [[1, 0], [0, 1]]
    assert fetched["label"].tolist() == [1, 0]
    assert private.feature_names == ("cash", "lunch")


def test_columns_of_flags_are_features_and_what_is_no_number_is_not_set() -> None:
    frame = {
        "y": [1, 0, 1],
        "a": [1.0, np.nan, 0.0],
        "b": ["1", "x", None],
        "c": [True, False, True],
    }
    private = FeatureMatrix.from_table(frame, label="y", features=["a", "b", "c"])
    fetched = private._fetch(WHOLE_ROWS)
    assert fetched["matrix"].toarray().tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 1]]
    assert private.features_per_row == 3


def test_texts_that_are_missing_or_odd_are_rows_like_others() -> None:
    frame = {"y": [1, 0, 1, 0], "t": ["cash", None, "", "\N{GRINNING FACE} ... \t"]}
    private = FeatureMatrix.from_table(frame, label="y", text="t", space=HashedText(size=32))
    assert private._fetch(WHOLE_ROWS)["matrix"].sum(axis=1).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("X", "y", "words", "error"),
    [
        ([[1, 0], [0, 1]], [1, 2], {}, UnknownLabel),
        ([[1, 0], [0, 1]], [1, 0, 1], {}, DataError),
        ([[1, np.nan]], [1], {}, DataError),
        ([1, 0], [1, 0], {}, ArgumentError),
        ([["a", "b"]], [1], {}, ArgumentError),
        ([[1, 0], [1]], [1, 0], {}, ArgumentError),
        (np.zeros((0, 3)), [], {}, DataError),
        (np.zeros((3, 0)), [1, 0, 1], {}, DataError),
        ([[1, 0]], [1], {"features_per_row": 0}, ArgumentError),
        ([[1, 0]], [1], {"features_per_row": 2.5}, ArgumentError),
        ([[1, 0]], [1], {"feature_names": ["a"]}, ArgumentError),
        ([[1, 0]], [1], {"rows_per_unit": 2}, ArgumentError),
        ([[1, 0], [0, 1]], [1, 0], {"row_keys": [7, 7]}, DuplicateRowKey),
        ([[1, 0], [0, 1]], [1, 0], {"most_rows": 1}, DataError),
        ([[1, 0]], [1], {"neighbours": "friends"}, ArgumentError),
    ],
)
def test_what_breaks_a_rule_is_refused_before_anything_is_public(X, y, words, error) -> None:
    with pytest.raises(error):
        FeatureMatrix(X, y, **words)


def test_a_table_needs_one_kind_of_features_and_its_columns() -> None:
    frame = {"y": [1, 0], "t": ["cash", "lunch"]}
    for words in ({}, {"text": "t", "features": ["t"]}, {"text": "t"}, {"features": ["t", "t"]}):
        with pytest.raises(ArgumentError):
            FeatureMatrix.from_table(frame, label="y", **words)
    with pytest.raises(MissingColumn):
        FeatureMatrix.from_table(frame, label="y", features=["nope"])
    with pytest.raises(TypeError, match="must not be pickled"):
        FeatureMatrix([[1]], [1]).__getstate__()


def test_a_session_keeps_account_of_a_matrix() -> None:
    private = FeatureMatrix([[1, 0], [0, 1]], [1, 0])
    session = PrivateSession(private, budget=ho.Budget(epsilon="2"))
    assert str(session.remaining) == "epsilon 2"
