"""Custodians who share a server share no rows: what one registers tells nothing of another's."""

from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import DECLARATION, Site, write_rows

from heldout.server import accounts


class Shared(Site):
    """A site with a second custodian; carol's rows share the budget of the people `clinic`."""

    def __init__(self, folder: Path, rows: Path) -> None:
        super().__init__(folder)
        accounts.add_person(self.service, name="mallory", role="custodian")
        self.tokens["mallory"] = self.token("mallory", "custodian")
        found = self.sent("carol", "readmissions", rows, people="clinic")
        assert found["state"] == "open"
        self.grant()

    def sent(self, who: str, name: str, file: Path, **more: Any) -> Any:
        body = {"name": name, "source": str(file), "declaration": DECLARATION | more, "budget": "3"}
        self.client(who).post(
            "/api/v1/datasets", json=body, headers={"Prefer": "wait=0"}
        ).raise_for_status()
        self.work()
        return self.client(who).get(f"/api/v1/datasets/{name}").json()


@pytest.fixture
def shared(tmp_path: Path) -> Any:
    found = Shared(tmp_path / "server", write_rows(tmp_path / "rows.parquet"))
    yield found
    found.service.close()


def test_a_table_of_one_person_does_not_tell_whether_anothers_rows_hold_them(
    shared: Shared, tmp_path: Path
) -> None:
    there = write_rows(tmp_path / "there.parquet", 1)
    absent = write_rows(tmp_path / "absent.parquet", 1, admission=(0, "nobody"))
    first, second = (
        shared.sent("mallory", "one", there),
        shared.sent("mallory", "two", absent),
    )
    for found in (first, second):
        del found["name"]
    assert first == second
    assert first["state"] == "open"


def test_ones_own_people_are_still_found(shared: Shared, tmp_path: Path) -> None:
    found = shared.sent("carol", "second", write_rows(tmp_path / "second.parquet", 40))
    assert found["state"] == "refused"
    assert "are also in account 'readmissions'" in found["words"]
    assert 'register with "people" and that account' in found["words"]
    assert 'pass "new": true' in found["words"]
    assert "--" not in found["words"]
    again = shared.sent("carol", "third", tmp_path / "second.parquet", people="clinic")
    assert again["state"] == "open"


def test_nobody_spends_the_budget_of_another_custodians_people(
    shared: Shared, tmp_path: Path
) -> None:
    file = write_rows(tmp_path / "other.parquet", 30)
    for at, people in enumerate(("clinic", "readmissions")):
        found = shared.sent("mallory", f"leech{at}", file, people=people)
        assert found["state"] == "refused"
        assert "not an account of mallory" in found["words"]
    left = shared.client("carol").get("/api/v1/datasets/readmissions").json()["allowance"]
    assert left["remaining"]["epsilon"] == "3"


def test_a_data_set_with_the_name_of_anothers_people_is_not_given_their_account(
    shared: Shared, tmp_path: Path
) -> None:
    """Whoever owned it could read its ledger, raise its budget, and close it."""
    found = shared.sent("mallory", "clinic", write_rows(tmp_path / "other.parquet", 30))
    assert found["state"] == "refused"
    assert "There is an account 'clinic' already" in found["words"]
    mallory = shared.client("mallory")
    assert mallory.get("/api/v1/ledger?dataset=clinic").json() == []
    assert mallory.delete("/api/v1/datasets/clinic").status_code == 409
    assert mallory.patch("/api/v1/datasets/clinic", json={"budget": "9"}).status_code == 409


def test_rows_that_a_lost_worker_had_registered_are_opened_by_the_next(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account is there, and it is the custodian's own."""
    from heldout.server import worker

    real = worker.PrivateSession

    def lost(*_: Any, **__: Any) -> Any:
        monkeypatch.setattr(worker, "PrivateSession", real)
        raise OSError

    monkeypatch.setattr(worker, "PrivateSession", lost)
    found = shared.sent("mallory", "own", write_rows(tmp_path / "other.parquet", 30))
    assert found["state"] == "open"


def test_a_data_set_with_a_name_that_the_log_uses_shows_its_custodian_no_more_of_the_log(
    shared: Shared, tmp_path: Path
) -> None:
    """Who signs in is a line about "browser", and what they typed in vain one about "refused"."""

    file = write_rows(tmp_path / "other.parquet", 30)
    for name in ("browser", "refused", "ana"):
        shared.sent("mallory", name, file, new=True)
        shared.service.note("a secret", "sign in", name, 403)
    listed = shared.client("mallory").get("/api/v1/audit").json()
    assert {each["person"] for each in listed} == {"mallory"}
    registered = [each["subject"] for each in listed if each["action"] == "register"]
    assert registered == ["ana", "refused", "browser"]
