import os

import pytest

from heldout.privacy import Budget, Event, Ledger


@pytest.fixture
def event():
    """One third of epsilon."""
    return Event("exponential", {"epsilon": "1/3"})


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


@pytest.fixture(params=["memory", "file", "postgres"])
def where(request, tmp_path):
    """Each place where a ledger can live."""
    if request.param == "memory":
        return None
    if request.param == "file":
        return tmp_path / "ledger.sqlite"
    return request.getfixturevalue("postgres")


@pytest.fixture
def ledger(where):
    with Ledger.open(where) as opened:
        yield opened


@pytest.fixture
def account(ledger):
    return ledger.account(b"rows", budget=Budget(epsilon=1))
