"""One story: rows are registered, models submitted, answers paid for, until nothing is left."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect
from tests.browser.browsing import Live, Watch

PASSWORD = "a sentence will do"


def test_from_the_first_link_to_the_last_epsilon(
    live: Live, watch: Watch, sign_in: Callable[..., Page]
) -> None:
    link = _administrator_adds_an_analyst(sign_in("adam"))
    carol = sign_in("carol")
    _custodian_registers(carol)
    _custodian_grants(carol, "nora", "13")

    nora = watch.page()
    nora.goto(link)
    nora.get_by_role("button", name="Sign in as nora").click()
    _sets_a_password_and_comes_back(nora, live)
    _a_refused_model_is_explained(nora, live)
    _a_model_is_dropped(nora, live, "admission.json")
    first = _asks(nora, "Pay epsilon 6 and ask")
    _reads(nora, live, first)
    _a_model_is_dropped(nora, live, "laboratory.json")
    _asks(nora, "Pay epsilon 6 and ask")
    _compares(nora, live)
    _is_refused(nora, live)

    carol.goto(f"{live.address}/datasets/readmissions")
    expect(carol.get_by_role("region", name="By analyst")).to_contain_text("nora")
    expect(carol.get_by_role("region", name="By model")).to_contain_text("laboratory.json")
    expect(carol.locator("svg[aria-label^='Spending over time']")).to_be_visible()
    _custodian_revokes(carol)
    _auditor_verifies(sign_in("olga"))


def _administrator_adds_an_analyst(adam: Page) -> str:
    adam.get_by_label("Name").fill("nora")
    adam.get_by_label("Role").select_option("analyst")
    adam.get_by_role("button", name="Add and make a link").click()
    return str(adam.locator(".secret").inner_text())


def _custodian_registers(carol: Page) -> None:
    carol.get_by_role("link", name="Register", exact=True).click()
    carol.get_by_role("button", name="Begin").click()
    carol.get_by_label("File", exact=True).select_option("readmissions.parquet")
    carol.get_by_role("button", name="Read its columns").click()
    # A wrong column is explained, and the forms come back as they were filled in.
    carol.get_by_label("Column that models predict").select_option("age")
    _picks_rows(carol, "encounter_id")
    expect(carol.get_by_role("alert")).to_contain_text("age")
    carol.get_by_role("button", name="Register it again").click()
    expect(carol.get_by_label("Column that models predict")).to_have_value("age")
    carol.get_by_label("Column that models predict").select_option("readmitted")
    _picks_rows(carol, "encounter_id", second_budget=True)
    expect(carol.get_by_role("heading", name="Allowances")).to_be_visible(timeout=30_000)


def _picks_rows(carol: Page, key: str, *, second_budget: bool = False) -> None:
    carol.get_by_role("button", name="Continue").click()
    carol.get_by_label("Column that names a row").select_option(key)
    carol.get_by_label("Column that names a person").select_option("patient_id")
    carol.get_by_label("Rows of one person that count").fill("3")
    carol.get_by_label("About how many rows").fill("5000")
    carol.get_by_role("button", name="Continue").click()
    expect(carol.get_by_label("A model may see creatinine")).to_be_checked()
    for name in ("age", "readmitted"):  # whichever of them is no outcome
        if carol.get_by_label(f"A model may see {name}").count():
            carol.get_by_label(f"A model may see {name}").set_checked(name == "age")
    carol.get_by_role("button", name="Continue").click()
    carol.get_by_label("Name", exact=True).fill("readmissions")
    carol.get_by_label("What analysts should know").fill("Made-up stays.")
    carol.get_by_label("Budget (epsilon)").fill("30")
    if second_budget:
        carol.get_by_text("Some of these people are registered here already").click()
        carol.get_by_label("Give them a second budget").check()
    carol.get_by_role("button", name="Register", exact=True).click()


def _custodian_grants(carol: Page, analyst: str, budget: str) -> None:
    carol.locator("select[name=analyst]").select_option(analyst)
    carol.get_by_role("textbox", name="Epsilon", exact=True).fill(budget)
    carol.get_by_role("button", name="Grant").click()
    expect(carol.get_by_role("status")).to_contain_text("granted")
    expect(carol.locator(".scroll[aria-label=Allowances]")).to_contain_text(analyst)


def _sets_a_password_and_comes_back(nora: Page, live: Live) -> None:
    nora.get_by_role("link", name="nora").click()
    nora.get_by_label("New password").fill(PASSWORD)
    nora.get_by_label("The same again").fill(PASSWORD)
    nora.get_by_role("button", name="Set the password").click()
    nora.get_by_role("button", name="Sign out").click()
    nora.get_by_label("Name").fill("nora")
    nora.get_by_label("Password").fill("not this one, surely")
    nora.get_by_role("button", name="Sign in").click()
    expect(nora.get_by_role("alert")).to_contain_text("Name, password or code is wrong")
    nora.get_by_label("Password").fill(PASSWORD)
    nora.get_by_role("button", name="Sign in").click()
    expect(nora.get_by_role("heading", name="readmissions")).to_be_visible()


def _a_refused_model_is_explained(nora: Page, live: Live) -> None:
    nora.get_by_role("link", name="Models").click()
    nora.get_by_label("Choose a file").set_input_files(live.files / "mixing.onnx")
    nora.get_by_role("button", name="Submit").click()
    found = nora.locator("#state")
    expect(found).to_contain_text("it mixes rows")
    expect(found).to_contain_text("Work along the features")
    expect(found).to_contain_text("nothing was charged")


def _a_model_is_dropped(nora: Page, live: Live, name: str) -> None:
    nora.goto(f"{live.address}/artifacts")
    content = (live.files / name).read_text(encoding="utf-8")
    dropped = nora.evaluate_handle(
        """([name, content]) => {
            const carried = new DataTransfer();
            carried.items.add(new File([content], name));
            return carried;
        }""",
        [name, content],
    )
    nora.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
    nora.get_by_role("button", name="Submit").click()
    nora.get_by_role("link", name="Ask about it on readmissions").click()


def _asks(nora: Page, button: str) -> str:
    """Drags both sliders, watches the price, confirms and pays; the address of the answer."""
    offer = nora.locator("#offer")
    total = offer.locator(".total")
    expect(nora.get_by_label("How well does it rank?")).to_be_checked()
    nora.get_by_label("How well does it rank?").uncheck()
    expect(offer).to_contain_text("Tick a question")
    nora.get_by_label("Are its probabilities right?").check()
    nora.locator("#exact").fill("2")
    expect(nora.locator("output[for=exact]")).to_have_text("±0.1")
    expect(offer).to_have_attribute("data-exact", "2", timeout=30_000)
    rough = _price(total)
    nora.locator("#exact").fill("6")
    expect(offer).to_have_attribute("data-exact", "6", timeout=30_000)
    assert float(_price(total)) > float(rough)
    # Dear enough that noise does not hide the curves, which would then not be drawn.
    nora.locator("#cost").fill("28")
    expect(nora.get_by_label("I choose the price")).to_be_checked()
    expect(total).to_have_text("epsilon 6")
    expect(offer).to_contain_text("left of 13")
    nora.get_by_label("What do its curves look like?").check()
    expect(offer).to_contain_text("AUC of the curve", timeout=30_000)
    # The slider that nobody dragged went to where the price puts it.
    assert int(nora.locator("#exact").input_value()) > 6
    nora.get_by_role("button", name="Continue").click()
    expect(nora.get_by_text("Left after it")).to_be_visible()
    nora.get_by_role("button", name=button).click()
    expect(nora.get_by_role("link", name="Open the report")).to_be_visible(timeout=30_000)
    return nora.url


def _price(total: Any) -> str:
    return str(total.inner_text()).removeprefix("epsilon ")


def _reads(nora: Page, live: Live, address: str) -> None:
    expect(nora.locator("svg[aria-label^='ROC curve']")).to_be_visible()
    expect(nora.get_by_text("Receipt", exact=True)).to_be_visible()
    with nora.expect_download() as saved:
        nora.get_by_role("link", name="Download it").click()
    _verified(live, saved.value.path(), "admission.json")
    nora.get_by_role("link", name="Open the report").click()
    expect(nora.get_by_role("heading", level=1)).to_contain_text("readmissions")
    assert nora.url == f"{address}/report.html"


def _verified(live: Live, report: Path, model: str) -> None:
    """The command says that the page is this server's, and about this model and no other."""
    page = live.files / "report.html"
    page.write_bytes(report.read_bytes())
    key = live.service.settings.folder / "signing.pub"
    verify = [sys.executable, "-m", "heldout", "verify", page, "--server-key", key]

    def run(file: Path) -> subprocess.CompletedProcess[str]:
        command = [*verify, "--model", file]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    ours = run(live.files / model)
    assert ours.returncode == 0, ours.stderr
    assert model in ours.stdout
    assert run(live.files / "laboratory.json").returncode != 0


