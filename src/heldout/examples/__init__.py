"""Bundled examples: made-up public tables, and scikit-learn's breast cancer data.

No private row passes here. The same call gives the same table everywhere: numbers that look random
come from a counter, scrambled by the finaliser of SplitMix64 (Steele, Lea and Flood 2014). That is
good enough for an example and never a source of privacy noise, which comes from the operating
system.
"""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heldout.arguments import Whole

if TYPE_CHECKING:
    import pyarrow

__all__ = ["breast_cancer", "messages", "parole", "readmission", "salaries"]

MOST: Final = 10_000_000
"""Rows that one may ask for: they must fit in memory."""

Numbers = NDArray[np.float64]
Wholes = NDArray[np.int64]
Columns = dict[str, Any]
_GOLDEN = 0x9E3779B97F4A7C15


def uniform(column: int, size: int) -> Numbers:
    """Return numbers in (0, 1), a different sequence for each column.

    >>> uniform(1, 3).round(4).tolist()
    [0.0985, 0.0454, 0.2483]
    """
    counter = np.arange(1, size + 1, dtype=np.uint64) + np.uint64(column << 40)
    mixed = counter * np.uint64(_GOLDEN)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def normal(column: int, size: int) -> Numbers:
    """Return standard normal numbers (Box and Muller 1958); takes up two columns."""
    radius = np.sqrt(-2 * np.log(uniform(column, size)))
    return np.asarray(radius * np.cos(2 * np.pi * uniform(column + 1, size)))


def _person_of_each_row(rows: int, rows_per_person: float, *, column: int) -> tuple[Wholes, int]:
    """Return whose each row is, and how many people there are: everybody has a row or more."""
    people = max(1, round(rows / rows_per_person))
    further = (uniform(column, rows - people) * people).astype(np.int64)
    return np.concatenate([np.arange(people), further]), people


def breast_cancer() -> "pyarrow.Table":
    """Return scores of a logistic regression on scikit-learn's breast cancer data.

    Trained on every other sample and scored on the rest, so the 284 rows are a test set.
    Columns: `sample_id`, `malignant` (0 or 1), `risk`.

    >>> breast_cancer().column_names
    ['sample_id', 'malignant', 'risk']
    """
    import pyarrow
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, benign = load_breast_cancer(return_X_y=True)
    malignant = 1 - benign
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(features[::2], malignant[::2])
    risk = np.round(model.predict_proba(features[1::2])[:, 1], 4)
    return pyarrow.table(
        {
            "sample_id": np.arange(1, len(malignant), 2),
            "malignant": malignant[1::2].astype(np.int64),
            "risk": risk,
        }
    )


SPAM = 0.14
LONGEST = 24
_COMMON = """
i you to a the and in is me my it for your of that have on are so not but do at be can if we
will what get just now with no how up when this go all ok like know good out then come got
time there from call one was want about he she day need love home think see back later
"""
_PRIVATE = """
lunch tonight sorry mum dinner sleep class friend movie bus train yeah haha morning tired work
exam birthday miss dear happy night tomorrow meeting house car buy eat walk rain phone weekend
doctor school office soon wait late leave reach pick send message thanks really feel hope
nothing something maybe never always week
"""
_UNWANTED = """
free txt win prize claim cash won urgent mobile reply stop text www com 150p nokia award
guaranteed ringtone services customer offer voucher entry weekly latest camera tone landline
box await collection 1000 5000 08712 4u min per sms contact draw statement xxx chat dating
"""


def messages(rows: int = 4000) -> "pyarrow.Table":
    """Return text messages: `message_id`, `message` and `spam` (0 or 1).

    About one in seven is unwanted. The words are real and the messages are not: each word is drawn
    alone.

    >>> table = messages()
    >>> table.num_rows, table.column_names
    (4000, ['message_id', 'message', 'spam'])
    """
    rows = Whole(1, MOST)(rows, "rows")
    import pyarrow

    spam = uniform(1, rows) < SPAM
    chatter = uniform(2, rows)
    sizes = np.where(spam, 8 + chatter * (LONGEST - 8), 2 - 5 * np.log(chatter)).astype(int)
    sizes = np.clip(sizes, 1, LONGEST)
    kinds, places = uniform(3, rows * LONGEST), uniform(4, rows * LONGEST)
    texts = []
    for row in range(rows):
        own = slice(row * LONGEST, row * LONGEST + int(sizes[row]))
        words = [
            _word(_topic(kind, bool(spam[row])), place)
            for kind, place in zip(kinds[own], places[own], strict=True)
        ]
        texts.append(" ".join(words))
    return pyarrow.table(
        {
            "message_id": np.arange(rows) + 70001,
            "message": texts,
            "spam": spam.astype(np.int64),
        }
    )


def _topic(kind: float, spam: bool) -> str:
    """Choose a list of words: mostly common ones, and now and then the other kind's."""
    if kind < 0.6:
        return _COMMON
    usual, rare = (_UNWANTED, _PRIVATE) if spam else (_PRIVATE, _UNWANTED)
    return rare if kind > 0.97 else usual


def _word(topic: str, place: float) -> str:
    """Choose a word; those further down the list are rarer, as in Zipf's law."""
    words = topic.split()
    return words[int(len(words) ** place) - 1]


HEARINGS_PER_PERSON = 1.2


