import os
import sys

import numpy as np
import pytest
from duckdb import ConnectionException

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
    """DuckDB's connections of data sets that are gone, emptied: a new one takes 10 ms.

    Thousands of tests open a few rows. Forked processes get new ones: DuckDB's threads are missing.
    """

    def __init__(self):
        self.given = []
        self.process = os.getpid()

    def take(self):
        if os.getpid() != self.process:
            return NEW_CONNECTION()
        for connection in self.given:
            if sys.getrefcount(connection) == 3 and _emptied(connection):  # nobody else has it
                return connection
        self.given.append(NEW_CONNECTION())
        return self.given[-1]


def _emptied(connection):
    """Whether it is open still, and has no rows now."""
    try:
        connection.unregister("heldout_incoming")
        connection.execute("DROP TABLE IF EXISTS heldout_rows")
    except ConnectionException:
        return False
    return True


@pytest.fixture(scope="session", autouse=True)
def _used_connections():
    used = Connections()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "new_connection", used.take)
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
