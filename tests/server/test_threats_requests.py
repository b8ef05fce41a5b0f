"""Requests that are repeated, forged, too many, too large or strange."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from tests.server.conftest import LINEAR, Site, write_rows
from tests.server.watched import AUC, CELLS, Steady

from heldout.server import accounts, evaluations, gate, storage, worker
from heldout.server import service as service_module
from heldout.server.jobs import claim
from heldout.server.service import Conflict
from heldout.server.worker import Worker

ASK = {"dataset": "readmissions", "questions": [AUC]}


def spent(site: Site, who: str = "ana") -> str:
    shown = site.client(who).get("/api/v1/datasets/readmissions").json()
    return str(shown["allowance"]["spent"]["epsilon"])


def bookings(site: Site) -> list[Any]:
    entries = site.client("olga").get("/api/v1/ledger").json()
    return [each for each in entries if each["charge"] is not None]


# --- the same thing twice ------------------------------------------------------------------------


def test_sixteen_clicks_at_once_are_one_booking(opened: Any) -> None:
    model = opened.upload()["id"]
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda _: opened.ask(AUC, artifact=model, key="click"), range(16)))
    assert {each.status_code for each in asked} == {202}
    assert len({each.json()["id"] for each in asked}) == 1
    opened.work()
    assert spent(opened) == "1/4"
    assert len(bookings(opened)) == 1
    again = opened.answer(AUC, artifact=model, key="click")
    assert again["state"] == "answered"
    assert len(bookings(opened)) == 1


def test_a_key_is_its_owners_and_stands_for_one_request(opened: Any) -> None:
    opened.grant("bert")
    mine, hers = opened.upload()["id"], opened.upload(who="bert")["id"]
    first = opened.ask(AUC, artifact=mine, key="k").json()
    assert opened.ask(AUC, artifact=hers, key="k", who="bert").json()["id"] != first["id"]
    for changed in ({"questions": [CELLS]}, {"questions": [AUC, AUC]}, {"artifact": hers}):
        headers = {"Idempotency-Key": "k"}
        body = ASK | {"artifact": mine} | changed
        answer = opened.client("ana").post("/api/v1/evaluations", json=body, headers=headers)
        assert answer.status_code == 409
    missing = opened.client("ana").post("/api/v1/evaluations", json=ASK | {"artifact": mine})
    assert missing.status_code == 422


class Lost(BaseException):
    """A worker that is killed."""


def test_a_worker_lost_after_the_booking_costs_its_price_and_nothing_is_drawn_again(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened.upload()["id"]
    asked = opened.ask(AUC, artifact=model, key="k").json()["id"]

    def killed(*_: Any) -> Any:
        raise Lost

    monkeypatch.setattr(opened.worker.signer, "sign", killed)
    with pytest.raises(Lost):
        opened.work()
    assert spent(opened) == "1/4"
    storage.wait_until(storage.now() + opened.service.settings.lease + 1)
    while Worker(opened.service).step():
        pass
    waits = {"Prefer": "wait=5"}
    found = opened.client("ana").get(f"/api/v1/evaluations/{asked}", headers=waits).json()
    assert (found["state"], found["answers"]) == ("lost", None)
    assert found["receipt"]["sequence"] == bookings(opened)[0]["sequence"]
    assert "entry" in found["words"]
    assert spent(opened) == "1/4"
    again = opened.ask(AUC, artifact=model, key="k").json()
    assert (again["id"], again["state"]) == (asked, "lost")
    assert len(bookings(opened)) == 1


def test_a_worker_lost_before_the_booking_is_replaced(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened.upload()["id"]
    asked = opened.ask(AUC, artifact=model, key="k").json()["id"]
    opened.worker.step()  # the scoring
    assert opened.until_tick()
    gone = claim(opened.service.store, worker="gone", lease=0.0)
    assert gone is not None
    assert gone.kind == "evaluate"
    storage.wait_until(storage.now() + 0.01)
    opened.work()
    headers = {"Prefer": "wait=5"}
    found = opened.client("ana").get(f"/api/v1/evaluations/{asked}", headers=headers).json()
    assert found["state"] == "answered"
    assert spent(opened) == "1/4"


def test_whoever_drew_the_answer_has_the_last_word(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that sleeps beyond its lease finds its job taken up, and the booking found."""
    model = opened.upload()["id"]
    asked = opened.ask(AUC, artifact=model, key="k").json()["id"]
    opened.worker.step()  # the scoring
    assert opened.until_tick()
    slow, sign = Worker(opened.service), opened.worker.signer.sign

    def late(stated: Any) -> Any:
        quick = Worker(opened.service)
        job = storage.jobs.update().where(storage.jobs.c.subject == asked).values(lease=0.0)
        with opened.service.store.write() as connection:
            connection.execute(job)
        assert quick.step()
        return sign(stated)

    monkeypatch.setattr(slow.signer, "sign", late)
    assert slow.step()
    storage.wait_until(storage.now() + 0.5)
    found = opened.client("ana").get(f"/api/v1/evaluations/{asked}").json()
    assert found["state"] == "answered"
    assert len(found["answers"]) == 1
    assert len(bookings(opened)) == 1


