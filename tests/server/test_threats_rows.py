"""What a server shows of private rows: the answers that were paid for, and nothing else."""

import contextlib
import io
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.server.conftest import LINEAR, ON_POSTGRES, Hurried, write_rows
from tests.server.watched import AUC, CELLS, Steady, Watched, all_keys, predictions

from heldout.errors import ArgumentError
from heldout.server import storage, worker
from heldout.server.declaration import checked_source
from heldout.server.service import Settings
from heldout.server.signing import answer_page
from heldout.server.sources import source_of

CSV = "text/csv"


def spoken(act: Callable[[], Any]) -> tuple[list[str], list[str]]:
    """What a server answered and logged while something was done."""
    log = io.StringIO()
    with contextlib.redirect_stderr(log):
        site = act()
    return site.transcript(), log.getvalue().splitlines()


def first_difference(one: list[str], other: list[str]) -> tuple[str, str] | None:
    """Where two transcripts part, with a little of what is around it."""
    if len(one) != len(other):
        return f"{len(one)} lines", f"{len(other)} lines"
    for a, b in zip(one, other, strict=True):
        if a != b:
            at = next(n for n in range(len(a) + 1) if a[:n] != b[:n])
            return a[:60] + "..." + a[max(at - 100, 0) : at + 100], b[max(at - 100, 0) : at + 100]
    return None


def every_kind_of_request(site: Watched, keys: list[str]) -> None:
    """Models and predictions, good and bad, asked about; everything an analyst can look at."""
    ana = site.client("ana")
    model = site.upload(LINEAR)["id"]
    strange = site.upload({"coefficients": {"height": 1.0}})["id"]
    sent = site.send(predictions(keys), CSV).json()["id"]
    site.send(b"key,score\na1,0.5\na1,0.7\n", CSV)
    site.work()
    questions = {"dataset": "readmissions", "questions": [AUC, CELLS]}
    ana.post("/api/v1/quotes", json=questions)
    site.ask(AUC, CELLS, artifact=model, key="one")
    site.ask(AUC, artifact=strange, key="two")
    site.ask(AUC, artifact=sent, key="three")
    site.ask({"question": "auc", "epsilon": "60"}, artifact=model, key="four")
    site.ask({"question": "compare", "epsilon": "1/4", "score": "rival"}, artifact=model, key="5")
    terms = {"price": "40", "improvements": 3, "submissions": 10, "start": 0.5}
    board = {"name": "spring", "dataset": "readmissions", "terms": terms, "each": 6}
    assert site.client("carol").post("/api/v1/boards", json=board).status_code == 201
    worse = site.upload(LINEAR | {"intercept": 90})["id"]  # than the bar, whatever the noise
    judged = {"artifact": worse, "title": "mine"}
    key = {"Idempotency-Key": "six"}
    ana.post("/api/v1/boards/spring/submissions", json=judged, headers=key)
    look(site)
    site.work()


def look(site: Watched) -> None:
    ana = site.client("ana")
    for path in ("/artifacts", "/evaluations", "/datasets", "/datasets/readmissions/twin.csv"):
        ana.get(f"/api/v1{path}")
    for each in ana.get("/api/v1/boards").json():
        ana.get(f"/api/v1/boards/{each['name']}")
        ana.get(f"/api/v1/boards/{each['name']}/submissions")
    listed = ana.get("/api/v1/evaluations").json()
    for each in sorted(listed, key=lambda row: row["id"]):
        ana.get(f"/api/v1/evaluations/{each['id']}")
        ana.get(f"/api/v1/reports/{each['id']}.html")
    for each in sorted(ana.get("/api/v1/artifacts").json(), key=lambda row: row["id"]):
        ana.get(f"/api/v1/artifacts/{each['id']}")


ANOTHER_PERSON: dict[str, Any] = {
    "admission": (7, "b7"),
    "age": (7, None),
    "stay": (7, -1e300),
    "readmitted": (7, 1),
}


