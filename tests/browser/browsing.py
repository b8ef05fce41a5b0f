"""A whole server in this process, and Debian's Chromium before it.

    HELDOUT_TEST_BROWSER=1 pytest tests/browser          # make test-browser

Every page that a test opens is watched: what leaves the host, breaks the content policy or fails
in a script fails the test.
"""

import asyncio
import json
import shutil
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet
import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from heldout.examples import readmission
from heldout.server import accounts, artifacts, datasets, drafts, evaluations
from heldout.server.accounts import SCOPES, Person
from heldout.server.app import make_app
from heldout.server.run import MODELS, prepare
from heldout.server.service import Service, Settings
from heldout.server.worker import run

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
DESK = {"width": 1180, "height": 820}
PHONE = {"width": 375, "height": 740}
ROLES = {"carol": "custodian", "ana": "analyst", "bert": "analyst", "olga": "auditor",
         "adam": "administrator"}  # fmt: skip


EXPECTED = (
    "the server responded with a status of 4",  # a refusal that the page explains
    "htmx:sendAbort",  # a newer question took the place of one that was on its way
    "htmx:afterRequest",
)
"""What the console may say."""


class Live:
    """A running server with its people, its rows and files to submit."""

    def __init__(self, folder: Path, **more: Any) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.files = folder / "files"
        self.files.mkdir()
        table = readmission().drop_columns(["risk_a", "risk_b"])
        pyarrow.parquet.write_table(table, self.files / "readmissions.parquet")
        for name, model in MODELS.items():
            (self.files / name).write_text(json.dumps(model), encoding="utf-8")
        (self.files / "mixing.onnx").write_bytes(mixing())
        settings = {"address": self.address, "rows": self.files, "sign_ins_per_minute": 10_000}
        self.service = Service(Settings.at(folder / "server", **settings | more))
        prepare(self.service)
        for name, role in ROLES.items():
            accounts.add_person(self.service, name=name, role=role)
        self._stop = threading.Event()
        app = make_app(self.service)
        config = uvicorn.Config(app, port=port, log_level="warning", lifespan="off")
        self._web = uvicorn.Server(config)
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

    def wait(self, look: Callable[[], Any]) -> Any:
        """What `look` finds, as soon as it finds something."""
        end = time.monotonic() + 60
        while not (found := look()):
            assert time.monotonic() < end, "the worker took more than a minute"
            time.sleep(0.05)
        return found

    def link(self, name: str) -> str:
        return f"{self.address}/sign-in/{accounts.new_link(self.service, name)}"


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    found = Live(tmp_path_factory.mktemp("live"))
    yield found
    found.stop()


def mixing() -> bytes:
    """A model that subtracts the mean of all rows, so that a score tells of other rows."""
    from onnx import TensorProto, helper

    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])
    score = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])
    axes = [helper.make_tensor(name, TensorProto.INT64, [1], [at]) for at, name in enumerate("ab")]
    nodes = [
        helper.make_node("ReduceMean", ["x", "a"], ["mean"]),
        helper.make_node("Sub", ["x", "mean"], ["centred"]),
        helper.make_node("ReduceSum", ["centred", "b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "mixing", [rows], [score], axes)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    content: bytes = model.SerializeToString()
    return content


class Ready:
    """A data set with allowances, models and answers: what most pages show something of."""

    def __init__(self, live: Live) -> None:
        service = live.service
        carol, ana = (Person(name, ROLES[name], "", "browser", SCOPES) for name in ("carol", "ana"))
        declaration = {"label": "readmitted", "row_key": "encounter_id", "unit": "patient_id",
                       "rows_per_unit": 3, "expected_rows": 5000}  # fmt: skip
        facts = "Made-up hospital stays: who comes back within 30 days?"
        datasets.register(service, carol, name="stays", source="readmissions.parquet",
                          declaration=declaration, budget="12", facts=facts)  # fmt: skip
        live.wait(lambda: datasets.find(service, "stays").state == "open")
        for name, budget in (("ana", "8"), ("bert", "2")):
            datasets.grant(service, carol, "stays", analyst=name, budget=budget)
        self.models = {}
        for name in ("admission.json", "laboratory.json", "mixing.onnx"):
            for owner in ("ana", "bert"):
                self.models[owner, name] = _submit(live, owner, live.files / name)
        self.answers = [
            self._asked(live, ana, "admission.json", {"question": "curves", "epsilon": "2"}),
            self._asked(live, ana, "laboratory.json", {"question": "curves", "epsilon": "2"}),
            self._asked(live, ana, "laboratory.json", {"question": "report", "epsilon": "1"}),
        ]
        live.wait(lambda: all(_answered(service, ana, each) for each in self.answers))
        draft = drafts.again(service, carol, "stays")
        live.wait(lambda: drafts.find(service, carol, draft).state == "ready")
        known = drafts.find(service, carol, draft)
        forms = drafts.registered_forms(datasets.find(service, "stays"), known)
        for step in known.steps[:-1]:
            known = drafts.fill_in(service, known, step, forms[step])
        steps = ("source", *known.steps)
        self.steps = [f"/register/{draft}?step={step}" for step in steps]
        """A registration that was begun, by the step that its page shows."""

    def _asked(self, live: Live, person: Person, model: str, question: Any) -> str:
        row = evaluations.submit(
            live.service,
            person,
            dataset="stays",
            artifact=self.models["ana", model],
            content=[question],
            key=f"{model} {question}",
        )
        return str(row.id)


def _submit(live: Live, name: str, file: Path) -> str:
    async def pieces() -> AsyncIterator[bytes]:
        yield file.read_bytes()

    person = Person(name, ROLES[name], "", "browser", SCOPES)
    kind = artifacts.ENDINGS[file.suffix]
    stored = artifacts.store(live.service, person, pieces(), content_type=kind, name=file.name)
    found = asyncio.run(stored)
    live.wait(lambda: artifacts.find(live.service, person, found).state != "checking")
    return found


def _answered(service: Service, person: Person, identity: str) -> bool:
    row = evaluations.find_one(service, person, identity)
    return bool(evaluations.public(service, row)["state"] == "answered")


@pytest.fixture(scope="session")
def ready(live: Live) -> Ready:
    return Ready(live)


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
        if (
            parts.scheme not in ("data", "about")
            and f"{parts.scheme}://{parts.netloc}" != self._live.address
        ):
            self.wrong.append(f"left the host: {request.url}")

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(
            each in message.text for each in EXPECTED
        ):
            self.wrong.append(f"console: {message.text}")

    def close(self) -> None:
        for each in self._contexts:
            each.close()


@pytest.fixture
def watch(browser: Browser, live: Live) -> Iterator[Watch]:
    found = Watch(browser, live)
    yield found
    found.close()
    assert not found.wrong, sorted(set(found.wrong))


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


def serious(page: Page, *rules: str) -> list[str]:
    """What axe finds that is serious or critical, by these rules or by all."""
    page.evaluate(AXE)
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("(options) => axe.run(document, options)", options)
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


__all__ = ["DESK", "PHONE", "Live", "Ready", "Watch", "serious", "sideways"]