def test_what_waits_for_a_person_who_was_disabled_is_refused_and_charged_nothing(
    opened: Any,
) -> None:
    asked = opened.ask(AUC, artifact=opened.upload()["id"], key="k").json()["id"]
    accounts.disable(opened.service, "ana")
    opened.work()
    storage.wait_until(storage.now() + 0.5)
    found = opened.client("carol").get(f"/api/v1/evaluations/{asked}").json()
    assert found["state"] == "refused"
    assert "Nothing was charged" in found["words"]
    assert bookings(opened) == []


def test_an_answer_that_was_drawn_is_kept_though_the_database_is_away_for_a_moment(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened.upload()["id"]
    asked = opened.ask(AUC, artifact=model, key="k").json()["id"]
    opened.worker.step()  # the scoring
    assert opened.until_tick()
    away: list[int] = []
    write, sign = storage.Store.write, opened.worker.signer.sign

    def gone(store: Any) -> Any:
        if away:
            away.pop()
            raise sa.exc.OperationalError("away", {}, Exception())
        return write(store)

    def signed(stated: Any) -> Any:
        away.extend([1, 2])
        return sign(stated)

    monkeypatch.setattr(storage.Store, "write", gone)
    monkeypatch.setattr(opened.worker.signer, "sign", signed)
    monkeypatch.setattr(worker, "LONGEST", 0.001)
    assert opened.worker.step()
    headers = {"Prefer": "wait=5"}
    found = opened.client("ana").get(f"/api/v1/evaluations/{asked}", headers=headers).json()
    assert found["state"] == "answered"
    assert len(bookings(opened)) == 1


@pytest.mark.parametrize("agreed", ["1/8", "1/2"])
def test_another_price_than_was_agreed_to_is_not_paid(opened: Any, agreed: str) -> None:
    """Hand over a price, lower or higher, as a quote does if prices changed after it was signed."""
    person = accounts.of_token(opened.service, opened.tokens["ana"], kind="api")
    asked = {"dataset": "readmissions", "artifact": opened.upload()["id"], "content": [AUC]}
    price = {"epsilon": agreed, "delta": "0"}
    with pytest.raises(Conflict, match="differs from the one that was agreed"):
        evaluations.submit(opened.service, person, **asked, key="k", most=price)
    opened.work()
    assert bookings(opened) == []
    assert evaluations.submit(
        opened.service, person, **asked, key="k", most=price | {"epsilon": "1/4"}
    )


def test_a_quote_is_for_its_owner_for_a_while_and_cannot_be_changed(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.grant("bert")
    model = opened.upload()["id"]
    quoted = opened.client("ana").post("/api/v1/quotes", json=ASK).json()

    def pay(text: str, key: str, who: str = "ana") -> Any:
        body = {"artifact": model, "quote": text}
        headers = {"Idempotency-Key": key}
        return opened.client(who).post("/api/v1/evaluations", json=body, headers=headers)

    assert pay(quoted["quote"], "one").status_code == 202
    assert pay(quoted["quote"], "one").json()["id"] == pay(quoted["quote"], "one").json()["id"]
    assert pay(quoted["quote"], "two", who="bert").status_code == 409
    head, *rest = quoted["quote"].split(".")
    for forged in (".".join([head[:-2] + "AA", *rest]), quoted["quote"][:-1], "", "a.b.c", "é"):
        assert pay(forged, "three").status_code in (409, 422), forged
    import itsdangerous.timed

    ahead, clock = opened.service.settings.quote_seconds + 60, time.time
    monkeypatch.setattr(itsdangerous.timed.time, "time", lambda: clock() + ahead)
    assert pay(quoted["quote"], "four").status_code == 409
    opened.work()
    assert len(bookings(opened)) == 1


# --- too many, too large -------------------------------------------------------------------------


def limited(tmp_path: Path, **settings: Any) -> Site:
    site = Site(tmp_path / "server", **settings)
    site.register(write_rows(tmp_path / "rows.parquet", 50))
    site.grant()
    return site


def test_sizes_are_bounded_and_nothing_of_a_refused_upload_stays(tmp_path: Path) -> None:
    site = limited(tmp_path, most_upload=3000, most_kept=5000, most_body=2000)
    kept = set(site.service.settings.artifacts.iterdir())
    send = {"Content-Type": "application/json", "Prefer": "wait=0"}
    ana = site.client("ana")
    assert ana.put("/api/v1/artifacts", content=b"x" * 3001, headers=send).status_code == 413
    pieces = (b"x" * 1000 for _ in range(4))  # without a length
    assert ana.put("/api/v1/artifacts", content=pieces, headers=send).status_code == 413
    assert ana.put("/api/v1/artifacts", content=b"", headers=send).status_code == 422
    odd = {"Content-Type": "application/zip"}
    assert ana.put("/api/v1/artifacts", content=b"x", headers=odd).status_code == 422
    assert set(site.service.settings.artifacts.iterdir()) == kept
    for status in (201, 413):
        answer = ana.put("/api/v1/artifacts", content=b"x" * 2900, headers=send)
        assert answer.status_code == status
    assert "not enough room" in answer.json()["detail"]
    large = ana.post("/api/v1/quotes", json=ASK | {"guess": {"x" * 3000: 1}})
    assert (large.status_code, large.json()["status"]) == (413, 413)
    chunked = ana.post("/api/v1/quotes", content=(b" " * 1000 for _ in range(4)))
    assert chunked.status_code == 413
    site.service.close()


def test_evaluations_that_wait_are_bounded_and_wait_until_their_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Steady(monkeypatch)  # an hour passes at once
    site = limited(tmp_path, most_waiting=1, tick=3600.0)
    model = site.upload()["id"]
    asked = [site.ask(AUC, artifact=model, key=str(n)) for n in (1, 2)]
    assert [each.status_code for each in asked] == [202, 429]
    assert asked[1].headers["retry-after"] == "5"
    early: list[int] = []

    def look(moment: float) -> None:
        if len(bookings(site)) == 1:  # it is done, and nobody knows
            early.append(site.ask(AUC, artifact=model, key="2").status_code)
        storage.wait_until(moment)

    monkeypatch.setattr(worker, "wait_until", look)
    site.work()
    assert early == [429]
    clock.at += 10**6
    assert site.ask(AUC, artifact=model, key="2").status_code == 202
    site.service.close()


def test_rates_are_bounded_by_person_and_made_up_credentials_do_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "time", SimpleNamespace(monotonic=lambda: 0.0))
    site = Site(tmp_path / "server", requests_per_minute=20)
    ana = site.client("ana")
    found = [ana.get("/api/v1/me").status_code for _ in range(22)]
    assert found[:20] == [200] * 20
    assert found[-1] == 429
    refused = ana.get("/api/v1/me")
    assert int(refused.headers["retry-after"]) >= 1
    assert "content-security-policy" in refused.headers
    page = ana.get("/")
    assert (page.status_code, page.headers["retry-after"]) == (429, refused.headers["retry-after"])
    assert "<h1" in page.text, "people read a page"
    assert site.client("bert").get("/api/v1/me").status_code == 200, "another person"
    codes = []
    for n in range(20 * gate.ADDRESS_SHARE):
        guess = {"Authorization": f"Bearer guess{n}"}
        codes.append(site.client().get("/api/v1/me", headers=guess).status_code)
    assert codes[0] == 401
    assert codes[-1] == 429
    site.service.close()


@pytest.mark.parametrize("varied", ["spelling", "cookies", "tokens"])
def test_no_spelling_of_a_token_and_no_second_token_asks_more_often(
    varied: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "time", SimpleNamespace(monotonic=lambda: 0.0))
    site = Site(tmp_path / "server", requests_per_minute=20)
    secret = site.tokens["ana"]
    session = accounts.sign_in_by_link(site.service, accounts.new_link(site.service, "ana"))
    others = [site.token("ana", "analyst") for _ in range(3)]
    headers = {
        "spelling": lambda n: {
            "Authorization": f"{'bearer' if n % 2 else 'Bearer'}{' ' * n}{secret}"
        },
        "cookies": lambda n: {"Authorization": f"Basic {n}", "Cookie": f"n={n}; heldout={session}"},
        "tokens": lambda n: {"Authorization": f"Bearer {others[n % 3]}"},
    }[varied]
    path = "/account" if varied == "cookies" else "/api/v1/me"
    codes = [site.client().get(path, headers=headers(n + 1)).status_code for n in range(25)]
    assert codes == [200] * 20 + [429] * 5
    site.service.close()


def test_wrong_passwords_wait_longer_and_longer_whether_or_not_the_name_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "server")
    person = accounts.Person("ana", "analyst", "", "browser", accounts.SCOPES)
    accounts.change_password(site.service, person, "correct horse battery")
    monkeypatch.setattr(storage, "time", clock := type("Clock", (), {})())
    clock.time = lambda: 1_900_000_000.0
    shown: dict[str, list[str]] = {}
    for name in ("ana", "nobody", "olga"):  # olga has no password yet
        for _ in range(9):
            with pytest.raises((accounts.Forbidden, accounts.TooMany)) as refused:
                accounts.sign_in(site.service, name=name, password="wrong horse battery")
            shown.setdefault(name, []).append(str(refused.value))
    assert shown["ana"] == shown["nobody"] == shown["olga"]
    assert shown["ana"][:5] == [accounts.WRONG] * 5
    assert "Try again in" in shown["ana"][5]
    with pytest.raises(accounts.TooMany):  # the right one waits too
        accounts.sign_in(site.service, name="ana", password="correct horse battery")
    clock.time = lambda: 1_900_000_400.0
    assert accounts.sign_in(site.service, name="ana", password="correct horse battery")
    site.service.close()


