"""`heldout audit` through HTTP: whatever is claimed of an answer holds for what a server says."""

import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.server.conftest import Site

from heldout.audit import Pair, Subject, audit, register, subjects
from heldout.mechanisms.discrete_laplace import DiscreteLaplace
from heldout.privacy.loss import Loss

EACH = 20
"""Questions of one booking."""
SAMPLES = 400
SUBJECTS = ("brier-over-http", "half-the-noise-over-http")


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
    for name in SUBJECTS:  # other tests look at all that is registered
        subjects._SUBJECTS.pop(name, None)
    for site in found:
        site.service.close()


def subject(name: str, sites: list[Any]) -> Subject:
    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        site, found = pair.side(side), []
        question = {"question": "brier", "epsilon": str(epsilon)}
        while len(found) < count:
            key = f"{next(site.keys)}"
            answered = site.answer(*[question] * EACH, artifact=site.model, key=key)
            assert answered["price"] == {"epsilon": str(EACH * epsilon), "delta": "0"}
            found += [each["noisy"] for each in answered["answers"]]
        return np.array(found[:count], dtype=float)

    pair = Pair("a wrong label", *sites)
    return register(Subject(name, "release", (pair,), Loss.pure, draw))


@pytest.mark.slow
def test_a_server_gives_no_more_away_than_it_claims(sites: list[Any]) -> None:
    subject(SUBJECTS[0], sites)
    found = audit(SUBJECTS[0], epsilon="1", samples=SAMPLES, workers=1)
    assert found.claimed == Loss.pure(1)
    assert not found.violated
    assert found.findings[0].epsilon < 1
    assert found.findings[0].epsilon > 0.2, "the audit sees the row"


@pytest.mark.slow
def test_a_server_with_half_the_noise_is_caught(
    sites: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = DiscreteLaplace.float_scale.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(DiscreteLaplace, "float_scale", property(lambda self: honest(self) / 2))
    subject(SUBJECTS[1], sites)
    found = audit(SUBJECTS[1], epsilon="1", samples=SAMPLES, workers=1)
    assert found.violated
    assert json.dumps(found.as_dict())


def test_every_answer_that_was_audited_was_paid_for(sites: list[Any]) -> None:
    for site in sites:
        entries = site.client("olga").get("/api/v1/ledger").json()
        paid = [Fraction(each["charge"]["epsilon"]) for each in entries if each["charge"]]
        shown = site.client("ana").get("/api/v1/datasets/readmissions").json()["allowance"]
        assert len(paid) == next(site.keys)
        assert sum(paid) == Fraction(shown["spent"]["epsilon"]) == EACH * len(paid)
