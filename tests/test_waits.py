"""What people wait for stays as short: counted in calls, which other work does not change."""

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.waits import asked, by_equal_groups, session

from heldout.testing import seeded


def calls(run: Callable[[], object]) -> int:
    """Count calls of functions, Python's and C's."""
    count = 0

    def look(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


MOST = {  # calls at a new epsilon, half again as many as on the day they were counted
    "auc": 105_000,
    "average_precision": 172_000,
    "compare": 96_000,
    "curves": 55_000,
}


@pytest.mark.slow
def test_answers_and_their_sentences_take_no_more_calls_than_they_did() -> None:
    door = session()
    counted = {}
    for kind in MOST:
        ask = asked(door, kind)
        str(ask("1"))
        counted[kind] = calls(lambda ask=ask: str(ask("1.01")))
    assert {kind: count for kind, count in counted.items() if count > MOST[kind]} == {}


@pytest.mark.slow
def test_a_quote_of_curves_takes_no_more_calls_than_it_did() -> None:
    from heldout import questions as q

    door = session()
    str(door.quote(q.Curves(epsilon="1")))
    # 72,000 when counted: two typical releases of 35,000.
    assert calls(lambda: str(door.quote(q.Curves(epsilon="1.01")))) < 108_000


@pytest.mark.slow
def test_ten_times_as_many_groups_take_eight_times_as_many_calls_at_most() -> None:
    few, many = by_equal_groups(2), by_equal_groups(20)
    with seeded("groups", not_private=True):  # which groups are counted is chosen by noise
        few(), many()
        assert calls(many) < 8 * calls(few)  # 5 times when counted
        assert calls(many) < 450_000  # 300,000 when counted


def test_a_dict_of_arrays_is_asked_without_pandas() -> None:
    """Arrow would import it for each array: a third of a second, and twice as much to collect."""
    code = (
        "import sys; from benchmarks.waits import made_up, session; "
        "session().compare(score='b', epsilon='1'); "
        "people = made_up(100) | {'y': made_up(100)['y'] == 1}; "
        "session(people, positive=True, unit='who', rows_per_unit=2).auc(epsilon='1'); "
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)
