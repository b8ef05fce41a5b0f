"""Who may call what: every route and every role, and nobody sees what is another's."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Mount, Route
from tests.server.conftest import ON_POSTGRES, Site, write_rows
from tests.server.watched import AUC

from heldout.server import accounts, storage

ROLES = {
    "custodian": "carol",
    "analyst": "ana",
    "auditor": "olga",
    "administrator": "adam",
}
EVERYBODY = "custodian analyst auditor administrator"
TABLE = f"""
GET     /health                                    anybody
GET     /ready                                     anybody
GET     /metrics                                   anybody
GET     /api/v1/openapi.json                       anybody
GET     /api/v1/datasets                           custodian analyst auditor
POST    /api/v1/datasets                           custodian
GET     /api/v1/datasets/{{name}}                    custodian analyst auditor
PATCH   /api/v1/datasets/{{name}}                    custodian
DELETE  /api/v1/datasets/{{name}}                    custodian
GET     /api/v1/datasets/{{name}}/twin.csv           custodian analyst
POST    /api/v1/datasets/{{name}}/published          custodian
GET     /api/v1/datasets/{{name}}/published          custodian analyst auditor
GET     /api/v1/datasets/{{name}}/published/{{identity}}.csv  custodian analyst
GET     /api/v1/datasets/{{name}}/grants             custodian auditor
POST    /api/v1/datasets/{{name}}/grants             custodian
PATCH   /api/v1/datasets/{{name}}/grants/{{analyst}}   custodian
DELETE  /api/v1/datasets/{{name}}/grants/{{analyst}}   custodian
PUT     /api/v1/artifacts                          analyst
GET     /api/v1/artifacts                          analyst
GET     /api/v1/artifacts/{{identity}}               analyst
DELETE  /api/v1/artifacts/{{identity}}               analyst
PATCH   /api/v1/artifacts/{{identity}}               analyst
POST    /api/v1/datasets/{{name}}/request            analyst
POST    /api/v1/quotes                             analyst
POST    /api/v1/evaluations                        analyst
GET     /api/v1/evaluations                        analyst custodian
GET     /api/v1/evaluations/{{identity}}             analyst custodian
DELETE  /api/v1/evaluations/{{identity}}             analyst
GET     /api/v1/reports/{{identity}}.html            analyst custodian
GET     /api/v1/ledger                             custodian auditor
GET     /api/v1/ledger/head                        custodian analyst auditor
GET     /api/v1/ledger/verify                      custodian analyst auditor
GET     /api/v1/audit                              custodian auditor
GET     /api/v1/audit.csv                          custodian auditor
GET     /api/v1/boards                             {EVERYBODY}
POST    /api/v1/boards                             custodian
GET     /api/v1/boards/{{name}}                      {EVERYBODY}
GET     /api/v1/boards/{{name}}/submissions          analyst custodian
POST    /api/v1/boards/{{name}}/submissions          analyst
DELETE  /api/v1/boards/{{name}}/submissions/{{identity}}   analyst
GET     /api/v1/me                                 {EVERYBODY}
GET     /api/v1/tokens                             {EVERYBODY}
POST    /api/v1/tokens                             {EVERYBODY}
DELETE  /api/v1/tokens/{{identity}}                  {EVERYBODY}
GET     /api/v1/people                             administrator custodian
POST    /api/v1/people                             administrator
POST    /api/v1/people/{{name}}/link                 administrator
DELETE  /api/v1/people/{{name}}                      administrator
DELETE  /api/v1/people/{{name}}/factor               administrator
DELETE  /api/v1/people/{{name}}/provider             administrator
"""
PAGES = f"""
GET     /static/{{name}}                             anybody
GET     /                                          anybody
GET     /boards                                    anybody
POST    /boards                                    custodian
GET     /boards/{{name}}                             anybody
POST    /boards/{{name}}/submissions                 analyst
POST    /boards/{{name}}/submissions/{{identity}}/cancel   analyst
GET     /sign-in                                   anybody
POST    /sign-in                                   anybody
GET     /sign-in/{{secret}}                          anybody
POST    /sign-in/{{secret}}                          anybody
POST    /sign-out                                  {EVERYBODY}
GET     /account                                   {EVERYBODY}
POST    /account/password                          {EVERYBODY}
POST    /account/tokens                            {EVERYBODY}
POST    /account/tokens/{{identity}}/revoke          {EVERYBODY}
POST    /account/factor                            {EVERYBODY}
POST    /account/factor/confirm                    {EVERYBODY}
POST    /account/factor/remove                     {EVERYBODY}
GET     /oidc/start                                anybody
GET     /oidc/callback                             anybody
POST    /oidc/connect                              {EVERYBODY}
POST    /people                                    administrator
POST    /people/{{name}}/link                        administrator
POST    /people/{{name}}/disable                     administrator
POST    /people/{{name}}/factor/reset                administrator
POST    /people/{{name}}/disconnect                  administrator
GET     /artifacts                                 analyst
POST    /artifacts                                 analyst
GET     /artifacts/{{identity}}                      analyst
POST    /artifacts/{{identity}}/delete               analyst
POST    /artifacts/{{identity}}/rename               analyst
POST    /datasets/{{name}}/request                   analyst
POST    /datasets/{{name}}/grants/{{analyst}}/decline  custodian
GET     /datasets/{{name}}                           custodian analyst auditor
GET     /datasets/{{name}}/twin.csv                  custodian analyst
GET     /datasets/{{name}}/published/{{identity}}.csv  custodian analyst
POST    /datasets/{{name}}/publish                   custodian
GET     /datasets/{{name}}/ask                       analyst
GET     /datasets/{{name}}/confirm                   analyst
POST    /evaluations                               analyst
GET     /evaluations/{{identity}}                    analyst custodian
GET     /evaluations/{{identity}}/report.html        analyst custodian
POST    /evaluations/{{identity}}/cancel             analyst
GET     /compare                                   analyst
GET     /register                                  custodian
POST    /register                                  custodian
POST    /register/upload                           custodian
GET     /register/{{identity}}                       custodian
POST    /register/{{identity}}/source                custodian
POST    /register/{{identity}}/discard               custodian
POST    /register/{{identity}}/{{step}}                custodian
POST    /datasets/{{name}}/again                     custodian
POST    /datasets/{{name}}/grants                    custodian
POST    /datasets/{{name}}/grants/{{analyst}}          custodian
POST    /datasets/{{name}}/grants/{{analyst}}/revoke   custodian
POST    /datasets/{{name}}/raise                     custodian
POST    /datasets/{{name}}/close                     custodian
POST    /datasets/{{name}}/refresh                   custodian
GET     /ledger                                    custodian auditor
GET     /log                                       custodian auditor
GET     /log.csv                                   custodian auditor
GET     /operations                                administrator
"""


def read(table: str) -> dict[tuple[str, str], set[str]]:
    lines = [line.split() for line in table.strip().splitlines()]
    return {(method, path): set(roles) for method, path, *roles in lines}


ALLOWED = read(TABLE + PAGES.strip())
API = {route: roles for route, roles in read(TABLE).items() if "anybody" not in roles}
SITE = {route: roles for route, roles in read(PAGES).items() if "anybody" not in roles}
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/datasets/{name}/published"): {
        "question": {"question": "private-twin", "epsilon": "1"}
    },
    ("POST", "/datasets"): {"name": "x y", "source": "f", "declaration": {}, "budget": "1"},
    ("PATCH", "/datasets/{name}"): {"budget": "200"},
    ("POST", "/datasets/{name}/grants"): {"analyst": "nobody", "budget": "1"},
    ("PATCH", "/datasets/{name}/grants/{analyst}"): {"budget": "60"},
    ("PATCH", "/artifacts/{identity}"): {"name": "model.json"},
    ("POST", "/datasets/{name}/request"): {"budget": "100"},
    ("POST", "/quotes"): {"dataset": "readmissions", "questions": [AUC]},
    ("POST", "/evaluations"): {"dataset": "readmissions", "artifact": "?", "questions": [AUC]},
    ("POST", "/boards"): {"name": "x y", "dataset": "readmissions", "terms": {}},
    ("POST", "/boards/{name}/submissions"): {"artifact": "?", "title": "mine"},
    ("POST", "/tokens"): {"label": "another", "scopes": ["read"]},
    ("POST", "/people"): {"name": "x/y", "role": "analyst"},
}


def every_route(where: Any) -> Iterator[Route]:
    for route in where.routes:
        if isinstance(route, Route):
            yield route
        elif not isinstance(route, Mount):  # a mounted folder has no roles
            yield from every_route(route.original_router)


def routes_of(app: Any) -> set[tuple[str, str]]:
    return {
        (method, route.path) for route in every_route(app) for method in (route.methods or {"GET"})
    } - {("HEAD", "/api/v1/openapi.json")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server with something of everything; no test here changes what another one needs."""
    folder = tmp_path_factory.mktemp("roles")
    found = Site(folder / "server")
    for name, role in (("carl", "custodian"), ("zoe", "analyst")):
        accounts.add_person(found.service, name=name, role=role)
        found.tokens[name] = found.token(name, role)
    found.register(write_rows(folder / "rows.parquet"), budget="100")
    found.grant(budget="50")
    found.grant("bert", budget="5")
    model = found.upload()["id"]
    answer = found.answer(AUC, artifact=model, key="first")
    found.own = {"artifacts": model, "evaluations": answer["id"], "reports": answer["id"]}  # type: ignore[attr-defined]
    yield found
    found.service.close()


