"""The second factor: a code opens one door once, and nothing tells which of the three was wrong."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyotp
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from tests.server.conftest import Site

from heldout.server import accounts, factors, storage
from heldout.server.service import Conflict, Forbidden, Missing, TooMany

PASSWORD = "correct horse battery"
START = 1_800_000_000.0


class Clock:
    """The server's clock, which a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = START
        for module in (accounts, factors, storage):
            monkeypatch.setattr(module, "now", lambda: self.time)

    def later(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


Enrol = Callable[..., tuple[pyotp.TOTP, list[str]]]


def person(site: Site, name: str, role: str) -> accounts.Person:
    """Somebody who has just signed in by a link."""
    session = accounts.sign_in_by_link(site.service, accounts.new_link(site.service, name))
    found = accounts.of_token(site.service, session, kind="browser")
    assert found is not None
    assert found.role == role
    return found


@pytest.fixture
def enrol(site: Site, clock: Clock) -> Enrol:
    def enrol(name: str = "ana", role: str = "analyst") -> tuple[pyotp.TOTP, list[str]]:
        who = person(site, name, role)
        session = accounts.change_password(site.service, who, PASSWORD)
        who = accounts.of_token(site.service, session, kind="browser")
        offer = accounts.offer_factor(site.service, who, password=PASSWORD)
        app = pyotp.TOTP(offer.secret)
        codes = accounts.confirm_factor(site.service, who, app.at(clock.time))
        clock.later(60)
        return app, codes

    return enrol


def sign_in(site: Site, code: str, *, name: str = "ana", address: str = "a") -> str:
    return accounts.sign_in(site.service, name=name, password=PASSWORD, code=code, address=address)


def test_password_and_code_sign_in_and_neither_does_alone(
    site: Site, enrol: Enrol, clock: Clock
) -> None:
    app, _ = enrol()
    said = set()
    for password, code in (
        (PASSWORD, ""),
        (PASSWORD, "000000"),
        ("wrong horse battery", app.at(clock.time)),
    ):
        with pytest.raises(Forbidden) as refusal:
            accounts.sign_in(site.service, name="ana", password=password, code=code)
        said.add(str(refusal.value))
    with pytest.raises(Forbidden) as refusal:
        accounts.sign_in(site.service, name="nobody", password=PASSWORD, code="")
    assert said == {str(refusal.value)}  # nor does it tell who has a factor, or who is there
    assert accounts.of_token(site.service, sign_in(site, app.at(clock.time)), kind="browser")


def test_a_code_is_used_up(site: Site, enrol: Enrol, clock: Clock) -> None:
    app, _ = enrol()
    code = app.at(clock.time)
    sign_in(site, code)
    with pytest.raises(Forbidden):
        sign_in(site, code)
    clock.later(30)
    newer = app.at(clock.time)
    sign_in(site, newer)
    with pytest.raises(Forbidden):
        sign_in(site, code)  # still within the window, but older than one that was used


def test_clocks_may_differ_by_half_a_minute_and_no_more(
    site: Site, enrol: Enrol, clock: Clock
) -> None:
    app, _ = enrol()
    for off in (-90, 90, -3600):
        with pytest.raises(Forbidden):
            sign_in(site, app.at(clock.time + off), address=str(off))
    sign_in(site, app.at(clock.time - 30))


def test_a_recovery_code_works_once(site: Site, enrol: Enrol, clock: Clock) -> None:
    _, codes = enrol()
    assert len(set(codes)) == factors.RECOVERY_CODES
    sign_in(site, codes[3].upper().replace("-", " "))
    with pytest.raises(Forbidden):
        sign_in(site, codes[3])
    sign_in(site, codes[4])
    assert factors.codes_left(site.service, "ana") == factors.RECOVERY_CODES - 2
    with site.service.store.read() as connection:
        stored = str(connection.execute(sa.select(storage.people.c.factor)).all())
    assert codes[5].replace("-", "") not in stored


def test_the_secret_is_not_in_the_tables(site: Site, enrol: Enrol) -> None:
    app, _ = enrol()
    with site.service.store.read() as connection:
        stored = str(connection.execute(sa.select(storage.people.c.factor)).all())
    assert app.secret not in stored
    key = site.service.settings.folder / factors.KEY
    assert key.stat().st_mode & 0o077 == 0


def test_wrong_codes_count_wherever_they_come_from(site: Site, enrol: Enrol, clock: Clock) -> None:
    app, _ = enrol()
    for guess in range(accounts.FREE_FAILURES + 1):
        with pytest.raises((Forbidden, TooMany)):
            sign_in(site, "000000", address=f"address {guess}")
    with pytest.raises(TooMany):
        sign_in(site, app.at(clock.time), address="yet another")
    clock.later(400)
    assert sign_in(site, app.at(clock.time), address="home")


def test_strangers_without_the_password_lock_nobody_out(
    site: Site, enrol: Enrol, clock: Clock
) -> None:
    app, _ = enrol()
    for guess in range(3 * accounts.FREE_FAILURES):
        with pytest.raises((Forbidden, TooMany)):
            accounts.sign_in(
                site.service, name="ana", password="a guess of mine", code="1", address=str(guess)
            )
    assert sign_in(site, app.at(clock.time), address="home")


def test_a_link_stands_for_the_password_not_for_the_factor(
    site: Site, enrol: Enrol, clock: Clock
) -> None:
    app, _ = enrol()
    link = accounts.new_link(site.service, "ana")
    for code in ("", "000000"):
        with pytest.raises(Forbidden):
            accounts.sign_in_by_link(site.service, link, code=code)
    assert accounts.sign_in_by_link(site.service, link, code=app.at(clock.time))
    with pytest.raises(Forbidden):
        accounts.sign_in_by_link(site.service, link, code=app.at(clock.time))


def test_setting_up_needs_the_password_and_ends_other_sessions(site: Site, clock: Clock) -> None:
    who = person(site, "ana", "analyst")
    session = accounts.change_password(site.service, who, PASSWORD)
    other = accounts.sign_in(site.service, name="ana", password=PASSWORD)
    mine = accounts.of_token(site.service, session, kind="browser")
    assert mine is not None
    with pytest.raises(Forbidden):
        accounts.offer_factor(site.service, mine, password="stolen session")
    offer = accounts.offer_factor(site.service, mine, password=PASSWORD)
    with pytest.raises(Forbidden):
        accounts.confirm_factor(site.service, mine, "000000")
    # What is not confirmed does not count: nobody is locked out by a page left open.
    assert accounts.sign_in(site.service, name="ana", password=PASSWORD, address="b")
    accounts.confirm_factor(site.service, mine, pyotp.TOTP(offer.secret).at(clock.time))
    assert accounts.of_token(site.service, other, kind="browser") is None
    assert accounts.of_token(site.service, session, kind="browser") is not None
    with pytest.raises(Conflict):
        accounts.offer_factor(site.service, mine, password=PASSWORD)


def test_removing_needs_password_and_code(site: Site, enrol: Enrol, clock: Clock) -> None:
    app, _ = enrol()
    session = sign_in(site, app.at(clock.time))
    who = accounts.of_token(site.service, session, kind="browser")
    assert who is not None
    clock.later(60)
    for password, code in ((PASSWORD, "000000"), ("wrong horse battery", app.at(clock.time))):
        with pytest.raises(Forbidden):
            accounts.remove_factor(site.service, who, password=password, code=code)
    accounts.remove_factor(site.service, who, password=PASSWORD, code=app.at(clock.time))
    assert accounts.sign_in(site.service, name="ana", password=PASSWORD)


def test_an_administrator_resets_others_and_everything_of_theirs_ends(
    site: Site, enrol: Enrol, clock: Clock
) -> None:
    app, _ = enrol()
    session = sign_in(site, app.at(clock.time))
    for who, status in (("carol", 403), ("olga", 403), ("bert", 403)):
        path = "/api/v1/people/ana/factor"
        assert site.client(who).delete(path).status_code == status
    assert site.client("adam").delete("/api/v1/people/ana/factor").status_code == 204
    assert accounts.of_token(site.service, session, kind="browser") is None
    assert site.client("ana").get("/api/v1/me").status_code == 401
    assert accounts.sign_in(site.service, name="ana", password=PASSWORD)
    assert site.client("adam").delete("/api/v1/people/adam/factor").status_code == 403
    assert site.client("adam").delete("/api/v1/people/nobody/factor").status_code == 404
    lines = site.client("olga").get("/api/v1/audit?action=reset+second+factor").json()
    assert [(line["person"], line["subject"]) for line in lines] == [("adam", "ana")]
    with pytest.raises(Missing):
        accounts.clear_factor(site.service, "nobody")


def test_a_role_may_need_a_second_factor_before_anything_else(tmp_path: Path, clock: Clock) -> None:
    site = Site(tmp_path / "server", second_factor=("administrator", "custodian"))
    assert site.client("ana").get("/api/v1/me").status_code == 200
    assert site.client("carol").get("/api/v1/datasets").status_code == 403
    who = person(site, "carol", "custodian")
    session = accounts.change_password(site.service, who, PASSWORD)
    browser = site.client()
    browser.cookies.set("heldout", session)
    for path in ("/", "/register", "/ledger"):
        answer = browser.get(path)
        assert answer.status_code == 403
        assert "second factor" in answer.text
        assert 'href="/account#factor"' in answer.text
    assert browser.get("/account").status_code == 200
    data = {"form_token": token_in(browser.get("/account"))}
    tokens = browser.post("/account/tokens", data=data | {"label": "x", "scopes": "read"})
    assert tokens.status_code == 403
    page = browser.post("/account/factor", data=data | {"current": PASSWORD})
    assert "data:image/svg+xml" in page.text
    secret = re.search(r'the secret <code class="secret">([A-Z2-7]+)</code>', page.text)
    assert secret is not None
    code = pyotp.TOTP(secret[1]).at(clock.time)
    done = browser.post("/account/factor/confirm", data=data | {"code": code})
    assert done.text.count('<code class="secret">') == factors.RECOVERY_CODES
    assert browser.get("/register").status_code == 200
    site.service.close()


def token_in(page: Any) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text)
    assert found is not None, page.text
    return found[1]


