"""Signing in through the institution: who is let in, as whom, and every lie that is refused."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest
from fastapi.testclient import TestClient
from tests.server.conftest import Site
from tests.server.loopback_provider import CLIENT, SECRET, LoopbackProvider

from heldout.errors import ArgumentError
from heldout.server import accounts, storage
from heldout.server import provider as provider_module
from heldout.server.provider import Provider, ProviderAway
from heldout.server.settings import Settings

PASSWORD = "correct horse battery"
ROLES = {"analysts": "analyst", "keepers": "custodian", "staff": "administrator"}


@pytest.fixture(scope="module")
def started() -> Iterator[LoopbackProvider]:
    made = LoopbackProvider()
    yield made
    made.close()


@pytest.fixture
def provider(started: LoopbackProvider) -> LoopbackProvider:
    started.claims = {"sub": "1", "preferred_username": "eva", "groups": ["analysts", "all"]}
    started.lies = {}
    started.asked.clear()
    return started


Make = Callable[..., Site]


@pytest.fixture
def make(provider: LoopbackProvider, tmp_path: Path) -> Iterator[Make]:
    made: list[Site] = []

    def site(**more: Any) -> Site:
        about = {"oidc_issuer": provider.issuer, "oidc_client": CLIENT, "oidc_secret": SECRET}
        about |= {"oidc_roles": ROLES, "address": "http://testserver"}
        made.append(Site(tmp_path / f"server-{len(made)}", **about | more))
        return made[-1]

    yield site
    for one in made:
        one.service.close()


def set_out(browser: TestClient, path: str = "/oidc/start") -> dict[str, str]:
    """Go to the provider; returns what it is asked."""
    answer = browser.get(path, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    return {name: one[0] for name, one in query.items()}


def come_back(browser: TestClient, address: str) -> Any:
    parts = urlsplit(address)
    return browser.get(f"{parts.path}?{parts.query}", follow_redirects=False)


def sign_in(site: Site, provider: LoopbackProvider, browser: TestClient | None = None) -> Any:
    browser = browser or site.client()
    return come_back(browser, provider.way_back(set_out(browser)))


def name_of(browser: TestClient) -> str:
    text = browser.get("/account").text
    found = re.search(r"<h1>(.*?)</h1>", text)
    assert found is not None
    return found[1]


def person(site: Site, name: str) -> dict[str, Any]:
    return next(one for one in accounts.everyone(site.service) if one["name"] == name)


def words(answer: Any) -> str:
    return re.sub(r"<[^>]*>|\s+", " ", answer.text)


def test_somebody_new_gets_the_role_of_their_claims(make: Make, provider: Any) -> None:
    site = make()
    browser = site.client()
    assert "Sign in through your institution" in browser.get("/sign-in").text
    answer = sign_in(site, provider, browser)
    assert answer.status_code == 200, answer.text
    assert 'content="0; url=/"' in answer.text
    assert name_of(browser) == "eva"
    assert person(site, "eva")["role"] == "analyst"
    assert person(site, "eva")["provider"]
    cookies = answer.headers.get_list("set-cookie")
    session = next(cookie for cookie in cookies if cookie.startswith("heldout="))
    assert "HttpOnly" in session
    assert "samesite=strict" in session.lower()
    lines = site.client("olga").get("/api/v1/audit?who=eva").json()
    assert [line["subject"] for line in lines] == ["by the provider"]
    # The same person again, under another name there: nothing changes here.
    provider.claims["preferred_username"] = "somebody-else"
    assert sign_in(site, provider, other := site.client()).status_code == 200
    assert name_of(other) == "eva"


def test_where_to_go_on_is_a_page_of_ours(make: Make, provider: Any) -> None:
    site = make()
    for asked, then in (("/boards", "/boards"), ("//elsewhere.example", "/")):
        browser = site.client()
        query = set_out(browser, f"/oidc/start?next={asked}")
        answer = come_back(browser, provider.way_back(query))
        assert f'url={then}"' in answer.text


LIES: dict[str, Any] = {
    "another issuer": {"claims": {"iss": "https://elsewhere.example"}},
    "another audience": {"claims": {"aud": "another-server"}},
    "two audiences and no party": {"claims": {"aud": [CLIENT, "another-server"]}},
    "another party": {"claims": {"aud": [CLIENT, "x"], "azp": "another-server"}},
    "another nonce": {"claims": {"nonce": "another"}},
    "no nonce": {"claims": {"nonce": None}},
    "expired": {"claims": {"exp": 1_000_000}},
    "no end": {"claims": {"exp": None}},
    "from the future": {"claims": {"iat": 4_000_000_000}},
    "no subject": {"claims": {"sub": None}},
    "empty subject": {"claims": {"sub": " "}},
    "a number for a subject": {"claims": {"sub": 7}},
    "no signature": {"token": "sign_with_nothing"},
    "signed by the public key": {"token": "sign_with_the_public_key"},
    "signed by another key": {"token": "sign_with_another_key"},
    "no token at all": {"token": lambda _: "x.y.z"},
    "mixed up providers": {"back": {"iss": "https://elsewhere.example"}},
    "another state": {"back": {"state": "another"}},
    "an unknown code": {"back": {"code": "another"}},
    "an error": {"back": {"error": "access_denied"}},
}


def test_a_lie_opens_no_door(make: Make, provider: Any) -> None:
    site = make(sign_ins_per_minute=10**6)
    for lie, told in LIES.items():
        provider.lies = dict(told)
        if isinstance(provider.lies.get("token"), str):
            provider.lies["token"] = getattr(provider, provider.lies["token"])
        browser = site.client()
        answer = sign_in(site, provider, browser)
        assert answer.status_code == 403, (lie, answer.text)
        assert "institution failed" in words(answer), lie
        cookies = answer.headers.get_list("set-cookie")
        assert not [cookie for cookie in cookies if cookie.startswith("heldout=")], lie
        assert browser.get("/", follow_redirects=False).status_code == 303, lie
        assert "eva" not in [one["name"] for one in accounts.everyone(site.service)], lie
    provider.lies = {}
    assert sign_in(site, provider, site.client()).status_code < 400, "the truth opens it"


def test_a_provider_that_names_itself_differently_is_refused(make: Make, provider: Any) -> None:
    site = make()
    provider.lies = {"issuer": "https://elsewhere.example"}
    answer = site.client().get("/oidc/start", follow_redirects=False)
    assert answer.status_code >= 400
    assert "names itself differently" in words(answer)


def test_an_answer_belongs_to_the_browser_that_asked(make: Make, provider: Any) -> None:
    site = make()
    attacker, victim = site.client(), site.client()
    address = provider.way_back(set_out(attacker))
    # Signing the victim in as the attacker: their browser never set out, or set out otherwise.
    assert come_back(victim, address).status_code == 403
    set_out(victim)
    assert come_back(victim, address).status_code == 403
    assert victim.get("/", follow_redirects=False).status_code == 303
    # The code was not used up by it, and works once for its own browser.
    assert come_back(attacker, address).status_code == 200
    again = come_back(attacker, address)
    assert again.status_code == 403
    forged = site.client()
    forged.cookies.set("flow", "e30.made.up")
    assert come_back(forged, provider.way_back(set_out(site.client()))).status_code == 403


def test_a_stolen_code_is_useless_without_the_browser_s_half(make: Make, provider: Any) -> None:
    site = make()
    victim, thief = site.client(), site.client()
    stolen = parse_qs(urlsplit(provider.way_back(set_out(victim))).query)["code"][0]
    state = set_out(thief)["state"]
    answer = thief.get(f"/oidc/callback?code={stolen}&state={state}", follow_redirects=False)
    assert answer.status_code == 403


def test_a_name_never_connects_with_somebody_who_is_here(make: Make, provider: Any) -> None:
    site = make()
    for name in ("carol", "administrator", "adam"):
        provider.claims = {"sub": f"evil {name}", "preferred_username": name, "groups": ["staff"]}
        provider.claims |= {"email": "carol@hospital.example", "email_verified": True}
        answer = sign_in(site, provider)
        assert answer.status_code == 409, answer.text
        assert "already" in words(answer)
    assert not any(one["provider"] for one in accounts.everyone(site.service))


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 403),
        ({"groups": []}, 403),
        ({"groups": ["Analysts", "analyst", "administrator"]}, 403),
        ({"groups": "keepers analysts"}, 403),
        ({"groups": {"analysts": True}}, 403),
        ({"groups": [["analysts"]]}, 403),
        ({"role": "administrator", "roles": ["staff"]}, 403),
        ({"groups": ["keepers", "analysts"]}, 403),
        ({"groups": "keepers"}, 200),
        ({"groups": ["analysts", "analysts"]}, 200),
    ],
)
def test_a_role_comes_from_one_claim_alone(
    make: Make, provider: Any, claims: Any, status: int
) -> None:
    site = make()
    provider.claims = {"sub": "1", "preferred_username": "eva"} | claims
    assert sign_in(site, provider).status_code == status


def test_a_role_inside_another_claim(make: Make, provider: Any) -> None:
    site = make(oidc_role="realm_access.roles")
    provider.claims |= {"realm_access": {"roles": ["keepers"]}}
    assert sign_in(site, provider).status_code == 200
    assert person(site, "eva")["role"] == "custodian"


def test_a_disabled_person_stays_outside(make: Make, provider: Any) -> None:
    site = make()
    sign_in(site, provider)
    accounts.disable(site.service, "eva")
    answer = sign_in(site, provider, browser := site.client())
    assert answer.status_code == 403
    assert "disabled" in words(answer)
    assert browser.get("/", follow_redirects=False).status_code == 303
    provider.claims["groups"] = ["staff"]
    assert sign_in(site, provider).status_code == 403
    assert person(site, "eva")["role"] == "analyst"


def test_a_role_that_changes_there_changes_here_and_ends_what_was_open(
    make: Make, provider: Any
) -> None:
    site = make()
    sign_in(site, provider, first := site.client())
    token = site.token("eva", "analyst")
    provider.claims["groups"] = ["keepers"]
    sign_in(site, provider, second := site.client())
    assert person(site, "eva")["role"] == "custodian"
    assert first.get("/", follow_redirects=False).status_code == 303
    headers = {"Authorization": f"Bearer {token}"}
    assert site.client().get("/api/v1/me", headers=headers).status_code == 401
    # No role is left: nothing stays open either.
    provider.claims["groups"] = []
    assert sign_in(site, provider).status_code == 403
    assert second.get("/", follow_redirects=False).status_code == 303


def with_password(site: Site, name: str) -> TestClient:
    browser = site.client()
    link = accounts.new_link(site.service, name)
    page = browser.get(f"/sign-in/{link}")
    browser.post(f"/sign-in/{link}", data={"form_token": token_in(page)})
    data = {"form_token": token_in(browser.get("/account"))}
    answer = browser.post(
        "/account/password", data=data | {"password": PASSWORD, "again": PASSWORD}
    )
    assert "password is set" in answer.text
    return browser


def token_in(page: Any) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text)
    assert found is not None, page.text
    return found[1]


def ask_to_connect(browser: TestClient, **typed: str) -> Any:
    data = {"form_token": token_in(browser.get("/account")), "current": PASSWORD}
    return browser.post("/oidc/connect", data=data | typed)


def connect(browser: TestClient, provider: LoopbackProvider) -> Any:
    page = ask_to_connect(browser)
    link = re.search(r'class="button main" href="([^"]+)"', page.text)
    assert link is not None, page.text
    query = parse_qs(urlsplit(link[1].replace("&amp;", "&")).query)
    address = provider.way_back({name: one[0] for name, one in query.items()})
    return come_back(browser, address)


def test_somebody_who_is_here_connects_and_comes_by_no_other_way(make: Make, provider: Any) -> None:
    site = make()
    browser = with_password(site, "ana")
    provider.claims["preferred_username"] = "a.n.a"
    assert connect(browser, provider).status_code == 200
    assert name_of(browser) == "ana"
    with pytest.raises(accounts.Forbidden):
        accounts.sign_in(site.service, name="ana", password=PASSWORD)
    refused = browser.post(
        "/account/password",
        data={
            "form_token": token_in(browser.get("/account")),
            "password": PASSWORD,
            "again": PASSWORD,
        },
    )
    assert "through your institution" in refused.text
    sign_in(site, provider, other := site.client())
    assert name_of(other) == "ana"
    # Nobody else connects with the same account there.
    bert = with_password(site, "bert")
    assert connect(bert, provider).status_code == 409
    # An administrator ends it.
    assert site.client("adam").delete("/api/v1/people/ana/provider").status_code == 204
    assert other.get("/", follow_redirects=False).status_code == 303
    assert site.client("ana").delete("/api/v1/people/bert/provider").status_code in (401, 403)


def test_an_open_session_alone_connects_nobody(make: Make, provider: Any) -> None:
    """Connecting takes password and second factor away: so it takes both."""
    site = make()
    browser = with_password(site, "ana")
    for wrong in ("", "not the password of ana"):
        refused = ask_to_connect(browser, current=wrong)
        assert refused.status_code == 403
        assert "password is wrong" in refused.text
    secret = browser.cookies["heldout"]
    who = accounts.of_token(site.service, secret, kind="browser")
    assert who is not None
    app = pyotp.TOTP(accounts.offer_factor(site.service, who, password=PASSWORD).secret)
    codes = accounts.confirm_factor(site.service, who, app.at(storage.now()))
    for wrong in ("", app.at(storage.now())):  # that one was used to confirm
        refused = ask_to_connect(browser, code=wrong)
        assert refused.status_code == 403
        assert "code is wrong" in refused.text
    assert "Continue to" in ask_to_connect(browser, code=codes[0]).text
    assert ask_to_connect(browser, code=codes[0]).status_code == 403


def test_no_link_goes_around_the_provider(make: Make, provider: Any) -> None:
    """Their second factor is the provider's, and a role that ended there has ended here."""
    site = make(second_factor=("analyst",))
    assert sign_in(site, provider).status_code == 200
    adam = site.client("adam")
    assert adam.post("/api/v1/people/eva/link").status_code == 409
    assert adam.delete("/api/v1/people/eva/provider").status_code == 204
    assert adam.post("/api/v1/people/eva/link").status_code == 201


