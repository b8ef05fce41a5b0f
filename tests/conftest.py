import os
import sys
import weakref

import numpy as np
import pytest

from heldout.data import duckdb

NEW_CONNECTION = duckdb.new_connection


@pytest.fixture(autouse=True)
def _own_numbers(request):
    """A module's generators begin anew with each test.

    Else its numbers depend on which tests the same process ran before, and with two processes that
    is a matter of chance.
    """
    module = request.node.getparent(pytest.Module)
    names = {} if module is None else vars(module.obj)
    found = [each for each in names.values() if isinstance(each, np.random.Generator)]
    if found:
        begun = names.setdefault("_BEGUN", [each.bit_generator.state for each in found])
        for each, state in zip(found, begun, strict=True):
            each.bit_generator.state = state


class Connections:
    """DuckDB's connections of frames that are gone, emptied: a new one takes 10 ms.

    Thousands of tests copy a few rows into one. Files get new ones, and so do forked processes,
    where DuckDB's threads are missing.
    """

    def __init__(self):
        self.free = []
        self.process = os.getpid()

    def take(self):
        while self.free and os.getpid() == self.process:
            connection = self.free.pop()
            if sys.getrefcount(connection) == 2:  # here and in the call: nobody else has it
                connection.execute("DROP TABLE IF EXISTS heldout_rows")
                return connection
        return NEW_CONNECTION()

    def watch(self, engine):
        if engine.source == "heldout_rows" and engine.ordered and os.getpid() == self.process:
            weakref.finalize(engine, self.free.append, engine._connection).atexit = False


@pytest.fixture(scope="session", autouse=True)
def _used_connections():
    used = Connections()
    begin = duckdb.DuckDBEngine.__init__

    def watched(engine, *arguments, **named):
        begin(engine, *arguments, **named)
        used.watch(engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "new_connection", used.take)
        patch.setattr(duckdb.DuckDBEngine, "__init__", watched)
        yield used


def _run(statement):
    import sqlalchemy as sa

    engine = sa.create_engine(os.environ["HELDOUT_TEST_POSTGRES"], isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def new_schema():
    """The name of a clean schema on the test server, and its address."""
    import secrets

    schema = f"test_{secrets.token_hex(6)}"
    _run(f"CREATE SCHEMA {schema}")
    return schema, f"{os.environ['HELDOUT_TEST_POSTGRES']}?options=-csearch_path%3D{schema}"


@pytest.fixture
def postgres():
    """A clean schema on the test server, as its address."""
    if not os.environ.get("HELDOUT_TEST_POSTGRES"):
        pytest.skip("HELDOUT_TEST_POSTGRES is not set; tools/with_postgres.sh sets it")
    schema, address = new_schema()
    yield address
    _run(f"DROP SCHEMA {schema} CASCADE")
