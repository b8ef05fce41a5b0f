"""Whole stories by clicks: a regression and groups, from registration to a verified report.

The classifier's story is in test_story.py.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
from playwright.sync_api import Page, expect
from tests.browser.browsing import Live, serious

from heldout.server.signing import Genuine

SITES = ("north", "south", "east")


def _register(carol: Page, live: Live, file: str, name: str, outcome: Callable[[], None]) -> None:
    """Register rows whose key is `id`; every other column is a feature, and `site` has groups."""
    carol.goto(f"{live.address}/register")
    begin = carol.get_by_role("button", name="Begin")
    begin.click()
    carol.get_by_label("File", exact=True).select_option(file)
    carol.get_by_role("button", name="Read its columns").click()
    outcome()
    assert not serious(carol)
    carol.get_by_role("button", name="Continue").click()
    carol.get_by_label("Column that names a row").select_option("id")
    carol.get_by_role("button", name="Continue").click()
    carol.get_by_label("age from").fill("18")
    carol.get_by_label("age to").fill("90")
    carol.get_by_label("Values of site").fill(", ".join(SITES))
    carol.get_by_label("Compare the groups of site").check()
    carol.get_by_label("A model may see site").uncheck()
    assert not serious(carol)
    carol.get_by_role("button", name="Continue").click()
    carol.get_by_label("Name", exact=True).fill(name)
    carol.get_by_label("Budget (epsilon)").fill("20")
    carol.get_by_role("button", name="Register", exact=True).click()
    expect(carol.get_by_role("heading", name="Allowances")).to_be_visible(timeout=30_000)
    twin = carol.get_by_role("region", name="Made-up rows")
    expect(twin).to_contain_text("north")
    carol.locator("select[name=analyst]").select_option("bert")
    carol.get_by_role("textbox", name="Epsilon", exact=True).fill("15")
    carol.get_by_role("button", name="Grant").click()
    expect(carol.get_by_role("status")).to_contain_text("granted")


def _submit(bert: Page, live: Live, file: Path, dataset: str) -> None:
    bert.goto(f"{live.address}/artifacts")
    bert.get_by_label("Choose a file").set_input_files(file)
    bert.get_by_role("button", name="Submit").click()
    bert.get_by_role("link", name=f"Ask about it on {dataset}").click()


def _buy(bert: Page) -> None:
    expect(bert.locator("#offer .total")).to_be_visible(timeout=30_000)
    bert.get_by_role("button", name="Continue").click()
    bert.get_by_role("button", name="and ask").click()
    expect(bert.get_by_role("link", name="Open the report")).to_be_visible(timeout=60_000)


def _verified(bert: Page, live: Live, model: Path) -> str:
    """Download the report, check it against the server's key, and that it names the model."""
    with bert.expect_download() as saved:
        bert.get_by_role("link", name="Download it").click()
    text = str(saved.value.path().read_text(encoding="utf-8"))
    key = (live.service.settings.folder / "signing.pub").read_text(encoding="ascii")
    verified = Genuine.in_page(text, key=key)
    assert model.name in text
    assert verified.check_model(model)
    return text


def _rows(count: int = 900) -> dict[str, list[object]]:
    ages = [18 + 7 * at % 70 for at in range(count)]
    stays = [1.0 + at % 11 for at in range(count)]
    return {
        "id": [f"r{at}" for at in range(count)],
        "age": list(ages),
        "stay": list(stays),
        "site": [SITES[at % 3] for at in range(count)],
        "cost": [20 + 0.5 * age + 2 * stay for age, stay in zip(ages, stays, strict=True)],
        "died": [int(age + 3 * stay > 80) for age, stay in zip(ages, stays, strict=True)],
    }


def test_a_regression_from_registration_by_clicks_to_a_verified_report(
    live: Live, sign_in: Callable[..., Page]
) -> None:
    table = pyarrow.table(_rows()).drop_columns(["died"])
    pyarrow.parquet.write_table(table, live.files / "costs.parquet")
    model = live.files / "fit.json"
    model.write_text(json.dumps({"intercept": 25, "age": 0.4, "stay": 2.5}), encoding="utf-8")
    carol = sign_in("carol")

    def outcome() -> None:
        carol.get_by_label("Column that models predict").select_option("cost")
        carol.get_by_label("A number", exact=True).check()
        carol.get_by_label("Lower bound").fill("0")
        carol.get_by_label("Upper bound").fill("100")

    _register(carol, live, "costs.parquet", "costs", outcome)
    bert = sign_in("bert")
    _submit(bert, live, model, "costs")
    bert.get_by_label("How far are its predictions off?").check()
    bert.get_by_label("Do the residuals show a pattern?").check()
    bert.locator("#cost").fill("26")
    _buy(bert)
    expect(bert.locator("svg").first).to_be_visible()
    assert not serious(bert)
    _verified(bert, live, model)


def test_groups_from_registration_by_clicks_to_a_verified_report(
    live: Live, sign_in: Callable[..., Page]
) -> None:
    rows = _rows()
    rows["id"] = [f"g{at}" for at in range(len(rows["id"]))]
    table = pyarrow.table(rows).drop_columns(["cost"])
    pyarrow.parquet.write_table(table, live.files / "sites.parquet")
    model = live.files / "risk.json"
    weights = {"coefficients": {"age": 0.1, "stay": 0.3}, "intercept": -8, "link": "logit"}
    model.write_text(json.dumps(weights), encoding="utf-8")
    carol = sign_in("carol")

    def outcome() -> None:
        carol.get_by_label("Column that models predict").select_option("died")

    _register(carol, live, "sites.parquet", "sites", outcome)
    bert = sign_in("bert")
    _submit(bert, live, model, "sites")
    bert.get_by_label("How well does it rank?").uncheck()
    bert.get_by_label("How often is it right?").check()
    bert.locator("#group").select_option("site")
    bert.locator("#cost").fill("26")
    _buy(bert)
    for site in SITES:
        expect(bert.locator("svg").first).to_contain_text(f"site: {site}")
    assert not serious(bert)
    _verified(bert, live, model)
