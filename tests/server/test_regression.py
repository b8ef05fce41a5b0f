"""Rows with a numeric outcome on the server: registered, asked about, and refused in words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from starlette.datastructures import QueryParams
from tests.chances import louder
from tests.server.clicking import Clicking
from tests.server.conftest import Site, write_rows
from tests.server.test_site import Visitor

from heldout.errors import ArgumentError
from heldout.server import accounts, asking, datasets
from heldout.server.declaration import Declaration

DECLARATION: dict[str, Any] = {
    "outcome": "cost",
    "bounds": [0, 100],
    "row_key": "id",
    "groups": {"sex": ["F", "M"]},
}
RANDOM = np.random.default_rng(5)
ROWS = 3000
AGE, STAY = RANDOM.uniform(0, 10, ROWS), RANDOM.uniform(0, 5, ROWS)
SEX = np.array(["F", "M"])[np.arange(ROWS) % 2]
COST = np.clip(20 + 3 * AGE + 4 * STAY + RANDOM.normal(0, 2, ROWS), 0, 100)
TABLE = {"id": np.arange(ROWS), "age": AGE, "stay": STAY, "sex": SEX, "cost": COST}
LINEAR = {"coefficients": {"age": 3, "stay": 4}, "intercept": 20}
RMSE = "root mean squared error"
AT_ONCE = {"Prefer": "wait=0"}
METRICS = {"question": "regression-metrics", "epsilon": "8"}
PLOT = {"question": "residual-plot", "epsilon": "8"}
BOTH = [METRICS, PLOT]


class Costs(Site):
    """A server whose data set has a numeric outcome."""

    dataset = "costs"

    def answers(self, artifact: str, key: str, *questions: Any) -> Any:
        asked = self.ask(*questions, artifact=artifact, key=key)
        assert asked.status_code in (200, 201, 202), asked.text
        self.work()
        address = f"/api/v1/evaluations/{asked.json()['id']}"
        answer = self.client("ana").get(address, headers={"Prefer": "wait=5"}).json()
        assert answer["state"] == "answered", answer["words"]
        return answer

    def spent(self) -> Any:
        facts = self.client("ana").get("/api/v1/datasets/costs").json()
        return facts["allowance"]["spent"]

    def register_costs(self, path: Path, name: str = "costs", **declared: Any) -> Any:
        body = {"name": name, "source": str(path), "budget": "1000"}
        body |= {"declaration": DECLARATION | declared}
        sent = self.client("carol").post("/api/v1/datasets", json=body, headers=AT_ONCE)
        sent.raise_for_status()
        self.work()
        return self.client("carol").get(f"/api/v1/datasets/{name}").json()


def predictions(numbers: Any) -> bytes:
    lines = [f"{key},{number}" for key, number in enumerate(numbers)]
    return "\n".join(["key,score", *lines]).encode()


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Costs]:
    folder = tmp_path_factory.mktemp("costs")
    site = Costs(folder / "server")
    pyarrow.parquet.write_table(pyarrow.table(TABLE), folder / "costs.parquet")
    facts = site.register_costs(folder / "costs.parquet")
    assert facts["state"] == "open", facts["words"]
    site.grant(name="costs", budget="900")
    site.register(write_rows(folder / "rows.parquet"), budget="9")
    site.grant()
    yield site
    site.service.close()


def test_outcome_and_bounds_are_public_and_the_twin_keeps_to_them(costs: Costs) -> None:
    facts = costs.client("ana").get("/api/v1/datasets/costs").json()
    assert (facts["outcome"], facts["bounds"], facts["label"]) == ("cost", [0, 100], None)
    assert facts["score_range"] == [0, 100]
    assert list(facts["features"]) == ["age", "stay"]
    lines = costs.client("ana").get("/api/v1/datasets/costs/twin.csv").text.splitlines()
    names = lines[0].split(",")
    assert set(names) == set(TABLE)
    cells = [float(line.split(",")[names.index("cost")]) for line in lines[1:]]
    assert 0 <= min(cells) < max(cells) <= 100
    binary = costs.client("ana").get("/api/v1/datasets/readmissions").json()
    assert (binary["outcome"], binary["bounds"]) == (None, None)
    assert (binary["label"], binary["score_range"]) == ("readmitted", [0, 1])


def check_fit(metrics: Any, plot: Any) -> None:
    assert metrics["measures"][RMSE]["value"] == pytest.approx(2, abs=0.5)
    assert metrics["measures"]["R squared"]["value"] > 0.8
    assert "verdict" in plot


@pytest.mark.chance(1e-8, "half a unit off: the noise interval at 1 - 1e-8 is narrower")
def test_predictions_by_key_are_asked_about(costs: Costs) -> None:
    sent = costs.send_file("fit.csv", predictions(20 + 3 * AGE + 4 * STAY), "text/csv")
    assert sent["state"] == "ready", sent["words"]
    answer = costs.answers(sent["id"], "predictions", *BOTH)
    check_fit(*answer["answers"])
    assert answer["receipt"]["charge"] == {"epsilon": "16", "delta": "0"}
    page = costs.client("ana").get(f"/api/v1/reports/{answer['id']}.html")
    assert (page.status_code, "heldout-statement" in page.text) == (200, True)
    assert "<svg" in page.text
    assert RMSE in page.text.lower()


@pytest.mark.chance(1e-8, "half a unit off: the noise interval at 1 - 1e-8 is narrower")
def test_a_linear_model_with_the_identity_link_is_asked_about(costs: Costs) -> None:
    model = costs.upload(LINEAR)
    assert model["state"] == "ready", model["words"]
    check_fit(*costs.answers(model["id"], "linear", *BOTH)["answers"])


@pytest.mark.chance(1e-8, "half a unit off: the noise interval at 1 - 1e-8 is narrower")
def test_an_onnx_regressor_is_asked_about(costs: Costs) -> None:
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    from sklearn.ensemble import GradientBoostingRegressor

    features = np.column_stack([AGE, STAY]).astype("float32")
    fitted = GradientBoostingRegressor(n_estimators=60).fit(features, COST)
    content = to_onnx(fitted, features[:1]).SerializeToString()
    model = costs.send_file("fit.onnx", content, "application/onnx")
    assert model["state"] == "ready", model["words"]
    check_fit(*costs.answers(model["id"], "onnx", *BOTH)["answers"])


@pytest.mark.chance(2e-8, "squares are 25 apart, and two noises have a scale of 1.24 at most")
def test_residuals_are_asked_about_by_group(costs: Costs) -> None:
    worse = 20 + 3 * AGE + 4 * STAY + np.where(SEX == "F", 5, 0)
    sent = costs.send_file("worse.csv", predictions(worse), "text/csv")
    by_sex = [question | {"by": "sex"} for question in BOTH]
    metrics, plots = costs.answers(sent["id"], "groups", *by_sex)["answers"]
    assert set(metrics["groups"]) == set(plots["groups"]) == {"F", "M", "other"}
    rmse = {name: group[RMSE]["value"] for name, group in metrics["groups"].items()}
    assert rmse["F"] > rmse["M"]


@pytest.mark.chance(louder(0, 6, 20))
def test_numbers_far_off_count_as_the_nearer_bound_and_change_no_state(costs: Costs) -> None:
    far = np.where(np.arange(ROWS) < 20, 1e300, 20 + 3 * AGE + 4 * STAY)
    sent = costs.send_file("far.csv", predictions(far), "text/csv")
    costs.answers(sent["id"], "far", METRICS)
    steep = costs.upload({"coefficients": {"age": 1e308, "stay": 1e308}, "link": "identity"})
    costs.answers(steep["id"], "steep", METRICS)
    few = costs.send_file("few.csv", predictions([50.0]), "text/csv")
    [metrics] = costs.answers(few["id"], "few", METRICS)["answers"]
    spread = float(np.sqrt(np.mean((COST - 50) ** 2)))
    assert metrics["measures"][RMSE]["value"] == pytest.approx(spread, rel=0.3)


@pytest.mark.parametrize("question", ["auc", "curves", "brier", "class-auc", "compare"])
def test_questions_about_a_label_are_refused_with_what_they_need(
    costs: Costs, question: str
) -> None:
    before = costs.spent()
    asked = {"question": question, "epsilon": "1"}
    asked |= {"score": "rival"} if question == "compare" else {}
    body = {"dataset": "costs", "questions": [asked]}
    answer = costs.client("ana").post("/api/v1/quotes", json=body)
    assert answer.status_code == 422
    assert "cannot be asked of these rows" in answer.json()["detail"]
    assert "needs rows with" in answer.json()["detail"]
    assert costs.spent() == before


def test_the_data_set_says_which_questions_it_can_answer(costs: Costs) -> None:
    facts = costs.client("ana").get("/api/v1/datasets/costs").json()
    can = {each["question"] for each in facts["questions"] if each["why_not"] is None}
    assert can == {"residual-plot", "regression-metrics"}
    binary = costs.client("ana").get("/api/v1/datasets/readmissions").json()
    cannot = {each["question"]: each["why_not"] for each in binary["questions"]}
    assert "observed and a predicted number" in cannot["residual-plot"]


def test_the_page_begins_with_a_question_that_one_model_answers(costs: Costs) -> None:
    wish = asking.Wish.of(QueryParams(""), datasets.find(costs.service, "costs"))
    assert len(wish.ticked) == 1
    assert not wish.compares
    assert not wish.takes_copy


def test_models_with_several_numbers_and_boards_are_refused(costs: Costs) -> None:
    lines = [f"{key},1,2" for key in range(ROWS)]
    sent = costs.send_file("two.csv", "\n".join(["key,a,b", *lines]).encode(), "text/csv")
    refused = costs.ask(METRICS, artifact=sent["id"], key="two")
    assert (refused.status_code, "one number" in refused.json()["detail"]) == (422, True)
    terms = {"metric": "accuracy", "epsilon": "1", "submissions": 10, "improvements": 2}
    board = {"name": "race", "dataset": "costs", "terms": terms}
    answer = costs.client("carol").post("/api/v1/boards", json=board)
    assert (answer.status_code, "is a number" in answer.text) == (422, True), answer.text


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"label": "cost"}, "label must be left out where outcome is declared"),
        ({"classes": ["a", "b"]}, "classes must be left out where outcome is declared"),
        ({"positive": "a"}, "positive must be left out"),
        ({"prevalence": 0.2}, "prevalence must be left out"),
        ({"score_range": [0, 5]}, "score_range must be left out"),
        ({"bounds": None}, "outcome and bounds must be declared together"),
        ({"bounds": [5, 5]}, "bounds must be two numbers, the lower first"),
        ({"bounds": [0, "x"]}, "bounds must be two numbers, the lower first"),
        ({"outcome": None}, "must name the column label, or outcome"),
        ({"outcome": None, "label": "y"}, "outcome and bounds must be declared together"),
        ({"default": 101}, "default must be a score within bounds"),
    ],
)
def test_what_cannot_be_declared_is_refused(declared: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Declaration.of(DECLARATION | declared)


def test_an_outcome_that_is_no_number_is_told_to_its_custodian(
    costs: Costs, tmp_path: Path
) -> None:
    table = TABLE | {"cost": np.array(["much"] * ROWS)}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "texts.parquet")
    facts = costs.register_costs(tmp_path / "texts.parquet", "texts", new=True)
    assert facts["state"] == "refused"
    assert "observed 'cost' must be a number" in facts["words"]


def test_pages_register_a_numeric_outcome_and_sell_its_questions(
    costs: Costs, tmp_path: Path
) -> None:
    def visit(name: str) -> Visitor:
        browser = Visitor(costs.app, raise_server_exceptions=False)
        address = f"/sign-in/{accounts.new_link(costs.service, name)}"
        browser.fill(address, seen=address).raise_for_status()
        return browser

    pyarrow.parquet.write_table(pyarrow.table(TABLE), tmp_path / "again.parquet")
    carol = Clicking(costs)
    outcome = {"label": "cost", "sort": "number", "bound_low": "0", "bound_high": "100"}
    registered = carol.all_steps(
        tmp_path / "again.parquet",
        "by-form",
        outcome=outcome,
        rows={"row_key": "id"},
        spend={"new": "yes"},
    )
    assert registered["state"] == "open", registered["words"]
    assert "a number from 0 to 100" in carol.browser.get("/datasets/by-form").text
    carol.begin()
    carol.choose(kind="path", path=str(tmp_path / "again.parquet"))
    wrong = carol.send("outcome", **outcome | {"bound_high": ""})
    assert (wrong.status_code, "The upper bound must be a number" in wrong.text) == (422, True)

    ana = visit("ana")
    ask = ana.get("/datasets/costs/ask").text
    assert "Do the residuals show a pattern?" in ask
    assert "How far are its predictions off?" in ask
    assert "Positive rows" not in ask
    assert 'placeholder="5.0"' in ask, "the scale comes from the bounds"
    assert "±0.1 " in ask, "widths are in the unit of the outcome"
    sent = costs.send_file("page.csv", predictions(20 + 3 * AGE + 4 * STAY), "text/csv")
    both = "question=residual-plot&question=regression-metrics&group=sex"
    dragged = ana.get(f"/datasets/costs/ask?artifact={sent['id']}&by=exact&exact=3&{both}")
    assert dragged.status_code == 200
    assert "standard deviation is 1 times the scale" in dragged.text
    chosen = f"artifact={sent['id']}&by=price&cost=25&{both}"
    shown = ana.get(f"/datasets/costs/confirm?{chosen}")
    assert shown.status_code == 200
    quote = shown.text.split('name="quote" value="')[1].split('"')[0]
    key = shown.text.split('name="key" value="')[1].split('"')[0]
    paid = ana.fill(
        "/evaluations",
        seen=f"/datasets/costs/confirm?{chosen}",
        quote=quote,
        key=key,
        artifact=sent["id"],
    )
    costs.work()
    waited = costs.client("ana").get(f"/api/v1{paid.url.path}", headers={"Prefer": "wait=5"})
    assert waited.json()["state"] == "answered", waited.json()["words"]
    assert {question["scale"] for question in waited.json()["questions"]} == {5.0}
    done = ana.get(paid.url.path).text
    assert "Do the residuals show a pattern?" in done
    assert "<svg" in done
