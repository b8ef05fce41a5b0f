"""The economist's story: a twin, a model, residuals that bend, and a conclusion that holds."""

import csv
import io
import json
import random
from collections.abc import Callable

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


def _straight_line(twin: str) -> dict[str, float]:
    """Return a model of the twin's columns: it is made of the declaration, so a guess does."""
    rows = list(csv.DictReader(io.StringIO(twin)))
    assert rows
    assert {"age", "female"} <= set(rows[0])
    return {"intercept": 30_000.0, "age": 500.0, "female": -5_000.0}


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

    bert = sign_in("bert")
    bert.goto(f"{live.address}/datasets/salaries")
    twin = bert.request.get(f"{live.address}/datasets/salaries/twin.csv").text()
    model = live.files / "pay.json"
    model.write_text(json.dumps(_straight_line(twin)), encoding="utf-8")

    bert.goto(f"{live.address}/artifacts")
    bert.get_by_label("Choose a file").set_input_files(model)
    bert.get_by_role("button", name="Submit").click()
    bert.get_by_role("link", name="Ask about it on salaries").click()
    _ask_only(bert, "Do the residuals show a pattern?")
    bert.locator("#cost").fill("26")
    _buy(bert)
    expect(bert.locator("body")).to_contain_text("residuals curve")
    assert not serious(bert)

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