def test_nobody_takes_a_name_that_differs_in_capitals_alone(make: Make, provider: Any) -> None:
    site = make()
    provider.claims["preferred_username"] = "ANA"
    answer = sign_in(site, provider)
    assert answer.status_code == 409
    assert "ana" in answer.text
    again = site.client("adam").post("/api/v1/people", json={"name": "Bert", "role": "analyst"})
    assert again.status_code == 409


def test_a_provider_that_does_not_answer_holds_up_one_request_alone(
    make: Make, provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers could have all threads of the web wait for it, each after the other."""
    asked: list[str] = []

    def silence(address: str) -> Any:
        asked.append(address)
        raise ProviderAway("It does not answer.")

    monkeypatch.setattr(provider_module, "_fetched", silence)
    site = make()
    answers = [site.client().get("/oidc/start", follow_redirects=False) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [502] * 5
    assert len(asked) == 1
    known = provider_module.provider_of(site.service)
    assert known is not None
    monkeypatch.setattr(provider_module, "TURN", 0.01)
    with known._lock:  # somebody else waits for it
        assert site.client().get("/oidc/start", follow_redirects=False).status_code == 502


def test_connecting_gives_nobody_another_role(make: Make, provider: Any) -> None:
    site = make()
    browser = with_password(site, "ana")
    provider.claims["groups"] = ["staff"]
    answer = connect(browser, provider)
    assert answer.status_code == 409
    assert person(site, "ana")["role"] == "analyst"


def test_a_session_that_ended_connects_nobody(make: Make, provider: Any) -> None:
    site = make()
    browser = with_password(site, "ana")
    page = ask_to_connect(browser)
    link = re.search(r'class="button main" href="([^"]+)"', page.text)
    assert link is not None
    accounts.disable(site.service, "ana")
    query = parse_qs(urlsplit(link[1].replace("&amp;", "&")).query)
    address = provider.way_back({name: one[0] for name, one in query.items()})
    assert come_back(browser, address).status_code == 403


def test_the_last_administrator_with_a_password_stays_one(make: Make, provider: Any) -> None:
    site = make()
    provider.claims["groups"] = ["staff"]
    browser = with_password(site, "adam")
    assert connect(browser, provider).status_code == 409  # nobody else has a password
    with_password(site, "administrator")
    assert connect(browser, provider).status_code == 200
    with site.service.store.write() as connection:
        everybody = storage.people.update().where(storage.people.c.name == "administrator")
        connection.execute(everybody.values(password=None))
    provider.claims["groups"] = ["analysts"]
    answer = sign_in(site, provider)
    assert answer.status_code == 409
    assert "last administrator" in words(answer)
    assert person(site, "adam")["role"] == "administrator"


def test_without_roles_by_claims_people_are_added_by_hand(make: Make, provider: Any) -> None:
    site = make(oidc_roles={})
    answer = sign_in(site, provider)
    assert answer.status_code == 403
    assert "connect yourself" in words(answer)
    browser = with_password(site, "ana")
    assert connect(browser, provider).status_code == 200
    provider.claims["groups"] = ["staff"]
    assert sign_in(site, provider).status_code == 200
    assert person(site, "ana")["role"] == "analyst"


def test_a_new_key_of_the_provider_is_asked_for(
    make: Make, provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make()
    assert sign_in(site, provider).status_code == 200
    provider.renew_key("second")
    monkeypatch.setattr("heldout.server.provider.AGAIN", 0.0)
    assert sign_in(site, provider).status_code == 200
    assert provider.asked.count("/keys") == 2


def test_without_a_provider_there_are_no_such_pages(tmp_path: Path) -> None:
    site = Site(tmp_path / "server")
    for path in ("/oidc/start", "/oidc/callback"):
        assert site.client().get(path).status_code == 404
    assert "through" not in site.client().get("/sign-in").text
    site.service.close()


def test_a_provider_must_be_reached_by_https(tmp_path: Path) -> None:
    about: dict[str, Any] = {"oidc_issuer": "http://elsewhere.example", "oidc_client": "x"}
    with pytest.raises(ArgumentError, match="https"):
        Provider(Settings.at(tmp_path, **about))
    with pytest.raises(ArgumentError, match="oidc_client"):
        Provider(Settings.at(tmp_path, oidc_issuer="https://elsewhere.example"))


def test_a_provider_that_is_away_is_said_in_words(make: Make) -> None:
    site = make(oidc_issuer="http://127.0.0.1:1")
    answer = site.client().get("/oidc/start", follow_redirects=False)
    assert answer.status_code >= 400
    assert "does not answer" in words(answer)
