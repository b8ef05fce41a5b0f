"""The pages without a browser: sessions, forms, roles, escapes, and what is bought by a click."""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("onnxruntime")

from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from tests.server.conftest import Site, write_rows

from heldout.server import accounts, asking, datasets
from heldout.server.app import make_app
from heldout.server.service import Service, Settings

NASTY = '<script>alert(1)</script>"\u202e\x07'
PASSWORD = "a sentence will do"


def token_of(page: Any) -> str:
    return str(re.search(r'name="form_token" value="(\w+)"', page.text)[1])  # type: ignore[index]


class Visitor(TestClient):
    """A browser without scripts: it fills in forms that it was shown."""

    def fill(self, address: str, *, seen: str = "/account", **form: Any) -> Any:
        shown = self.get(seen)
        return self.post(address, data={"form_token": token_of(shown)} | form)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("pages")
    found = Site(folder / "server")
    found.register(write_rows(folder / "rows.parquet"))
    found.grant("ana", budget="2")
    found.model = found.upload()
    found.asked = found.answer(
        {"question": "brier", "epsilon": "1/10"}, artifact=found.model["id"], key="first"
    )
    yield found
    found.service.close()


@pytest.fixture(scope="module")
def visit(site: Any) -> Callable[[str], Visitor]:
    def enter(name: str) -> Visitor:
        browser = Visitor(site.app, raise_server_exceptions=False)
        address = f"/sign-in/{accounts.new_link(site.service, name)}"
        browser.fill(address, seen=address).raise_for_status()
        return browser

    return enter


# --- sessions ------------------------------------------------------------------------------------


def test_a_link_is_used_up_by_its_button_and_not_by_a_preview(site: Any) -> None:
    address = f"/sign-in/{accounts.new_link(site.service, 'bert')}"
    browser = Visitor(site.app)
    assert [browser.get(address).status_code for _ in range(3)] == [200] * 3
    assert "bert" in browser.fill(address, seen=address).text
    assert Visitor(site.app, raise_server_exceptions=False).get(address).status_code == 403


def test_no_script_and_no_other_site_gets_the_session(site: Any, tmp_path: Path) -> None:
    safe = Service(Settings(**vars(site.service.settings) | {"secure": True}))
    for service, name, secure in ((site.service, "heldout", False), (safe, "__Host-heldout", True)):
        browser = Visitor(make_app(service), base_url="https://testserver")
        address = f"/sign-in/{accounts.new_link(site.service, 'bert')}"
        shown = browser.get(address)
        answer = browser.post(address, data={"form_token": token_of(shown)}, follow_redirects=False)
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{name}=")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert ("Secure" in cookie) is secure
        assert "Domain" not in cookie
    safe.close()