def test_a_session_that_was_left_open_does_not_change_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, old, new = Site(tmp_path / "server"), "correct horse battery", "another sentence, longer"

    def person(secret: str) -> accounts.Person:
        found = accounts.of_token(site.service, secret, kind="browser")
        assert found is not None
        return found

    by_link = accounts.sign_in_by_link(site.service, accounts.new_link(site.service, "ana"))
    accounts.change_password(site.service, person(by_link), old)
    left_open = accounts.sign_in(site.service, name="ana", password=old)
    for guess in ("", "wrong", new):
        with pytest.raises(accounts.Forbidden, match="current password"):
            accounts.change_password(site.service, person(left_open), new, current=guess)
    accounts.change_password(site.service, person(left_open), new, current=old)
    assert accounts.of_token(site.service, by_link, kind="browser") is None, "others end"
    with pytest.raises(accounts.Forbidden):
        accounts.sign_in(site.service, name="ana", password=old)
    assert accounts.sign_in(site.service, name="ana", password=new)
    site.service.close()


def test_a_name_that_nobody_has_costs_one_look_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argon2

    work: list[str] = []

    class Counted(argon2.PasswordHasher):
        def hash(self, *words: Any, **more: Any) -> str:
            work.append("hash")
            return super().hash(*words, **more)

        def verify(self, *words: Any) -> Any:
            work.append("verify")
            return super().verify(*words)

    quick = Counted(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(accounts, "_hasher", lambda: quick)
    site = Site(tmp_path / "server")
    accounts._nobodys()
    for name in ("nobody", "ana", "nobody at all"):
        work.clear()
        with pytest.raises(accounts.Forbidden):
            accounts.sign_in(site.service, name=name, password="wrong horse battery")
        assert work == ["verify"]
    accounts._nobodys.cache_clear()
    site.service.close()


def test_guesses_made_at_once_count_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "server", most_hashing=12)
    looked: list[str] = []
    hold = threading.Barrier(5, timeout=300)

    class Slow:
        def hash(self, text: str) -> str:
            return text

        def verify(self, known: str, text: str) -> bool:
            looked.append(text)
            hold.wait()
            return False

    monkeypatch.setattr(accounts, "_hasher", Slow)
    monkeypatch.setattr(accounts, "_nobodys", lambda: "none")

    def guess(n: int) -> str:
        try:
            return accounts.sign_in(site.service, name="ana", password=f"guess number {n:03}")
        except (accounts.Forbidden, accounts.TooMany) as error:
            return type(error).__name__

    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(guess, range(12)))
    assert len(looked) == accounts.FREE_FAILURES
    assert outcomes.count("TooMany") == 12 - accounts.FREE_FAILURES
    site.service.close()


