"""Rows that are given in place of something else are not printed: messages end up in logs."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import heldout as ho
from heldout.arguments import shown
from heldout.errors import HeldoutError

AGES = [71.25, 80.5, 93.75] * 10


@pytest.mark.parametrize(
    "rows",
    [
        AGES,
        tuple(AGES),
        {"age": AGES},
        np.array(AGES[:2]),
        pd.Series(AGES[:2]),
        pd.DataFrame({"age": AGES[:2]}),
        pa.table({"age": AGES[:2]}),
        [np.array(AGES[:2])],
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_in_the_place_of_a_name_are_shown_by_their_type(rows: object) -> None:
    assert shown(rows) == f"a value of type {type(rows).__name__}"
    frame = pd.DataFrame({"y": [0, 1] * 15, "p": np.linspace(0, 1, 30)})
    with pytest.raises((HeldoutError, TypeError, ValueError)) as refused:
        ho.evaluate(frame, label=rows, score="p", epsilon=1)
    assert "71.25" not in str(refused.value)
    assert "80.5" not in str(refused.value)


def test_what_is_declared_is_quoted() -> None:
    assert shown(["a", "b"]) == "['a', 'b']"
    assert shown({"a": 0, "b": 1}) == "{'a': 0, 'b': 1}"
    assert shown(np.float64(0.5)) == "np.float64(0.5)"
