"""PostgreSQL: one snapshot, read only, with a time-out, and its password shown nowhere."""

import logging
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import heldout as ho
from heldout.cli import main
from heldout.errors import ArgumentError, MissingDependency, UnreadableTable
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import compute
from heldout.questions.counts import ThresholdCounts

SECRET = "canary5ecret"
ROWS = pa.table(
    {
        "visit": range(60),
        "y": [i % 3 % 2 for i in range(60)],
        "p": [i / 60 for i in range(60)],
        "q": [1 - i / 60 for i in range(60)],
    }
)
DECLARED: dict[str, Any] = {"label": "y", "score": "p", "row_key": "visit"}


@pytest.fixture
def held(postgres: Any) -> Any:
    return postgres.hold(ROWS)


@pytest.fixture
def place(held: Any) -> str:
    """schema."table", for statements of the test's own."""
    assert held.table is not None
    return str(held.table)


def counts(dataset: ho.Dataset) -> list[int]:
    """Negatives and positives; no score lies above 2."""
    found = unseal(compute(ThresholdCounts(thresholds=(2.0,)), dataset))
    return found[::2].tolist()  # type: ignore[no-any-return]


# --- what is named -------------------------------------------------------------------------------


def test_a_table_and_a_query_may_be_given_with_the_address(postgres: Any, place: str) -> None:
    whole = ho.Dataset(postgres.address, table=place, **DECLARED)
    some = ho.Dataset(
        postgres.address, query=f"SELECT * FROM {place} WHERE visit < 30 -- half\n", **DECLARED
    )
    assert (whole.public_rows, some.public_rows) == (60, 30)
    assert (whole.name, some.name) == (place, "query")
    assert sum(counts(some)) == 30
    assert (whole.remote, whole.dialect) == (True, "postgres")


def test_every_release_works_on_a_query_with_units(postgres: Any, place: str) -> None:
    query = f"WITH x AS (SELECT *, visit / 4 AS person FROM {place}) SELECT * FROM x ORDER BY p;"
    dataset = ho.Dataset(
        ho.PostgresTable(postgres.address, query=query),
        **DECLARED,
        rivals=["q"],
        unit="person",
        rows_per_unit=2,
    )
    session = ho.Session(dataset, budget=ho.Budget(epsilon=20))
    assert 0 <= session.auc(epsilon=2).value <= 1
    assert 0 <= session.average_precision(epsilon=2).value <= 1
    assert 0 <= session.confusion(epsilon=2).accuracy <= 1
    assert 0 <= session.brier(epsilon=2).value <= 1
    assert 0 <= session.curves(epsilon=2).auc <= 1
    assert -1 <= session.compare(score="q", epsilon=2).value <= 1
    assert "remaining" in session.report(epsilon=2).as_dict()


def test_the_other_workflows_read_a_database(postgres: Any, held: Any) -> None:
    plot = ho.regression.residual_plot(held, observed="y", predicted="p", row_key="visit",
                                       epsilon="1")  # fmt: skip
    assert str(plot.loss) == "epsilon 1"
    columns = ["visit", "y", "p", "q"]
    public = {name: ROWS[name].to_pylist() for name in columns}
    found = ho.private_separability(held, public, epsilon="1", row_key="visit")
    assert -1 <= found.value <= 1


@pytest.mark.parametrize("name", ["visits", "Visits", 'say "hi"', "a.b", "x; DROP TABLE y", "%s"])
def test_a_table_may_have_any_name(postgres: Any, name: str) -> None:
    from psycopg import sql

    quoted = '"' + name.replace('"', '""') + '"'
    where = sql.Identifier(postgres.schema, name)
    postgres.connection.execute(
        sql.SQL("CREATE TABLE {} AS SELECT 1 AS visit, 1 AS y, 0.5 AS p").format(where)
    )
    dataset = ho.Dataset(postgres.address, table=f"{postgres.schema}.{quoted}", **DECLARED)
    assert dataset.public_rows == 1


