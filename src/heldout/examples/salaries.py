"""Synthetic public data; no private row passes here.

Salaries with two regressions of them: a straight one of the salary, which does not fit, and one of
its logarithm, which does.
"""

from typing import Any

import numpy as np

from heldout.arguments.rules import Whole
from heldout.examples.chance import normal, uniform
from heldout.examples.size import MOST

YEARS_PER_PERSON = 1.3


def salaries(rows: int = 5000) -> Any:
    """A table of salaries with the predictions of two models, as a pyarrow Table.

    One row is one year of one person (`person_id`), of whom some have several. `fitted` is a linear
    regression of `salary` on age and education; `log_fitted` one of `log_salary`. The same call
    gives the same table everywhere.

    >>> table = salaries()
    >>> table.num_rows, table.column_names[-4:]
    (5000, ['salary', 'fitted', 'log_salary', 'log_fitted'])
    """
    rows = Whole(10, MOST)(rows, "rows")
    import pyarrow

    people = max(1, round(rows / YEARS_PER_PERSON))
    person = np.concatenate(
        [np.arange(people), (uniform(61, rows - people) * people).astype(np.int64)]
    )
    age = np.round(20 + 45 * uniform(62, people))[person]
    education = np.round(8 + 12 * uniform(63, people))[person]
    gift = 0.3 * normal(64, people)[person]
    log_salary = 8.9 + 0.09 * education + 0.017 * age + gift + 0.25 * normal(66, rows)
    salary = np.round(np.exp(log_salary))
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


def _fitted(design: Any, outcome: Any, *, places: int) -> Any:
    weights, *_ = np.linalg.lstsq(design, outcome, rcond=None)
    return np.round(design @ weights, places)
