"""Signing in through an institution's provider and with a second factor, as people see it."""

from collections.abc import Iterator

import pyotp
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.browsing import PHONE, Live, serious, sideways
from tests.server.loopback_provider import CLIENT, SECRET, LoopbackProvider

PASSWORD = "a sentence will do"


@pytest.fixture(scope="module")
def provider() -> Iterator[LoopbackProvider]:
    made = LoopbackProvider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def connected(
    provider: LoopbackProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    about = {"oidc_issuer": provider.issuer, "oidc_client": CLIENT, "oidc_secret": SECRET}
    made = Live(
        tmp_path_factory.mktemp("provider"),
        **about,
        second_factor=("auditor",),
    )
    yield made
    made.stop()


def _looks_right(page: Page) -> None:
    """Axe finds nothing serious in light or dark, and nothing scrolls sideways on a phone."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert serious(page) == []
    size = page.viewport_size
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert sideways(page) == 0
    page.set_viewport_size(size or PHONE)  # type: ignore[arg-type]


def test_the_pages_of_a_provider_and_of_a_second_factor_are_for_everybody(
    connected: Live, browser: Browser
) -> None:
    page = browser.new_context(locale="en-GB").new_page()
    page.goto(f"{connected.address}/sign-in")
    expect(page.get_by_role("link", name="Sign in through your institution")).to_be_visible()
    _looks_right(page)

    # A local account that must have a second factor sets it up, and then signs in with a code.
    page.goto(connected.link("olga"))
    page.get_by_role("button", name="Sign in as olga").click()
    page.goto(f"{connected.address}/account")
    _looks_right(page)
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    page.locator("#factor-current").fill(PASSWORD)
    page.get_by_role("button", name="Set up a second factor").click()
    _looks_right(page)
    secret = page.locator("code.secret").inner_text()
    page.get_by_label("The code that the app shows").fill(pyotp.TOTP(secret).now())
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("Copy these recovery codes now")).to_be_visible()
    _looks_right(page)
    code = page.locator("code.secret").last.inner_text()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Name").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code").fill(code)
    _looks_right(page)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("link", name="olga")).to_be_visible()

    # Somebody else connects their account with the provider.
    other = browser.new_context(locale="en-GB").new_page()
    other.goto(connected.link("ana"))
    other.get_by_role("button", name="Sign in as ana").click()
    other.goto(f"{connected.address}/account")
    other.get_by_role("button", name="Connect with your institution").click()
    expect(other.get_by_role("link", name="Continue to your institution")).to_be_visible()
    _looks_right(other)
