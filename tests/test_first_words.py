"""What newcomers stumble over in Python: each mistake is named, and what to do instead."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import heldout as ho
from heldout import questions as q
from heldout.arguments import Values
from heldout.cli.audit import attack
from heldout.cli.rows import Scored
from heldout.errors import (
    ArgumentError,
    BudgetExceeded,
    BudgetMismatch,
    DataError,
    HeldoutError,
    LedgerError,
    UnknownLabel,
)

LABELS = np.array([0, 1] * 200)
SCORES = np.linspace(0, 1, 400)
CLASSES = np.array(["a", "b", "c"] * 150)
CODES = np.arange(450)
COLUMNS = np.tile([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.2, 0.2, 0.6]], (150, 1))


@pytest.mark.parametrize(
    ("y_true", "y_score", "options", "message"),
    [
        (LABELS, np.c_[1 - SCORES, SCORES], {},
         "y_score has 2 columns. Pass the positive class: y_score[:, 1]."),
        (LABELS, SCORES[:-1], {},
         "y_true and y_score must have the same length, got y_true 400, y_score 399."),
        (LABELS, SCORES[:-1], {"neighbours": "add-remove"},
         "y_true and y_score must have the same length."),
        (LABELS, SCORES[:, None], {}, "y_score must be one-dimensional, got 2 dimensions."),
        (LABELS, SCORES, {"n_jobs": 2}, "n_jobs is not supported. A release is drawn in one"),
        (LABELS, SCORES, {"random_state": 7}, "random_state is not supported. Noise has no seed"),
        (LABELS, SCORES, {"pos_lable": 1}, "No option 'pos_lable'. Did you mean 'pos_label'?"),
        (CLASSES, COLUMNS, {"multi_class": "ovr"},
         "y_score has 3 columns. Pass labels=, the classes in the order of the columns."),
        (CLASSES, COLUMNS, {"multi_class": "ovo", "labels": ["a", "b", "c"]},
         "multi_class must be 'ovr'"),
        (LABELS, np.c_[1 - SCORES, SCORES], {"epsilon": 0}, "epsilon must be more than 0, got 0."),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_do(
    y_true: Any, y_score: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError) as refused:
        ho.roc_auc_score(y_true, y_score, **{"epsilon": 1} | options)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("epsilon", [Fraction(1, 6000), 1000, Fraction(-1, 3)])
def test_a_wrong_price_is_shown_as_people_write_it(epsilon: Any) -> None:
    with pytest.raises(ArgumentError) as refused:
        ho.roc_auc_score(LABELS, SCORES, epsilon=epsilon)
    message = str(refused.value)
    assert str(epsilon) in message
    assert "Fraction(" not in message
    assert "piecewise" not in message


def test_scores_of_three_classes_have_an_area_for_each() -> None:
    areas: Any = ho.roc_auc_score(
        CLASSES, COLUMNS, labels=["a", "b", "c"], multi_class="ovr", epsilon=4
    )
    assert list(areas.classes) == ["a", "b", "c"]
    assert float(areas) > 0.6


def test_a_printed_confusion_matrix_shows_its_counts() -> None:
    predicted = np.where(np.arange(400) < 300, LABELS, 1 - LABELS)
    matrix = ho.confusion_matrix(LABELS, predicted, epsilon=8)
    first, head, negatives, positives, noise = str(matrix).splitlines()
    assert first.startswith("accuracy 0.7")
    assert head.split() == ["called", "negative", "called", "positive"]
    assert (negatives.split()[0], positives.split()[0]) == ("negatives", "positives")
    assert int(negatives.split()[1]) == int(matrix.true_negatives.value)
    assert int(positives.split()[2]) == int(matrix.true_positives.value)
    assert noise.startswith("Noise per count: at most ±")


def test_a_confusion_matrix_read_off_curves_is_printed_like_one() -> None:
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    read = ho.Session(rows, budget=1).curves(epsilon=1).confusion(0.5)
    first, head, *_, noise = repr(read).splitlines()
    assert first == str(read.accuracy)
    assert head.split() == ["called", "negative", "called", "positive"]
    assert noise.startswith("Noise per count: at most ±")


def test_a_budget_may_be_a_plain_number() -> None:
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    budgets: list[Any] = [3, "3", ho.Budget(3), ho.Budget(epsilon=3), Fraction(3)]
    for budget in budgets:
        assert str(ho.Session(rows, budget=budget).remaining) == "epsilon 3"
    with pytest.raises(ArgumentError, match="epsilon must be"):
        ho.Session(rows, budget="three")


def test_a_model_of_three_classes_is_evaluated() -> None:
    model = LogisticRegression(max_iter=500).fit(COLUMNS, CLASSES)
    report = ho.evaluate(model, COLUMNS, CLASSES, epsilon=8)
    assert "balanced accuracy" in report.measures()


def test_one_candidate_too_many_says_how_many_were_declared() -> None:
    X, public = SCORES[:, None], np.arange(100)
    search = ho.Search(epsilon=8, candidates=1, folds=2, public=public)
    train, test = next(iter(search.split(X, LABELS)))
    model = LogisticRegression().fit(X[train], LABELS[train])
    search(model, X[test], LABELS[test])
    with pytest.raises(BudgetExceeded, match="declared 1 candidates, and this is one more"):
        search(model, X[test], LABELS[test])


@pytest.mark.parametrize("name", ["accuracy_score", "f1_score", "balanced_accuracy_score"])
def test_a_metric_of_scikit_learn_that_is_a_reading_names_the_matrix_that_has_it(name: str) -> None:
    with pytest.raises(
        AttributeError, match=r"Use heldout\.confusion_matrix\(.*\)\.(\w+):"
    ) as refused:
        getattr(ho, name)
    reading = str(refused.value).partition("epsilon=...).")[2].partition(":")[0]
    matrix: Any = ho.confusion_matrix(LABELS, SCORES >= 0.5, epsilon=1)
    assert 0 <= getattr(matrix, reading).value <= 1
    with pytest.raises(AttributeError, match=r"no attribute 'zzz_qq'$"):
        _ = ho.zzz_qq


def test_classes_of_a_confusion_matrix_are_asked_for() -> None:
    with pytest.raises(UnknownLabel, match="or all classes, if there are more than two"):
        ho.confusion_matrix([0, 1, 0], [0, 1, 2], epsilon=1)


def test_a_report_whose_first_number_noise_hides_says_so_in_a_sentence() -> None:
    rows = ho.Dataset({"y": LABELS[:20], "p": SCORES[::20]}, label="y", score="p")
    report = ho.Session(rows, budget=1).report(epsilon="1/10")
    assert not report.headline.informative
    assert "Noise hides the AUC: there is no information at this price." in report.html()


def test_words_without_numbers_are_shown_how_to_be_coded() -> None:
    with pytest.raises(ArgumentError, match="such as marital=married:0,single:1, got"):
        Values().from_words(["marital=married,single"], "values")
    with pytest.raises(ArgumentError, match=r"age=0,120, or .* marital=single:0,married:1, got"):
        Values().from_words(["marital"], "values")


def session_of_share(shared: Any, owned: Any, ledger: Any = None) -> ho.Session:
    """Open a session of an analyst with a share of an account, with budgets for both."""
    ledger = ledger or ho.Ledger()
    ledger.register("clinic", budget=ho.Budget(owned), unit="patient")
    ledger.grant("clinic", analyst="dana", budget=ho.Budget(shared))
    frame = {"y": LABELS, "p": SCORES, "patient": np.arange(400)}
    rows = ho.Dataset(frame, label="y", score="p", unit="patient")
    return ho.Session(rows, ledger=ledger, account="clinic", analyst="dana")


@pytest.mark.parametrize(
    ("shared", "owned", "whose"),
    [(3, 1, "of account 'clinic'"), (1, 3, "in the share of 'dana'"),
     (1, 1, "in the share of 'dana'")],
)  # fmt: skip
def test_a_refused_charge_names_the_account_with_the_least_left(
    shared: Any, owned: Any, whose: str
) -> None:
    with pytest.raises(BudgetExceeded) as refused:
        session_of_share(shared, owned).auc(epsilon=4)
    assert str(refused.value).startswith(f"This costs epsilon 4, and epsilon 1 is left {whose}. ")
    assert refused.value.left == "epsilon 1"


def test_a_mistyped_name_is_guessed() -> None:
    ledger = ho.Ledger()
    session = session_of_share(3, 3, ledger)
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    for refuse, meant in (
        (lambda: ho.Session(rows, ledger=ledger, account="clinik"), "clinic"),
        (lambda: ledger.grant("Clinic", analyst="eve", budget=ho.Budget(1)), "clinic"),
        (lambda: ledger.revoke("clinic", analyst="danna"), "dana"),
        (
            lambda: ho.plan(rows=100, positives=50, value=0.8, target=0.02, metric="acuracy"),
            "accuracy",
        ),
        (lambda: session.compare(score="p", measure="acuracy", epsilon=1), "accuracy"),
        (lambda: ho.audit.audit("confussion", epsilon=1, samples=100), "confusion"),
        (lambda: session.auc(epsilon=1, method="piecewise-laplac"), "piecewise-laplace"),
    ):
        with pytest.raises((ArgumentError, LedgerError), match=f"Did you mean '{meant}'"):
            refuse()


@pytest.mark.parametrize(
    ("y_true", "y_score", "options", "message"),
    [
        (LABELS, 8 * SCORES - 4, {}, "y_score must lie within score_range (0, 1). For logits"),
        (LABELS + 1, SCORES, {}, "y_true must hold 0 and 1 and nothing else. Pass labels=, the"),
        (np.array(["no", "yes"] * 200), SCORES, {"pos_label": "yes"},
         "Pass both labels, the negative one first: labels=[..., 'yes']."),
    ],
)  # fmt: skip
def test_a_refusal_of_arrays_speaks_of_arrays(
    y_true: Any, y_score: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ArgumentError, DataError)) as refused:
        ho.roc_auc_score(y_true, y_score, epsilon=1, **options)
    assert str(refused.value).startswith(message)
    assert "--" not in str(refused.value), "there is no command line here"
    assert refused.value.__context__ is None


def test_probabilities_in_place_of_calls_are_given_a_threshold() -> None:
    with pytest.raises(UnknownLabel, match=r"pass y_pred=y_score >= 0\.5\.$"):
        ho.confusion_matrix(LABELS, SCORES, epsilon=1)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("log_loss", r"log_loss\(epsilon=\.\.\.\)"), ("r2_score", r"heldout\.regression\.metrics"),
        ("mean_absolute_error", r"heldout\.regression\.metrics"), ("make_scorer", "heldout.Search"),
        ("roc_auc_scor", "Did you mean 'roc_auc_score'"), ("Datset", "Did you mean 'Dataset'"),
    ],
)  # fmt: skip
def test_a_name_that_is_elsewhere_says_where(name: str, use: str) -> None:
    with pytest.raises(AttributeError, match=use):
        getattr(ho, name)


@pytest.mark.parametrize(
    ("name", "use"),
    [("accuracy", r"session\.confusion\(epsilon=\.\.\.\)\.accuracy"), ("roc", r"curves\(.*\)\.roc"),
     ("average_precison", "Did you mean 'average_precision'"), ("remainig", "'remaining'")],
)  # fmt: skip
def test_what_a_session_does_not_have_is_guessed(name: str, use: str) -> None:
    session = ho.Session(ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p"), budget=1)
    with pytest.raises(AttributeError, match=use):
        getattr(session, name)


def test_readings_have_other_names_elsewhere() -> None:
    matrix: Any = ho.confusion_matrix(LABELS, SCORES >= 0.5, epsilon=1)
    for name, use in (("sensitivity", "recall"), ("tp", "true_positives"), ("f1", "f1_score")):
        with pytest.raises(AttributeError, match=f"Use .{use}"):
            getattr(matrix, name)
        assert getattr(matrix, use) is not None
    with pytest.raises(AttributeError, match="Did you mean 'accuracy'"):
        _ = matrix.accuray


def test_readings_of_curves_print_what_they_are() -> None:
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    curves = ho.Session(rows, budget=4).curves(epsilon=4)
    for reading in (curves.roc, curves.precision_recall, curves.calibration):
        assert "array(" not in f"{reading!r}{reading}"
        assert " points: " in str(reading)
    printed = str(curves.confusion(0.5)).splitlines()
    assert printed[0].startswith("accuracy ")
    assert printed[1].split() == ["called", "negative", "called", "positive"]


def test_an_evaluated_model_goes_by_its_own_name() -> None:
    model = LogisticRegression().fit(SCORES[:, None], LABELS)
    assert str(ho.evaluate(model, SCORES[:, None], LABELS, epsilon=4)).startswith(
        "LogisticRegression on "
    )
    with pytest.raises(ArgumentError, match=r"heldout\.regression\.metrics\(frame, observed="):
        ho.evaluate(
            LinearRegression().fit(SCORES[:, None], SCORES), SCORES[:, None], SCORES, epsilon=1
        )


def test_rows_declared_in_another_way_are_shown_how_the_account_was_opened() -> None:
    ledger = ho.Ledger()
    session_of_share(1, 1, ledger)
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    with pytest.raises(
        BudgetMismatch,
        match=r"otherwise: neighbours='replace-one', unit='patient', rows_per_unit=1\.",
    ):
        ho.Session(rows, ledger=ledger, account="clinic")


def test_the_card_of_a_comparison_has_its_p_value() -> None:
    rows = {"y": LABELS, "p": SCORES, "q": SCORES**2}
    session = ho.Session(ho.Dataset(rows, label="y", score="p", rivals=["q"]), budget=1)
    difference = session.compare(score="q", epsilon=1)
    assert f"p-value {difference.p_value:.3g}" in difference._repr_html_()


def test_a_matrix_of_several_classes_prints_its_counts_and_suggests_names() -> None:
    truth = np.repeat([0, 1, 2], 200)
    found = ho.confusion_matrix(truth, truth, labels=[0, 1, 2], epsilon=20)
    assert str(found).startswith("accuracy 1.000, 95% interval ")
    head, *rows, last = str(found).splitlines()[1:]
    assert head.split() == ["0", "1", "2"]
    assert [row.split()[:2] for row in rows] == [["0", "(true)"], ["1", "(true)"], ["2", "(true)"]]
    assert last.startswith("Columns are the calls. Noise per count: at most ±")
    with pytest.raises(AttributeError, match=r"Did you mean 'accuracy'\?"):
        found.acuracy  # noqa: B018


@pytest.mark.parametrize(
    ("place", "name", "instead"),
    [
        ("session", "roc_auc", "Use session.auc(epsilon=...)."),
        ("session", "f1", "Use session.confusion(epsilon=...).f1_score."),
        ("session", "groups", "Use session.confusion(by='sex', epsilon=...)"),
        ("session", "roc_curve", "Use session.curves(epsilon=...).roc."),
        ("session", "evaluate", "Use session.report(epsilon=...)."),
        ("questions", "AUC", "Did you mean 'Auc'?"),
        (
            "library",
            "precision",
            "heldout.confusion_matrix(y_true, y_pred, epsilon=...).precision:",
        ),
        ("library", "accuracy_score", "confusion_matrix(y_true, y_pred, epsilon=...).accuracy:"),
    ],
)
def test_the_names_of_other_libraries_lead_to_ours(place: str, name: str, instead: str) -> None:
    session = ho.Session(ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p"), budget=1)
    with pytest.raises(AttributeError) as refused:
        getattr({"session": session, "questions": ho.questions, "library": ho}[place], name)
    assert instead in str(refused.value)


def test_a_plan_names_the_value_that_cannot_be() -> None:
    with pytest.raises(ArgumentError, match="the expected AUC must lie between 0 and 1, got 97"):
        ho.plan(rows=1000, positives=500, auc=97, target=0.01)


def plain_session(**words: Any) -> ho.Session:
    return ho.Session(ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p"), **words)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: plain_session(budget=1).auc(epsilon=5),
         "This costs epsilon 5, and epsilon 1 is left. Nothing was charged; ask for less."),
        (plain_session, "These rows have no budget yet. Pass one, such as budget=3"),
        (lambda: plain_session(budget=1).auc(epsilon="1/100000"),
         "epsilon must be at least 0.0002 for the AUC, got 0.00001."),
        (lambda: plain_session(budget=1).ask([ho.questions.Auc(epsilon=1)]),  # type: ignore[call-overload]
         "Pass one question or more, such as heldout.questions.Auc(epsilon=0.5), one after"),
        (lambda: plain_session(budget=1).quote("auc", epsilon=1),  # type: ignore[arg-type]
         "Pass one question or more, such as heldout.questions.Auc(epsilon=0.5)."),
        (lambda: ho.Session({"y": LABELS}, budget=1),  # type: ignore[arg-type]
         "A Session needs a Dataset, got a dict. Describe the rows first: Dataset(rows, ...)."),
        (lambda: ho.Dataset(LABELS, label="y", score="p"),
         "table must be a path, a pandas, Polars or Arrow table, a dict of columns or a DuckDB"),
        (lambda: ho.Dataset({"y": LABELS, "p": SCORES}, label="Y", score="p"),
         "No column 'Y'. Did you mean 'y'? Columns: 'y', 'p'."),
        (lambda: ho.roc_auc_score([], [], epsilon=1), "The table has no rows."),
        (lambda: ho.confusion_matrix(LABELS, SCORES, threshold=0.5, epsilon=1),
         "threshold is not supported. Pass the calls that it makes, y_pred=y_score >= 0.5;"),
        (lambda: plain_session(ledger=ho.Ledger(), account="clinic"),
         "No account 'clinic'. To add one: heldout ledger register."),
    ],
)  # fmt: skip
def test_a_refusal_says_what_was_wrong_and_what_to_do(attempt: Any, message: str) -> None:
    with pytest.raises(HeldoutError) as refused:
        attempt()
    assert str(refused.value).startswith(message)


def test_a_date_is_no_score() -> None:
    dates = np.array(["2026-01-01"] * 400, dtype="datetime64[D]")
    with pytest.raises(DataError, match="score 'p' must be a number in every row, but some are"):
        ho.Dataset({"y": LABELS, "p": dates}, label="y", score="p")


def test_a_quote_shows_its_prices_and_not_its_fields() -> None:
    quote = plain_session(budget=1).quote(ho.questions.Auc(epsilon=1))
    assert repr(quote) == str(quote)
    assert repr(quote).startswith("epsilon 1, replace-one neighbours\n  AUC: ±")


def test_gaps_are_understood_by_the_short_names_of_rates() -> None:
    rows = {"y": LABELS, "p": SCORES, "sex": ["F", "M", "M", "F"] * 100}
    data = ho.Dataset(rows, label="y", score="p", groups={"sex": ["F", "M"]})
    by_sex = ho.Session(data, budget=1).confusion(by="sex", epsilon=1)
    assert by_sex.gap_in("fpr") is by_sex.gap_in("false positive rate")


def test_words_among_values_need_a_number_each() -> None:
    with pytest.raises(DataError, match="Words need a number each: values="):
        ho.Dataset({"married": ["yes", "no"] * 200}, values={"married": (0, 1)})


def test_a_column_that_was_not_declared_is_called_so() -> None:
    rows = ho.Dataset({"age": CODES, "income": CODES}, values={"age": (0, 450)})
    with pytest.raises(
        ArgumentError, match=r"No declared column 'income'\. Declared columns: 'age'"
    ):
        ho.Session(rows, budget=1).mean("income", epsilon=1)


def test_columns_of_a_dict_that_differ_in_length_are_named_without_their_lengths() -> None:
    with pytest.raises(DataError) as refused:
        ho.Dataset({"y": LABELS, "p": SCORES[:-1]}, label="y", score="p")
    assert str(refused.value) == (
        "The columns 'y' and 'p' differ in length. Pass one value per row in every column."
    )


def test_an_attack_names_an_unknown_metric_before_it_reads_the_table(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="metric must be one of"):
        attack("f1", tmp_path / "none.csv", rows=Scored(label="y"))


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda rows: ho.Dataset(rows, lable="y", score="p"), "Did you mean 'label'?"),
        (lambda rows: ho.Dataset(rows, values={"p": (0, 1)}, unitt="y"), "Did you mean 'unit'?"),
        (
            lambda rows: ho.Dataset(rows, time="p", event="y", horizon=3),
            "A threshold or a horizon goes with a question, not with the rows.",
        ),
        (
            lambda rows: ho.Session(ho.Dataset(rows, label="y", score="p"), buget=3),
            "No argument 'buget'. Did you mean 'budget'?",
        ),
        (
            lambda rows: ho.regression.metrics(
                rows, observed="y", predicted="p", bound=(0, 1), epsilon=1
            ),
            "No argument 'bound'. Did you mean 'bounds'?",
        ),
        (
            lambda _: q.from_dict({"question": "auc", "epsilon": "1", "metod": "x"}),
            "has no field 'metod'. Did you mean 'method'? Fields: epsilon, method",
        ),
    ],
)
def test_a_misspelt_argument_is_shown_a_near_one(mistake: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        mistake({"y": LABELS, "p": SCORES})
    assert message in str(refused.value)


def test_a_misspelt_attribute_is_shown_a_near_one() -> None:
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    report = ho.Session(rows, budget=9).report(epsilon=8)
    places: list[tuple[Any, str, str]] = [
        (ho.regression, "fti", "Did you mean 'fit'?"),
        (ho.survival, "kaplan", "Did you mean 'kaplan_meier'?"),
        (ho.features, "slect", "Did you mean 'select'?"),
        (report, "remainin", "Did you mean 'remaining'?"),
        (report, "auc", "Its sections go by name: report['auc']."),
        (report["auc"], "valeu", "Did you mean 'value'?"),
    ]
    for place, name, meant in places:
        with pytest.raises(AttributeError, match="has no attribute") as refused:
            getattr(place, name)
        assert str(refused.value).endswith(meant)
    with pytest.raises(AttributeError, match=r"'zzz_qq'$"):
        _ = report.zzz_qq  # type: ignore[attr-defined]
