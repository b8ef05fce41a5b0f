"""A custodian who registers rows by clicks, in a browser without scripts."""

import re
from pathlib import Path
from typing import Any

from tests.server.conftest import Site
from tests.server.test_site import Visitor

from heldout.server import accounts

Form = dict[str, str]


class Clicking:
    """A custodian without scripts who registers rows, step by step."""

    def __init__(self, site: Site, name: str = "carol") -> None:
        self.site = site
        self.browser = Visitor(site.app, raise_server_exceptions=False)
        address = f"/sign-in/{accounts.new_link(site.service, name)}"
        self.browser.fill(address, seen=address).raise_for_status()
        self.draft = ""

    def begin(self) -> Any:
        waits = self.browser.fill("/register", seen="/register")
        self.draft = str(waits.url.path)
        assert "which files and tables there are" in waits.text
        self.site.work()
        return self.browser.get(self.draft)

    def choose(self, **source: str) -> Any:
        page = self.browser.fill(f"{self.draft}/source", **source)
        if page.status_code != 200:
            return page
        assert "No row is read" in page.text
        self.site.work()
        return self.browser.get(self.draft)

    def upload(self, file: Path) -> None:
        """Send a file under another name, as a browser does."""
        token = re.search(r'name="form_token" value="(\w+)"', self.browser.get(self.draft).text)
        assert token is not None
        data = {"form_token": token[1], "draft": self.draft.rsplit("/", 1)[1]}
        sent = {"file": (f"mine{file.suffix}", file.read_bytes())}
        self.browser.post("/register/upload", data=data, files=sent).raise_for_status()
        self.site.work()

    def send(self, step: str, **form: str) -> Any:
        return self.browser.fill(f"{self.draft}/{step}", **form)

    def all_steps(self, path: Path, name: str, *, outcome: Form, rows: Form, spend: Form) -> Any:
        """Register a file by its path, with every column that is left as a feature."""
        self.begin()
        self.choose(kind="path", path=str(path))
        self.send("outcome", **outcome).raise_for_status()
        page = self.send("rows", **rows)
        seen = dict.fromkeys(re.findall(r'name="(feature[.][0-9]+)"', page.text), "yes")
        self.send("columns", **seen).raise_for_status()
        return self.register(name, **spend)

    def register(self, name: str, **form: str) -> Any:
        self.send("spend", **{"name": name, "budget": "3"} | form).raise_for_status()
        self.site.work()
        return self.site.client("carol").get(f"/api/v1/datasets/{name}").json()
