"""Synthetic public data; no private row passes here.

Hearings of made-up people with a risk score that is less sure of one group than of the other.
"""

from typing import Any

import numpy as np

from heldout.arguments.rules import Whole
from heldout.examples.chance import normal, uniform
from heldout.examples.size import MOST

HEARINGS_PER_PERSON = 1.2


def parole(rows: int = 6000) -> Any:
    """A table of parole hearings with a model's risk score, as a pyarrow Table.

    One row is one hearing of one person (`person_id`), of whom some have several, in different
    districts. Within a district the score says the same of `sex` F and M about as well, but it
    finds fewer of those in the south who reoffend, and raises more false alarms in the north. The
    same call gives the same table everywhere.

    >>> table = parole()
    >>> table.num_rows, table.column_names
    (6000, ['person_id', 'sex', 'age', 'district', 'reoffended', 'risk'])
    """
    rows = Whole(10, MOST)(rows, "rows")
    import pyarrow

    people = max(1, round(rows / HEARINGS_PER_PERSON))
    person = np.concatenate(
        [np.arange(people), (uniform(81, rows - people) * people).astype(np.int64)]
    )
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
