"""A leaderboard on the server."""

from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import LINEAR, Site, write_rows

from heldout.server.storage import now, submissions, wait_until

TERMS = {"price": "8", "improvements": 3, "submissions": 10, "start": 0.5}


def _opened(site: Site, tmp_path: Path) -> Any:
    site.register(write_rows(tmp_path / "rows.parquet", 2000), budget="10")
    body = {"name": "spring", "dataset": "readmissions", "terms": TERMS, "each": 6}
    answer = site.client("carol").post("/api/v1/boards", json=body)
    assert answer.status_code == 201, answer.text
    site.work()
    return site.client("ana").get("/api/v1/boards/spring").json()


def _submit(site: Site, model: str, key: str, who: str = "ana") -> Any:
    body = {"artifact": model, "title": "mine"}
    return site.client(who).post(
        "/api/v1/boards/spring/submissions", json=body, headers={"Idempotency-Key": key}
    )


def _judged(site: Site, who: str = "ana") -> list[Any]:
    site.work()
    wait_until(now() + 0.5)
    return list(site.client(who).get("/api/v1/boards/spring/submissions").json())


def test_submissions_learn_whether_they_improved(site: Site, tmp_path: Path) -> None:
    board = _opened(site, tmp_path)
    assert (board["state"], board["best"]) == ("open", 0.5)
    good, bad = site.upload(), site.upload(LINEAR | {"intercept": -90})
    assert _submit(site, good["id"], "1").status_code == 202
    assert _submit(site, good["id"], "1").status_code == 202
    assert _submit(site, bad["id"], "2").status_code == 202
    found = {each["artifact"]: each for each in _judged(site)}
    assert len(found) == 2
    assert found[good["id"]]["improved"] is True
    assert found[bad["id"]]["improved"] is False
    board = site.client("bert").get("/api/v1/boards/spring").json()
    assert board["best"] == found[good["id"]]["score"] > 0.6
    assert [each["analyst"] for each in board["shown"]] == ["ana"]
    assert "whatever the other" in board["certificate"]["words"]
    spent = site.client("carol").get("/api/v1/datasets/readmissions").json()["allowance"]["spent"]
    assert spent["epsilon"] == "8"  # the whole price, when it opened
    assert site.client("olga").get("/api/v1/ledger/verify").json()["intact"]


def test_clicks_at_once_are_one_submission(site: Site, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    _opened(site, tmp_path)
    model = site.upload()["id"]
    with ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(lambda _: _submit(site, model, "click"), range(12)))
    assert {each.status_code for each in sent} == {202}
    assert len({each.json()["id"] for each in sent}) == 1
    assert len(_judged(site)) == 1


def test_an_analyst_may_only_submit_so_often(site: Site, tmp_path: Path) -> None:
    _opened(site, tmp_path)
    model = site.upload(LINEAR | {"intercept": -90})["id"]
    codes = [_submit(site, model, str(each)).status_code for each in range(7)]
    assert codes == [202] * 6 + [403]


def test_a_refusal_frees_no_submission_before_its_tick(site: Site, tmp_path: Path) -> None:
    _opened(site, tmp_path)
    model = site.upload()["id"]
    for each in range(6):
        _submit(site, model, str(each))
    for until, code in ((now() + 3600, 403), (now() - 1, 202)):
        with site.service.store.write() as connection:
            ended = {"state": "refused", "visible": until}
            connection.execute(submissions.update().values(**ended))
        assert _submit(site, model, f"until {until}").status_code == code


def test_a_board_that_would_show_nothing_does_not_open(site: Site, tmp_path: Path) -> None:
    site.register(write_rows(tmp_path / "rows.parquet", 2000))
    terms = TERMS | {"price": "1/100"}
    body = {"name": "spring", "dataset": "readmissions", "terms": terms}
    answer = site.client("carol").post("/api/v1/boards", json=body)
    assert answer.status_code == 422
    assert "would show nothing" in answer.json()["detail"]


def test_a_board_dearer_than_the_budget_is_refused(site: Site, tmp_path: Path) -> None:
    site.register(write_rows(tmp_path / "rows.parquet", 2000), budget="3")
    body = {"name": "spring", "dataset": "readmissions", "terms": TERMS}
    site.client("carol").post("/api/v1/boards", json=body)
    site.work()
    board = site.client("ana").get("/api/v1/boards/spring").json()
    assert board["state"] == "refused"
    assert "Nothing was charged" in board["words"]


def test_a_board_that_is_lost_after_it_was_paid_for_does_not_say_that_nothing_was_charged(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heldout.questions import boards

    def crash(*_: Any) -> None:
        raise MemoryError

    site.register(write_rows(tmp_path / "rows.parquet", 2000), budget="9")
    body = {"name": "spring", "dataset": "readmissions", "terms": TERMS}
    site.client("carol").post("/api/v1/boards", json=body).raise_for_status()
    monkeypatch.setattr(boards, "secret_of", crash)
    site.work()
    for who in ("ana", "carol"):
        board = site.client(who).get("/api/v1/boards/spring").json()
        assert (board["state"], "stays spent" in board["words"]) == ("lost", True)
        assert "Nothing was charged" not in board["words"]
    assert "booked as entry" in board["words"], "its custodian learns which entry"
    spent = site.client("carol").get("/api/v1/datasets/readmissions").json()["allowance"]["spent"]
    assert spent["epsilon"] != "0"
    assert "lost" in site.client().get("/boards/spring").text


def test_a_board_is_read_and_submitted_to_on_its_pages(site: Site, tmp_path: Path) -> None:
    from heldout.server import accounts

    _opened(site, tmp_path)
    model = site.upload()["id"]
    anybody = site.client()
    assert "spring" in anybody.get("/boards").text
    assert "whatever the other" in anybody.get("/boards/spring").text
    secret = accounts.sign_in_by_link(site.service, accounts.new_link(site.service, "ana"))
    ana = site.client()
    ana.cookies.set("heldout", secret)
    page = ana.get("/boards/spring").text
    token = page.split('name="form_token" value="')[1].split('"')[0]
    form = {"form_token": token, "key": "k", "artifact": model, "title": "Mine & <b>"}
    assert ana.post("/boards/spring/submissions", data=form).status_code == 200
    _judged(site)
    page = anybody.get("/boards/spring").text
    assert "Mine &amp; &lt;b&gt;" in page
    assert "My submissions" not in page
    refused = ana.post("/boards/spring/submissions", data=form | {"form_token": "x", "key": "l"})
    assert refused.status_code == 403


def test_what_waits_for_a_person_who_was_disabled_is_not_judged(site: Site, tmp_path: Path) -> None:
    _opened(site, tmp_path)
    before = site.client("carol").get("/api/v1/datasets/readmissions").json()["allowance"]
    _submit(site, site.upload()["id"], "1")
    site.client("adam").delete("/api/v1/people/ana").raise_for_status()
    [found] = _judged(site, "carol")
    assert (found["state"], found["improved"]) == ("refused", None)
    assert "disabled this person" in found["words"]
    after = site.client("carol").get("/api/v1/datasets/readmissions").json()["allowance"]
    assert after == before
