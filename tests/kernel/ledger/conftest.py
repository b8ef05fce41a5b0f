import pytest

from heldout.kernel import Budget, Event, Ledger


@pytest.fixture
def event():
    """One third of epsilon."""
    return Event("exponential", {"epsilon": "1/3"})


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
