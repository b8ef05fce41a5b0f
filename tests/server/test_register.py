"""Registration by clicks: what there is, what a worker reads of it, and what each step checks."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("onnxruntime")

import pyarrow
import pyarrow.csv
import pyarrow.parquet
from tests.server.clicking import Clicking
from tests.server.conftest import Site, rows, write_rows

from heldout.errors import ArgumentError
from heldout.server import accounts, sources
from heldout.server.declaration import Declaration, checked_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "rows"
    place.mkdir()
    write_rows(place / "stays.parquet")
    pyarrow.csv.write_csv(pyarrow.table(rows(50)), place / "stays.csv")
    return place


@pytest.fixture
def site(tmp_path: Path, folder: Path) -> Iterator[Site]:
    site = Site(tmp_path / "server", rows=folder)
    yield site
    site.service.close()


@pytest.fixture
def carol(site: Site) -> Clicking:
    return Clicking(site)


def test_rows_are_registered_by_picking_and_nothing_is_typed_that_can_be_picked(
    carol: Clicking, site: Site
) -> None:
    page = carol.begin()
    assert re.findall(r"<option>([^<]+)</option>", page.text) == ["stays.csv", "stays.parquet"]
    page = carol.choose(kind="file", file="stays.parquet")
    assert "readmitted (number)" in page.text
    page = carol.send("outcome", label="readmitted", sort="two", positive="1")
    assert "Whose rows are they?" in page.text
    page = carol.send("rows", row_key="admission")
    assert 'aria-label="A model may see age"' in page.text
    assert "A model may see readmitted" not in page.text
    features = {"feature.1": "yes", "low.1": "18", "high.1": "90", "feature.2": "yes",
                "values.2": "1, 2, 3"}  # fmt: skip
    page = carol.send("columns", **features)
    assert "age, stay" in page.text, "what is declared is shown before it is registered"
    registered = carol.register("readmissions", facts="Stays of 2025.")
    assert (registered["state"], registered["rows"]) == ("open", 400)
    assert list(registered["features"]) == ["age", "stay"]
    twin = site.client("carol").get("/api/v1/datasets/readmissions/twin.csv?rows=50").text
    cells = [line.split(",") for line in twin.split()]
    made = [dict(zip(cells[0], line, strict=True)) for line in cells[1:]]
    assert all(18 <= float(row["age"]) <= 90 for row in made)
    assert {row["stay"] for row in made} == {"1", "2", "3"}
    assert "Begin" in carol.browser.get("/register").text, "the draft is gone"
    assert "Go on" not in carol.browser.get("/register").text


def test_every_step_says_what_is_wrong_and_keeps_what_was_filled_in(carol: Clicking) -> None:
    carol.begin()
    assert "Choose where" in carol.choose(kind="file").text
    carol.choose(kind="file", file="stays.parquet")
    for wrong, form in (
        ("Pick the column that models predict", {"sort": "two", "positive": "7"}),
        ("must be a number", {"label": "age", "sort": "number", "bound_low": "x"}),
        ("holds no numbers", {"label": "admission", "sort": "number", "bound_low": "0"}),
        ("not a number, but the column", {"label": "readmitted", "sort": "two", "positive": "yes"}),
        ("three classes", {"label": "readmitted", "sort": "classes", "classes": "0, 1"}),
        ("Choose what models predict", {"label": "readmitted"}),
    ):
        page = carol.send("outcome", **form)
        assert page.status_code == 422
        assert wrong in page.text
        for value in form.values():
            assert f'value="{value}"' in page.text
    carol.send("outcome", label="readmitted", sort="two")
    twice = carol.send("rows", row_key="readmitted")
    assert "picked as outcome and as row key" in re.sub(r"\s+", " ", twice.text)
    carol.send("rows", row_key="admission")
    upside_down = {"feature.1": "y", "low.1": "9", "high.1": "1"}
    assert "lower end first" in carol.send("columns", **upside_down).text
    assert "List the values" in carol.send("columns", **{"group.1": "y"}).text
    carol.send("columns", **{"feature.1": "y"})
    assert "budget" in carol.send("spend", name="x", budget="much").text
    assert "1 to 64 letters" in carol.send("spend", name="x y", budget="1").text


def test_only_the_schema_is_read_before_somebody_registers(carol: Clicking, folder: Path) -> None:
    file = folder / "stays.parquet"
    content = bytearray(file.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(footer - 4)  # nothing is left of the rows
    file.write_bytes(content)
    carol.begin()
    assert "readmitted (number)" in carol.choose(kind="file", file="stays.parquet").text
    carol.send("outcome", label="readmitted", sort="two")
    carol.send("rows", row_key="admission")
    carol.send("columns", **{"feature.1": "y"})
    assert carol.register("readmissions")["state"] == "refused"


def test_rows_are_numbered_where_no_column_names_them_and_are_then_not_refreshed(
    carol: Clicking, site: Site
) -> None:
    carol.begin()
    page = carol.choose(kind="file", file="stays.parquet")
    carol.send("outcome", label="readmitted", sort="two")
    page = carol.send("rows")
    assert page.status_code == 200
    carol.send("columns", **{"feature.1": "y", "feature.2": "y"})
    registered = carol.register("readmissions")
    assert (registered["state"], registered["row_key"]) == ("open", None)
    site.grant()
    model = site.upload()
    answer = site.answer({"question": "auc", "epsilon": "1"}, artifact=model["id"], key="k")
    assert answer["state"] == "answered"
    page = carol.browser.get("/datasets/readmissions")
    assert "Register changed rows as a new data set" in page.text
    page = carol.browser.fill("/datasets/readmissions/refresh")
    assert "another registration" in page.text


def test_numbers_without_gaps_are_no_evidence_of_the_same_people(
    carol: Clicking, site: Site, folder: Path
) -> None:
    for name, first in (("one", 1), ("two", 1), ("three", 10**9), ("four", 10**9)):
        table = pyarrow.table(rows(200))
        keys = [first + 3 * at * (first > 1) + at * (first == 1) for at in range(200)]
        table = table.set_column(0, "admission", [pyarrow.array(keys)])
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    states = {}
    for name in ("one", "two", "three", "four"):
        carol.begin()
        carol.choose(kind="file", file=f"{name}.parquet")
        carol.send("outcome", label="readmitted", sort="two")
        carol.send("rows", row_key="admission")
        carol.send("columns", **{"feature.1": "y"})
        states[name] = carol.register(name)
    assert [states[name]["state"] for name in states] == ["open", "open", "open", "refused"]
    assert "merely numbered" in states["two"]["words"]
    assert "also in account 'three'" in states["four"]["words"]


def test_numbers_of_people_are_evidence_without_gaps_too(
    carol: Clicking, site: Site, folder: Path
) -> None:
    table = pyarrow.table(rows(200)).append_column("patient", [pyarrow.array(range(1, 201))])
    states = {}
    for name in ("one", "two"):
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
        carol.begin()
        carol.choose(kind="file", file=f"{name}.parquet")
        carol.send("outcome", label="readmitted", sort="two")
        carol.send("rows", row_key="admission", unit="patient", rows_per_unit="1")
        carol.send("columns", **{"feature.1": "y"})
        states[name] = carol.register(name)
    assert [states[name]["state"] for name in states] == ["open", "refused"]
    assert "also in account 'one'" in states["two"]["words"]


def test_a_refused_registration_leaves_no_copy_of_rows_behind(
    carol: Clicking, site: Site, folder: Path
) -> None:
    private = site.service.settings.private
    carol.begin()
    carol.upload(folder / "stays.parquet")
    assert [file.name[:6] for file in private.glob("*.parquet")] == ["upload"]
    assert not list(site.service.settings.artifacts.glob("rows-*")), "the web keeps no copy"
    carol.send("outcome", label="age", sort="two")  # it has other values than 0 and 1
    carol.send("rows", row_key="admission")
    carol.send("columns", **{"feature.2": "y"})
    assert carol.register("readmissions")["state"] == "refused"
    assert not list(private.glob("*.parquet"))


def test_an_upload_is_registered_once_and_uploaded_again_to_be_refreshed(
    carol: Clicking, site: Site, folder: Path
) -> None:
    private = site.service.settings.private
    for state in ("open", "open"):
        carol.begin() if not carol.draft else None
        carol.upload(folder / "stays.parquet")
        carol.send("outcome", label="readmitted", sort="two")
        carol.send("rows", row_key="admission")
        carol.send("columns", **{"feature.2": "y"})
        assert carol.register("mine")["state"] == state
        assert [file.name[:4] for file in private.glob("*.parquet")] == ["rows"]
        again = carol.browser.fill("/datasets/mine/again")
        carol.draft = str(again.url.path)
        site.work()
    assert site.client("carol").get("/api/v1/datasets/mine").json()["revision"] == 2


def test_a_draft_that_is_given_up_leaves_no_upload_behind(
    carol: Clicking, site: Site, folder: Path
) -> None:
    carol.begin()
    carol.upload(folder / "stays.csv")
    carol.browser.fill(f"{carol.draft}/discard").raise_for_status()
    site.work()
    settings = site.service.settings
    assert not [*settings.private.glob("upload*"), *settings.artifacts.glob("rows*")]


def test_what_a_csv_file_holds_is_said_and_not_guessed(carol: Clicking) -> None:
    carol.begin()
    page = carol.choose(kind="file", file="stays.csv")
    assert "What kind of values?" in page.text
    kinds = {"kind.1": "whole number", "kind.2": "number", "kind.3": "whole number"}
    page = carol.send("kinds", **kinds)
    assert "readmitted (number)" in page.text
    assert "admission (text)" in page.text
    carol.send("outcome", label="readmitted", sort="two")
    carol.send("rows", row_key="admission")
    carol.send("columns", **{"feature.1": "y", "feature.2": "y"})
    assert carol.register("readmissions")["state"] == "open"


def test_registering_again_fills_in_what_was_declared(carol: Clicking, site: Site) -> None:
    carol.begin()
    carol.choose(kind="file", file="stays.parquet")
    carol.send("outcome", label="age", sort="two", positive="20")
    carol.send("rows", row_key="admission", neighbours="add-remove", expected_rows="390")
    carol.send("columns", **{"feature.2": "y", "low.2": "1", "high.2": "12"})
    assert carol.register("readmissions", facts="Stays.")["state"] == "refused"
    carol.draft = str(carol.browser.fill("/datasets/readmissions/again").url.path)
    site.work()
    shown = {step: carol.browser.get(f"{carol.draft}?step={step}").text
             for step in ("outcome", "rows", "columns")}  # fmt: skip
    assert '<option value="age" selected>' in shown["outcome"]
    assert '<option value="admission" selected>' in shown["rows"]
    assert 'value="390"' in shown["rows"]
    carol.send("outcome", label="readmitted", sort="two")
    carol.send("rows", row_key="admission")
    carol.send("columns", **{"feature.2": "y"})
    assert carol.register("readmissions")["state"] == "open"


def test_rows_with_numbers_and_no_model_are_declared_by_their_description(
    carol: Clicking, site: Site, folder: Path
) -> None:
    carol.begin()
    carol.choose(kind="file", file="stays.parquet")
    carol.send("outcome", sort="measured", **{"measured.values": "stay=1,12"})
    carol.send("rows", row_key="admission")
    carol.send("columns")
    assert carol.register("readmissions")["state"] == "open"
    site.grant()
    mean = {"question": "mean", "epsilon": "1", "column": "stay"}
    share = {"question": "share-above", "epsilon": "1/2", "column": "stay", "at_least": 6}
    asked = site.client("ana").post(
        "/api/v1/evaluations",
        json={"dataset": "readmissions", "questions": [mean, share]},
        headers={"Idempotency-Key": "both"},
    )
    assert asked.status_code == 202, asked.text
    site.work()
    answer = site.client("ana").get(f"/api/v1/evaluations/{asked.json()['id']}").json()
    assert answer["state"] == "answered"
    assert len(answer["answers"]) == 2
    terms = {"metric": "auc", "start": 0.5, "price": "1", "improvements": 2, "submissions": 9}
    board = {"name": "board", "dataset": "readmissions", "terms": terms}
    refused = site.client("carol").post("/api/v1/boards", json=board)
    assert (refused.status_code, "is not declared" in refused.json()["detail"]) == (422, True)


def test_nobody_sees_anothers_draft(carol: Clicking, site: Site, folder: Path) -> None:
    accounts.add_person(site.service, name="dora", role="custodian")
    carol.begin()
    dora = Clicking(site, "dora")
    assert dora.browser.get(carol.draft).status_code == 404
    taken = dora.browser.fill(f"{carol.draft}/source", kind="file", file="stays.csv")
    assert taken.status_code == 404
    body = {"name": "x", "source": {"upload": carol.draft.rsplit("/", 1)[1], "file": "a.csv"},
            "declaration": {"label": "y", "row_key": "k"}, "budget": "1"}  # fmt: skip
    assert site.client("carol").post("/api/v1/datasets", json=body).status_code == 422


def test_every_form_of_a_source_that_the_docs_show_is_one(site: Site, folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
    table = page.partition("| `source` | the rows |")[2].partition("\n\n")[0]
    shown = [json.loads(text) for text in re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE)]
    write_rows(folder / "visits.parquet")
    (folder / "visits" / "2026").mkdir(parents=True)
    write_rows(folder / "visits" / "2026" / "january.parquet")
    keys = set()
    for source in shown:
        read = checked_source(source, site.service.settings)
        keys.add(frozenset(read))
        if "file" in read:
            assert "readmitted" in sources.columns_of(read, site.service.settings)
    with pytest.raises(ArgumentError) as refused:
        checked_source({}, site.service.settings)
    forms = re.findall(r"\{.*?\}", str(refused.value))
    assert keys == {frozenset(re.findall(r'"(\w+)":', form)) for form in forms}


def test_a_request_without_a_key_is_told_what_to_send(site: Site) -> None:
    for who, path in (
        ("carol", "datasets/readmissions/published"),
        ("ana", "evaluations"),
        ("ana", "boards/spring/submissions"),
    ):
        body = {"question": {}, "dataset": "readmissions", "artifact": "a", "questions": []}
        refused = site.client(who).post(f"/api/v1/{path}", json=body)
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("Send the header Idempotency-Key with a name")


def test_a_misspelt_field_of_a_declaration_is_shown_a_near_one(site: Site) -> None:
    for declaration, meant in (
        ({"lable": "y"}, "declaration has no field 'lable'. Did you mean 'label'? Fields: label,"),
        ({"survival": {"tim": "days"}}, "survival has no field 'tim'. Did you mean 'time'?"),
        ({"measured": {"vales": {}}}, "measured has no field 'vales'. Did you mean 'values'?"),
    ):
        with pytest.raises(ArgumentError) as refused:
            Declaration.of(declaration)
        assert str(refused.value).startswith(meant)


def test_the_twin_has_declared_values_of_columns_that_models_see_too(
    site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "rows" / "claims.parquet"
    rows = {"id": list(range(50)), "sum": [70.0] * 50, "region": ["N", "S"] * 25}
    pyarrow.parquet.write_table(pyarrow.table(rows), file)
    values = {"sum": [1000, 5000], "region": {"N": 0, "S": 1}}
    declaration = {"row_key": "id", "measured": {"values": values}}
    declaration["features"] = {"sum": None, "region": None}
    body = {"name": "claims", "source": "claims.parquet", "declaration": declaration, "budget": 1}
    sent = site.client("carol").post("/api/v1/datasets", json=body, headers={"Prefer": "wait=0"})
    sent.raise_for_status()
    site.work()
    text = site.client("carol").get("/api/v1/datasets/claims/twin.csv").text
    twin = list(csv.DictReader(io.StringIO(text)))
    assert {row["region"] for row in twin} == {"N", "S"}
    assert all(1000 <= float(row["sum"]) <= 5000 for row in twin)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"row_key": "admission", "unit": "age", "rows_per_unit": "2"}, "rows is private"),
        ({"row_key": "admission"}, "rows is public"),
        ({"row_key": "admission", "neighbours": "add-remove"}, "rows is private"),
        ({"row_key": "admission", "unit": "age", "neighbours": "label"}, "rows is public"),
    ],
)
def test_the_summary_says_whether_the_number_of_rows_is_public(
    carol: Clicking, rows: dict[str, str], said: str
) -> None:
    """With a unit it is private: a person may have any number of rows up to the most."""
    carol.begin()
    carol.choose(kind="file", file="stays.parquet")
    carol.send("outcome", label="readmitted", sort="two")
    carol.send("rows", **rows)
    page = carol.send("columns", **{"feature.2": "y"})
    assert f"the number of {said}" in re.sub(r"\s+", " ", page.text)


def test_a_group_may_leave_values_out(carol: Clicking) -> None:
    carol.begin()
    carol.choose(kind="file", file="stays.parquet")
    carol.send("outcome", label="readmitted", sort="two")
    page = carol.send("rows", row_key="admission")
    assert "rows with any other value form the group “other”" in page.text
    carol.send("columns", **{"feature.1": "y", "group.2": "y", "values.2": "1"})
    assert carol.register("readmissions")["state"] == "open"
