"""A model that was drawn by older rules is read by them: same split, same sums, same weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.errors import ArgumentError
from heldout.features import FeatureMatrix
from heldout.questions.answers import Answered
from heldout.questions.features.plans import LATEST
from heldout.questions.session import PrivateSession

# Written when every word still had its own sum: 60 rows of 300 features.
BEFORE = json.loads((Path(__file__).parent / "training_before.json").read_text())


@pytest.mark.parametrize("kept", BEFORE, ids=["naive Bayes", "logistic"])
def test_answers_from_before_words_shared_sums_are_read_as_they_were_drawn(kept: Any) -> None:
    answered = Answered.from_dict(kept["answer"])
    release, then = answered.releases[0].as_dict(), dict(kept["release"])
    weights = np.array([_dense(each.pop("weights")) for each in (release, then)])
    assert release.pop("kind") == "training"
    assert release == then
    # Machines add floats in their own order, and what is below 0.05 is taken for nothing.
    nothing = np.abs(weights).max(axis=0) < 0.051
    assert np.all(nothing | (np.abs(weights[0] - weights[1]) < 1e-3))
    written = answered.as_dict()
    assert not written["about"]["FeatureRows"].pop("bins")["tuple"]  # numbers came later
    assert written == kept["answer"]
    assert kept["release"]["split"]["cut"] == "3/16"
    assert answered.questions[0].under(2).request(answered.drawn.about).parameters["cut"] == "11/32"


def _dense(weights: dict[str, float]) -> Any:
    return np.array([weights.get(str(each), 0.0) for each in range(300)])


def drawn(features: int) -> Answered:
    rows = FeatureMatrix(np.eye(20, features, dtype=np.int8), np.arange(20) % 2)
    return PrivateSession(rows, budget=ho.Budget(epsilon="1")).answer(q.Training(epsilon="1"))


def test_rules_are_kept_with_the_answer_and_unknown_ones_are_refused() -> None:
    answered = drawn(300)
    content = answered.as_dict()
    assert content["rules"] == [LATEST]
    again = Answered.from_dict(content)
    assert again.releases[0].as_dict() == answered.releases[0].as_dict()
    assert again.as_dict() == content
    for wrong in ([LATEST + 1], [True], ["1"], [], [2, 2], 2):
        with pytest.raises(ArgumentError, match="cannot be read"):
            Answered.from_dict(content | {"rules": wrong})


def test_sums_that_words_shared_are_not_read_as_each_words_own() -> None:
    content = drawn(5000).as_dict()
    assert len(content["values"]["map"]["learning"]["array"]["values"]) < 5000
    assert Answered.from_dict(content).questions[0].rules == LATEST
    with pytest.raises(ArgumentError, match="is learnt from 10,038 numbers"):
        Answered.from_dict({name: each for name, each in content.items() if name != "rules"})


def test_numbers_and_kinds_are_read_with_the_ridge_and_the_noise_of_their_time() -> None:
    rows = FeatureMatrix(np.tile(np.eye(6, dtype=np.int8), (10, 1)), np.arange(60) % 2)
    session = PrivateSession(rows, budget=ho.Budget(epsilon="2"))
    asked = q.Training(epsilon="1", classifier="logistic", sizes=(3, 3), ordered=(0,))
    for rules, blocks in ((3, 1), (LATEST, 3)):
        answered = session.answer(asked.under(rules))
        [again] = Answered.from_dict(answered.as_dict()).questions
        assert again.rules == rules
        plan = again.plan(answered.drawn.about, again.price)
        assert len(plan.mechanism(plan.loss()).blocks) == blocks


@pytest.mark.parametrize(
    "question",
    [
        q.Selection(epsilon="50", method="sparse-vector", k=1, threshold=5.0),
        q.Training(epsilon="100", select="sparse-vector", k=1),
    ],
    ids=lambda question: question.kind,
)
def test_a_sparse_vector_is_read_as_it_was_drawn(question: Any) -> None:
    matrix = np.zeros((60, 40), dtype=np.int8)
    matrix[:30, 23] = 1
    rows = FeatureMatrix(matrix, np.arange(60) < 30)
    answered = PrivateSession(rows, budget=ho.Budget(epsilon="100")).answer(question)
    content = json.loads(json.dumps(answered.as_dict()))
    [again], [release] = Answered.from_dict(content).releases, answered.releases
    assert again.as_dict() == release.as_dict()
    with pytest.raises(ArgumentError, match="without the order"):
        Answered.from_dict(content | {"rules": [2]})


def test_a_question_of_one_kind_of_rules_knows_no_others() -> None:
    assert q.Brier(epsilon="1").under(1) == q.Brier(epsilon="1")
    with pytest.raises(ArgumentError, match="has no rules 2"):
        q.Brier(epsilon="1").under(2)
