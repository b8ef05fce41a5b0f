"""Conclusions on the server: each kind of claim is priced, answered and shown."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.chances import louder
from tests.server.conftest import Site

ROWS = 3000
RANDOM = np.random.default_rng(8)
AGE = RANDOM.integers(20, 60, ROWS).astype(float)
FEMALE = np.arange(ROWS) % 2
PAY = 20 + 0.5 * AGE - 6 * FEMALE + RANDOM.normal(0, 4, ROWS)
TABLE = {
    "who": [f"p{place}" for place in range(ROWS)],
    "age": AGE,
    "female": FEMALE,
    "pay": np.clip(PAY, 0, 80),
    "guess": 20 + 0.5 * AGE - 6 * FEMALE,
}
DECLARATION = {
    "row_key": "who",
    "measured": {"values": {"age": [20, 60], "female": [0, 1], "pay": [0, 80], "guess": [0, 80]}},
}
FORMULA = "pay ~ age + female"
CLAIMS = {
    "sign": ("coefficient('female') < 0", FORMULA, "holds"),
    "region": ("0.3 < coefficient('age') < 0.7", FORMULA, "holds"),
    "significance": ("significant('female')", FORMULA, "holds"),
    "means of groups": ("mean('pay', female=1) > mean('pay', female=0)", None, "does not hold"),
    "error below a bound": ("mean_absolute_error('pay', 'guess') < 6", None, "holds"),
}


@pytest.mark.chance(louder(0, 6, 20))
def test_each_kind_of_claim_is_priced_answered_and_shown(tmp_path: Path) -> None:
    site = Site(tmp_path / "server")
    pyarrow.parquet.write_table(pyarrow.table(TABLE), tmp_path / "pay.parquet")
    body = {"name": "pay", "source": str(tmp_path / "pay.parquet"), "budget": "1000"}
    body |= {"declaration": DECLARATION}
    wait = {"Prefer": "wait=0"}
    site.client("carol").post("/api/v1/datasets", json=body, headers=wait).raise_for_status()
    site.work()
    site.grant(name="pay", budget="900")
    ana = site.client("ana")
    for name, (claim, formula, verdict) in CLAIMS.items():
        question: dict[str, Any] = {"question": "conclusion", "claim": claim, "epsilon": "100"}
        question |= {} if formula is None else {"formula": formula}
        asked = {"dataset": "pay", "questions": [question]}
        quote = ana.post("/api/v1/quotes", json=asked)
        assert quote.status_code == 200, quote.text
        sent = ana.post("/api/v1/evaluations", json=asked, headers={"Idempotency-Key": name})
        assert sent.status_code == 202, sent.text
        site.work()
        address = f"/api/v1/evaluations/{sent.json()['id']}"
        answer = ana.get(address, headers={"Prefer": "wait=10"}).json()
        assert answer["state"] == "answered", answer["words"]
        assert answer["answers"][0]["verdict"] == verdict, name
        page = ana.get(f"/api/v1/reports/{answer['id']}.html").text
        assert verdict in page
        shown = page.split("<script", 1)[0]
        assert ("above 0.999" if verdict == "holds" else "below 0.001") in shown, name
        assert "0.9999" not in shown
    site.service.close()


def test_gaussian_noise_is_for_data_sets_with_a_budget_of_rho(tmp_path: Path) -> None:
    site = Site(tmp_path / "server")
    for name, budget in (("dense", {"rho": "9"}), ("plain", "9")):
        source = tmp_path / f"{name}.parquet"
        people = [f"{name} {place}" for place in range(ROWS)]
        pyarrow.parquet.write_table(pyarrow.table({**TABLE, "who": people}), source)
        body = {"name": name, "source": str(source), "budget": budget}
        body |= {"declaration": DECLARATION}
        wait = {"Prefer": "wait=0"}
        site.client("carol").post("/api/v1/datasets", json=body, headers=wait).raise_for_status()
        site.work()
        site.grant(name=name, budget=budget)
    ana = site.client("ana")
    fit = {"question": "linear-regression", "outcome": "pay", "features": ["age", "female"]}
    asked = {"questions": [{**fit, "noise": "gaussian", "epsilon": "1"}]}
    key = {"Idempotency-Key": "gaussian"}
    quote = ana.post("/api/v1/quotes", json={"dataset": "dense", **asked})
    assert quote.status_code == 200, quote.text
    assert quote.json()["loss"] == {"rho": "1/2", "delta": "0"}
    sent = ana.post("/api/v1/evaluations", json={"dataset": "dense", **asked}, headers=key)
    assert sent.status_code == 202, sent.text
    site.work()
    wait = {"Prefer": "wait=10"}
    answer = ana.get(f"/api/v1/evaluations/{sent.json()['id']}", headers=wait).json()
    assert answer["state"] == "answered", answer["words"]
    assert answer["answers"][0]["loss"] == {"rho": "1/2", "delta": "0"}
    other = {"Idempotency-Key": "elsewhere"}
    refused = ana.post("/api/v1/evaluations", json={"dataset": "plain", **asked}, headers=other)
    assert refused.status_code in (400, 409, 422), refused.text
    assert "rho" in refused.text
    site.service.close()
