"""One budget for people, whatever happens to the table."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.errors import BudgetExceeded, BudgetMismatch

THREE = ho.Budget(epsilon=3)


def table(days: int, *, shift: int = 0) -> dict[str, Any]:
    """The rows of a clinic: one more person each day."""
    count = 40 + days
    return {
        "patient_id": [f"p{i}" for i in range(shift, shift + count)],
        "y": [i % 2 for i in range(count)],
        "risk": [(i * 7 % count) / count for i in range(count)],
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def asked(rows: dict[str, Any], place: Path, epsilon: object, **more: Any) -> ho.Session:
    declared = {"label": "y", "score": "risk", "unit": "patient_id"} | more.pop("declared", {})
    session = ho.Session(ho.Dataset(rows, **declared), ledger=place, **more)  # type: ignore[arg-type]
    session.confusion(epsilon=epsilon)  # type: ignore[arg-type]
    return session


def test_one_row_more_each_day_spends_one_registered_budget(place: Path) -> None:
    with ho.Ledger.open(place) as ledger:
        ledger.register("clinic", budget=THREE, unit="patient_id")
    asked(table(0), place, 3, account="clinic")
    for day in (1, 2):
        with pytest.raises(BudgetExceeded):
            asked(table(day), place, 3, account="clinic")


def test_one_row_more_each_day_is_refused_under_a_known_name(tmp_path: Path, place: Path) -> None:
    file = tmp_path / "clinic.parquet"
    for day in range(3):
        pq.write_table(pa.table(table(day)), file)
        declared: dict[str, Any] = {"label": "y", "score": "risk"}
        if day == 0:
            session = ho.Session(ho.Dataset(file, **declared), budget=THREE, ledger=place)
            session.confusion(epsilon=3)
            continue
        with pytest.raises(BudgetMismatch, match=r"ledger register.*row_key"):
            ho.Session(ho.Dataset(file, **declared), budget=THREE, ledger=place)
    assert ho.Session(ho.Dataset(file, **declared), budget=THREE, ledger=place, new=True)


@pytest.mark.parametrize(
    ("rows", "declared"),
    [
        (table(7), {}),
        (table(0, shift=20), {}),
        (table(0) | {"risk": [0.5] * 40}, {}),
        (table(0) | {"other": [0.25] * 40}, {"score": "other"}),
        ({name: column[:9] for name, column in table(0).items()}, {}),
        ({name: column[1::2] for name, column in table(0).items()}, {}),  # those with y = 1
        (table(0) | {"y": [1 - each for each in table(0)["y"]]}, {}),
    ],
    ids=["extended", "refreshed", "re-scored", "a model more", "a subset", "by label", "re-coded"],
)
def test_a_registered_account_pays_for_every_table_about_its_people(
    place: Path, rows: dict[str, Any], declared: dict[str, Any]
) -> None:
    with ho.Ledger.open(place) as ledger:
        ledger.register("clinic", budget=THREE, unit="patient_id")
    asked(table(0), place, 1, account="clinic")
    assert str(asked(rows, place, 1, account="clinic", declared=declared).remaining) == "epsilon 1"


def test_a_public_number_of_rows_cannot_change(place: Path) -> None:
    with ho.Ledger.open(place) as ledger:
        ledger.register("clinic", budget=THREE)
    by_row: dict[str, Any] = {"account": "clinic", "declared": {"unit": None}}
    asked(table(0), place, 1, **dict(by_row))
    asked(table(0) | {"risk": [0.5] * 40}, place, 1, **dict(by_row))
    positives = {name: column[1::2] for name, column in table(0).items()}
    for rows in (positives, table(1)):
        with pytest.raises(BudgetMismatch, match="Register the account with unit="):
            asked(rows, place, "1/2", **dict(by_row))


def test_a_subset_by_label_is_refused_by_the_name_of_rows_that_nobody_registered(
    place: Path,
) -> None:
    rows, declared = table(0), {"unit": None, "name": "clinic"}
    asked(rows, place, 1, budget=THREE, declared=declared)
    ill = [at for at, label in enumerate(rows["y"]) if label]
    subset = {name: [cells[at] for at in ill] for name, cells in rows.items()}
    with pytest.raises(BudgetMismatch, match="has 40 rows"):
        asked(subset, place, 1, account="clinic", declared=declared)
    rescored = rows | {"risk": [0.5] * 40}
    session = asked(rescored, place, 1, account="clinic", declared=declared)
    assert str(session.remaining) == "epsilon 1"


def test_a_registered_account_reads_no_digest(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ho.Ledger.open(place) as ledger:
        ledger.register("clinic", budget=THREE, unit="patient_id")
    dataset = ho.Dataset(table(0), label="y", score="risk", unit="patient_id")

    def must_not_run(self: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ho.Dataset, "_fingerprints", property(must_not_run))
    ho.Session(dataset, ledger=place, account="clinic").confusion(epsilon=1)


def test_the_ledger_tells_who_asked_what_when_and_for_how_much(place: Path) -> None:
    ledger = ho.Ledger.open(place)
    ledger.register("clinic", budget=THREE, unit="patient_id", people="patients")
    ledger.grant("clinic", analyst="analyst-7", budget=ho.Budget(epsilon=1))
    asked(table(0), place, "1/2", account="clinic", analyst="analyst-7")
    (entry,) = ledger.entries("clinic")
    assert entry.analyst == "analyst-7"
    assert str(entry.loss) == "epsilon 0.5"
    assert entry.request
    assert str(ledger.remaining("patients")) == "epsilon 2.5"
    with pytest.raises(BudgetExceeded, match="analyst-7"):
        asked(table(3), place, 1, account="clinic", analyst="analyst-7")


# --- no second budget in one line ----------------------------------------------------------------


def test_rows_that_have_a_ledger_refuse_another_one(place: Path, tmp_path: Path) -> None:
    dataset = ho.Dataset(table(0), label="y", score="risk")
    ho.Session(dataset, budget=THREE, ledger=place).confusion(epsilon=3)
    for other in (None, tmp_path / "other.sqlite", ho.Ledger.open(None)):
        with pytest.raises(BudgetMismatch, match="Another ledger keeps the budget"):
            ho.Session(dataset, budget=THREE, ledger=other)
    assert str(ho.Session(dataset, ledger=place).remaining) == "epsilon 0"


def test_a_session_gives_no_handle_on_its_rows(place: Path) -> None:
    dataset = ho.Dataset(table(0), label="y", score="risk")
    session = ho.Session(dataset, budget=THREE, ledger=place)
    with pytest.raises(ho.errors.ArgumentError):
        ho.Session(session.dataset, budget=THREE)  # type: ignore[arg-type]


def test_what_was_declared_of_rows_is_read_only() -> None:
    dataset = ho.Dataset(table(0), label="y", score="risk", unit="patient_id", name="clinic")
    public = [name for name in vars(dataset) if not name.startswith("_")]
    assert {"protection", "name", "label", "score", "score_range"} <= set(public)
    for name in public:
        before = getattr(dataset, name)
        with pytest.raises(AttributeError, match="read-only"):
            setattr(dataset, name, None)
        with pytest.raises(AttributeError, match="read-only"):
            delattr(dataset, name)
        assert getattr(dataset, name) is before


@pytest.mark.parametrize("name", ["clinic\udcff", "a\x1b[31m", "a\u202eb", "a\nb"])
def test_a_name_that_cannot_be_printed_is_refused_before_any_booking(
    place: Path, name: str
) -> None:
    with pytest.raises(ho.errors.ArgumentError, match="name must be"):
        ho.Dataset(table(0), label="y", score="risk", name=name)


def test_a_raised_budget_shows_in_an_open_session(place: Path) -> None:
    with ho.Ledger.open(place) as ledger:
        ledger.register("clinic", budget=THREE, unit="patient_id")
        session = asked(table(0), place, 3, account="clinic")
        ledger.raise_budget("clinic", budget=ho.Budget(epsilon=4))
        assert (str(session.budget), str(session.remaining)) == ("epsilon 4", "epsilon 1")