def parole(rows: int = 6000) -> "pyarrow.Table":
    """Return parole hearings with the risk score of a model that is less sure of one group.

    One row is one hearing of one person (`person_id`), of whom some have several, in different
    districts. Within a district the score says the same of `sex` F and M about as well, but it
    finds fewer of those in the south who reoffend, and raises more false alarms in the north.

    >>> table = parole()
    >>> table.num_rows, table.column_names
    (6000, ['person_id', 'sex', 'age', 'district', 'reoffended', 'risk'])
    """
    rows = Whole(10, MOST)(rows, "rows")
    import pyarrow

    person, people = _person_of_each_row(rows, HEARINGS_PER_PERSON, column=81)
    woman = (uniform(82, people) < 0.3)[person]
    age = np.round(18 + 42 * uniform(83, people) ** 1.5)[person]
    place = np.digitize(uniform(84, rows), [0.55, 0.9])
    log_odds = 0.4 - 0.04 * (age - 25) - 0.3 * woman + 1.1 * normal(85, people)[person]
    again = uniform(86, rows) < 1 / (1 + np.exp(-log_odds))
    seen = (
        0.8 * log_odds + 0.9 * again + np.array([0.25, -0.55, 0.0])[place] + 0.5 * normal(87, rows)
    )
    return pyarrow.table(
        {
            "person_id": [f"P{7 * number + 5003}" for number in person],
            "sex": np.where(woman, "F", "M"),
            "age": age.astype(np.int64),
            "district": np.array(["north", "south", "harbour"])[place],
            "reoffended": again.astype(np.int64),
            "risk": np.round(1 / (1 + np.exp(0.3 - seen)), 4),
        }
    )


PATIENTS_PER_ROW = 0.78
OVERCONFIDENCE = 1.3
BASE = -2.6  # log-odds of a middling patient
UNSEEN = 0.75  # deviation, in log-odds, of what neither model can see


def readmission(rows: int = 5000) -> "pyarrow.Table":
    """Return hospital stays with the scores of two models.

    One row is one stay (`encounter_id`); about one patient in five (`patient_id`) has more than
    one. `readmitted` is 1 if the patient came back within 30 days. `risk_a` looks at the
    admission alone and is calibrated; `risk_b` also looks at the laboratory, ranks better, and is
    over-confident.

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


def _patient_of_each_stay(rows: int) -> Wholes:
    """Return whose each stay is: one for everybody, further ones for few, in mixed order."""
    patients = max(1, round(rows * PATIENTS_PER_ROW))
    again = (uniform(1, rows - patients) ** 1.4 * patients).astype(np.int64)
    patient = np.concatenate([np.arange(patients), again])
    return patient[np.argsort(uniform(2, rows), kind="stable")]


def _features(patient: Wholes) -> Columns:
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


def _admission_log_odds(columns: Columns) -> Numbers:
    parts = (
        0.038 * (columns["age"] - 64),
        0.70 * (columns["emergency"] - 0.55),
        0.80 * (np.log(columns["length_of_stay"]) - 1.5),
        0.34 * (columns["comorbidities"] - 1.2),
        0.75 * (np.minimum(columns["prior_admissions"], 6) - 0.6),
    )
    return np.asarray(sum(parts), dtype=np.float64)


def _laboratory_log_odds(columns: Columns) -> Numbers:
    anaemia, kidneys = 12.8 - columns["haemoglobin"], np.log(columns["creatinine"]) - 0.05
    return np.asarray(0.40 * anaemia + 1.4 * kidneys, dtype=np.float64)


def _probability(log_odds: Numbers) -> Numbers:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def _averaged(log_odds: Numbers, deviation: float) -> Numbers:
    """Return the mean of the probability over unseen normal log-odds (MacKay 1992, equation 10)."""
    return _probability(np.asarray(log_odds / float(np.sqrt(1 + np.pi * deviation**2 / 8))))


def _rounded(risk: Numbers) -> Numbers:
    return np.asarray(np.round(np.clip(risk, 0.0005, 0.9995), 4), dtype=np.float64)


YEARS_PER_PERSON = 1.3


def salaries(rows: int = 5000) -> "pyarrow.Table":
    """Return salaries with the predictions of two regressions, of which the second fits.

    One row is one year of one person (`person_id`), of whom some have several. `fitted` is a linear
    regression of `salary` on age and education; `log_fitted` one of `log_salary`.

    >>> table = salaries()
    >>> table.num_rows, table.column_names[-4:]
    (5000, ['salary', 'fitted', 'log_salary', 'log_fitted'])
    """
    rows = Whole(10, MOST)(rows, "rows")
    import pyarrow

    person, people = _person_of_each_row(rows, YEARS_PER_PERSON, column=61)
    age = np.round(20 + 45 * uniform(62, people))[person]
    education = np.round(8 + 12 * uniform(63, people))[person]
    gift = 0.3 * normal(64, people)[person]
    log_salary = 8.9 + 0.09 * education + 0.017 * age + gift + 0.25 * normal(66, rows)
    salary = np.asarray(np.round(np.exp(log_salary)), dtype=np.float64)
    design = np.stack([np.ones(rows), age, education], axis=1)
    return pyarrow.table(
        {
            "person_id": [f"E{3 * number + 2003}" for number in person],
            "age": age.astype(np.int64),
            "education": education.astype(np.int64),
            "salary": salary,
            "fitted": _fitted(design, salary, places=2),
            "log_salary": np.round(np.log(salary), 6),
            "log_fitted": _fitted(design, np.log(salary), places=6),
        }
    )


def _fitted(design: Numbers, outcome: Numbers, *, places: int) -> Numbers:
    weights, *_ = np.linalg.lstsq(design, outcome, rcond=None)
    return np.asarray(np.round(design @ weights, places))
