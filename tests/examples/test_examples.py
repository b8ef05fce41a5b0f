"""The bundled examples are what their description says, on every machine."""

import hashlib

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import heldout
from heldout.errors import ArgumentError
from heldout.examples import breast_cancer, messages, normal, readmission, salaries, uniform


@pytest.fixture(scope="module")
def stays():
    return readmission()


def column(table, name):
    return table[name].to_numpy()


def test_the_same_call_gives_the_same_table(stays):
    assert readmission().equals(stays)
    text = ",".join(map(str, column(stays, "readmitted")))
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest.startswith("668205ab47688250")


def test_five_thousand_stays_of_fewer_patients(stays):
    assert stays.num_rows == 5000
    assert len(set(stays["patient_id"].to_pylist())) == 3900
    assert len(set(stays["encounter_id"].to_pylist())) == 5000


def test_prevalence_and_ranking_are_plausible(stays):
    truth = column(stays, "readmitted")
    assert 0.11 <= truth.mean() <= 0.15
    assert roc_auc_score(truth, column(stays, "risk_a")) == pytest.approx(0.78, abs=0.01)
    assert roc_auc_score(truth, column(stays, "risk_b")) == pytest.approx(0.83, abs=0.01)


def test_the_first_model_is_calibrated_and_the_second_over_confident(stays):
    slopes = {}
    for name in ("risk_a", "risk_b"):
        risk = column(stays, name)
        log_odds = np.log(risk / (1 - risk))[:, None]
        fit = LogisticRegression(C=1e6).fit(log_odds, column(stays, "readmitted"))
        slopes[name] = fit.coef_[0, 0]
    assert slopes["risk_a"] == pytest.approx(1, abs=0.1)
    assert slopes["risk_b"] < 0.85


def test_earlier_stays_count_as_prior_admissions(stays):
    patients, prior = stays["patient_id"].to_pylist(), stays["prior_admissions"].to_pylist()
    last = {}
    for patient, count in zip(patients, prior, strict=True):
        assert count >= min(last.get(patient, -1) + 1, 15)
        last[patient] = count


@pytest.mark.parametrize("rows", [1, 2, 17, 1000])
def test_any_number_of_rows_can_be_had(rows):
    assert readmission(rows).num_rows == rows


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "many"])
def test_a_wrong_number_of_rows_is_refused(rows):
    with pytest.raises(ArgumentError, match="rows must"):
        readmission(rows)


def test_breast_cancer_is_a_test_set_that_the_model_has_not_seen():
    table = breast_cancer()
    assert table.num_rows == 284
    assert 0.95 < roc_auc_score(column(table, "malignant"), column(table, "risk")) < 1


def test_examples_can_be_evaluated(stays):
    dataset = heldout.Dataset(stays, label="readmitted", score="risk_a", unit="patient_id")
    session = heldout.Session(dataset, budget=heldout.Budget(epsilon=1))
    assert 0.8 < session.report(epsilon=1)["confusion"].accuracy < 0.95


def test_the_numbers_look_random():
    numbers = uniform(3, 20_000)
    assert 0 < numbers.min() < numbers.max() < 1
    assert numbers.mean() == pytest.approx(0.5, abs=0.01)
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.03
    assert abs(np.corrcoef(numbers, uniform(4, 20_000))[0, 1]) < 0.03
    assert normal(3, 20_000).std() == pytest.approx(1, abs=0.02)


def test_salaries_are_the_same_everywhere_and_fan_out():
    table = salaries()
    assert salaries().equals(table)
    assert len(set(table["person_id"].to_pylist())) == 3846
    residual = column(table, "salary") - column(table, "fitted")
    high = column(table, "fitted") > np.median(column(table, "fitted"))
    assert residual[high].std() > 1.5 * residual[~high].std()
    logarithm = column(table, "log_salary") - column(table, "log_fitted")
    assert 0.9 < logarithm[high].std() / logarithm[~high].std() < 1.1
    with pytest.raises(ArgumentError, match="rows must be a whole number from 10"):
        salaries(3)


def test_messages_are_the_same_everywhere_and_their_words_tell_spam():
    table = messages(2000)
    assert table.equals(messages(2000))
    text = "\n".join(table["message"].to_pylist())
    assert hashlib.sha256(text.encode()).hexdigest().startswith("bcd20b165f642f0a")
    spam = column(table, "spam")
    assert 0.1 <= spam.mean() <= 0.18
    prize = np.array(["prize" in each.split() for each in table["message"].to_pylist()])
    assert spam[prize].mean() > 3 * spam.mean()
    with pytest.raises(ArgumentError):
        messages(0)
