"""An audit through HTTP: whatever is claimed of an answer holds for what a server says."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from tests.server.conftest import Site

from heldout.audit.events import epsilon_bound
from heldout.kernel.noise.additive import DiscreteLaplace

EACH = 20
"""Questions of one booking."""
SAMPLES = 36 * EACH
"""Answers of each server. The noise is symmetric and the row moves one sum as far as a row can, so
that a sum at or below the right model's has chance 1/2 there and exp(-epsilon)/2 at its neighbour.
By these two binomial laws the tests below fail by chance in fewer than 2 of 10 million runs."""


def rows(last: int) -> dict[str, list[Any]]:
    """A model that is right about everybody, but for the last row's label."""
    return {"admission": list(range(8)), "x": [0, 1] * 4, "readmitted": [0, 1, 0, 1, 0, 1, 0, last]}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """Two servers whose tables differ in one row, and a model on each."""
    import pyarrow
    import pyarrow.parquet

    folder, found = tmp_path_factory.mktemp("audit"), []
    model = {"coefficients": {"x": 1.0}}
    for side in (0, 1):
        path = folder / f"{side}.parquet"
        pyarrow.parquet.write_table(pyarrow.table(rows(1 - side)), path)
        site = Site(folder / f"server{side}", tick=0.001, most_waiting=10**6)
        declared = {"label": "readmitted", "row_key": "admission", "features": ["x"]}
        body = {"name": "readmissions", "source": str(path), "declaration": declared}
        answer = site.client("carol").post(
            "/api/v1/datasets", json=body | {"budget": "1000000"}, headers={"Prefer": "wait=0"}
        )
        answer.raise_for_status()
        site.work()
        site.grant(budget="1000000")
        site.model = site.upload(model)["id"]  # type: ignore[attr-defined]
        site.keys = itertools.count()  # type: ignore[attr-defined]
        found.append(site)
    yield found
    for site in found:
        site.service.close()


def at_or_below_the_right_model(site: Any) -> int:
    """In how many answers of epsilon 1 the rows without the label err no more than not at all."""
    found: list[int] = []
    while len(found) < SAMPLES:
        question = {"question": "brier", "epsilon": "1"}
        key = f"{next(site.keys)}"
        answered = site.answer(*[question] * EACH, artifact=site.model, key=key)
        assert answered["price"] == {"epsilon": str(EACH), "delta": "0"}
        found += [each["noisy"][0] for each in answered["answers"]]
    return sum(each <= 0 for each in found)


@pytest.mark.slow
def test_a_server_gives_no_more_away_than_it_claims(sites: list[Any]) -> None:
    hits = [at_or_below_the_right_model(site) for site in sites]
    assert epsilon_bound(*hits, SAMPLES, error=1e-4) < 1
    assert epsilon_bound(*hits, SAMPLES, error=0.01) > 0.2, "the audit sees the row"


@pytest.mark.slow
def test_a_server_with_half_the_noise_is_caught(
    sites: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = DiscreteLaplace.float_scale.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(DiscreteLaplace, "float_scale", property(lambda self: honest(self) / 2))
    hits = [at_or_below_the_right_model(site) for site in sites]
    assert epsilon_bound(*hits, SAMPLES, error=0.01) > 1


def test_every_answer_that_was_audited_was_paid_for(sites: list[Any]) -> None:
    for site in sites:
        entries = site.client("olga").get("/api/v1/ledger").json()
        paid = [Fraction(each["charge"]["epsilon"]) for each in entries if each["charge"]]
        shown = site.client("ana").get("/api/v1/datasets/readmissions").json()["allowance"]
        assert len(paid) == next(site.keys)
        assert sum(paid) == Fraction(shown["spent"]["epsilon"]) == EACH * len(paid)
