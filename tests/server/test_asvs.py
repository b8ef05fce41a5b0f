"""The page about ASVS says what is true: whatever is met names tests, and they are there."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Site

from heldout.server import accounts

HERE = Path(__file__).parents[2]
PAGE = (HERE / "docs" / "standards.md").read_text(encoding="utf-8")
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d", line)
]
KNOWN = {
    name
    for room in ("server", "models", "browser")
    for file in (HERE / "tests" / room).glob("test_*.py")
    for name in (file.name, *re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.MULTILINE))
}


def named_in(text: str) -> list[str]:
    return re.findall(r"`(test_\w+(?:\.py)?)`", text)


def test_every_line_that_says_met_names_a_test() -> None:
    met = [(section, words) for section, state, words in LINES if state == "met"]
    assert len(met) > 40
    for section, words in met:
        functions = [name for name in named_in(words) if not name.endswith(".py")]
        assert functions, f"{section} is met, says the page, and names no test"


@pytest.mark.parametrize("page", ["standards.md", "security.md", "server.md"])
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    text = (HERE / "docs" / page).read_text(encoding="utf-8")
    everywhere = {file.name for file in (HERE / "tests").rglob("test_*.py")}
    assert [name for name in named_in(text) if name not in KNOWN | everywhere] == []


def test_signing_in_changes_and_evaluations_are_in_the_log(opened: Any) -> None:
    site: Site = opened
    link = accounts.new_link(site.service, "bert")
    browser = site.client()
    form = browser.get(f"/sign-in/{link}").text
    token = form.split('name="form_token" value="')[1].split('"')[0]
    browser.post(f"/sign-in/{link}", data={"form_token": token})
    stranger = site.client()
    form = stranger.get("/sign-in").text
    token = form.split('name="form_token" value="')[1].split('"')[0]
    guess = {"form_token": token, "name": "bert", "password": "not the right one"}
    assert stranger.post("/sign-in", data=guess).status_code == 403
    model = site.upload()["id"]
    site.ask({"question": "auc", "epsilon": "1/4"}, artifact=model, key="k").raise_for_status()
    lines = site.client("olga").get("/api/v1/audit").json()
    assert all(line["time"] > 0 for line in lines)
    logged = {(line["person"], line["action"], line["status"]) for line in lines}
    assert logged >= {
        ("bert", "sign in", 200),
        ("bert", "sign in", 403),
        ("carol", "register", 200),
        ("carol", "grant", 200),
        ("ana", "upload", 200),
        ("ana", "evaluate", 200),
    }


def test_sessions_are_long_random_and_new_at_each_sign_in(site: Site) -> None:
    secrets = [
        accounts.sign_in_by_link(site.service, accounts.new_link(site.service, "ana"))
        for _ in range(2)
    ]
    assert len(set(secrets)) == 2
    assert all(re.fullmatch(r"heldout_[A-Za-z0-9_-]{43}", secret) for secret in secrets)


@pytest.mark.parametrize("name", ["", "server.sqlite", "site.py", "..%2fserver.sqlite", "pages"])
def test_only_listed_files_are_served_and_no_folder_is(site: Site, name: str) -> None:
    assert site.client().get(f"/static/{name}").status_code == 404
    assert site.client().get("/static/site.css").status_code == 200
