"""Every attack of the corpus is refused, and stays harmless where the custodian runs it anyway."""

import importlib
from typing import Any

import pytest

from heldout.models.examine import examine

attacks: Any = importlib.import_module("attacks")

OUTSIDE = ("cannot be used", "cannot be read")


def test_the_corpus_is_large() -> None:
    assert len(attacks.ATTACKS) >= 100


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_no_attack_is_proven(name: str) -> None:
    found, _ = examine(attacks.ATTACKS[name](), output=None)
    assert found.get("unreadable") or found["problems"]
    words = found.get("unreadable") or found["problems"][0][1]
    assert 10 < len(words) < 300, "in words"
