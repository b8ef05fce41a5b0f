"""More than two classes: what scikit-learn gives, all of it as data, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as reference

import heldout as ho
from heldout import questions as q
from heldout.errors import ArgumentError, MissingLabel, ScoreOutOfRange, UnknownLabel
from heldout.kernel.door import Drawn
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import compute
from heldout.questions.ranking.paired import PairedRight

NAMES = ["a", "b", "c"]
RANDOM = np.random.default_rng(4)
TRUTH = RANDOM.choice(3, 300, p=(0.5, 0.3, 0.2))
SCORES = RANDOM.dirichlet((1, 1, 1), 300)
SCORES[np.arange(300), TRUTH] += 0.3
SCORES /= SCORES.sum(axis=1, keepdims=True)
CALLED = SCORES.argmax(axis=1)
WEIGHTS = RANDOM.uniform(0, 4, 300)
TABLE = {
    "y": np.array(NAMES)[TRUTH].tolist(),
    "said": np.array(NAMES)[CALLED].tolist(),
    **{f"p{name}": SCORES[:, at] for at, name in enumerate(NAMES)},
    "w": WEIGHTS,
    "g": (["u", "v"] * 150),
}
PLAIN: dict[str, Any] = {"label": "y", "classes": NAMES, "scores": ["pa", "pb", "pc"]}
ENOUGH = "100000000"


def session(**words: Any) -> ho.Session:
    declared = {**PLAIN, "groups": {"g": ["u"]}, "weight": "w", "largest_weight": 4, **words}
    return ho.Session(ho.Dataset(TABLE, **declared), budget=ho.Budget(epsilon=10**10))


EXPECTED = {
    "accuracy": reference.accuracy_score(TRUTH, CALLED),
    "balanced accuracy": reference.balanced_accuracy_score(TRUTH, CALLED),
    "macro precision": reference.precision_score(TRUTH, CALLED, average="macro"),
    "macro F1 score": reference.f1_score(TRUTH, CALLED, average="macro"),
    "weighted precision": reference.precision_score(TRUTH, CALLED, average="weighted"),
    "weighted F1 score": reference.f1_score(TRUTH, CALLED, average="weighted"),
    "Cohen's kappa": reference.cohen_kappa_score(TRUTH, CALLED),
    "Matthews correlation": reference.matthews_corrcoef(TRUTH, CALLED),
}


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("said", [{}, {"scores": None, "prediction": "said"}])
def test_with_a_huge_epsilon_all_readings_are_those_of_scikit_learn(
    neighbours: str, said: dict[str, Any]
) -> None:
    found = session(neighbours=neighbours, **said).confusion(epsilon=ENOUGH)
    assert found.matrix() == reference.confusion_matrix(TRUTH, CALLED).tolist()
    assert found.count("a", "b") == found.matrix()[0][1]
    for name, value in EXPECTED.items():
        assert found.measures[name] == pytest.approx(value, abs=1e-9), name
    assert found.cohens_kappa == found.measures["Cohen's kappa"]
    assert found.macro_recall == found.balanced_accuracy
    for at, name in enumerate(NAMES):
        own = found.classes[name]
        truth, called = at == TRUTH, at == CALLED
        assert own.precision == pytest.approx(reference.precision_score(truth, called), abs=1e-9)
        assert own.recall == found.measures[f"recall, {name}"]
        assert own.f_score(2) == pytest.approx(reference.fbeta_score(truth, called, beta=2))
        assert own.specificity == pytest.approx(
            reference.recall_score(truth, called, pos_label=0), abs=1e-9
        )
    assert set(EXPECTED) == {name for name in found.measures if ", " not in name}


def test_rankings_and_errors_are_those_of_scikit_learn() -> None:
    asked = session()
    areas = asked.auc(epsilon=300)
    each = reference.roc_auc_score(TRUTH, SCORES, multi_class="ovr", average=None)
    assert float(areas) == pytest.approx(float(np.mean(each)), abs=0.01)
    for name, value in zip(NAMES, each, strict=True):
        assert float(areas.classes[name]) == pytest.approx(value, abs=0.02)
    precisions = asked.average_precision(epsilon=300)
    mean = reference.average_precision_score(np.eye(3)[TRUTH], SCORES)
    assert float(precisions) == pytest.approx(mean, abs=0.02)
    assert list(precisions.measures)[:2] == [
        "macro average precision",
        f"average precision, {NAMES[0]}",
    ]
    for k in (1, 2):
        top = asked.top_k(epsilon=ENOUGH).top(k)
        assert top == pytest.approx(reference.top_k_accuracy_score(TRUTH, SCORES, k=k), abs=1e-6)
    brier = ((SCORES - np.eye(3)[TRUTH]) ** 2).sum(axis=1)
    log = -np.log(np.maximum(SCORES[np.arange(300), TRUTH], 0.05))
    assert float(asked.brier(epsilon=ENOUGH)) == pytest.approx(brier.mean(), abs=1e-5)
    assert float(asked.log_loss(epsilon=ENOUGH, clip=0.05)) == pytest.approx(log.mean(), abs=1e-5)
    weighted = asked.brier(epsilon=ENOUGH, weighted=True)
    assert float(weighted) == pytest.approx(np.average(brier, weights=WEIGHTS), abs=1e-5)


def test_weights_of_rows_are_those_of_scikit_learn() -> None:
    asked = session()
    found = asked.confusion(epsilon=ENOUGH, weighted=True)
    expected = reference.accuracy_score(TRUTH, CALLED, sample_weight=WEIGHTS)
    assert found.accuracy == pytest.approx(expected, abs=1e-5)
    kappa = reference.cohen_kappa_score(TRUTH, CALLED, sample_weight=WEIGHTS)
    assert found.cohens_kappa == pytest.approx(kappa, abs=1e-5)
    one = asked.versus("a").confusion(threshold=0.4, epsilon=ENOUGH, weighted=True)
    hits = (SCORES[:, 0] >= 0.4) & (TRUTH == 0)
    assert one.true_positives == pytest.approx(WEIGHTS[hits].sum(), abs=0.6)
    called = SCORES[:, 0] >= 0.4
    correlation = reference.matthews_corrcoef(TRUTH == 0, called, sample_weight=WEIGHTS)
    assert one.matthews_correlation == pytest.approx(correlation, abs=1e-4)
    with pytest.raises(ArgumentError, match="no weights"):
        session(weight=None, largest_weight=None).confusion(epsilon=1, weighted=True)


def test_one_class_is_asked_as_two_classes_are_and_pays_from_the_same_budget() -> None:
    asked = session()
    left = asked.remaining.epsilon
    one = asked.versus("b")
    assert (one.dataset.label, one.dataset.score) == ("y = b", "pb")
    area = one.auc(epsilon=100)
    assert float(area) == pytest.approx(reference.roc_auc_score(TRUTH == 1, SCORES[:, 1]), abs=0.01)
    assert 0 < float(one.curves(epsilon=10).auc) <= 1
    assert asked.remaining.epsilon == left - 110
    for wrong in ("d", None, 3):
        with pytest.raises(ArgumentError, match="one of the classes"):
            asked.versus(wrong)  # type: ignore[arg-type]


def test_by_group_there_is_one_matrix_each_with_the_noise_of_one() -> None:
    asked = session()
    found, whole = (asked.confusion(epsilon="1", by=by) for by in ("g", None))
    assert found.mechanism["scale"] == whole.mechanism["scale"]
    mine = np.array(TABLE["g"]) == "u"
    exact = asked.confusion(epsilon=ENOUGH, by="g").groups["u"]
    assert exact.matrix() == reference.confusion_matrix(TRUTH[mine], CALLED[mine]).tolist()
    assert 0 <= found.gap.p_value <= 1
    assert set(found.groups) == {"u", "other"}


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_answers_are_data_with_pictures_and_quotes_that_charge_what_they_say(
    neighbours: str, tmp_path: Path
) -> None:
    asked = session(neighbours=neighbours)
    questions = (q.ClassConfusion(epsilon=1), q.ClassAuc(epsilon=1), q.TopK(epsilon="1/2"))
    quote = asked.quote(*questions, rows=300)
    assert all(quote.half_widths)
    before = asked.spent.epsilon
    answers = asked.ask(*questions)
    assert asked.spent.epsilon == before + quote.loss.epsilon
    for question, answer in zip(questions, answers, strict=True):
        assert q.from_dict(json.loads(json.dumps(question.as_dict()))) == question
        content = json.loads(json.dumps(answer.as_dict(), allow_nan=False))
        assert content["value"] == answer.value
        assert answer.headline.name in answer._repr_html_()
    assert "a called b" in answers[0].figures()[0].svg
    report = asked.report(epsilon=3)
    page = report.save(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Decisions by class" in page
    assert sum(report.shares.values()) == 3
    assert list(asked.report(epsilon=1, sections=["auc"]).releases) == ["class-auc"]


def test_questions_of_another_kind_of_rows_are_refused_and_cost_nothing() -> None:
    asked = session()
    two = ho.Dataset(TABLE | {"b": (TRUTH == 0).astype(int)}, label="b", score="pa")
    binary = ho.Session(two, budget=ho.Budget(epsilon=9))
    for door, question in (
        (asked, q.Auc(epsilon=1)),
        (asked, q.Curves(epsilon=1)),
        (asked, q.Confusion(epsilon=1)),
        (asked, q.Compare(epsilon=1, score="pb")),
        (asked, q.Ndcg(epsilon=1)),
        (binary, q.ClassConfusion(epsilon=1)),
        (binary, q.TopK(epsilon=1)),
    ):
        with pytest.raises(ArgumentError, match="cannot be asked of these rows"):
            door.ask(question)
    only_called = session(scores=None, prediction="said")
    for ask in (only_called.auc, only_called.top_k, only_called.brier, only_called.log_loss):
        with pytest.raises(ArgumentError, match="no scores"):
            ask(epsilon=1)
    for words in ({"threshold": 0.3}, {"by": "nobody"}):
        with pytest.raises(ArgumentError):
            asked.confusion(epsilon=1, **words)
    for words in ({"curves": True}, {"threshold": 0.4}):
        with pytest.raises(ArgumentError, match="leave threshold= and curves= out"):
            asked.report(epsilon=1, **words)
    for door in (asked, binary, only_called):
        assert door.spent == ho.Loss.pure(0)


RIVAL = np.where(RANDOM.random(300) < 0.8, TRUTH, (TRUTH + 1) % 3)
BOTH = TABLE | {"b": np.array(NAMES)[RIVAL].tolist()}
BOTH |= {f"b{name}": np.where(at == RIVAL, 0.9, 0.2) for at, name in enumerate(NAMES)}
BY_SCORES = {"b": ["ba", "bb", "bc"]}


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "label"])
@pytest.mark.parametrize("rivals", [["b"], BY_SCORES], ids=["said", "scores"])
@pytest.mark.parametrize("said", [{}, {"scores": None, "prediction": "said"}])
def test_two_models_are_compared_by_how_often_each_is_right(
    neighbours: str, rivals: Any, said: dict[str, Any]
) -> None:
    rows = ho.Dataset(BOTH, **{**PLAIN, "neighbours": neighbours, "rivals": rivals, **said})
    door = ho.Session(rows, budget=ho.Budget(epsilon=10**10))
    found = door.compare(score="b", epsilon=ENOUGH)
    gained = (RIVAL == TRUTH).astype(int) - (CALLED == TRUTH)
    assert found.value == pytest.approx(gained.mean(), abs=1e-6)
    low, high = found.interval()
    # As the plain interval of a paired difference, on the same rows.
    half = 1.96 * gained.std() / np.sqrt(300)
    assert half <= (high - low) / 2 < 1.2 * half
    assert found.kind == "class-compare"
    assert found.finding().startswith("b has a better accuracy than")
    assert door.spent == ho.Loss.pure(int(ENOUGH))


def test_equal_scores_of_a_rival_call_the_first_class() -> None:
    table = {"y": ["b", "a"], "said": ["a", "b"], "ba": [0.4, 0.4], "bb": [0.4, 0.4]}
    words: dict[str, Any] = {"label": "y", "classes": ["a", "b"], "prediction": "said"}
    rows = ho.Dataset(table, **words, rivals={"b": ["ba", "bb"]})
    statistic = PairedRight()
    counts = unseal(compute(statistic, rows.with_rival("b")))
    assert counts.tolist() == [1, 1, 0, 0]


def test_a_rival_that_was_not_declared_or_is_no_class_is_refused_before_it_is_paid() -> None:
    door = session()
    for words in ({"score": "said"}, {"score": "y"}, {"score": "said", "measure": "brier"}):
        with pytest.raises(ArgumentError):
            door.compare(epsilon=1, **words)
    assert door.spent == ho.Loss.pure(0)
    with pytest.raises(UnknownLabel, match="rival 'g' must be one of the declared classes"):
        ho.Dataset(TABLE, **PLAIN, rivals=["g"])
    with pytest.raises(ScoreOutOfRange):
        ho.Dataset(TABLE, **PLAIN, rivals={"b": ["pa", "pb", "w"]})
    with pytest.raises(ArgumentError, match="only secret"):
        ho.Dataset(TABLE, **PLAIN, rivals=["y"], neighbours="label")


@pytest.mark.parametrize(
    "words",
    [
        {"classes": None},
        {"classes": "abc"},
        {"classes": ["a"]},
        {"classes": ["a", "b", "b"]},
        {"classes": ["a", "b", 1.5]},
        {"classes": ["a", "b"]},
        {"score": "pa"},
        {"scores": None},
        {"scores": "pa"},
        {"scores": ["pa", "pb", "pb"]},
        {"scores": ["pa", "pb"]},
        {"prediction": 3},
        {"rivals": ["pa", "pa"]},
        {"rivals": {"b": ["pa", "pb"]}},
        {"rivals": {"b": "pa"}},
        {"score_map": (0, 1)},
        {"weight": "w"},
        {"weight": "w", "largest_weight": -1},
        {"largest_weight": 4},
    ],
)
def test_declarations_that_make_no_sense_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        ho.Dataset(TABLE, **{**PLAIN, **words})


def test_rows_that_break_the_declaration_are_refused_by_rule_and_not_by_value() -> None:
    for column, value, error in (
        ("y", "secret", UnknownLabel),
        ("y", None, MissingLabel),
        ("said", "secret", UnknownLabel),
        ("pb", 1.5, ScoreOutOfRange),
        ("w", 4.5, ScoreOutOfRange),
        ("w", -1e-9, ScoreOutOfRange),
    ):
        changed = list(TABLE[column])
        changed[7] = value
        with pytest.raises(error) as caught:
            ho.Dataset(
                TABLE | {column: changed}, **PLAIN, prediction="said", weight="w", largest_weight=4
            )
        assert "secret" not in str(caught.value)
        assert "1.5" not in str(caught.value)


def test_agreement_that_noise_may_have_made_up_has_all_of_its_range() -> None:
    """Counts whose noise is as wide as the rows are many, as drawn: no slope means anything."""
    data = ho.Dataset(TABLE, **PLAIN)
    for cells in ([0] * 9, [90, -40, 5, -60, 80, 70, 30, -20, 10], [-3, 5, 2, 1, -8, 4, 2, 2, -5]):
        question = q.ClassConfusion(epsilon="1/20")
        about = data.description
        drawn = Drawn(question.request(about), np.array(cells), None, about, None)
        found = question.read(drawn)
        for agreement in (found.cohens_kappa, found.matthews_correlation):
            assert agreement.noise_interval() == agreement.interval() == (-1, 1)
            assert not agreement.informative


def test_agreement_that_noise_lifts_beyond_its_range_is_as_wide_as_the_noise() -> None:
    """Negative counts beside a full diagonal make kappa more than 1, where it is cut off."""
    data = ho.Dataset(TABLE, **PLAIN)
    question, about = q.ClassConfusion(epsilon="1/2"), data.description
    cells = np.array([110, -4, 3, -6, 112, -5, 2, -3, 91])
    answer = question.read(Drawn(question.request(about), cells, None, about, None))
    for agreement in (answer.cohens_kappa, answer.matthews_correlation):
        assert agreement == 1
        low, high = agreement.noise_interval()
        assert high == 1
        assert low < 0.95 <= answer.accuracy.noise_interval()[1]