def _compares(nora: Page, live: Live) -> None:
    nora.get_by_role("link", name="Compare", exact=True).click()
    curves = nora.locator("svg[aria-label^='ROC curves']")
    expect(curves).to_contain_text("admission.json")
    expect(curves).to_contain_text("laboratory.json")
    nora.locator("select[name=measure]").select_option("Brier score")
    nora.get_by_role("button", name="Show").click()
    found = nora.get_by_role("region", name="Brier score of your models")
    expect(found.get_by_role("row")).to_have_count(3)


def _is_refused(nora: Page, live: Live) -> None:
    nora.goto(f"{live.address}/datasets/readmissions/ask")
    expect(nora.locator("#offer")).to_contain_text("epsilon 1 left of 13")
    nora.locator("#cost").fill("25")
    expect(nora.locator("#offer")).to_contain_text("It costs more than is left")
    expect(nora.get_by_role("button", name="Continue")).to_be_disabled()


def _custodian_revokes(carol: Page) -> None:
    carol.get_by_text("Revoke the allowance of nora").click()
    carol.get_by_role("button", name="Revoke", exact=True).click()
    expect(carol.get_by_role("status")).to_contain_text("revoked")


def _auditor_verifies(olga: Page) -> None:
    olga.get_by_role("link", name="Ledger", exact=True).click()
    olga.get_by_role("button", name="Verify the chain").click()
    expect(olga.get_by_role("status")).to_contain_text("Every entry is as it was written")
    olga.get_by_role("link", name="Log", exact=True).click()
    expect(olga.locator(".scroll[aria-label=Log]")).to_contain_text("grant")