# --- strange content -----------------------------------------------------------------------------

STRANGE = {
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 50_000,
    "not json": b"{",
    "not utf-8": b'{"label": "\xff"}',
    "lone surrogate": b'{"label": "\\ud800"}',
    "nul": b'{"label": "a\\u0000b"}',
    "control": b'{"label": "a\\nb\\u001b[2J"}',
    "right to left": b'{"label": "a\\u202eb"}',
    "infinity": b'{"days": Infinity}',
    "nan": b'{"days": NaN}',
    "huge": b'{"days": 1e999}',
    "huge whole": b'{"days": ' + b"9" * 5000 + b"}",
    "unknown field": b'{"role": "administrator"}',
    "a list": b"[]",
    "null": b"null",
    "empty": b"",
}


@pytest.fixture(scope="module")
def plain_site(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("strange")
    site = limited(folder)
    site.model = site.upload()["id"]  # type: ignore[attr-defined]
    yield site
    site.service.close()


@pytest.mark.parametrize("name", STRANGE)
def test_strange_bodies_are_refused_in_words(plain_site: Any, name: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = plain_site.client("ana").post("/api/v1/tokens", content=STRANGE[name], headers=headers)
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"].isprintable()


ODD: list[dict[str, Any]] = [
    {"epsilon": "1e400"},
    {"epsilon": "1/0"},
    {"epsilon": "9" * 5000},
    {"epsilon": -1},
    {"question": ["auc"]},
    {"version": 10**30},
    {"by": "\ud800"},
    {"question": "\x00"},
]


@pytest.mark.parametrize("field", ODD, ids=lambda field: ascii(field)[:30])
def test_strange_questions_are_refused_in_words(plain_site: Any, field: dict[str, Any]) -> None:
    body = ASK | {"questions": [AUC | field]}
    content = json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": "s"}
    for path, more in (("quotes", {}), ("evaluations", {"artifact": plain_site.model})):
        content = json.dumps(body | more).encode()
        answer = plain_site.client("ana").post(f"/api/v1/{path}", content=content, headers=headers)
        assert 400 <= answer.status_code < 500, answer.text


HALVES = [
    ("ana", "POST", "/quotes", {"dataset": "%s", "questions": [AUC]}),
    ("ana", "POST", "/evaluations", ASK | {"artifact": "%s"}),
    ("ana", "POST", "/evaluations", {"artifact": "x", "quote": "%s"}),
    ("ana", "POST", "/tokens", {"label": "x", "scopes": ["%s"]}),
    ("carol", "POST", "/datasets/readmissions/grants", {"analyst": "%s", "budget": "1"}),
    ("carol", "PATCH", "/datasets/readmissions", {"budget": "%s"}),
    ("adam", "POST", "/people", {"name": "new", "role": "%s"}),
    ("ana", "GET", "/ledger/verify?receipt=%s", None),
    ("ana", "GET", "/evaluations?dataset=%s", None),
    ("ana", "GET", "/evaluations/%s", None),
    ("carol", "GET", "/datasets/%s", None),
]


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\U0001f600", "\u202e"], ids=ascii)
@pytest.mark.parametrize("asked", HALVES, ids=lambda asked: f"{asked[1]} {asked[2]}")
def test_texts_that_no_database_keeps_are_refused(plain_site: Any, text: str, asked: Any) -> None:
    who, method, path, body = asked
    escaped = json.dumps(text)[1:-1]
    content = None if body is None else json.dumps(body).replace("%s", escaped).encode()
    filled = path.replace("%s", quote(text, errors="surrogatepass"))
    headers = {"Content-Type": "application/json", "Idempotency-Key": "half"}
    answer = plain_site.client(who).request(
        method, f"/api/v1{filled}", content=content, headers=headers
    )
    assert answer.status_code in (200, 400, 404, 409, 422), answer.text
    assert answer.status_code == 200 or answer.json()["detail"].isprintable()


NAMES = ["<script>alert(1)</script>", "a\x1b[2Jb", "a\nb", "a\u202eb", "'\"><img src=x>", "../../x"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_refused_or_shown_as_text(plain_site: Any, name: str) -> None:
    ana = plain_site.client("ana")
    headers = {"Content-Type": "application/json", "Prefer": "wait=0"}
    sent = ana.put(
        "/api/v1/artifacts", params={"name": name}, content=json.dumps(LINEAR), headers=headers
    )
    assert sent.status_code in (201, 422), sent.text
    assert sent.headers["content-type"].startswith("application/")
    if sent.status_code == 422:
        assert sent.json()["detail"].isprintable()
    key = ana.post(
        "/api/v1/evaluations",
        json=ASK | {"artifact": plain_site.model},
        headers={"Idempotency-Key": name.encode()},
    )
    assert key.status_code in (202, 409, 422, 400), key.text


@pytest.mark.parametrize("strange", ["{[]: 1}", "{(1, 2): 3}", "[1e999]"])
def test_a_name_that_looks_like_an_argument_stops_neither_web_nor_worker(
    opened: Any, strange: str
) -> None:
    name = f"x a={strange} b"
    assert opened.client("ana").get(f"/api/v1/datasets/{quote(name)}").status_code == 404
    found = opened.upload({"coefficients": {name: "no number"}})
    assert found["state"] == "refused"
    assert name in found["words"]


def test_a_line_of_the_log_stays_one_line(
    plain_site: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES:
        service_module.print_line("job", subject=name)
        plain_site.service.note("ana", "try", name)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == len(NAMES)
    assert all(each.isprintable() and json.loads(each) for each in lines)
    shown = plain_site.client("olga").get("/api/v1/audit").json()[: len(NAMES)]
    assert all(each["subject"].isprintable() for each in shown)


def test_names_of_columns_and_groups_are_text_in_a_report(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet
    from tests.server.conftest import rows

    evil, label = "<script>alert(1)</script>", '"><b onclick=x>'
    table = rows(60)
    table[evil], table[label] = ["F", "M"] * 30, table.pop("readmitted")
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "rows.parquet")
    site = Site(tmp_path / "server")
    declared = {
        "label": label,
        "row_key": "admission",
        "features": ["age", "stay"],
        "groups": {evil: ["F", "</script><script>x"]},
    }
    body = {"name": "readmissions", "source": str(tmp_path / "rows.parquet"), "budget": "99"}
    headers = {"Prefer": "wait=0"}
    made = site.client("carol").post(
        "/api/v1/datasets", json=body | {"declaration": declared, "facts": evil}, headers=headers
    )
    assert made.status_code == 201, made.text
    site.work()
    site.grant(budget="50")
    model = site.upload()["id"]
    by = {"question": "confusion", "epsilon": "2", "threshold": 0.5, "by": evil}
    for key, question in (("a", by), ("b", {"question": "report", "epsilon": "2"})):
        found = site.answer(question, artifact=model, key=key)
        assert found["state"] == "answered", found["words"]
        page = site.client("ana").get(f"/api/v1/reports/{found['id']}.html")
        assert page.status_code == 200
        assert evil not in page.text
        assert "<script>x" not in page.text
        assert "<b onclick" not in page.text
        assert "script-src" not in page.headers["content-security-policy"]
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        assert page.headers["content-security-policy"].endswith("sandbox")
    site.service.close()


# --- headers -------------------------------------------------------------------------------------

WANTED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health", 200),
        ("GET", "/api/v1/me", 200),
        ("GET", "/api/v1/openapi.json", 200),
        ("GET", "/api/v1/nothing", 404),
        ("DELETE", "/api/v1/me", 405),
        ("GET", "/api/v1/evaluations/x", 404),
        ("POST", "/api/v1/quotes", 422),
        ("GET", "/api/v1/audit?before=x", 403),
    ],
)
def test_every_answer_has_the_headers_of_a_careful_server(
    plain_site: Any, method: str, path: str, status: int
) -> None:
    answer = plain_site.client("ana").request(method, path)
    assert answer.status_code in (status, 422)
    assert {name: answer.headers.get(name) for name in WANTED} == WANTED
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "access-control-allow-origin" not in answer.headers
    assert "server" not in answer.headers
    assert "strict-transport-security" not in answer.headers


def test_an_error_inside_is_told_without_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "server", secure=True)

    def broken(*_: Any) -> Any:
        raise RuntimeError("secret words")

    monkeypatch.setattr(accounts, "list_tokens", broken)
    answer = site.client("ana").get("/api/v1/tokens")
    assert answer.status_code == 500
    assert "secret words" not in answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert {name: answer.headers.get(name) for name in WANTED} == WANTED
    assert "strict-transport-security" in answer.headers
    monkeypatch.setattr("heldout.server.site.visitor", broken)
    page = site.client().get("/sign-in")
    assert page.status_code == 500
    assert page.headers["content-type"].startswith("text/html")
    assert "Whoever runs it finds it in the log" in page.text
    assert "secret words" not in page.text
    site.service.close()
