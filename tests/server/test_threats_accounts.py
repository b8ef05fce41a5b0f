"""Tokens and their children, the last administrator, guesses, hosts, and who may know a column."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.server.conftest import LINEAR, REAL_HASHER, Site, write_rows

from heldout.server import accounts, gate, storage
from heldout.server.app import make_app
from heldout.server.service import Busy, Conflict, Forbidden, Service, Settings, TooMany

API = "/api/v1"
PASSWORD = "correct horse battery"


def browser(site: Site, name: str) -> tuple[accounts.Person, str]:
    secret = accounts.sign_in_by_link(site.service, accounts.new_link(site.service, name))
    person = accounts.of_token(site.service, secret, kind="browser")
    assert person is not None
    return person, secret


def bearing(site: Site, token: str) -> Any:
    found = site.client()
    found.headers["Authorization"] = f"Bearer {token}"
    return found


def test_passwords_are_hashed_with_the_work_that_the_standard_asks_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argon2

    monkeypatch.setattr(accounts, "_hasher", REAL_HASHER)  # all other tests have a quick one
    accounts.change_password(site.service, browser(site, "ana")[0], PASSWORD)
    with site.service.store.read() as connection:
        known = sa.select(storage.people.c.password).where(storage.people.c.name == "ana")
        kept = str(connection.execute(known).scalar())
    assert PASSWORD not in kept
    assert argon2.extract_parameters(kept) == argon2.profiles.RFC_9106_LOW_MEMORY
    assert accounts.sign_in(site.service, name="ana", password=PASSWORD)


# --- tokens --------------------------------------------------------------------------------------


def test_no_token_outlives_the_one_that_made_it(site: Site) -> None:
    parent = bearing(site, site.token("ana", "analyst", days=1 / 96))  # 15 minutes
    long = parent.post(f"{API}/tokens", json={"label": "child", "days": 366})
    assert (long.status_code, "cannot outlive" in long.json()["detail"]) == (403, True)
    child = parent.post(f"{API}/tokens", json={"label": "child"}).json()
    assert child["expires"] - storage.now() <= 15 * 60
    grandchild = bearing(site, child["token"]).post(f"{API}/tokens", json={}).json()
    assert grandchild["expires"] <= child["expires"]


def test_a_revoked_token_takes_every_one_it_made_with_it(site: Site) -> None:
    made, client = [], site.client("ana")
    for label in ("parent", "child", "grandchild"):
        made.append(client.post(f"{API}/tokens", json={"label": label}).json())
        client = bearing(site, made[-1]["token"])
    assert client.get(f"{API}/me").status_code == 200
    assert site.client("ana").delete(f"{API}/tokens/{made[0]['id']}").status_code == 204
    for each in made:
        assert bearing(site, each["token"]).get(f"{API}/me").status_code == 401
    assert site.client("ana").get(f"{API}/me").status_code == 200, "its own parent stays"


def test_a_new_password_ends_every_token_session_and_link(site: Site) -> None:
    person, secret = browser(site, "ana")
    _, other = browser(site, "ana")
    link = accounts.new_link(site.service, "ana")
    child = site.client("ana").post(f"{API}/tokens", json={"label": "child"}).json()["token"]
    fresh = accounts.change_password(site.service, person, PASSWORD)
    for ended in (secret, other):
        assert accounts.of_token(site.service, ended, kind="browser") is None
    assert accounts.of_token(site.service, link, kind="link") is None
    for client in (site.client("ana"), bearing(site, child)):
        assert client.get(f"{API}/me").status_code == 401
    assert accounts.of_token(site.service, fresh, kind="browser") is not None
    assert site.client("bert").get(f"{API}/me").status_code == 200


def test_a_session_that_ended_meanwhile_makes_no_token(site: Site) -> None:
    person, _ = browser(site, "ana")
    accounts.change_password(site.service, person, PASSWORD)
    with pytest.raises(Forbidden):  # the request was let in before
        accounts.make_token(site.service, person, label="late")


def test_the_page_of_a_new_password_goes_on_with_a_new_session(site: Site) -> None:
    client = site.client()
    _, secret = browser(site, "ana")
    client.cookies.set("heldout", secret)
    page = client.get("/account").text
    token = page.split('name="form_token" value="')[1].split('"')[0]
    form = {"form_token": token, "password": PASSWORD, "again": PASSWORD}
    answer = client.post("/account/password", data=form, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/account?done=password")
    fresh = answer.cookies["heldout"]
    assert fresh != secret
    again = site.client()
    again.cookies.set("heldout", fresh)
    assert "all tokens of yours have ended" in again.get("/account?done=password").text


def test_a_request_under_way_makes_no_token_for_a_disabled_person(site: Site) -> None:
    person, _ = browser(site, "ana")  # looked up before, used after
    accounts.disable(
        site.service,
        "ana",
        by=accounts.Person("adam", "administrator", "", "browser", accounts.SCOPES),
    )
    with pytest.raises(Forbidden, match="revoked"):
        accounts.make_token(site.service, person, label="late")


def test_a_token_of_a_disabled_person_opens_nothing_even_if_it_was_not_revoked(site: Site) -> None:
    person, _ = browser(site, "ana")
    late = accounts.make_token(site.service, person, label="late")["token"]
    with site.service.store.write() as connection:
        mine = storage.people.update().where(storage.people.c.name == "ana")
        connection.execute(mine.values(disabled=storage.now()))
    assert bearing(site, late).get(f"{API}/me").status_code == 401


def test_a_link_that_two_requests_look_up_at_once_signs_in_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = accounts.new_link(site.service, "ana")
    unused = accounts.of_token(site.service, link, kind="link")
    monkeypatch.setattr(accounts, "of_token", lambda *_, **__: unused)  # both see it unused
    assert accounts.sign_in_by_link(site.service, link)
    with pytest.raises(Forbidden, match="used before"):
        accounts.sign_in_by_link(site.service, link)


# --- the last administrator ----------------------------------------------------------------------


def test_the_last_administrator_who_can_sign_in_stays(site: Site) -> None:
    adam = site.client("adam")
    own = adam.delete(f"{API}/people/adam")
    assert (own.status_code, "yourself" in own.json()["detail"]) == (403, True)
    refused = adam.delete(f"{API}/people/administrator")
    assert refused.status_code == 409, "adam has no password: nobody could sign in"
    assert "last administrator" in refused.json()["detail"]
    person, _ = browser(site, "adam")
    accounts.change_password(site.service, person, PASSWORD)
    accounts.disable(
        site.service,
        "administrator",
        by=accounts.Person("adam", "administrator", "", "browser", accounts.SCOPES),
    )
    with pytest.raises(Conflict, match="last administrator"):
        accounts.disable(site.service, "adam")


def test_two_administrators_who_disable_each_other_leave_one(site: Site) -> None:
    for name in ("adam", "administrator"):
        accounts.change_password(site.service, browser(site, name)[0], PASSWORD)

    def gone(name: str) -> str:
        try:
            accounts.disable(site.service, name)
        except Conflict:
            return "stays"
        return "gone"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(gone, ("adam", "administrator"))) == ["gone", "stays"]


# --- guesses -------------------------------------------------------------------------------------


def test_a_strangers_guesses_do_not_lock_the_owner_out(site: Site) -> None:
    accounts.change_password(site.service, browser(site, "ana")[0], PASSWORD)

    def sign_in(password: str, address: str) -> str:
        return accounts.sign_in(site.service, name="ana", password=password, address=address)

    for _ in range(accounts.FREE_FAILURES):
        with pytest.raises(Forbidden):
            sign_in("wrong horse battery", "192.0.2.1")
    with pytest.raises(TooMany):
        sign_in(PASSWORD, "192.0.2.1")
    assert sign_in(PASSWORD, "192.0.2.2"), "the owner, from where they are"
    with pytest.raises(TooMany):
        sign_in(PASSWORD, "192.0.2.1")


def test_what_was_typed_as_a_name_is_kept_as_a_digest_and_forgotten(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Forbidden):
        accounts.sign_in(site.service, name="my password", password="x", address="a")

    def kept() -> list[Any]:
        with site.service.store.read() as connection:
            return list(connection.execute(sa.select(storage.tries)).all())

    assert [row.failures for row in kept()] == [1]
    assert "my password" not in str(kept())
    monkeypatch.setattr(accounts, "now", lambda: storage.now() + accounts.FORGOTTEN + 1)
    with pytest.raises(Forbidden):
        accounts.sign_in(site.service, name="other", password="x", address="a")
    assert [row.name for row in kept()] == [accounts.digest_of("other")]


def test_few_passwords_are_looked_at_at_once_and_the_rest_is_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "server", most_hashing=2)
    inside, most, lock, hold = 0, 0, threading.Lock(), threading.Event()

    class Slow:
        def verify(self, *_: str) -> bool:
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            hold.wait(20)
            with lock:
                inside -= 1
            return False

    monkeypatch.setattr(accounts, "_hasher", Slow)
    monkeypatch.setattr(accounts, "_nobodys", lambda: "none")

    def guess(n: int) -> str:
        try:
            accounts.sign_in(site.service, name=f"n{n}", password="x", address="")
        except (Busy, Forbidden) as error:
            if isinstance(error, Busy):
                sent_away.append(gate.problem(error))
                if len(sent_away) == 45:
                    hold.set()
            return type(error).__name__
        return "in"

    sent_away: list[Any] = []
    with ThreadPoolExecutor(55) as pool:
        told = list(pool.map(guess, range(55)))
    assert (told.count("Busy"), told.count("Forbidden")) == (45, 10)
    assert most <= 2
    assert {(each.status_code, each.headers["retry-after"]) for each in sent_away} == {(503, "2")}
    site.service.close()


# --- routes and hosts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/sign-in/artifacts"),
        ("POST", "/sign-in"),
        ("POST", "/api/v1/artifacts"),
        ("POST", "/people/artifacts/artifacts"),
        ("PUT", "/artifacts"),
        ("PUT", "/x/artifacts"),
        ("POST", "/artifacts/x/artifacts"),
    ],
)
def test_only_the_two_routes_of_uploads_take_more_than_a_request(
    site: Site, method: str, path: str
) -> None:
    read = 0

    def pieces() -> Any:
        nonlocal read
        for _ in range(40):
            read += 2**18
            yield b"x" * 2**18

    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = site.client().request(method, path, content=pieces(), headers=kind)
    assert answer.status_code in (401, 403, 404, 405, 413), answer.status_code
    assert gate._streams({"method": method, "path": path}) is False


def test_a_stranger_sends_no_artefact(site: Site) -> None:
    headers = {"Content-Type": "application/json"}
    assert site.client().put(f"{API}/artifacts", content=b"{}", headers=headers).status_code == 401
    assert list(site.service.settings.artifacts.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evaluate.example.org", 200),
        ("EVALUATE.example.org:443", 200),
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("also.example.org", 200),
        ("evil.example.org", 421),
        ("evaluate.example.org.evil.example", 421),
        ("evaluate.example.org@evil", 421),
        ("xevaluate.example.org", 421),
        ("", 421),
    ],
)
def test_requests_for_another_host_are_refused(tmp_path: Path, host: str, status: int) -> None:
    settings = Settings.at(
        tmp_path / "server", address="https://evaluate.example.org", hosts=("Also.example.org",)
    )
    from fastapi.testclient import TestClient

    client = TestClient(make_app(Service(settings)))
    for path in ("/health", "/api/v1/openapi.json"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == status
        if status == 421:
            assert "does not answer to the name" in answer.text


# --- columns -------------------------------------------------------------------------------------


def test_a_board_names_no_column_to_people_without_a_share(site: Site, tmp_path: Path) -> None:
    site.register(write_rows(tmp_path / "rows.parquet", 2000), budget="10")
    terms = {"price": "8", "improvements": 3, "submissions": 10, "start": 0.5}
    body = {"name": "spring", "dataset": "readmissions", "terms": terms}
    assert site.client("carol").post(f"{API}/boards", json=body).status_code == 201
    site.work()
    site.grant("bert", budget="1/10")
    told = {}
    for who in ("ana", "bert"):
        model = site.upload(LINEAR | {"coefficients": {"income": 1.0}}, who=who)["id"]
        sent = {"artifact": model, "title": "x"}
        headers = {"Idempotency-Key": who}
        path = f"{API}/boards/spring/submissions"
        site.client(who).post(path, json=sent, headers=headers).raise_for_status()
        site.work()
        time.sleep(0.5)
        shown = [site.client(who).get(path).text, site.client().get("/boards/spring").text]
        told[who] = " ".join(shown)
    assert "could not be scored" in told["ana"]
    for column in ("age", "stay"):
        assert f"'{column}'" not in told["ana"]
        assert f"'{column}'" in told["bert"], "who has a share reads what is wrong"


def test_why_a_board_could_not_open_is_its_custodians_to_know(site: Site, tmp_path: Path) -> None:
    site.register(write_rows(tmp_path / "rows.parquet", 2000), budget="3")
    terms = {"price": "8", "improvements": 3, "submissions": 10, "start": 0.5}
    body = {"name": "spring", "dataset": "readmissions", "terms": terms}
    site.client("carol").post(f"{API}/boards", json=body).raise_for_status()
    site.work()
    words = {}
    for who in ("ana", "carol"):
        words[who] = site.client(who).get(f"{API}/boards/spring").json()["words"]
    assert words["ana"].startswith("The board could not open. Nothing was charged")
    assert "is left" in words["carol"]


def test_a_garbled_host_is_refused_whatever_the_address_is(tmp_path: Path) -> None:
    assert "" not in Settings.at(tmp_path / "server", address="evaluate.example.org").known_hosts
