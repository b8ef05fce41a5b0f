"""The engines that the same questions are put to: DuckDB, PostgreSQL and Spark.

PostgreSQL is tested where HELDOUT_TEST_POSTGRES is set (tools/with_postgres.sh sets it), Spark
where HELDOUT_TEST_SPARK is (make test-spark sets it: a JVM takes its time to start), and Spark
Connect where HELDOUT_TEST_CONNECT is its address. Under tools/with_cluster.py (make test-cluster)
both are asked of a standalone cluster, whose master HELDOUT_TEST_SPARK then names.
"""

import os
import secrets
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

ENGINES = [
    "postgres",
    "spark",
    "connect",
]
"""The fixtures of what is compared with DuckDB; each has `hold(table)`."""

POSTGRES_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE PRECISION",
    pa.string(): "TEXT",
    pa.date32(): "DATE",
}


class DuckDB:
    """An Arrow table in this process: what the others are compared with."""

    name = "duckdb"

    def hold(self, table: pa.Table) -> Any:
        return table


class Postgres:
    """A schema of its own on the test server."""

    name = "postgres"

    def __init__(self, connection: Any, address: str, schema: str) -> None:
        self.connection, self.address, self.schema = connection, address, schema

    def hold(self, table: pa.Table) -> Any:
        from psycopg import sql

        import heldout as ho

        name = f"t{secrets.token_hex(6)}"
        place = sql.Identifier(self.schema, name)
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_type(field.type)))
            for field in table.schema
        ]
        create = sql.SQL("CREATE TABLE {} ({})").format(place, sql.SQL(", ").join(columns))
        self.connection.execute(create)
        copy = sql.SQL("COPY {} FROM STDIN").format(place)
        with self.connection.cursor().copy(copy) as copied:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copied.write_row(row)
        return ho.PostgresTable(self.address, table=f"{self.schema}.{name}")


class Spark:
    """A local session with two threads."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self.session = session

    def hold(self, table: pa.Table) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        # Connect cannot tell the types of a table without rows.
        return self.session.createDataFrame(table, schema=from_arrow_schema(table.schema))


def _type(kind: Any) -> str:
    if pa.types.is_decimal(kind):
        return f"NUMERIC({kind.precision}, {kind.scale})"
    return POSTGRES_TYPES[kind]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    address = os.environ.get("HELDOUT_TEST_POSTGRES")
    if not address:
        pytest.skip("HELDOUT_TEST_POSTGRES is not set; tools/with_postgres.sh sets it")
    import psycopg

    schema = f"engines_{secrets.token_hex(6)}"
    plain = address.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        yield Postgres(connection, plain, schema)
        # Data sets of other tests may still be open and hold their tables.
        connection.execute("SET lock_timeout = '2s'")
        import contextlib

        with contextlib.suppress(psycopg.Error):
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    if not os.environ.get("HELDOUT_TEST_SPARK"):
        pytest.skip("HELDOUT_TEST_SPARK is not set; make test-spark sets it")
    from pyspark.sql import SparkSession

    master = os.environ["HELDOUT_TEST_SPARK"]
    master = master if master.startswith("spark://") else "local[2]"
    builder = SparkSession.builder.master(master).appName("heldout")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",  # a class for each of many small statements
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "512m",  # so that each worker of a small cluster has one
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.sql.ansi.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark(spark_session: Any) -> Spark:
    return Spark(spark_session)


@pytest.fixture(scope="session")
def connect_session(request: pytest.FixtureRequest) -> Iterator[Any]:
    address = os.environ.get("HELDOUT_TEST_CONNECT")
    if not address:
        pytest.skip("HELDOUT_TEST_CONNECT is not set; make test-cluster sets it")
    # A classic session forks to start its JVM, which gRPC's threads do not always survive.
    request.getfixturevalue("spark_session")
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(address).create()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect(connect_session: Any) -> Spark:
    return Spark(connect_session)


@pytest.fixture(scope="session")
def duckdb() -> DuckDB:
    return DuckDB()


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    """Each engine that is compared with DuckDB."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session", params=["duckdb", *ENGINES])
def any_engine(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)