def test_a_row_that_changes_moves_nothing_but_the_noisy_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Steady(monkeypatch)
    found = []
    for folder, changed in (("one", {}), ("other", ANOTHER_PERSON)):
        clock.restart()
        (tmp_path / folder).mkdir()
        path = write_rows(tmp_path / folder / "rows.parquet", **changed)

        def act(folder: str = folder, path: Path = path) -> Watched:
            site = Watched(tmp_path / folder / "server").opened(path)
            site.said.clear()  # what the custodian saw is hers
            every_kind_of_request(site, all_keys())
            clock.at += 60
            look(site)
            site.service.close()
            return site

        found.append(spoken(act))
    (answers, log), (others, other_log) = found
    assert first_difference(answers, others) is None
    assert first_difference(log, other_log) is None
    assert sum('"state": "answered"' in each for each in answers) >= 2, "with answers, masked"
    assert sum(each.endswith("a report") for each in answers) >= 2
    assert any('"improved":false' in each for each in answers), "the board judged"
    assert len(log) >= 8


def test_a_report_is_made_of_the_signed_answer_alone(tmp_path: Path) -> None:
    site = Watched(tmp_path / "server").opened(write_rows(tmp_path / "rows.parquet", 50))
    found = site.answer(AUC, CELLS, artifact=site.upload()["id"], key="k")
    page = site.client("ana").get(f"/api/v1/reports/{found['id']}.html")
    assert page.text == answer_page(found["statement"])
    site.service.close()


def test_the_comparison_notices_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row more is public under replace-one, so this test of tests must see it."""
    clock = Steady(monkeypatch)
    shown = []
    for folder, count in (("one", 400), ("other", 401)):
        clock.restart()
        (tmp_path / folder).mkdir()
        path = write_rows(tmp_path / folder / "rows.parquet", count)
        site = Watched(tmp_path / folder / "server").opened(path)
        look(site)
        shown.append(site.transcript())
        site.service.close()
    assert shown[0] != shown[1]


@pytest.mark.slow
def test_an_upload_that_leaves_a_person_out_is_answered_alike_whoever_is_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Steady(monkeypatch)
    keys = all_keys()
    found: dict[str, list[Any]] = {}
    for upload, sent in (("all", keys), ("without", [*keys[:7], "zz", *keys[8:]])):
        for folder, person in (("there", {}), ("not there", {"admission": (7, "b7")})):
            clock.restart()
            place = tmp_path / upload / folder
            place.mkdir(parents=True)
            path = write_rows(place / "rows.parquet", **person)

            def act(place: Path = place, path: Path = path, sent: list[str] = sent) -> Watched:
                site = Watched(place / "server").opened(path)
                site.said.clear()
                artifact = site.send(predictions(sent), CSV).json()["id"]
                site.work()
                look(site)
                site.ask(AUC, artifact=artifact, key="k")
                look(site)
                site.work()
                clock.at += 60
                look(site)
                site.service.close()
                return site

            found.setdefault(upload, []).append(spoken(act))
    for there, not_there in found.values():
        for said, other in zip(there, not_there, strict=True):
            assert first_difference(said, other) is None
    assert any('"state":"answered"' in each for each in found["without"][0][0])


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The real clock, which can be put forward."""
    clock = Hurried()
    clock.ahead = storage.now() - time.time()
    monkeypatch.setattr(storage, "time", clock)
    return clock


def state_of(site: Any, identity: str) -> str:
    with site.service.store.read() as connection:
        query = sa.select(storage.evaluations.c.state).filter_by(id=identity)
        return str(connection.execute(query).scalar_one())


def test_an_answer_appears_at_the_same_tick_for_neighbouring_tables(
    tmp_path: Path, moving: Any
) -> None:
    tick = 30.0
    for folder, changed in (("one", {}), ("other", ANOTHER_PERSON)):
        (tmp_path / folder).mkdir()
        path = write_rows(tmp_path / folder / "rows.parquet", **changed)
        site = Watched(tmp_path / folder / "server", tick=tick).opened(path)
        ana, model = site.client("ana"), site.upload()["id"]
        # Scores are there a tick after they were begun, at the next step of the clock; so is the
        # booking after the scores; the answer follows a tick later.
        for key, ticks in (("first", 5), ("second", 3), ("third", 3)):
            moving.ahead += tick - moving.time() % tick + 1  # just after a step of the clock
            asked = site.ask(AUC, artifact=model, key=key).json()["id"]
            looks: list[bool] = []

            def look(moment: float) -> None:
                shown = [ana.get(f"/api/v1/evaluations/{asked}").json()]  # noqa: B023
                shown += ana.get("/api/v1/evaluations").json()  # noqa: B023
                early = [each for each in shown if each["id"] == asked]  # noqa: B023
                assert {each["state"] for each in early} == {"waiting"}
                assert [each["answers"] or each["receipt"] for each in early] == [None] * 2
                page = ana.get(f"/api/v1/reports/{asked}.html")  # noqa: B023
                assert page.status_code == 404
                looks.append(state_of(site, asked) == "answered")  # noqa: B023
                storage.wait_until(moment)

            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(worker, "wait_until", look)
                site.work()
            assert looks[-1], "it was answered, and nobody knew"
            moving.ahead += 2 * tick
            late = ana.get(f"/api/v1/evaluations/{asked}").json()
            assert late["state"] == "answered"
            assert late["finished"] - late["created"] // tick * tick == ticks * tick
        site.service.close()


