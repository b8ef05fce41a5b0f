"""One bundled data set, and sessions on it."""

from collections.abc import Callable
from typing import Any

import pytest

from heldout import Budget, Dataset, Session
from heldout.examples import readmission

MakeSession = Callable[..., Session]


@pytest.fixture(scope="session")
def bundled() -> Any:
    return readmission(2000)


@pytest.fixture
def make_session(bundled: Any) -> MakeSession:
    def make(*, epsilon: object = 3, **declared: Any) -> Session:
        facts = {"label": "readmitted", "score": "risk_b", "name": "stays", **declared}
        return Session(Dataset(bundled, **facts), budget=Budget(epsilon=epsilon))

    return make
