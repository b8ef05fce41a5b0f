"""The economist's story: a twin, a model, residuals that bend, and a conclusion that holds."""

import csv
import io
import json
import random
from collections.abc import Callable

import numpy as np
import pyarrow
import pyarrow.parquet
from playwright.sync_api import Page, expect
from tests.browser.browsing import ROLES, Live, serious

from heldout.server import datasets
from heldout.server.accounts import SCOPES, Person

AGES, PAYS = (20, 64), (0, 120_000)


def _people(count: int = 6_000) -> dict[str, list[float]]:
    """Make up people whose pay bends with age, and is lower for women."""
    made = random.Random(35)
    age = [made.randint(*AGES) for _ in range(count)]
    female = [int(made.random() < 0.45) for _ in range(count)]
    pay = [
        min(max(2_000 + 3_400 * a - 38 * a * a - 9_000 * f + made.gauss(0, 6_000), 0), PAYS[1])
        for a, f in zip(age, female, strict=True)
    ]
    return {"id": list(range(count)), "age": age, "female": female, "pay": pay}


def _fitted(twin: str, *, square: bool) -> dict[str, float]:
    """Fit pay to age and sex on the twin's rows by least squares."""
    rows = list(csv.DictReader(io.StringIO(twin)))
    age, female, pay = (
        np.array([float(row[name]) for row in rows]) for name in ("age", "female", "pay")
    )
    columns = {"intercept": np.ones(len(rows)), "age": age, "female": female}
    if square:
        columns["age^2"] = age**2
    fit = np.linalg.lstsq(np.column_stack(list(columns.values())), pay, rcond=None)[0]
    return dict(zip(columns, fit.tolist(), strict=True))


def test_an_economist_verifies_a_conclusion_that_was_found_on_made_up_rows(
    live: Live, sign_in: Callable[..., Page]
) -> None:
    pyarrow.parquet.write_table(pyarrow.table(_people()), live.files / "people.parquet")
    carol = Person("carol", ROLES["carol"], "", "browser", SCOPES)
    declaration = {
        "outcome": "pay",
        "bounds": list(PAYS),
        "row_key": "id",
        "features": ["age", "female"],
        "measured": {"values": {"pay": PAYS, "age": AGES, "female": [0, 1]}},
    }
    datasets.register(live.service, carol, name="salaries", source="people.parquet",
                      declaration=declaration, budget="20", facts="Pay by age.")  # fmt: skip
    live.wait(lambda: datasets.find(live.service, "salaries").state == "open")
    datasets.grant(live.service, carol, "salaries", analyst="bert", budget="15")

    custodian = sign_in("carol")
    custodian.goto(f"{live.address}/datasets/salaries")
    publish = custodian.locator("form[action$='/publish']")
    publish.get_by_label("Price (epsilon)").fill("4")
    publish.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    publish.locator("[name='private-twin.whole']").fill("age, female")
    publish.get_by_role("button", name="Pay and publish").click()
    link = "a[href$='.csv'][href*='/published/']"

    bert = sign_in("bert")
    bert.goto(f"{live.address}/datasets/salaries")
    live.wait(lambda: bert.reload() and bert.locator(link).count())
    with bert.expect_download() as download:
        bert.locator(link).click()
    twin = download.value.path().read_text(encoding="utf-8")
    line = _fitted(twin, square=False)
    model = live.files / "pay.json"
    model.write_text(json.dumps(line), encoding="utf-8")

    bert.goto(f"{live.address}/artifacts")
    bert.get_by_label("Choose a file").set_input_files(model)
    bert.get_by_role("button", name="Submit").click()
    bert.get_by_role("link", name="Ask about it on salaries").click()
    _ask_only(bert, "Do the residuals show a pattern?")
    bert.locator("#cost").fill("26")
    _buy(bert)
    expect(bert.locator("body")).to_contain_text("residuals curve", ignore_case=True)
    assert not serious(bert)

    # On the twin's rows a square helps, and the coefficient of sex is below zero.
    bent = _fitted(twin, square=True)
    assert bent["age^2"] < 0
    assert bent["female"] < 0
    bert.goto(f"{live.address}/datasets/salaries/ask")
    _ask_only(bert, "Does this conclusion hold?")
    bert.get_by_role("textbox", name="Claim").fill("coefficient('female') < 0")
    bert.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    bert.locator("[name='conclusion.formula']").fill("pay ~ age + age^2 + female")
    bert.locator("#cost").fill("26")
    _buy(bert)
    expect(bert.locator("body")).to_contain_text("coefficient('female') < 0: holds (probability")
    assert not serious(bert)


def _ask_only(bert: Page, question: str) -> None:
    """Check one question, and no other that the page may have checked first."""
    boxes = bert.locator("input[type=checkbox]:checked")
    for value in boxes.evaluate_all("boxes => boxes.map(box => box.value)"):
        bert.locator(f"input[type=checkbox][value='{value}']").uncheck()
    bert.get_by_label(question).check()


def _buy(bert: Page) -> None:
    expect(bert.locator("#offer .total")).to_be_visible(timeout=30_000)
    bert.get_by_role("button", name="Continue").click()
    bert.get_by_role("button", name="and ask").click()
    expect(bert.get_by_role("link", name="Open the report")).to_be_visible(timeout=60_000)
