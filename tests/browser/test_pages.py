"""Every page: for everybody, by keyboard, on a phone, in the dark, in print and without scripts."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.browsing import PHONE, Live, Ready, Watch, serious, sideways


def addresses(ready: Ready) -> dict[str, list[str]]:
    """Whose page it is, and where: every template, with as much in it as it can have."""
    ask = f"artifact={ready.models['ana', 'laboratory.json']}&question=brier&question=confusion"
    answers = [f"/evaluations/{each}" for each in ready.answers]
    return {
        "ana": [
            "/", "/artifacts", "/account", "/compare?dataset=stays", "/nowhere",
            f"/artifacts/{ready.models['ana', 'admission.json']}",
            f"/artifacts/{ready.models['ana', 'mixing.onnx']}",
            "/datasets/stays", f"/datasets/stays/ask?{ask}&question=compare&by=price&cost=30",
            f"/datasets/stays/confirm?{ask}&by=exact&exact=8",
            answers[0], answers[2], f"{answers[0]}/report.html",
        ],
        "carol": ["/", "/register", *ready.steps, "/boards", "/datasets/stays",
                  "/ledger?check=true", "/log"],
        "olga": ["/datasets/stays"],
        "adam": ["/"],
    }  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(
    scheme: str, live: Live, ready: Ready, watch: Watch, sign_in: Callable[..., Page]
) -> None:
    found: dict[str, list[str]] = {}
    # In the dark all else is the same.
    rules = ["color-contrast", "link-in-text-block"] if scheme == "dark" else []
    outside = watch.page(color_scheme=scheme)
    for address in (f"{live.address}/sign-in", live.link("olga")):
        outside.goto(address)
        found[address] = serious(outside, *rules)
    for name, pages in addresses(ready).items():
        page = sign_in(name, color_scheme=scheme)
        for address in pages:
            if address.endswith("report.html"):  # where it lies no script may run, axe's neither
                page.goto("about:blank")
                page.set_content(page.request.get(f"{live.address}{address}").text())
            else:
                page.goto(f"{live.address}{address}")
            page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = 1)")
            found[f"{name} {address}"] = serious(page, *rules)
    assert not {address: each for address, each in found.items() if each}


def test_no_page_scrolls_sideways_on_a_phone(
    live: Live, ready: Ready, watch: Watch, sign_in: Callable[..., Page]
) -> None:
    wide = {}
    for name, pages in addresses(ready).items():
        page = sign_in(name, viewport=PHONE, has_touch=True)
        for address in pages:
            page.goto(f"{live.address}{address}")
            wide[f"{name} {address}"] = sideways(page)
    outside = watch.page(viewport=PHONE)
    outside.goto(f"{live.address}/sign-in")
    wide["sign in"] = sideways(outside)
    assert not {address: each for address, each in wide.items() if each > 0}


def test_on_a_phone_price_and_allowance_stay_in_sight(
    live: Live, ready: Ready, sign_in: Callable[..., Page]
) -> None:
    page = sign_in("ana", viewport=PHONE)
    page.goto(f"{live.address}/datasets/stays/ask?question=brier&by=price&cost=10")
    for top in (0, 600):
        page.evaluate(f"window.scrollTo(0, {top})")
        expect(page.locator(".total")).to_be_in_viewport()
        expect(page.locator(".allowance")).to_be_in_viewport()


def test_in_print_a_page_is_its_content(
    live: Live, ready: Ready, sign_in: Callable[..., Page]
) -> None:
    page = sign_in("ana", color_scheme="dark")
    page.goto(f"{live.address}/evaluations/{ready.answers[0]}")
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation")).to_be_hidden()
    expect(page.get_by_role("link", name="Download it")).to_be_hidden()
    expect(page.locator("svg[aria-label^='ROC curve']")).to_be_visible()
    ink = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert ink == "rgb(0, 0, 0)"


def test_the_watch_sees_what_it_watches_for(live: Live, watch: Watch) -> None:
    page = watch.page()
    page.route("https://elsewhere.example/**", lambda route: route.abort())
    page.goto(f"{live.address}/sign-in")
    assert not watch.wrong
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    page.evaluate("document.body.append(Object.assign(new Image(), {src: '/static/no.png'}))")
    page.evaluate(
        "document.head.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.planted = 1'}))"
    )
    page.wait_for_timeout(100)
    told = " ".join(watch.wrong)
    assert "style" in told
    assert "script" in told
    assert page.evaluate("window.planted") is None
    page.evaluate("location.href = 'https://elsewhere.example/'")
    page.wait_for_timeout(100)
    assert "left the host" in " ".join(watch.wrong)
    watch.wrong.clear()


def test_axe_sees_what_it_looks_for(live: Live, watch: Watch) -> None:
    page = watch.page()
    page.goto(f"{live.address}/sign-in")
    page.evaluate("document.querySelector('label[for=name]').remove()")
    assert any(each.startswith("label") for each in serious(page))


# --- by keyboard ---------------------------------------------------------------------------------


def reach(page: Page, words: str, key: str = "", *, exact: bool = False) -> None:
    """Tab until the element with these words has the focus, then press a key."""
    for _ in range(80):
        told = page.evaluate(
            """() => {
                const at = document.activeElement;
                const labels = [...(at.labels || [])].map((each) => each.textContent).join(" ");
                return at.matches("a, button, summary") ? at.textContent : labels;
            }"""
        )
        if words in told and (not exact or told.strip() == words):
            seen = page.evaluate("getComputedStyle(document.activeElement).outlineStyle !== 'none'")
            assert seen, f"the focus on {words!r} cannot be seen"
            if key:
                page.keyboard.press(key)
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no way by keyboard to {words!r}")


def test_a_model_is_asked_about_by_keyboard_alone(live: Live, ready: Ready, watch: Watch) -> None:
    page = watch.page()
    page.goto(live.link("bert"))
    reach(page, "Sign in as bert", "Enter")
    page.wait_for_url(f"{live.address}/")
    reach(page, "Skip to the content", "Enter")
    reach(page, "Ask about a model", "Enter")
    page.wait_for_url("**/ask")
    reach(page, "Model", exact=True)
    page.keyboard.type("laboratory")
    reach(page, "How well does it rank?", "Space")
    reach(page, "Are its probabilities right?", "Space")
    reach(page, "Noise moves a number by about", "ArrowRight")
    expect(page.locator("output[for=exact]")).to_have_text("±0.015")
    reach(page, "Epsilon in all", "Home")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".total")).to_have_text("epsilon 0.03")
    assert page.locator("#cost").get_attribute("aria-valuetext") == "0.03"
    reach(page, "Continue", "Enter")
    page.wait_for_url("**/confirm?**")
    reach(page, "Pay epsilon 0.03 and ask", "Enter")
    expect(page.get_by_role("link", name="Open the report")).to_be_visible(timeout=30_000)
    reach(page, "Open the report", "Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("stays")


# --- without scripts -----------------------------------------------------------------------------


def test_everything_works_without_scripts(
    live: Live, ready: Ready, sign_in: Callable[..., Page]
) -> None:
    page: Any = sign_in("bert", java_script_enabled=False)
    page.get_by_role("link", name="Models").click()
    page.get_by_label("Choose a file").set_input_files(live.files / "admission.json")
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("link", name="Ask about it on stays").click()  # the page reloads until then
    page.get_by_label("How well does it rank?").uncheck()
    page.get_by_label("Are its probabilities right?").check()
    page.get_by_label("I choose the price").check()
    page.locator("#cost").fill("4")
    page.get_by_role("button", name="Show the price").click()
    expect(page.locator(".total")).to_have_text("epsilon 0.025")
    expect(page.get_by_label("Are its probabilities right?")).to_be_checked()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Pay epsilon 0.025 and ask").click()
    expect(page.get_by_role("link", name="Open the report")).to_be_visible(timeout=30_000)
    expect(page.get_by_role("heading", name="Are its probabilities right?")).to_be_visible()
