"""Synthetic public data; no private row passes here.

A hospital's test set: who comes back within 30 days, and what two models said at discharge.
"""

from typing import Any

import numpy as np

from heldout.arguments.rules import Whole
from heldout.examples.chance import Numbers, normal, uniform
from heldout.examples.size import MOST

PATIENTS_PER_ROW = 0.78
OVERCONFIDENCE = 1.3
BASE = -2.6  # log-odds of a middling patient
UNSEEN = 0.75  # deviation, in log-odds, of what neither model can see


def readmission(rows: int = 5000) -> Any:
    """A table of hospital stays with the scores of two models, as a pyarrow Table.

    One row is one stay (`encounter_id`); about one patient in five (`patient_id`) has more than
    one. `readmitted` is 1 if the patient came back within 30 days. `risk_a` looks at the
    admission alone and is calibrated; `risk_b` also looks at the laboratory, ranks better, and is
    over-confident. The same call gives the same table everywhere.

    >>> table = readmission()
    >>> table.num_rows, len(set(table["patient_id"].to_pylist()))
    (5000, 3900)
    """
    rows = Whole(1, MOST)(rows, "rows")
    import pyarrow

    patient = _patient_of_each_stay(rows)
    columns = _features(patient)
    seen = _admission_log_odds(columns)
    laboratory = _laboratory_log_odds(columns)
    truth = BASE + seen + laboratory + UNSEEN * normal(40, rows)
    columns["readmitted"] = (uniform(50, rows) < _probability(truth)).astype(np.int64)
    unseen_by_a = np.hypot(UNSEEN, laboratory.std())
    columns["risk_a"] = _rounded(_averaged(BASE + seen + laboratory.mean(), unseen_by_a))
    b = np.log(1 / _averaged(BASE + seen + laboratory, UNSEEN) - 1) * -1
    columns["risk_b"] = _rounded(_probability(b.mean() + OVERCONFIDENCE * (b - b.mean())))
    return pyarrow.table(columns)


def _patient_of_each_stay(rows: int) -> Any:
    """Every patient has one stay; the further ones fall on few of them, in mixed order."""
    patients = max(1, round(rows * PATIENTS_PER_ROW))
    again = (uniform(1, rows - patients) ** 1.4 * patients).astype(np.int64)
    patient = np.concatenate([np.arange(patients), again])
    return patient[np.argsort(uniform(2, rows), kind="stable")]


def _features(patient: Any) -> dict[str, Any]:
    rows, patients = len(patient), int(patient.max()) + 1
    stays = np.bincount(patient, minlength=patients)
    age = np.clip(np.round(64 + 17 * normal(4, patients)), 18, 99)
    illnesses = np.floor(-np.log(uniform(6, patients)) * (0.4 + age / 60))
    before = np.floor(-np.log(uniform(7, patients)) * (0.25 + 0.25 * np.minimum(illnesses, 5)))
    order = np.argsort(patient, kind="stable")
    earlier = np.empty(rows)
    earlier[order] = np.arange(rows) - np.repeat(np.cumsum(stays) - stays, stays)
    emergency = uniform(8, rows) < 0.55
    length = np.ceil(np.exp(1.1 + 0.25 * emergency + 0.7 * normal(9, rows)))
    return {
        "patient_id": [f"P{7 * number + 10007}" for number in patient],
        "encounter_id": np.arange(rows) + 500001,
        "age": age[patient].astype(np.int64),
        "emergency": emergency.astype(np.int64),
        "length_of_stay": np.minimum(length, 60).astype(np.int64),
        "comorbidities": np.minimum(illnesses, 9)[patient].astype(np.int64),
        "prior_admissions": np.minimum(before[patient] + earlier, 15).astype(np.int64),
        "haemoglobin": np.round(np.clip(12.8 + 1.7 * normal(12, rows), 5, 19), 1),
        "creatinine": np.round(np.clip(np.exp(0.05 + 0.38 * normal(14, rows)), 0.3, 9), 2),
    }


def _admission_log_odds(columns: dict[str, Any]) -> Numbers:
    parts = (
        0.038 * (columns["age"] - 64),
        0.70 * (columns["emergency"] - 0.55),
        0.80 * (np.log(columns["length_of_stay"]) - 1.5),
        0.34 * (columns["comorbidities"] - 1.2),
        0.75 * (np.minimum(columns["prior_admissions"], 6) - 0.6),
    )
    return np.asarray(sum(parts), dtype=np.float64)


def _laboratory_log_odds(columns: dict[str, Any]) -> Numbers:
    anaemia, kidneys = 12.8 - columns["haemoglobin"], np.log(columns["creatinine"]) - 0.05
    return np.asarray(0.40 * anaemia + 1.4 * kidneys, dtype=np.float64)


def _probability(log_odds: Numbers) -> Numbers:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def _averaged(log_odds: Numbers, deviation: float) -> Numbers:
    """The mean of the probability over unseen normal log-odds (MacKay 1992, equation 10)."""
    return _probability(np.asarray(log_odds / float(np.sqrt(1 + np.pi * deviation**2 / 8))))


def _rounded(risk: Numbers) -> Numbers:
    return np.asarray(np.round(np.clip(risk, 0.0005, 0.9995), 4), dtype=np.float64)
