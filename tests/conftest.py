import os

import pytest


@pytest.fixture
def postgres():
    """A clean schema on the test server, and its address."""
    address = os.environ.get("HELDOUT_TEST_POSTGRES")
    if not address:
        pytest.skip("HELDOUT_TEST_POSTGRES is not set; tools/with_postgres.sh sets it")
    import secrets

    import sqlalchemy as sa

    schema = f"test_{secrets.token_hex(6)}"
    engine = sa.create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
    yield f"{address}?options=-csearch_path%3D{schema}"
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
    engine.dispose()