def test_the_pages_ask_for_the_code(site: Site, enrol: Enrol, clock: Clock) -> None:
    app, codes = enrol()

    def tried(browser: TestClient, code: str) -> Any:
        data = {"form_token": token_in(browser.get("/sign-in")), "name": "ana"}
        return browser.post("/sign-in", data=data | {"password": PASSWORD, "code": code})

    browser = site.client()
    assert "Name, password or code is wrong." in tried(browser, "").text
    assert tried(browser, app.at(clock.time)).status_code == 200
    assert f"{len(codes)} recovery codes are left" in browser.get("/account").text
    link = accounts.new_link(site.service, "ana")
    other = site.client()
    page = other.get(f"/sign-in/{link}")
    assert "Code of your second factor" in page.text
    data = {"form_token": token_in(page)}
    assert "code is wrong" in other.post(f"/sign-in/{link}", data=data | {"code": "1"}).text
    other.post(f"/sign-in/{link}", data=data | {"code": codes[0]})
    assert other.get("/account").status_code == 200
    adam = site.client()
    adam.cookies.set(
        "heldout", accounts.sign_in_by_link(site.service, accounts.new_link(site.service, "adam"))
    )
    people = adam.get("/")
    assert "set, second factor" in people.text
    adam.post("/people/ana/factor/reset", data={"form_token": token_in(people)})
    assert factors.codes_left(site.service, "ana") is None