# --- canaries ------------------------------------------------------------------------------------

TEXT = "Kanarienvogel-8c1f0e5ab27d4930"
NUMBER, SCORE = 918273645546372819, 0.8172635445362718
SPELT = [TEXT.encode(), str(NUMBER).encode(), repr(SCORE).encode(), str(NUMBER * 1.0).encode()]


def cells() -> dict[str, list[Any]]:
    from tests.server.conftest import rows

    table = rows()
    table["admission"][3] = TEXT
    table["stay"][5] = SCORE
    table["age"][7] = NUMBER
    table["ward"] = [TEXT if at % 2 else "north" for at in range(400)]
    table["undeclared"] = [TEXT] * 400
    return table


def written(path: Path, table: dict[str, list[Any]]) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(table), path)
    return path


def leaks(content: bytes) -> list[bytes]:
    return [each for each in SPELT if each in content]


def test_a_place_in_the_queue_tells_of_ticks_and_not_of_work(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has two evaluations cannot time the first one by the place of the second."""
    model = opened.upload()["id"]
    first, second = (opened.ask(AUC, artifact=model, key=k).json()["id"] for k in "ab")

    def place() -> int:
        shown = opened.client("ana").get(f"/api/v1/evaluations/{second}").json()
        return int(shown["queue_place"])

    with opened.service.store.read() as connection:
        made = sa.select(storage.evaluations.c.created).filter_by(id=first)
        begun = connection.execute(made).scalar_one()
    clock = Steady(monkeypatch)
    clock.at = begun + 0.02
    assert place() == 1
    assert opened.worker.step()  # the scoring
    assert opened.until_tick()
    places: list[int] = []

    def look(moment: float) -> None:
        if state_of(opened, first) == "answered":  # and not due
            places.append(place())
        storage.wait_until(moment)

    monkeypatch.setattr(worker, "wait_until", look)
    assert opened.worker.step()
    assert places == [1]
    clock.at += 1.0
    assert place() == 0


def all_of_the_database(site: Any) -> str:
    with site.service.store.read() as connection:
        names = sa.inspect(connection).get_table_names()
        assert {"server_evaluations", "heldout_entries"} <= set(names)
        every = [connection.exec_driver_sql(f"SELECT * FROM {each}").all() for each in names]
    return str(every)


def test_canary_cells_are_in_no_answer_log_database_or_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    source = tmp_path / "source"
    source.mkdir()
    path = written(source / "rows.parquet", cells())
    site = Watched(tmp_path / "server")
    site.opened(path)
    # Rows that break a rule: the custodian is told which rule, in words without a cell.
    for name, column, value in (("label", "readmitted", NUMBER), ("key", "admission", TEXT)):
        table = cells()
        table[column][0] = table[column][1] = value
        found = site.register(written(source / f"{name}.parquet", table), name=f"broken-{name}")
        assert found["state"] == "refused", found
    every_kind_of_request(site, all_keys())
    # A model that would tell a row's fate by failing on it.
    steep = {"coefficients": {"stay": 1e300, "age": -1e300}, "link": "log"}
    site.ask(AUC, artifact=site.upload(steep)["id"], key="steep")
    site.work()
    storage.wait_until(storage.now() + 0.2)
    look(site)
    for who, path_ in (("carol", "/ledger"), ("olga", "/ledger"), ("olga", "/audit")):
        assert site.client(who).get(f"/api/v1{path_}").status_code == 200
    said = "".join(f"{each.headers}{each.text}" for each in site.said)
    assert said.count('"state":"answered"') >= 4
    assert leaks(said.encode()) == []
    out, err = capfd.readouterr()
    assert '"event": "job"' in err
    assert leaks((out + err).encode()) == []
    folder = site.service.settings.folder
    places = [each for each in (*folder.rglob("*"), *scratch.rglob("*")) if each.is_file()]
    public = [each for each in places if not each.is_relative_to(folder / "private")]
    if ON_POSTGRES:
        assert leaks(all_of_the_database(site).encode()) == []
    else:
        assert {"server.sqlite", "ledger.sqlite"} <= {each.name for each in public}
    assert [
        (each.name, leaks(each.read_bytes())) for each in public if leaks(each.read_bytes())
    ] == []
    site.service.close()


def test_the_search_for_canaries_finds_one(tmp_path: Path) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite")) as base:
        base.execute("CREATE TABLE t (x)")
        base.execute("INSERT INTO t VALUES (?)", [json.dumps({"cell": TEXT, "n": NUMBER})])
        base.commit()
    assert leaks((tmp_path / "a.sqlite").read_bytes()) == SPELT[:2]


def test_what_is_private_is_for_its_owner_alone_and_undeclared_columns_are_not_kept(
    tmp_path: Path,
) -> None:
    import pyarrow.parquet

    site = Watched(tmp_path / "server").opened(write_rows(tmp_path / "rows.parquet", 50))
    artifact = site.send(predictions(all_keys(50)), CSV).json()["id"]
    site.work()
    site.ask(AUC, artifact=artifact, key="k")
    site.work()
    folder = site.service.settings.folder
    readable = {each.name for each in folder.rglob("*") if each.stat().st_mode & 0o077}
    assert readable <= {"signing.pub", "ledger.sqlite.witness"}  # hashes and a public key
    names = set()
    for each in (folder / "private").glob("*.parquet"):
        names |= set(pyarrow.parquet.read_schema(each).names)
    assert names == {"admission", "age", "stay", "readmitted", "score", "key"}
    assert not list(folder.rglob("*.partial"))
    assert not list(folder.rglob("*.scored.parquet"))
    site.service.close()


def test_the_web_needs_no_right_to_the_rows(tmp_path: Path) -> None:
    """With the private folder out of reach, everything but the workers' own work still answers."""
    site = Watched(tmp_path / "server").opened(write_rows(tmp_path / "rows.parquet", 50))
    asked = site.answer(AUC, artifact=site.upload()["id"], key="k")["id"]
    away = tmp_path / "away"
    site.service.settings.private.rename(away)
    site.said.clear()
    site.client("ana").post(
        "/api/v1/quotes", json={"dataset": "readmissions", "questions": [AUC, CELLS]}
    )
    site.ask(AUC, artifact=site.client("ana").get("/api/v1/artifacts").json()[0]["id"], key="l")
    look(site)
    site.client("carol").get("/api/v1/ledger")
    assert site.client("ana").get(f"/api/v1/reports/{asked}.html").status_code == 200
    wrong = [told for told in site.said if told.status_code not in (200, 202)]
    assert [
        each.request.url.path for each in wrong if "/reports/" not in each.request.url.path
    ] == []
    site.service.close()


def test_rows_are_taken_from_nowhere_but_where_a_custodian_may(tmp_path: Path) -> None:
    """The server's own copies of others' rows have names that can be worked out."""
    (tmp_path / "allowed").mkdir()
    outside = write_rows(tmp_path / "rows.parquet", 20)
    (tmp_path / "allowed" / "link.parquet").symlink_to(outside)
    allowed: tuple[dict[str, Any], ...] = ({}, {"rows": tmp_path}, {"rows": tmp_path / "allowed"})
    for at, settings in enumerate(allowed):
        site = Watched(tmp_path / f"server{at}", **settings)
        site.opened(write_rows(tmp_path / "allowed" / "mine.parquet", 20))
        copied = next(site.service.settings.private.glob("rows-*.parquet"))
        wrong = [copied, copied.parent / ".." / "private" / copied.name]
        if settings == {"rows": tmp_path / "allowed"}:
            wrong += [outside, tmp_path / "allowed" / "link.parquet", Path("../rows.parquet")]
        for path in wrong:
            body = {
                "name": "again",
                "source": str(path),
                "declaration": {"label": "readmitted", "row_key": "admission"},
                "budget": "1",
            }
            headers = {"Prefer": "wait=0"}
            answer = site.client("carol").post("/api/v1/datasets", json=body, headers=headers)
            assert answer.status_code == 422, path
            assert "source must be" in answer.json()["detail"]
        site.service.close()


@pytest.mark.parametrize("settings", [{}, {"rows": "allowed"}], ids=["anywhere", "one folder"])
def test_no_pattern_and_no_folder_leads_to_rows_that_are_not_a_custodians(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    """A path says where it leads only once it is followed."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    outside = write_rows(tmp_path / "rows.parquet", 20)
    site = Watched(tmp_path / "server", **{name: tmp_path / at for name, at in settings.items()})
    site.opened(write_rows(allowed / "mine.parquet", 20))
    copied = next(site.service.settings.private.glob("rows-*.parquet"))
    wrong = [
        copied.parent.parent / "privat[e]" / copied.name,
        copied.parent.parent / "p*" / "rows-*.parquet",
        copied.parent.parent,
    ]
    if settings:
        (allowed / "link.parquet").symlink_to(outside)
        wrong = [allowed, allowed / "l*.parquet"]
    for at, path in enumerate(wrong):
        body = {
            "name": f"again{at}",
            "source": str(path),
            "declaration": {"label": "readmitted", "row_key": "admission", "new": True},
            "budget": "1",
        }
        site.client("carol").post(
            "/api/v1/datasets", json=body, headers={"Prefer": "wait=0"}
        ).raise_for_status()
        site.work()
        found = site.client("carol").get(f"/api/v1/datasets/again{at}").json()
        assert found["state"] == "refused", path
        assert "source must be" in found["words"], path
    site.service.close()


def test_the_servers_own_tables_are_nobodys_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that is broken, or is not, would tell a bit of everybody's answers each time."""
    site = Watched(tmp_path / "server")
    site.opened(write_rows(tmp_path / "rows.parquet", 20))
    query = "SELECT id AS k, 1 AS y FROM server_evaluations"
    body: dict[str, Any] = {
        "name": "answers",
        "source": {"database": "HELDOUT_SERVER_DATABASE", "query": query},
        "declaration": {"label": "y", "row_key": "k"},
        "budget": "1",
    }
    headers = {"Prefer": "wait=0"}
    answer = site.client("carol").post("/api/v1/datasets", json=body, headers=headers)
    assert answer.status_code == 422
    assert "not the server's" in answer.json()["detail"]
    site.service.close()

    own = "postgresql://heldout:secret@db/heldout"
    settings = Settings(folder=tmp_path, database=own)
    for address in (
        "postgresql+psycopg://heldout:other@db:5432/heldout?connect_timeout=3",
        "postgres://db/heldout?user=heldout",
        "postgresql:///?host=db&dbname=heldout&user=heldout",
    ):
        monkeypatch.setenv("ROWS_URL", address)
        with pytest.raises(ArgumentError, match="server's own tables") as caught:
            source_of({"database": "ROWS_URL", "query": query}, settings)
        assert "secret" not in str(caught.value)
    for address in ("postgresql://rows@db/heldout", "postgresql://heldout@db/clinic"):
        monkeypatch.setenv("ROWS_URL", address)
        source_of({"database": "ROWS_URL", "query": query}, settings)


@pytest.mark.parametrize("name", ["visits", "clinic.visits", "main.clinic.visits_2024", "年.龄"])
def test_a_table_of_spark_may_be_named(tmp_path: Path, name: str) -> None:
    assert checked_source({"spark": name}, Settings(folder=tmp_path)) == {"spark": name}


@pytest.mark.parametrize(
    "name",
    [
        "parquet.`/data/private/x.parquet`",
        "parquet.rows",
        "CSV.rows",
        "`a`",
        "a b",
        "a/b",
        "",
        "a;",
    ],
)
def test_a_file_is_no_table_of_spark(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArgumentError, match="spark must be the name of a table"):
        checked_source({"spark": name}, Settings(folder=tmp_path))


SOURCE = Path(__file__).parents[2] / "src" / "heldout"


def test_rows_are_opened_by_connections_that_spill_nothing_and_keep_one_time_zone() -> None:
    """`new_connection` sets both; a connection of DuckDB's own writes rows to disk in the clear."""
    ours = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if "duckdb.connect(" in path.read_text("utf-8")
    }
    assert ours == {"data/duckdb.py"}
