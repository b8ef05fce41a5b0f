"""The demo: a made-up hospital with a custodian, an analyst and two models."""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from heldout.server import accounts, datasets
from heldout.server.accounts import SCOPES, Person
from heldout.server.service import Service
from heldout.server.storage import datasets as dataset_table
from heldout.server.storage import now, people

__all__ = ["MODELS", "offer"]

NAME = "readmissions"
FACTS = """Made-up hospital stays. A model is to say who comes back within 30 days; one row is one
stay, and a patient may have several. Nobody in this table is real."""
ADMISSION = {
    "age": 0.03,
    "emergency": 0.7,
    "length_of_stay": 0.09,
    "comorbidities": 0.3,
    "prior_admissions": 0.6,
}
MODELS: dict[str, dict[str, Any]] = {
    "admission.json": {"coefficients": ADMISSION, "intercept": -5.7, "link": "logit"},
    "laboratory.json": {
        "coefficients": ADMISSION | {"haemoglobin": -0.36, "creatinine": 0.85},
        "intercept": -2.3,
        "link": "logit",
    },
}
"""Two models to try, as an analyst would submit them."""


def offer(service: Service, address: str) -> Iterator[str]:
    """Set the demo up if it is not there; what to print about it, a line each."""
    import pyarrow.parquet

    from heldout.examples import readmission

    with service.store.read() as connection:
        known = connection.execute(
            sa.select(dataset_table.c.name).where(dataset_table.c.name == NAME)
        ).first()
    folder = service.settings.folder / "demo"
    if known is None:
        folder.mkdir(exist_ok=True)
        table = readmission().drop_columns(["risk_a", "risk_b"])
        pyarrow.parquet.write_table(table, folder / "readmissions.parquet")
        for name, model in MODELS.items():
            (folder / name).write_text(json.dumps(model, indent=2), encoding="utf-8")
        for name, role in (("carol", "custodian"), ("ana", "analyst")):
            with service.store.read() as connection:
                there = connection.execute(sa.select(people).where(people.c.name == name)).first()
            if there is None:
                accounts.add_person(service, name=name, role=role)
        carol = Person("carol", "custodian", "", "", SCOPES)
        declaration = {
            "label": "readmitted",
            "row_key": "encounter_id",
            "unit": "patient_id",
            "rows_per_unit": 3,
            "expected_rows": 5000,
        }
        datasets.register(
            service,
            carol,
            name=NAME,
            source=str(folder / "readmissions.parquet"),
            declaration=declaration,
            budget="6",
            facts=FACTS,
        )
        _wait(service)
        datasets.grant(service, carol, NAME, analyst="ana", budget="4")
    yield f"The demo's analyst:   {address}/sign-in/{accounts.new_link(service, 'ana')}"
    yield f"The demo's custodian: {address}/sign-in/{accounts.new_link(service, 'carol')}"
    yield f"Models to submit are in {folder}: {', '.join(MODELS)}"


def _wait(service: Service) -> None:
    """Until a worker has looked at the rows; without one running, look at them here."""
    import time

    from heldout.server.worker import Worker

    end = now() + 20
    while datasets.find(service, NAME).state == "checking" and now() < end:
        time.sleep(0.1)
    if datasets.find(service, NAME).state == "checking":
        while Worker(service).step():
            pass