def test_a_lost_key_makes_codes_wrong_and_recovery_codes_still_work(
    site: Site, enrol: Enrol, clock: Clock
) -> None:
    app, codes = enrol()
    (site.service.settings.folder / factors.KEY).unlink()
    with pytest.raises(Forbidden):
        sign_in(site, app.at(clock.time))
    assert sign_in(site, codes[0])


def test_an_administrator_who_lost_it_all_has_a_command_on_the_machine(
    site: Site, enrol: Enrol
) -> None:
    enrol("adam", "administrator")
    who, link = accounts.administrator_link(site.service, "adam")
    with pytest.raises(Forbidden):
        accounts.sign_in_by_link(site.service, link)
    who, link = accounts.administrator_link(site.service, "adam", reset_factor=True)
    assert who == "adam"
    assert accounts.sign_in_by_link(site.service, link)
    lines = site.client("olga").get("/api/v1/audit?action=reset+second+factor").json()
    assert "server's machine" in lines[0]["subject"]


def test_of_codes_typed_at_once_each_counts(
    site: Site, enrol: Enrol, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A try counts before its code is looked at: else all that wait at once are one try."""
    enrol()
    counted, real = [], factors.use

    def use(service: Any, connection: sa.Connection, row: Any, code: str) -> bool:
        mine = storage.tries.c.address == accounts.CODES
        counted.append(connection.execute(sa.select(storage.tries.c.failures).where(mine)).scalar())
        return real(service, connection, row, code)

    monkeypatch.setattr(factors, "use", use)
    for number in range(accounts.FREE_FAILURES):
        with pytest.raises(Forbidden):
            sign_in(site, "000000", address=f"address {number}")
    with pytest.raises(TooMany):
        sign_in(site, "000000", address="another")
    assert counted == [1, 2, 3, 4, 5]


def test_what_a_password_alone_opened_ends_when_the_second_factor_counts(
    site: Site, clock: Clock
) -> None:
    who = person(site, "ana", "analyst")
    session = accounts.change_password(site.service, who, PASSWORD)
    who = accounts.of_token(site.service, session, kind="browser")
    assert who is not None
    token = accounts.make_token(site.service, who, label="intruder's")["token"]
    link = accounts.new_link(site.service, "ana")
    app = pyotp.TOTP(accounts.offer_factor(site.service, who, password=PASSWORD).secret)
    accounts.confirm_factor(site.service, who, app.at(clock.time))
    assert accounts.of_token(site.service, token, kind="api") is None
    assert accounts.of_token(site.service, link, kind="link") is None
    assert accounts.of_token(site.service, session, kind="browser") is not None


def test_the_address_of_a_form_that_is_opened_again_leads_to_its_page(tmp_path: Path) -> None:
    site = Site(tmp_path / "server")
    browser = site.client()
    for path, page in (
        ("/people", "/"),
        ("/account/factor/confirm", "/account/factor"),
        ("/account/factor", "/account"),
        ("/datasets/a/publish", "/datasets/a"),
    ):
        answer = browser.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, page)
    assert browser.get("/api/v1/evaluations").status_code in (401, 405)