def test_a_password_opens_a_session_and_signing_out_ends_it_everywhere(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    first = visit("bert")
    short = first.fill("/account/password", password="short", again="short")
    assert (short.status_code, "12 to 128" in short.text) == (422, True)
    differ = first.fill("/account/password", password=PASSWORD, again=PASSWORD + "!")
    assert "differ" in differ.text
    assert (
        "password is set" in first.fill("/account/password", password=PASSWORD, again=PASSWORD).text
    )
    browser = Visitor(site.app)
    wrong = browser.fill("/sign-in", seen="/sign-in", name="bert", password="wrong")
    assert (wrong.status_code, "Name, password or code is wrong" in wrong.text) == (403, True)
    nobody = browser.fill("/sign-in", seen="/sign-in", name="nobody", password="wrong")
    assert nobody.status_code == 403
    assert "bert" in browser.fill("/sign-in", seen="/sign-in", name="bert", password=PASSWORD).text
    kept = browser.cookies["heldout"]
    browser.fill("/sign-out")
    words = {"name": "bert", "password": PASSWORD}
    meant = browser.fill("/sign-in", seen="/sign-in?next=/account", next="/account", **words)
    assert meant.url.path == "/account", "where they wanted to go"
    for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example", "/a?b"):
        astray = browser.fill("/sign-in", seen="/sign-in", next=elsewhere, **words)
        assert (astray.url.path, astray.url.host) == ("/", meant.url.host)
    browser.fill("/sign-out")
    thief = Visitor(site.app, cookies={"heldout": kept})
    assert thief.get("/account").url.path == "/sign-in"


def test_sessions_and_tokens_do_not_open_one_anothers_doors(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    session = visit("ana").cookies["heldout"]
    bearer = {"Authorization": f"Bearer {session}"}
    assert site.client().get("/api/v1/me", headers=bearer).status_code == 401
    cookie = Visitor(site.app, cookies={"heldout": site.tokens["ana"]})
    assert cookie.get("/account").url.path == "/sign-in"


def test_a_link_from_another_site_finds_the_session_all_the_same(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    without = Visitor(site.app).get("/account", headers=elsewhere)  # as a browser would send it
    assert '<meta http-equiv="refresh" content="0">' in without.text
    assert "Tokens for programs" in visit("ana").get("/account").text
    assert Visitor(site.app).get("/account").url.path == "/sign-in"


def test_a_part_of_a_page_that_cannot_be_had_reloads_the_page(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    part = {"HX-Request": "true"}
    for browser in (visit("ana"), Visitor(site.app)):
        answer = browser.get("/evaluations/none", headers=part)
        assert (answer.status_code, answer.headers["hx-refresh"]) == (204, "true")


# --- forms ---------------------------------------------------------------------------------------


def posts(app: Any) -> list[str]:
    found = []

    def walk(routes: Any) -> None:
        for each in routes:
            inner = getattr(each, "original_router", None)
            if inner is not None:
                walk(inner.routes)
            elif isinstance(each, APIRoute) and "POST" in each.methods:
                found.append(each.path)

    walk(app.routes)
    return [each for each in found if not each.startswith("/api/")]


def test_every_form_needs_the_token_of_its_own_session(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    ana, carol = visit("ana"), visit("carol")
    others = token_of(carol.get("/account"))
    addresses = posts(site.app)
    assert len(addresses) >= 15
    for path in addresses:
        address = re.sub(r"\{\w+\}", "readmissions", path)
        for form in ({}, {"form_token": ""}, {"form_token": others}):
            for browser in (ana, Visitor(site.app)):
                answer = browser.post(address, data=form, follow_redirects=False)
                refused = answer.status_code in (303, 401, 403)
                assert refused, (path, answer.status_code)
                assert answer.headers.get("location", "/sign-in") == "/sign-in"


def test_a_form_that_another_site_sends_is_refused(visit: Callable[[str], Visitor]) -> None:
    ana = visit("ana")
    form = {"form_token": token_of(ana.get("/account")), "label": "x", "scopes": "read"}
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
        answer = ana.post("/account/tokens", data=form, headers={"Sec-Fetch-Site": site})
        assert answer.status_code == status


# --- who sees what -------------------------------------------------------------------------------

SEEN = {
    "/": "analyst custodian auditor administrator",
    "/account": "analyst custodian auditor administrator",
    "/artifacts": "analyst",
    "/artifacts/{model}": "analyst",
    "/compare": "analyst",
    "/datasets/readmissions": "analyst custodian auditor",
    "/datasets/readmissions/ask?question=brier&by=price&cost=3": "analyst",
    "/datasets/readmissions/confirm?artifact={model}&question=brier&by=price&cost=3": "analyst",
    "/datasets/readmissions/twin.csv": "analyst custodian",
    "/evaluations/{asked}": "analyst custodian",
    "/evaluations/{asked}/report.html": "analyst custodian",
    "/ledger?check=true": "custodian auditor",
    "/log": "custodian auditor",
    "/register": "custodian",
}
NAMES = {"analyst": "ana", "custodian": "carol", "auditor": "olga", "administrator": "adam"}


def test_every_page_opens_for_its_roles_alone(site: Any, visit: Callable[[str], Visitor]) -> None:
    browsers = {role: visit(name) for role, name in NAMES.items()}
    stranger = visit("bert")
    for path, roles in SEEN.items():
        address = path.format(model=site.model["id"], asked=site.asked["id"])
        for role, browser in browsers.items():
            status = browser.get(address).status_code
            assert (status == 200) == (role in roles.split()), (path, role, status)
            assert status in (200, 403, 404)
        outside = Visitor(site.app).get(address, follow_redirects=False)
        plain = address.partition("?")[0]
        back = "/sign-in" if plain == "/" else f"/sign-in?next={plain}"
        assert (outside.status_code, outside.headers["location"]) == (303, back)
        if "{" in path or "datasets" in path:
            assert stranger.get(address).status_code == 404, path


def test_pages_carry_no_script_or_style_of_their_own(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    browsers = {role: visit(name) for role, name in NAMES.items()}
    for path, roles in SEEN.items():
        if path.endswith((".csv", "report.html")):
            continue
        address = path.format(model=site.model["id"], asked=site.asked["id"])
        answer = browsers[roles.split()[0]].get(address)
        assert "script-src 'self'; style-src 'self'" in answer.headers["content-security-policy"]
        assert not re.search(r"<style|\sstyle=|\son\w+=|hx-on|javascript:", answer.text), path
        assert all(" src=" in each for each in re.findall(r"<script[^>]*>", answer.text))
        assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", answer.text), path


def test_names_and_texts_are_shown_and_never_run(
    site: Any, visit: Callable[[str], Visitor], tmp_path: Path
) -> None:
    ana = visit("ana")
    answer = ana.post(
        "/artifacts",
        data={"form_token": token_of(ana.get("/artifacts"))},
        files={"file": ("<img src=x onerror=y>.json", b"{}", "text/plain")},
    )
    assert "&lt;img src=x onerror=y&gt;.json" in answer.text
    assert "<img" not in answer.text
    carol = visit("carol")
    address = str(carol.fill("/register").url.path)
    site.work()
    carol.fill(f"{address}/source", kind="path", path=str(tmp_path / "none.parquet"))
    site.work()
    carol.fill(f"{address}/source", kind="path", path=str(write_rows(tmp_path / "x.parquet")))
    site.work()
    for step, form in (("outcome", {"label": "readmitted", "sort": "two"}), ("rows", {})):
        carol.fill(f"{address}/{step}", **form).raise_for_status()
    refused = carol.fill(f"{address}/spend", name="x", facts=NASTY, budget="no")
    assert refused.status_code == 422
    assert "<script>alert" not in refused.text
    assert "\u202e" not in refused.text
    assert "\\u202e" in unescape(refused.text)


def test_what_went_wrong_is_a_page_in_words(site: Any, visit: Callable[[str], Visitor]) -> None:
    ana = visit("ana")
    for address, status in (("/nowhere", 404), ("/artifacts/none", 404), ("/log", 403),
                            ("/datasets/readmissions/twin.csv?rows=x", 422)):  # fmt: skip
        answer = ana.get(address)
        assert (answer.status_code, answer.headers["content-type"]) == (
            status, "text/html; charset=utf-8")  # fmt: skip
        assert 'role="alert"' in answer.text
    assert ana.get("/api/v1/nowhere").headers["content-type"] == "application/problem+json"


# --- models --------------------------------------------------------------------------------------


def test_a_refused_model_is_explained_and_a_good_one_can_be_asked_about(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    ana = visit("ana")

    def submit(name: str, content: bytes) -> Any:
        form = {"form_token": token_of(ana.get("/artifacts"))}
        answer = ana.post("/artifacts", data=form, files={"file": (name, content)})
        site.work()
        return ana.get(answer.url) if answer.url.path != "/artifacts" else answer

    assert "must end in .onnx" in submit("model.pkl", b"x").text
    assert "Choose a file" in ana.fill("/artifacts", seen="/artifacts").text
    refused = submit("model.json", b'{"coefficients": {"age": "much"}}')
    assert "The coefficient of" in refused.text
    assert "nothing was charged" in refused.text
    good = submit("model.json", b'{"coefficients": {"age": 0.1}}')
    assert "Ask about it on readmissions" in good.text
    keyed = submit("scores.csv", b"key,score\na0,0.5\na1,0.25\nnobody,1\n")
    assert "Predictions by row key" in keyed.text


# --- asking and paying ---------------------------------------------------------------------------


def test_the_price_of_a_width_is_the_lowest_that_keeps_it() -> None:
    def width(price: Fraction) -> Any:
        noise = 0.01 / float(price) + 0.0001 / float(price) ** 2
        return "AUC", type("Found", (), {"noise": noise})

    for target in asking.WIDTHS:
        price = asking._lowest(width, target)
        place = asking.LADDER.index(price)
        assert width(price)[1].noise <= target or price == asking.LADDER[-1]
        if place:
            assert width(asking.LADDER[place - 1])[1].noise > target


def test_more_exactness_costs_more_and_more_money_buys_exactness(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    person = accounts.Person("ana", "analyst", "", "browser", accounts.SCOPES)
    held = datasets.seen(site.service, person, "readmissions")

    def offer(**told: str) -> Any:
        from starlette.datastructures import QueryParams

        query = QueryParams(f"question=brier&question=confusion&{_query(told)}")
        wish = asking.Wish.of(query, held)
        return asking.offered(site.service, person, held, wish)

    rough, sharp = offer(by="exact", exact="3"), offer(by="exact", exact="8")
    assert rough.loss.epsilon < sharp.loss.epsilon
    assert all(each.noise <= asking.WIDTHS[8] for each in sharp.lines)
    cheap, dear = offer(by="price", cost="10"), offer(by="price", cost="15")
    assert cheap.loss.epsilon == asking.LADDER[10]
    assert dear.loss.epsilon == asking.LADDER[15]
    assert all(a.noise > b.noise for a, b in zip(cheap.lines, dear.lines, strict=True))
    assert dear.exact > cheap.exact


def _query(told: dict[str, str]) -> str:
    return "&".join(f"{name}={value}" for name, value in told.items())


def test_a_price_is_shown_with_what_is_left_before_it_is_paid_once(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    ana = visit("ana")
    model = site.model["id"]
    query = f"artifact={model}&question=brier&by=price&cost=15"
    asked = ana.get(f"/datasets/readmissions/ask?{query}", headers={"HX-Request": "true"})
    assert "<html" not in asked.text
    assert "epsilon 0.3" in asked.text
    before = ana.get("/datasets/readmissions").text
    page = ana.get(f"/datasets/readmissions/confirm?{query}")
    assert "Pay epsilon 0.3 and ask" in page.text
    whose = r"\(a guess: one in four\)"
    guess = re.compile(rf"[\d,]+ rows of which [\d,]+ are positive {whose}")
    assert guess.search(asked.text)
    assert guess.search(page.text)
    assert "epsilon 1.6" in page.text  # 2, less 0.1 of the first question, less this
    assert ana.get("/datasets/readmissions").text == before
    form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    first = ana.post("/evaluations", data=form)
    again = ana.post("/evaluations", data=form)
    assert first.url == again.url
    site.work()
    done = ana.get(first.url)
    while "Receipt" not in done.text:  # until its tick
        done = ana.get(first.url)
    assert "Brier score" in done.text
    person = accounts.Person("ana", "analyst", "", "browser", accounts.SCOPES)
    account = datasets.share_of(site.service, person, "readmissions")
    assert datasets.standing(site.service, account)["spent"]["epsilon"] == "2/5"


def test_what_is_not_left_can_be_neither_confirmed_nor_paid(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    ana = visit("ana")
    query = f"artifact={site.model['id']}&question=brier&by=price&cost=28"
    asked = ana.get(f"/datasets/readmissions/ask?{query}")
    assert "It costs more than is left" in asked.text
    assert re.search(r"<button[^>]* disabled>Continue", asked.text)
    assert ana.get(f"/datasets/readmissions/confirm?{query}").status_code == 409
    forged = ana.fill("/evaluations", quote="forged", artifact=site.model["id"], key="k")
    assert forged.status_code == 409


def test_a_custodian_grants_changes_revokes_raises_and_closes_by_forms(
    site: Any, visit: Callable[[str], Visitor], tmp_path: Path
) -> None:
    carol = visit("carol")
    write_rows(tmp_path / "rows.parquet", count=60)
    forms = {
        "outcome": {"label": "readmitted", "sort": "two", "negative": "0"},
        "rows": {"row_key": "admission"},
        "columns": {"feature.1": "yes", "feature.2": "yes"},
        "spend": {"name": "second", "budget": "1"},
    }
    address = str(carol.fill("/register").url.path)
    carol.fill(f"{address}/source", kind="path", path=str(tmp_path / "rows.parquet"))
    site.work()
    for step, form in forms.items():
        carol.fill(f"{address}/{step}", **form).raise_for_status()
    site.work()
    assert "are also in account" in carol.get("/datasets/second").text
    address = str(carol.fill("/datasets/second/again").url.path)
    site.work()
    assert 'name="negative" value="0"' in carol.get(f"{address}?step=outcome").text
    forms["spend"]["new"] = "yes"
    for step, form in forms.items():
        page = carol.fill(f"{address}/{step}", **form)
    assert "A worker checks the rows" in page.text
    site.work()
    page = "/datasets/second"
    assert "is granted" in carol.fill(f"{page}/grants", analyst="bert", budget="1/2").text
    assert "is changed" in carol.fill(f"{page}/grants/bert", budget="1", expires="2099-01-01").text
    assert "2099-01-01" in carol.get(page).text
    assert "must look like" in carol.fill(f"{page}/grants/bert", expires="soon").text
    assert "is revoked" in carol.fill(f"{page}/grants/bert/revoke").text
    assert "is raised" in carol.fill(f"{page}/raise", budget="2").text
    assert "Type the name" in carol.fill(f"{page}/close", sure="no").text
    assert "is closed" in carol.fill(f"{page}/close", sure="second").text
    assert visit("ana").fill(f"{page}/grants", analyst="ana", budget="1").status_code == 403


def test_an_administrator_adds_and_disables_people(
    site: Any, visit: Callable[[str], Visitor]
) -> None:
    adam = visit("adam")
    added = adam.fill("/people", name="dora", role="analyst")
    link = re.search(r"http[^<]*(/sign-in/[\w-]+)", added.text)[1]  # type: ignore[index]
    dora = Visitor(site.app)
    assert "dora" in dora.fill(link, seen=link).text
    assert "already" in adam.fill("/people", name="dora", role="analyst").text
    assert "no longer sign in" in adam.fill("/people/dora/disable").text
    assert dora.get("/account").url.path == "/sign-in"
    assert adam.fill("/people/adam/disable").status_code == 403


def test_a_tokens_secret_is_shown_once(site: Any, visit: Callable[[str], Visitor]) -> None:
    ana = visit("ana")
    made = ana.fill("/account/tokens", label="laptop", scopes=["read", "ask"], days="30")
    secret = re.search(r"heldout_[\w-]+", made.text)[0]  # type: ignore[index]
    assert site.client().get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).json()[
        "scopes"
    ] == ["read", "ask"]
    listed = ana.get("/account").text
    assert "laptop" in listed
    assert secret not in listed
    revoke = re.findall(r"/account/tokens/\w+/revoke", listed)[-1]
    assert "is revoked" in ana.fill(revoke).text


@pytest.mark.parametrize("text", ["%ED%A0%80", "%00", "%E2%80%AE"])
def test_texts_that_no_database_keeps_are_refused_on_a_page(
    visit: Callable[[str], Visitor], text: str
) -> None:
    browser = visit("ana")
    for path in ("/datasets/{}", "/evaluations/{}", "/compare?dataset={}"):
        answer = browser.get(path.format(text))
        assert answer.status_code in (200, 404, 422)
        assert answer.headers["content-type"].startswith("text/html"), path
