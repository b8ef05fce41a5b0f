"""A whole server in this process, and Debian's Chromium before it.

    HELDOUT_TEST_BROWSER=1 pytest tests/browser          # make test-browser

Every page that a test opens is watched: what leaves the host, breaks the content policy or fails
in a script fails the test.
"""

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet
import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from heldout.examples import readmission
from heldout.server import accounts
from heldout.server.app import make_app
from heldout.server.demo import MODELS
from heldout.server.first_start import prepare
from heldout.server.service import Service, Settings
from heldout.server.worker import run

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
DESK = {"width": 1180, "height": 820}
PHONE = {"width": 375, "height": 740}
ROLES = {"carol": "custodian", "ana": "analyst", "bert": "analyst", "olga": "auditor",
         "adam": "administrator"}  # fmt: skip


class Live:
    """A running server with its people, its rows and files to submit."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.files = folder / "files"
        self.files.mkdir()
        table = readmission().drop_columns(["risk_a", "risk_b"])
        pyarrow.parquet.write_table(table, self.files / "readmissions.parquet")
        self.service = Service(Settings.at(folder / "server", address=self.address))
        prepare(self.service)
        for name, role in ROLES.items():
            accounts.add_person(self.service, name=name, role=role)
        self._stop = threading.Event()
        settings = uvicorn.Config(
            make_app(self.service), port=port, log_level="warning", lifespan="off"
        )
        self._web = uvicorn.Server(settings)
        self._threads = [
            threading.Thread(target=self._web.run),
            threading.Thread(target=run, args=(self.service,), kwargs={"stop": self._stop}),
        ]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._web.should_exit = True
        self._stop.set()
        for each in self._threads:
            each.join()
        self.service.close()

    def link(self, name: str) -> str:
        return f"{self.address}/sign-in/{accounts.new_link(self.service, name)}"


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    found = Live(tmp_path_factory.mktemp("live"))
    yield found
    found.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.fail("Chromium is not installed: apt-get install chromium.")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


class Watch:
    """Browsers of several people, and everything that is wrong with what they see."""

    def __init__(self, browser: Browser, live: Live) -> None:
        self._browser, self._live = browser, live
        self.wrong: list[str] = []
        self._contexts: list[BrowserContext] = []

    def page(self, **options: Any) -> Page:
        """A fresh browser; all that it loads and says is watched."""
        options = {"viewport": DESK, "locale": "en-GB"} | options
        context = self._browser.new_context(**options)
        self._contexts.append(context)
        context.set_default_timeout(15_000)
        page = context.new_page()
        page.on("request", self._request)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(f"script failed: {error}"))
        return page

    def _request(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme != "data" and f"{parts.scheme}://{parts.netloc}" != self._live.address:
            self.wrong.append(f"left the host: {request.url}")

    def _console(self, message: Any) -> None:
        # A refusal that a page explains, such as 422, is an error to the console and not to us.
        if message.type in ("error", "warning") and "status of 4" not in message.text:
            self.wrong.append(f"console: {message.text}")

    def close(self) -> None:
        for each in self._contexts:
            each.close()


@pytest.fixture
def watch(browser: Browser, live: Live) -> Iterator[Watch]:
    found = Watch(browser, live)
    yield found
    found.close()
    assert not found.wrong, found.wrong


@pytest.fixture
def sign_in(watch: Watch, live: Live) -> Callable[..., Page]:
    """Sign somebody in by link, in a fresh browser."""

    def enter(name: str, **options: Any) -> Page:
        page = watch.page(**options)
        page.goto(live.link(name))
        page.get_by_role("button", name=f"Sign in as {name}").click()
        page.wait_for_url(f"{live.address}/")
        return page

    return enter


def serious(page: Page) -> list[str]:
    """What axe finds that is serious or critical."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['help']} ({each['nodes'][0]['html'][:160]})"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def sideways(page: Page) -> int:
    """How many pixels a page is wider than its window."""
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )


__all__ = ["DESK", "MODELS", "PHONE", "Live", "Watch", "serious", "sideways"]