@pytest.mark.parametrize("table", ["", "a.b.c", "a..b", '"a', 'a"b', "a\0b", ".", 3])
def test_a_name_that_is_none_is_refused(table: Any) -> None:
    with pytest.raises(ArgumentError, match="table must be a name"):
        ho.PostgresTable("postgresql://h/d", table=table)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "DELETE FROM t",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "SELECT 1) AS x, (SELECT 2",
        "COPY t TO '/tmp/x'",
        "SELECT random() AS p",
        "SELECT * FROM t TABLESAMPLE SYSTEM (10)",
        "SELECT gen_random_uuid() AS visit",
        "SELECT clock_timestamp() AS visit",
        "SELECT 'a\0'",
        7,
    ],
)
def test_a_query_that_is_not_one_steady_select_is_refused(query: Any) -> None:
    with pytest.raises(ArgumentError, match="query must"):
        ho.PostgresTable("postgresql://h/d", query=query)


def test_what_is_missing_is_named(postgres: Any, place: str) -> None:
    with pytest.raises(ArgumentError, match="table= or query="):
        ho.Dataset(postgres.address, **DECLARED)
    with pytest.raises(ArgumentError, match="either table= or query="):
        ho.PostgresTable(postgres.address)
    with pytest.raises(ArgumentError, match="either table= or query="):
        ho.PostgresTable(postgres.address, table="a", query="SELECT 1")
    with pytest.raises(ArgumentError, match="address must begin"):
        ho.PostgresTable("rows.parquet", table="a")
    with pytest.raises(ArgumentError, match="schema= is for CSV files only"):
        ho.Dataset(postgres.address, table=place, schema={"y": "INT"}, **DECLARED)
    for table, why in (("no_such", "no such table"), ("no_such.t", "no such (table|schema)")):
        with pytest.raises(UnreadableTable, match=why):
            ho.Dataset(postgres.address, table=table, **DECLARED)
    with pytest.raises(UnreadableTable, match="column that the query names"):
        ho.Dataset(postgres.address, query=f"SELECT nothing FROM {place}", **DECLARED)


# --- the snapshot --------------------------------------------------------------------------------


def test_what_others_write_is_not_seen(postgres: Any, held: Any, place: str) -> None:
    session = ho.Session(ho.Dataset(held, **DECLARED), budget=ho.Budget(epsilon=1))
    before = counts(session._table)
    postgres.connection.execute(f"INSERT INTO {place} VALUES (99, NULL, 'NaN', 7)")
    postgres.connection.execute(f"UPDATE {place} SET p = 17, y = 5")
    postgres.connection.execute(f"DELETE FROM {place} WHERE visit < 20")
    assert not session._table.has_changed()
    assert counts(session._table) == before
    session.brier(epsilon="1/2")
    with pytest.raises(ho.errors.DataError):
        ho.Dataset(held, **DECLARED)


def test_a_lost_connection_is_refused_and_nothing_is_charged(postgres: Any, held: Any) -> None:
    session = ho.Session(ho.Dataset(held, **DECLARED), budget=ho.Budget(epsilon=1))
    session.confusion(epsilon="1/4")
    me = session._table._engine._connection.info.backend_pid
    postgres.connection.execute("SELECT pg_terminate_backend(%s)", (me,))
    with pytest.raises(UnreadableTable, match="connection must last"):
        session.confusion(epsilon="1/4")
    assert session.spent == ho.Loss.pure("1/4")


@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_a_snapshot_that_ended_is_never_replaced_by_another(held: Any, end: str) -> None:
    dataset = ho.Dataset(held, **DECLARED)
    getattr(dataset._engine._connection, end)()
    assert dataset.has_changed()
    with pytest.raises(UnreadableTable, match="in the transaction"):
        dataset._engine.fetch(f"SELECT count(*) AS n FROM {dataset._engine.source}")


