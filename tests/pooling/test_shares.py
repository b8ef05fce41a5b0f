"""Several sites hand in a confusion matrix, and noise is in the sum once."""

from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.pooling import pool


class InTheClear:
    """A stand-in for a secure aggregation: it adds up, and hides nothing. For tests alone."""

    def __init__(self) -> None:
        self.total, self.sites = np.zeros(4, dtype=object), 0

    def submit(self, vector: Any) -> None:
        self.total, self.sites = self.total + np.array(vector, dtype=object), self.sites + 1


ASKED = q.Confusion(threshold=0.5, epsilon="1/2")


def session(rows: int = 400, epsilon: str = "1") -> ho.Session:
    table = {"y": [1, 0] * (rows // 2), "p": [0.8, 0.3] * (rows // 2)}
    return ho.Session(ho.Dataset(table, label="y", score="p"), budget=ho.Budget(epsilon=epsilon))


@pytest.mark.chance(2e-7, "1e-7 by its interval; 100 is beyond exp(-18) of the noise")
def test_each_site_books_the_whole_price_and_the_sum_reads_as_one_matrix() -> None:
    secure, sites = InTheClear(), [session() for _ in range(5)]
    for site in sites:
        receipt = pool.hand_in(site, ASKED, honest=4, into=secure)
        assert site.remaining == ho.Loss.pure("1/2")
        assert "noisy" not in str(receipt)
    found = pool.open_sum(
        secure.total.tolist(), ASKED, sensitivity=2, honest=4, handed_in=secure.sites
    )
    low, high = found.accuracy.interval(1 - 1e-7)
    assert low < 1 <= high
    assert abs(found.true_positives.value - 1000) < 100


def test_too_few_sites_and_other_questions_are_refused() -> None:
    with pytest.raises(ho.errors.ArgumentError, match="at least 4"):
        pool.open_sum([1, 2, 3, 4], ASKED, sensitivity=2, honest=4, handed_in=3)
    site, secure = session(), InTheClear()
    for question, honest in ((q.Auc(epsilon=1), 2), (ASKED, 0), (ASKED, True)):
        with pytest.raises(ho.errors.ArgumentError):
            pool.hand_in(site, question, honest=honest, into=secure)
    assert site.spent == ho.Loss.pure(0)
    rows = ho.Dataset({"y": ["a", "b", "c"] * 4, "c": ["a"] * 12}, label="y", prediction="c",
                      classes=["a", "b", "c"])  # fmt: skip
    with pytest.raises(ho.errors.ArgumentError, match="cannot be asked of these rows"):
        pool.hand_in(ho.Session(rows, budget=ho.Budget(1)), ASKED, honest=2, into=secure)
    assert secure.sites == 0


def test_an_aggregation_that_fails_has_cost_its_price() -> None:
    class Broken:
        def submit(self, vector: Any) -> None:
            raise OSError

    site = session()
    with pytest.raises(ho.errors.AnswerLost):
        pool.hand_in(site, ASKED, honest=2, into=Broken())
    assert site.remaining == ho.Loss.pure("1/2")
