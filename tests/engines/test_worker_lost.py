"""A cluster that loses a worker in the middle of a question: tools/with_cluster.py."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import heldout as ho
from heldout.errors import AnswerLost
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import compute
from heldout.questions.counts import ThresholdCounts


def test_a_worker_that_is_killed_leaves_a_whole_answer_or_a_booked_failure(
    spark_session: Any, tmp_path: Path
) -> None:
    """Runs last of all, by the name of its file: the cluster has one worker less after it."""
    workers = os.environ.get("HELDOUT_TEST_WORKERS")
    if not workers:
        pytest.skip("HELDOUT_TEST_WORKERS is not set; make test-cluster sets it")
    many = spark_session.range(0, 600_000, 1, 16).selectExpr(
        "id AS visit",
        "CAST(id % 3 % 2 AS INT) AS y",
        "(id % 1000) / 1000.0D AS p",
        "id * 7919 % 200000 AS person",
    )
    many.write.parquet(str(tmp_path / "rows"))
    frame = spark_session.read.parquet(str(tmp_path / "rows"))
    declared = {"label": "y", "score": "p", "row_key": "visit"}
    dataset = ho.Dataset(frame, **declared)
    people = ho.Dataset(frame, **declared, unit="person", rows_per_unit=2)

    def counted() -> list[int]:
        return unseal(compute(ThresholdCounts(thresholds=(0.5,)), people)).tolist()  # type: ignore[no-any-return]

    before = counted()  # and kept, on both workers
    assert sum(before) == 400_000
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    victim = int(workers.split(",")[0])

    def kill() -> None:
        time.sleep(0.2)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = session.confusion(threshold=0.5, epsilon="1/2")
        # Every row once: half of the third that is positive lies above the threshold.
        assert abs(found.true_positives.value - 100_000) < 500
        assert abs(sum(each.value for each in found._named_counts.values()) - 600_000) < 500
    except AnswerLost:
        pass
    killer.join()
    assert session.spent == ho.Loss.pure("1/2")
    assert counted() == before, "what was lost is found again: the same rows count"
    later = session.confusion(threshold=0.5, epsilon="1/2")
    assert abs(later.true_positives.value - 100_000) < 500