def test_a_forked_child_is_refused_and_leaves_the_parent_alone(held: Any) -> None:
    dataset = ho.Dataset(held, **DECLARED)
    before = counts(dataset)
    child = os.fork()
    if child == 0:
        refused = dataset.has_changed()
        del dataset
        os._exit(0 if refused else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert counts(dataset) == before


def test_the_connection_ends_with_the_data_set(postgres: Any, held: Any) -> None:
    dataset = ho.Dataset(held, **DECLARED)
    me = dataset._engine._connection.info.backend_pid
    asked = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    assert postgres.connection.execute(asked, (me,)).fetchone()[0] == 1
    del dataset
    for _ in range(200):
        if postgres.connection.execute(asked, (me,)).fetchone()[0] == 0:
            return
    pytest.fail("the connection is still there")


def test_nothing_can_be_written(postgres: Any, place: str) -> None:
    """Not even by a function that the query calls."""
    name = f"{postgres.schema}.meddle"
    postgres.connection.execute(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS integer LANGUAGE sql AS"
        f" $$ INSERT INTO {place} VALUES (777, 1, 0.5, 0.5) RETURNING visit::integer $$"
    )
    with pytest.raises(UnreadableTable):
        ho.Dataset(postgres.address, query=f"SELECT *, {name}() AS x FROM {place}", **DECLARED)
    changing = f"WITH gone AS (DELETE FROM {place} RETURNING *) SELECT * FROM gone"
    with pytest.raises(UnreadableTable):
        ho.Dataset(postgres.address, query=changing, **DECLARED)
    found = postgres.connection.execute(f"SELECT count(*) FROM {place}").fetchone()
    assert found[0] == 60


def test_a_statement_that_takes_too_long_is_ended(postgres: Any, place: str) -> None:
    slow = f"SELECT visit, y, p + length(pg_sleep(0.2)::text) AS p FROM {place}"
    source = ho.PostgresTable(postgres.address, query=slow, timeout=0.1)
    with pytest.raises(UnreadableTable, match="longer than the time-out"):
        ho.Dataset(source, **DECLARED)
    for timeout in (0, -1, "1", True, None, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="timeout"):
            ho.PostgresTable(postgres.address, query=slow, timeout=timeout)  # type: ignore[arg-type]


def test_the_snapshot_outlives_a_statement_that_fails(held: Any) -> None:
    dataset = ho.Dataset(held, **DECLARED)
    before = counts(dataset)
    with pytest.raises(UnreadableTable):
        dataset._fetch("SELECT 1 // (label - label) AS n FROM evaluated")
    assert not dataset.has_changed()
    assert counts(dataset) == before


# --- the secret ----------------------------------------------------------------------------------


@pytest.fixture
def secret(postgres: Any, place: str) -> Any:
    """Addresses with a password in them, where it may be written."""
    from psycopg.conninfo import conninfo_to_dict

    user = f"canary_{postgres.schema}"
    found = conninfo_to_dict(postgres.address)
    where = f"{found['host']}:{found['port']}/{found['dbname']}"
    have = postgres.connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (user,))
    if have.fetchone() is None:
        postgres.connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{SECRET}'")
    postgres.connection.execute(f"GRANT USAGE ON SCHEMA {postgres.schema} TO {user}")
    postgres.connection.execute(f"GRANT SELECT ON {place} TO {user}")
    yield [f"postgresql://{user}:{SECRET}@{where}",
           f"postgres://{user}@{where}?password={SECRET}"]  # fmt: skip
    postgres.connection.execute(f"REVOKE ALL ON {place} FROM {user}")


def shown(error: BaseException) -> str:
    text = "".join(traceback.format_exception(error))
    return text + "".join(f"{each!r}" for each in (error, error.__cause__, error.__context__))


def test_the_password_is_in_no_answer(
    secret: list[str], place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    for number, address in enumerate(secret):
        source = ho.PostgresTable(address, table=place)
        dataset = ho.Dataset(source, **DECLARED)
        session = ho.Session(dataset, budget=ho.Budget(epsilon=9), ledger=tmp_path / f"{number}.db")
        report = session.report(epsilon=1)
        report.save(tmp_path / f"{number}.html")
        texts = [repr(source), str(source), repr(dataset), dataset.name, repr(session),
                 str(report.as_dict()), repr(dataset._engine)]  # fmt: skip
        assert not any(SECRET in text for text in texts)
        with pytest.raises(TypeError):
            source.__getstate__()
    for file in tmp_path.iterdir():
        assert SECRET.encode() not in file.read_bytes(), file.name
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda address: address.replace("127.0.0.1", "127.0.0.1.invalid"),
        lambda address: address.replace("/postgres", "/no_such_database"),
        lambda address: address.replace("canary_", "nobody_"),
        lambda address: address + ("&" if "?" in address else "?") + f"{SECRET}=1",
        lambda address: address.replace("127.0.0.1", "127.0.0.1:99999"),
        lambda address: address.replace(SECRET, f"{SECRET}%zz"),
    ],
)
def test_the_password_is_in_no_error(secret: list[str], place: str, spoil: Any) -> None:
    for address in secret:
        with pytest.raises(ho.errors.HeldoutError) as caught:
            ho.Dataset(spoil(address), table=place, **DECLARED)
        assert SECRET not in shown(caught.value)
        assert caught.value.__context__ is None


