"""Rows of more than two classes on the server: registered, asked about, and refused in words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.chances import louder
from tests.server.clicking import Clicking
from tests.server.conftest import LINEAR, Site, write_rows
from tests.server.test_site import Visitor

from heldout.errors import ArgumentError
from heldout.server import accounts
from heldout.server.declaration import Declaration

CLASSES = ["c", "a", "b"]
DECLARATION = {"label": "species", "row_key": "id", "classes": CLASSES, "groups": {"sex": [0, 1]}}
RANDOM = np.random.default_rng(3)
PLACE = RANDOM.integers(0, 3, 600)
TRUTH = np.array(CLASSES)[PLACE]
FEATURES = RANDOM.normal(0, 0.4, (600, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[PLACE]
TABLE = {
    "id": np.arange(600),
    "x": FEATURES[:, 0],
    "z": FEATURES[:, 1],
    "sex": np.arange(600) % 2,
    "species": TRUTH,
}
AT_ONCE = {"Prefer": "wait=0"}
FULL = [
    {"question": "class-confusion", "epsilon": "4"},
    {"question": "class-auc", "epsilon": "6"},
    {"question": "top-k", "epsilon": "1"},
    {"question": "brier", "epsilon": "1"},
    {"question": "class-confusion", "epsilon": "1", "by": "sex"},
    {"question": "class-average-precision", "epsilon": "1"},
    {"question": "report", "epsilon": "1"},
]


class Flowers(Site):
    """A server whose data set has three classes."""

    dataset = "flowers"

    def told(self, artifact: str, key: str, *questions: Any) -> Any:
        asked = self.ask(*questions, artifact=artifact, key=key)
        assert asked.status_code in (200, 201, 202), asked.text
        self.work()
        wait = {"Prefer": "wait=5"}
        return self.client("ana").get(f"/api/v1/evaluations/{asked.json()['id']}", headers=wait)


def predictions(*names: str) -> bytes:
    """The right class of each row has the highest score, under these names in their order."""
    lines = [f"key,{','.join(names)}"]
    for key, truth in enumerate(TRUTH):
        lines.append(f"{key},{','.join('0.8' if each == truth else '0.1' for each in names)}")
    return "\n".join(lines).encode()


@pytest.fixture(scope="module")
def flowers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flowers]:
    folder = tmp_path_factory.mktemp("classes")
    found = Flowers(folder / "server")
    pyarrow.parquet.write_table(pyarrow.table(TABLE), folder / "flowers.parquet")
    body: dict[str, Any] = {
        "source": str(folder / "flowers.parquet"),
        "declaration": DECLARATION,
        "budget": "100",
    }
    body["name"] = "flowers"
    sent = found.client("carol").post("/api/v1/datasets", json=body, headers=AT_ONCE)
    sent.raise_for_status()
    found.work()
    found.grant(name="flowers", budget="90")
    found.register(write_rows(folder / "rows.parquet"), budget="9")
    found.grant()
    yield found
    found.service.close()


def test_the_classes_are_public_and_the_twin_has_them(flowers: Flowers) -> None:
    facts = flowers.client("ana").get("/api/v1/datasets/flowers").json()
    assert (facts["state"], facts["classes"]) == ("open", CLASSES)
    assert list(facts["features"]) == ["x", "z"]
    lines = flowers.client("ana").get("/api/v1/datasets/flowers/twin.csv").text.splitlines()
    names = lines[0].split(",")
    assert set(names) == set(TABLE)
    assert {line.split(",")[names.index("species")] for line in lines[1:]} == set(CLASSES)
    binary = flowers.client("ana").get("/api/v1/datasets/readmissions").json()
    assert binary["classes"] is None


@pytest.mark.chance(louder(0, 6, 20))
def test_a_model_with_a_score_for_each_class_is_judged_by_their_names(flowers: Flowers) -> None:
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(FEATURES.astype("float32"), TRUTH)
    content = to_onnx(fitted, FEATURES[:1].astype("float32"), options={"zipmap": False})
    model = flowers.send_file("model.onnx", content.SerializeToString(), "application/onnx")
    assert model["state"] == "ready", model["words"]
    answer = flowers.told(model["id"], "model", *FULL).json()
    assert answer["state"] == "answered", answer["words"]
    cells, areas, ranks, brier, by_sex, _, report = answer["answers"]
    assert cells["measures"]["accuracy"]["value"] > 0.9, "not by the order of the columns"
    assert np.asarray(cells["matrix"]).shape == (3, 3)
    assert areas["measures"]["macro AUC"]["value"] > 0.9
    assert ranks["measures"]["top-2 accuracy"]["value"] > 0.9
    assert brier["value"] < 0.5
    assert set(by_sex["groups"]) == {"0", "1", "other"}
    assert set(report["releases"]) == {
        "class-confusion",
        "class-auc",
        "top-k",
        "brier",
    }
    page = flowers.client("ana").get(f"/api/v1/reports/{answer['id']}.html")
    assert (page.status_code, "heldout-statement" in page.text) == (200, True)


@pytest.mark.chance(louder(0, 6, 20))
@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "a", "b")])
def test_predictions_have_a_column_for_each_class(flowers: Flowers, names: Any) -> None:
    sent = flowers.send_file("said.csv", predictions(*names), "text/csv")
    assert sent["state"] == "ready", sent["words"]
    answer = flowers.told(sent["id"], "-".join(names), FULL[0]).json()
    assert answer["answers"][0]["measures"]["accuracy"]["value"] > 0.95


def test_scores_that_do_not_fit_the_classes_are_refused_before_any_work(flowers: Flowers) -> None:
    linear = flowers.upload(LINEAR)
    one = flowers.ask(FULL[0], artifact=linear["id"], key="one")
    assert one.status_code == 422
    assert "It gives 1 score for a row, and the data set has 3 classes" in one.json()["detail"]
    other = flowers.send_file("other.csv", predictions("a", "b", "d"), "text/csv")
    strange = flowers.ask(FULL[0], artifact=other["id"], key="strange")
    assert "Its classes are 'a', 'b', 'd'" in strange.json()["detail"]
    several = flowers.send_file("several.csv", predictions("a", "b", "c"), "text/csv")
    area = {"question": "auc", "epsilon": "1"}
    binary = flowers.ask(area, artifact=several["id"], key="several", of="readmissions")
    assert binary.status_code == 422
    assert "It has 3 scores for a row" in binary.json()["detail"]


@pytest.mark.parametrize("question", ["auc", "curves", "compare", "ndcg"])
def test_questions_of_two_classes_are_refused(flowers: Flowers, question: str) -> None:
    asked = {"question": question, "epsilon": "1"}
    asked |= {"score": "rival"} if question == "compare" else {}
    body = {"dataset": "flowers", "questions": [asked]}
    answer = flowers.client("ana").post("/api/v1/quotes", json=body)
    assert answer.status_code == 422
    assert "cannot be asked of these rows" in answer.json()["detail"]


def test_questions_of_classes_are_refused_of_two_classes_and_boards_by_errors_of_several(
    flowers: Flowers,
) -> None:
    body = {"dataset": "readmissions", "questions": [FULL[0]]}
    answer = flowers.client("ana").post("/api/v1/quotes", json=body)
    assert "cannot be asked of these rows" in answer.json()["detail"]
    terms = {"metric": "brier", "price": "4", "submissions": 10, "improvements": 2}
    board = {"name": "race", "dataset": "flowers", "terms": terms}
    refused = flowers.client("carol").post("/api/v1/boards", json=board)
    assert (refused.status_code, "several classes" in refused.text) == (422, True), refused.text


def wrong_in(share: int) -> bytes:
    """Predictions that are wrong of every so manieth row."""
    lines = ["key,a,b,c"]
    for key, truth in enumerate(TRUTH):
        said = "abc"["abc".index(truth) - (key % share == 0)]
        lines.append(f"{key},{','.join('0.8' if each == said else '0.1' for each in 'abc')}")
    return "\n".join(lines).encode()


@pytest.mark.chance(louder(0, 6, 20))
def test_two_models_of_several_classes_are_compared_and_stand_on_a_board(flowers: Flowers) -> None:
    first = flowers.send_file("first.csv", wrong_in(2), "text/csv")
    second = flowers.send_file("second.csv", wrong_in(5), "text/csv")
    asked = {"question": "class-compare", "epsilon": "4", "score": "rival"}
    alone = flowers.ask(asked, artifact=first["id"], key="alone")
    assert (alone.status_code, "A comparison needs rival" in alone.text) == (422, True)
    body = {"dataset": "flowers", "artifact": first["id"], "questions": [asked]}
    body["rival"] = second["id"]
    quote = flowers.client("ana").post("/api/v1/quotes", json=body | {"rival": None})
    assert quote.status_code == 200, quote.text
    headers = {"Idempotency-Key": "both"}
    sent = flowers.client("ana").post("/api/v1/evaluations", json=body, headers=headers)
    flowers.work()
    address = f"/api/v1/evaluations/{sent.json()['id']}"
    answer = flowers.client("ana").get(address, headers={"Prefer": "wait=5"}).json()
    assert answer["state"] == "answered", answer["words"]
    release = answer["answers"][0]
    assert release["value"] == pytest.approx(0.3, abs=0.1)
    assert release["finding"].startswith("second.csv has a better accuracy than first.csv")
    page = flowers.client("ana").get(f"/api/v1/reports/{answer['id']}.html")
    assert "second.csv" in page.text
    terms = {"metric": "accuracy", "price": "8", "submissions": 10, "improvements": 2}
    board = {"name": "race", "dataset": "flowers", "terms": terms}
    opened = flowers.client("carol").post("/api/v1/boards", json=board)
    assert opened.status_code in (200, 201, 202), opened.text
    flowers.work()
    for model, title in ((second, "good"), (first, "worse")):
        submission = {"artifact": model["id"], "title": title}
        headers = {"Idempotency-Key": title}
        sent = flowers.client("ana").post(
            "/api/v1/boards/race/submissions", json=submission, headers=headers
        )
        assert sent.status_code in (200, 201, 202), sent.text
        flowers.work()
    shown = flowers.client("ana").get("/api/v1/boards/race", headers={"Prefer": "wait=5"}).json()
    assert [each["title"] for each in shown["shown"]] == ["good"]
    assert shown["best"] == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"positive": "a"}, "positive must be left out"),
        ({"negative": "b"}, "negative must be left out"),
        ({"prevalence": 0.2}, "prevalence must be left out"),
        ({"classes": ["a"]}, "classes must be a list of 2 to 50"),
        ({"classes": "abc"}, "classes must be a list of 2 to 50"),
        ({"classes": ["a", "a", "b"]}, "classes must be different values"),
    ],
)
def test_classes_that_cannot_be_are_refused_when_they_are_declared(more: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Declaration.of(DECLARATION | more)


def test_no_column_may_have_the_name_of_a_score(flowers: Flowers, tmp_path: Path) -> None:
    table = pyarrow.table(TABLE | {"SCORE_A": TABLE["x"]})
    pyarrow.parquet.write_table(table, tmp_path / "taken.parquet")
    declared = DECLARATION | {"features": ["x", "SCORE_A"], "new": True}
    body: dict[str, Any] = {
        "name": "taken",
        "source": str(tmp_path / "taken.parquet"),
        "budget": "1",
    }
    body["declaration"] = declared
    sent = flowers.client("carol").post("/api/v1/datasets", json=body, headers=AT_ONCE)
    sent.raise_for_status()
    flowers.work()
    facts = flowers.client("carol").get("/api/v1/datasets/taken").json()
    assert facts["state"] == "refused"
    assert "No column may be called 'score_c' or 'score_a'" in facts["words"]


def test_unnamed_outputs_are_taken_in_the_declared_order() -> None:
    declared = Declaration.of(DECLARATION)
    in_order = {"score_c": 0, "score_a": 1, "score_b": 2}
    assert declared.outputs(width=3, labels=()) == in_order
    assert declared.outputs(width=3, labels=["0", "1", "2"]) == in_order
    by_name = declared.outputs(width=3, labels=["a", "b", "c"])
    assert by_name == {"score_c": 2, "score_a": 0, "score_b": 1}
    alike = Declaration.of(DECLARATION | {"classes": ["a", "A", "b"]})
    assert alike.scores == ("score_0", "score_1", "score_2"), "databases take a and A for one"


def test_the_pages_register_classes_and_offer_their_questions(
    flowers: Flowers, tmp_path: Path
) -> None:
    def visit(name: str) -> Visitor:
        browser = Visitor(flowers.app, raise_server_exceptions=False)
        address = f"/sign-in/{accounts.new_link(flowers.service, name)}"
        browser.fill(address, seen=address).raise_for_status()
        return browser

    pyarrow.parquet.write_table(pyarrow.table(TABLE), tmp_path / "again.parquet")
    carol = Clicking(flowers)
    registered = carol.all_steps(
        tmp_path / "again.parquet",
        "by-form",
        outcome={"label": "species", "sort": "classes", "classes": "c, a, b"},
        rows={"row_key": "id"},
        spend={"new": "yes"},
    )
    assert registered["state"] == "open", registered["words"]
    assert "one of c, a, b" in carol.browser.get("/datasets/by-form").text

    ana = visit("ana")
    ask = ana.get("/datasets/flowers/ask").text
    assert "Is the true class among its top k?" in ask
    assert "Positive rows" not in ask
    assert 'value="compare"' not in ask
    sent = flowers.send_file("page.csv", predictions("a", "b", "c"), "text/csv")
    chosen = f"artifact={sent['id']}&by=price&cost=20&question=class-confusion&question=class-auc"
    shown = ana.get(f"/datasets/flowers/confirm?{chosen}")
    assert shown.status_code == 200
    assert "classes of one size" in shown.text
    quote = shown.text.split('name="quote" value="')[1].split('"')[0]
    key = shown.text.split('name="key" value="')[1].split('"')[0]
    paid = ana.fill(
        "/evaluations",
        seen=f"/datasets/flowers/confirm?{chosen}",
        quote=quote,
        key=key,
        artifact=sent["id"],
    )
    flowers.work()
    waited = flowers.client("ana").get(f"/api/v1{paid.url.path}", headers={"Prefer": "wait=5"})
    assert waited.json()["state"] == "answered"
    done = ana.get(paid.url.path).text
    assert "How often is it right, class by class?" in done
    assert "How well does it rank each class?" in done
    assert "matrix" in done
