import os

import pytest


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