def call(site: Any, method: str, path: str, *, token: str | None, held: str = "") -> Any:
    """The route, filled in with what is there; where it would end something, with what is not."""
    ending = method == "DELETE" or path.endswith("/link")
    kind = path.split("/")[3] if path.startswith("/api/v1/") else ""
    values = {
        "name": held or ("nobody" if ending else "readmissions"),
        "analyst": "bert",
        "step": "outcome",
        "identity": "nothing" if ending and not held else site.own.get(kind, "nothing"),
    }
    filled = re.sub(r"\{(\w+)\}", lambda found: values[found[1]], path)
    if path.endswith("/verify"):
        filled += "?receipt=" + "0" * 64
    body = BODIES.get((method, path.removeprefix("/api/v1")))
    headers = {"Prefer": "wait=0", "Idempotency-Key": f"{method}{path}"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    client = site.client()
    return client.request(method, filled, headers=headers, json=body, follow_redirects=False)


def test_every_route_has_a_line_in_the_table(site: Any) -> None:
    assert routes_of(site.app) - set(ALLOWED) == set()
    assert set(ALLOWED) - routes_of(site.app) == set(), "a line without a route"


@pytest.mark.parametrize("route", sorted(API), ids=" ".join)
def test_a_route_is_for_its_roles_alone(site: Any, route: tuple[str, str]) -> None:
    assert call(site, *route, token=None).status_code == 401
    assert call(site, *route, token="heldout_guessed").status_code == 401
    for role, name in ROLES.items():
        answer = call(site, *route, token=site.tokens[name])
        assert answer.status_code < 500, answer.text
        assert answer.status_code != 401
        assert (answer.status_code == 403) == (role not in API[route]), (role, answer.text)


@pytest.mark.parametrize("route", sorted(each for each in API if each[0] != "GET"), ids=" ".join)
def test_a_token_that_may_only_look_changes_nothing(site: Any, route: tuple[str, str]) -> None:
    for role in API[route]:
        name = ROLES[role]
        limited = site.token(name, role, scopes=["read"])
        answer = call(site, *route, token=limited)
        assert (answer.status_code, answer.json()["type"]) == (403, "Forbidden"), answer.text
        assert "scope" in answer.json()["detail"]


OTHERS = [route for route in sorted(API) if "{" in route[1] and "/people/" not in route[1]]


@pytest.mark.parametrize("route", OTHERS, ids=" ".join)
def test_of_what_is_anothers_nothing_is_told_but_that_there_is_none(
    site: Any, route: tuple[str, str]
) -> None:
    """A stranger of the right role gets the words that are said of what is not there."""
    for role, name in (("custodian", "carl"), ("analyst", "zoe")):
        if role not in API[route]:
            continue
        there = call(site, *route, token=site.tokens[name], held="readmissions")
        own, site.own = site.own, dict.fromkeys(site.own, "f" * 20)
        gone = call(site, *route, token=site.tokens[name], held="nothingthere")
        site.own = own
        assert (there.status_code, gone.status_code) == (404, 404), there.text
        assert there.text == gone.text.replace("nothingthere", "readmissions")


def test_quotes_and_evaluations_of_a_data_set_without_a_share_are_refused(site: Any) -> None:
    for path in ("/api/v1/quotes", "/api/v1/evaluations"):
        body = {"dataset": "readmissions", "questions": [AUC]}
        if path.endswith("evaluations"):
            body["artifact"] = site.own["artifacts"]
        headers = {"Idempotency-Key": "z"}
        answer = site.client("zoe").post(path, json=body, headers=headers)
        assert answer.status_code == 404
    listed = site.client("zoe").get("/api/v1/datasets")
    assert listed.json() == []


def test_somebody_elses_model_cannot_be_asked_about(site: Any) -> None:
    asked = site.ask(AUC, artifact=site.own["artifacts"], key="stolen", who="bert")
    assert asked.status_code == 404


def test_lists_hold_only_what_is_ones_own(site: Any) -> None:
    for name in ("bert", "carl"):
        assert site.client(name).get("/api/v1/evaluations").json() == []
    assert site.client("bert").get("/api/v1/artifacts").json() == []
    assert site.client("carl").get("/api/v1/ledger").json() == []
    assert site.client("carl").get("/api/v1/datasets").json() == []
    shown = site.client("carl").get("/api/v1/audit").json()
    assert all(each["person"] == "carl" for each in shown)
    assert [each["label"] for each in site.client("zoe").get("/api/v1/tokens").json()] == ["test"]


# --- tokens --------------------------------------------------------------------------------------


def test_a_token_opens_nothing_once_it_is_revoked_or_expired_or_its_owner_is_gone(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts.add_person(site.service, name="temp", role="analyst")
    made = [
        accounts.make_token(
            site.service,
            accounts.Person("temp", "analyst", "", "browser", accounts.SCOPES),
            label=f"t{n}",
            days=1,
        )
        for n in range(3)
    ]
    clients = [site.client() for _ in made]
    for client, token in zip(clients, made, strict=True):
        client.headers["Authorization"] = f"Bearer {token['token']}"
        assert client.get("/api/v1/me").json()["name"] == "temp"
    assert clients[0].delete(f"/api/v1/tokens/{made[0]['id']}").status_code == 204
    assert clients[0].get("/api/v1/me").status_code == 401
    later = storage.now() + 86401
    with monkeypatch.context() as patched:
        patched.setattr(storage, "time", type("Clock", (), {"time": staticmethod(lambda: later)}))
        assert clients[1].get("/api/v1/me").status_code == 401
    assert clients[1].get("/api/v1/me").status_code == 200
    assert site.client("adam").delete("/api/v1/people/temp").status_code == 204
    assert clients[2].get("/api/v1/me").status_code == 401


def test_a_secret_is_shown_once_and_kept_as_a_digest(site: Any) -> None:
    made = site.client("ana").post("/api/v1/tokens", json={"label": "once"}).json()
    listed = site.client("ana").get("/api/v1/tokens").json()
    assert made["id"] in [each["id"] for each in listed]
    assert made["token"] not in site.client("ana").get("/api/v1/tokens").text
    folder: Path = site.service.settings.folder
    for path in folder.rglob("*"):
        if path.is_file():
            assert made["token"].encode() not in path.read_bytes(), path.name


def test_a_token_gives_no_more_than_the_one_that_makes_it(site: Any) -> None:
    weak = site.token("ana", "analyst", scopes=["read", "manage"])
    client = site.client()
    client.headers["Authorization"] = f"Bearer {weak}"
    asked = client.post("/api/v1/tokens", json={"scopes": ["read", "ask"]})
    assert asked.status_code == 403


def test_a_link_or_a_browser_session_is_no_token_and_a_token_is_no_session(site: Any) -> None:
    accounts.add_person(site.service, name="linked", role="auditor")
    link = accounts.new_link(site.service, "linked")
    session = accounts.sign_in_by_link(site.service, link)
    for secret in (link, session):
        client = site.client()
        client.headers["Authorization"] = f"Bearer {secret}"
        assert client.get("/api/v1/me").status_code == 401
    assert accounts.of_token(site.service, site.tokens["ana"], kind="browser") is None
    with pytest.raises(accounts.Forbidden):
        accounts.sign_in_by_link(site.service, link)


def test_every_route_of_the_api_knows_its_caller(site: Any) -> None:
    """Whoever adds a route without asking who calls it fails here, whatever the table says."""
    asked = [each for each in every_route(site.app) if isinstance(each, APIRoute)]
    asked = [each for each in asked if each.path.startswith("/api/v1/")]
    assert len(asked) == len(API)
    for route in asked:
        assert "person" in inspect.signature(route.endpoint).parameters, route.path


# --- pages, and forms that other sites would like to send ----------------------------------------


def session(site: Any, name: str) -> Any:
    """A browser of somebody who has signed in, and the token of its forms."""
    secret = accounts.sign_in_by_link(site.service, accounts.new_link(site.service, name))
    browser = site.client()
    browser.cookies.set("heldout", secret)
    browser.form = form_token(browser.get("/account").text)
    return browser


def form_token(page: str) -> str:
    found = re.search(r'name="form_token"[^>]*value="([0-9a-f]{64})"', page)
    assert found is not None, page[:2000]
    return found[1]


@pytest.fixture(scope="module")
def browsers(site: Any) -> dict[str, Any]:
    return {role: session(site, name) for role, name in ROLES.items()}


def open_page(site: Any, browser: Any, method: str, path: str, **form: str) -> Any:
    kind = path.split("/")[1]
    values = {
        "name": "readmissions" if method == "GET" else "nothing",
        "analyst": "nobody",
        "step": "outcome",
        "identity": site.own.get(kind, "nothing") if method == "GET" else "nothing",
    }
    filled = re.sub(r"\{(\w+)\}", lambda found: values[found[1]], path)
    words: dict[str, Any] = {"data": form} if method == "POST" else {}
    if path == "/artifacts" and method == "POST":
        words["files"] = {"file": ("model.json", b"{}", "application/json")}
    return browser.request(method, filled, follow_redirects=False, **words)


@pytest.mark.parametrize("route", sorted(SITE), ids=" ".join)
def test_a_page_is_for_its_roles_alone(
    site: Any, browsers: dict[str, Any], route: tuple[str, str]
) -> None:
    for role, browser in browsers.items():
        if route[1] == "/sign-out":
            browser = session(site, ROLES[role])  # noqa: PLW2901
        answer = open_page(site, browser, *route, form_token=browser.form)
        assert answer.status_code < 500, answer.text
        allowed = role in SITE[route]
        assert (answer.status_code == 403) == (not allowed), (role, answer.status_code)
        assert not to_sign_in(answer) or route[1] == "/sign-out"
    answer = open_page(site, site.client(), *route)
    assert answer.status_code == 303
    assert to_sign_in(answer)


def to_sign_in(answer: Any) -> bool:
    return answer.headers.get("location", "").partition("?")[0] == "/sign-in"


@pytest.mark.parametrize("route", sorted(r for r in SITE if r[0] == "POST"), ids=" ".join)
def test_a_form_of_another_site_does_nothing(
    site: Any, browsers: dict[str, Any], route: tuple[str, str]
) -> None:
    role = sorted(SITE[route])[0]
    browser, other = browsers[role], browsers["auditor" if role != "auditor" else "analyst"]
    before = [site.client("olga").get("/api/v1/audit").json()[0]["id"]]
    for forged in ("", other.form, "0" * 64, "\u00e9", "x" * 3000):
        answer = open_page(site, browser, *route, form_token=forged)
        assert answer.status_code == 403, forged
    answer = open_page(site, browser, *route)
    assert answer.status_code == 403
    browser.headers["Sec-Fetch-Site"] = "cross-site"
    answer = open_page(site, browser, *route, form_token=browser.form)
    del browser.headers["Sec-Fetch-Site"]
    assert answer.status_code == 403
    assert [site.client("olga").get("/api/v1/audit").json()[0]["id"]] == before


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_browsers_cookie_opens_nothing_of_the_api(
    site: Any, browsers: dict[str, Any], method: str
) -> None:
    """So no other site can make a browser call it."""
    browser = browsers["administrator"]
    for path in ("/api/v1/me", "/api/v1/tokens", "/api/v1/people/ana"):
        answer = browser.request(method, path)
        assert answer.status_code in (401, 405)


def test_cookies_are_kept_from_scripts_and_other_sites(tmp_path: Path) -> None:
    for secure in (False, True):
        own = Site(tmp_path / f"server{secure}", secure=secure)
        browser = own.client()
        browser.base_url = "https://testserver" if secure else "http://testserver"
        link = accounts.new_link(own.service, "ana")
        page = browser.get(f"/sign-in/{link}")
        visit = page.headers["set-cookie"]
        signed = browser.post(
            f"/sign-in/{link}",
            data={"form_token": form_token(page.text)},
            follow_redirects=False,
        )
        assert signed.status_code == 303, signed.text
        for cookie in (visit, signed.headers["set-cookie"]):
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie
            assert "Path=/" in cookie
            assert ("Secure" in cookie, cookie.startswith("__Host-")) == (secure, secure)
        assert browser.get("/account").status_code == 200
        out = form_token(browser.get("/account").text)
        kept = dict(browser.cookies)
        browser.post("/sign-out", data={"form_token": out}, follow_redirects=False)
        again = own.client()
        again.base_url = browser.base_url
        again.cookies.update(kept)
        assert again.get("/account", follow_redirects=False).status_code == 303, "signed out"
        own.service.close()


def test_only_the_custodian_learns_that_rows_broke_a_rule(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "work", lambda: None)
    site.register(write_rows(tmp_path / "broken.parquet", readmitted=(3, 7)), name="spoilt")
    monkeypatch.undo()
    before = site.client("olga").get("/api/v1/datasets/spoilt").json()
    site.work()
    assert site.client("carol").get("/api/v1/datasets/spoilt").json()["state"] == "refused"
    after = site.client("olga").get("/api/v1/datasets/spoilt").json()
    assert after == before, "still being checked, as far as others know"


def test_strange_names_in_forms_and_logs_are_shown_as_text(site: Any) -> None:
    browser = site.client()
    evil = "<script>alert(1)</script>\x1b[2J\u202e" + ("" if ON_POSTGRES else "\x00")
    for _ in range(2):
        token = form_token(browser.get("/sign-in").text)
        form = {"form_token": token, "name": evil, "password": "x" * 20}
        answer = browser.post("/sign-in", data=form)
        assert answer.status_code == 403
        assert "<script>alert" not in answer.text
    shown = site.client("olga").get("/api/v1/audit").json()[0]
    assert (shown["action"], shown["status"]) == ("sign in", 403)
    assert shown["person"].isprintable()
    log = session(site, "olga").get("/log")
    assert "<script>alert" not in log.text
    assert "&lt;script&gt;alert" in log.text