def test_the_command_line_reads_a_database_and_hides_the_password(
    secret: list[str], place: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = ["--label", "y", "--score", "p", "--row-key", "visit", "--epsilon", "1"]
    for address in secret:
        assert main(["evaluate", address, "--table", place, *plain, "--json", "--yes"]) == 0
        assert main(["curves", address, "--query", f"SELECT * FROM {place}", *plain, "--yes"]) == 0
        assert main(["compare", address, "--table", place, "--rival", "q", "--yes", *plain]) == 0
        good = capsys.readouterr()
        assert '"rows": 60' in good.out
        for wrong in (
            [],
            ["--table", "no_such"],
            ["--table", place, "--query", "SELECT 1"],
            ["--table", place, address],
            ["--table", place, "--no-such"],
            ["--query", "DROP TABLE x"],
        ):
            assert main(["evaluate", address, *plain, *wrong]) == 2
        assert main(["evaluate", "rows.csv", "--table", place, *plain]) == 2
        bad = capsys.readouterr()
        for text in (good.out, good.err, bad.out, bad.err):
            assert SECRET not in text
        assert "Traceback" not in bad.err


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependency, match=r"heldout\[postgres\]"):
        ho.Dataset("postgresql://nowhere/x", table="t", **DECLARED)


def test_texts_are_compared_by_their_bytes_whatever_the_collation(postgres: Any) -> None:
    """A collation in which a = A would call two people one."""
    name = f"{postgres.schema}.collated"
    postgres.connection.execute(
        f"CREATE COLLATION {postgres.schema}.careless"
        " (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    careless = f'TEXT COLLATE "{postgres.schema}"."careless"'
    postgres.connection.execute(f"CREATE TABLE {name} (visit {careless}, y {careless}, p FLOAT)")
    postgres.connection.execute(
        f"INSERT INTO {name} VALUES ('a', 'Yes', 0.25), ('A', 'Yes', 0.5), ('é', 'No', 0.75)"
    )
    declared = DECLARED | {"positive": "Yes", "negative": "No", "unit": "visit"}
    dataset = ho.Dataset(postgres.address, table=name, **declared)
    assert counts(dataset) == [1, 2]
    with pytest.raises(ho.errors.UnknownLabel):
        ho.Dataset(postgres.address, table=name, **(declared | {"positive": "yes"}))


# --- what other users of the database made -------------------------------------------------------


@pytest.fixture
def planted(postgres: Any) -> Any:
    """In schema public, where any user may be allowed to create: better fits for our statements."""
    sees = "BEGIN PERFORM pg_catalog.pg_try_advisory_lock(77, {what}); RETURN {value}; END"
    functions = {
        "spy(a BIGINT, b INTEGER) RETURNS BIGINT": ("int8smaller(a, 99)::int", "int8mod(a, b)"),
        "md5(a VARCHAR) RETURNS TEXT": ("length(a)", "pg_catalog.md5(a::text)"),
    }
    execute = postgres.connection.execute
    for head, (what, value) in functions.items():
        body = sees.format(what=what, value=value)
        execute(f"CREATE FUNCTION public.{head} LANGUAGE plpgsql AS $${body}$$")
    execute(
        "CREATE OPERATOR public.% (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = public.spy)"
    )

    def seen() -> list[int]:
        locks = "SELECT objid::int FROM pg_locks WHERE locktype = 'advisory' AND classid = 77"
        return [row[0] for row in execute(locks).fetchall()]

    yield seen
    execute("DROP OPERATOR public.% (bigint, integer)")
    for head in functions:
        execute(f"DROP FUNCTION public.{head.split(') ')[0]})")


def test_what_another_user_plants_in_public_sees_no_key(
    postgres: Any, place: str, planted: Any
) -> None:
    assert postgres.connection.execute("SELECT 9::bigint % 4").fetchone() == (1,)
    assert planted() == [9], "the plant does see what is asked without care"
    postgres.connection.execute("SELECT pg_advisory_unlock_all()")
    text = f"SELECT *, 'v' || visit AS code FROM {place}"
    for source, key in (
        (ho.PostgresTable(postgres.address, table=place), "visit"),
        (ho.PostgresTable(postgres.address, query=text), "code"),
    ):
        declared = DECLARED | {"row_key": key, "unit": "visit"}
        dataset = ho.Dataset(source, **declared)
        assert sum(counts(dataset)) == 60
        assert planted() == []


def test_a_bare_name_is_looked_up_once_and_means_that_table(postgres: Any, place: str) -> None:
    schema, name = place.split(".")
    address = f"{postgres.address}?options=-csearch_path%3D{schema},public"
    bare = ho.Dataset(address, table=name, **DECLARED)
    query = (
        f"WITH part AS (SELECT * FROM {name}) SELECT * FROM part JOIN {name} USING (visit,y,p,q)"
    )
    queried = ho.Dataset(address, query=query, **DECLARED)
    assert (bare.public_rows, queried.public_rows) == (60, 60)
    assert f'"{schema}"' in bare.statement("SELECT 1")
    with pytest.raises(UnreadableTable, match="no such table"):
        ho.Dataset(postgres.address, table=name, **DECLARED)
    with pytest.raises(UnreadableTable, match="no such table"):
        ho.Dataset(postgres.address, query=f"SELECT * FROM {name}", **DECLARED)


@pytest.mark.parametrize("column", ["visit", "y", "p"])
@pytest.mark.parametrize("kind", ["query", "view"])
def test_a_second_reading_that_differs_is_refused(
    postgres: Any, place: str, column: str, kind: str
) -> None:
    """A function may draw at random whatever it is called."""
    schema = postgres.schema
    drawn = {
        "visit": "trunc(random() * 1e9)::int",
        "y": "trunc(random() * 2)::int",
        "p": "random()",
    }
    draw = f"{schema}.steady_{column}"
    kinds = {"visit": "INTEGER", "y": "INTEGER", "p": "DOUBLE PRECISION"}
    postgres.connection.execute(
        f"CREATE OR REPLACE FUNCTION {draw}() RETURNS {kinds[column]} LANGUAGE sql"
        f" AS 'SELECT {drawn[column]}'"
    )
    kept = ", ".join(each for each in ("visit", "y", "p") if each != column)
    query = f"SELECT {kept}, {draw}() AS {column} FROM {place}"
    source = {"query": query}
    if kind == "view":
        postgres.connection.execute(f"CREATE OR REPLACE VIEW {schema}.v_{column} AS {query}")
        source = {"table": f"{schema}.v_{column}"}
    with pytest.raises(ArgumentError, match="second reading"):
        ho.Dataset(postgres.address, **source, **DECLARED)


# --- rivals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("age", [39, 40])
def test_no_private_value_decides_between_an_answer_and_a_failure(
    postgres: Any, place: str, age: int
) -> None:
    """The rival 1 / (age - 40) fails on a patient of forty, and on no other."""
    query = f"SELECT *, 1.0 / (CASE WHEN visit = 7 THEN {age} ELSE 20 END - 40) AS r FROM {place}"
    source = ho.PostgresTable(postgres.address, query=query)
    session = ho.Session(ho.Dataset(source, **DECLARED), budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="declared rivals"):
        session.compare(score="r", epsilon=1)
    assert str(session.remaining) == "epsilon 1"
    declared = DECLARED | {"rivals": ["r"], "out_of_range": "clip"}
    if age == 40:
        with pytest.raises(UnreadableTable):
            ho.Dataset(source, **declared)
    else:
        session = ho.Session(ho.Dataset(source, **declared), budget=ho.Budget(epsilon=1))
        assert -1 <= session.compare(score="r", epsilon=1).value <= 1


def test_a_partitioned_table_is_one_table_and_a_snapshot(postgres: Any) -> None:
    place = f"{postgres.schema}.parted"
    run = postgres.connection.execute
    run(f"CREATE TABLE {place} (visit INT, y INT, p FLOAT8, ward TEXT) PARTITION BY LIST (ward)")
    for ward in ("a", "b"):
        run(f"CREATE TABLE {place}_{ward} PARTITION OF {place} FOR VALUES IN ('{ward}')")
    run(
        f"INSERT INTO {place} SELECT i, i % 2, i / 100.0, CASE WHEN i < 40 THEN 'a' ELSE 'b' END "
        "FROM generate_series(0, 99) AS t(i)"
    )
    dataset = ho.Dataset(
        ho.PostgresTable(postgres.address, table=place),
        label="y",
        score="p",
        row_key="visit",
        groups={"ward": ["a", "b"]},
    )
    run(f"INSERT INTO {place} VALUES (100, 1, 0.5, 'a')")
    assert dataset.public_rows == 100
    body = "SELECT member, count(*) AS n FROM evaluated GROUP BY 1 ORDER BY 1"
    assert dataset.with_groups("ward")._fetch(body)["n"].tolist() == [40, 60]


# --- what a role or a table brings with it --------------------------------------------------------


@pytest.mark.parametrize("name", ["anna", "年"])
def test_no_character_of_a_cell_decides_between_an_answer_and_a_failure(
    postgres: Any, place: str, name: str
) -> None:
    """To a client in another encoding the server sends no cell that the encoding lacks."""
    query = f"SELECT visit, CASE WHEN visit = 7 THEN '{name}' ELSE 'bob' END AS who FROM {place}"
    source = ho.PostgresTable(f"{postgres.address}?client_encoding=LATIN1", query=query)
    public = {"visit": list(range(60)), "who": ["anna", "bob"] * 30}
    found = ho.private_separability(source, public, epsilon="1", row_key="visit")
    assert -1 <= found.value <= 1


@pytest.mark.parametrize("key", ["unit", "row_key"])
def test_a_key_that_is_not_a_number_is_refused_in_decimals_too(
    postgres: Any, place: str, key: str
) -> None:
    odd = (
        f"(CASE visit WHEN 7 THEN 'NaN' ELSE visit::numeric END)::numeric(400, 0) AS k FROM {place}"
    )
    source = ho.PostgresTable(postgres.address, query=f"SELECT *, {odd}")
    with pytest.raises(ho.errors.MissingUnit, match="'k' must not be NULL or NaN"):
        ho.Dataset(source, **(DECLARED | {key: "k"}))


def test_a_table_whose_policy_draws_at_random_is_read_twice_and_refused(
    postgres: Any, place: str, secret: list[str]
) -> None:
    postgres.connection.execute(f"ALTER TABLE {place} ENABLE ROW LEVEL SECURITY")
    postgres.connection.execute(f"CREATE POLICY steady ON {place} USING (visit < 30)")
    assert ho.Dataset(secret[0], table=place, **DECLARED).public_rows == 30
    postgres.connection.execute(f"ALTER POLICY steady ON {place} USING (random() < 0.5)")
    with pytest.raises(ArgumentError, match="second reading gave others"):
        ho.Dataset(secret[0], table=place, **DECLARED)


def test_a_table_with_a_part_elsewhere_is_not_taken_for_steady(postgres: Any) -> None:
    run, name = postgres.connection.execute, f"{postgres.schema}.wards"
    run("CREATE EXTENSION IF NOT EXISTS file_fdw")
    run("CREATE SERVER IF NOT EXISTS elsewhere FOREIGN DATA WRAPPER file_fdw")
    run(f"CREATE TABLE {name} (visit INT, y INT, p FLOAT8) PARTITION BY RANGE (visit)")
    run(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (10)")
    run(f"INSERT INTO {name} VALUES (1, 1, 0.5), (2, 0, 0.25)")
    assert ho.Dataset(postgres.address, table=name, **DECLARED)._engine.steady
    run(
        f"CREATE FOREIGN TABLE {name}_2 PARTITION OF {name} FOR VALUES FROM (10) TO (20)"
        " SERVER elsewhere OPTIONS (filename '/dev/null')"
    )
    assert not ho.Dataset(postgres.address, table=name, **DECLARED)._engine.steady
