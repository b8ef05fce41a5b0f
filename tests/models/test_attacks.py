"""Every attack of the corpus is refused; and the corpus has teeth."""

import importlib
from typing import Any

import numpy as np
import onnxruntime
import pytest

from heldout.models.verify import examine

attacks: Any = importlib.import_module("attacks")
swapping: Any = importlib.import_module("swapping")

LAST_THAT_MIXES = "trained_dropout"


def test_the_corpus_is_large() -> None:
    assert len(attacks.ATTACKS) >= 150


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_no_attack_is_proven(name: str) -> None:
    found, _ = examine(attacks.ATTACKS[name](), output=None)
    assert found.get("unreadable") or found["problems"]
    words = found.get("unreadable") or found["problems"][0][1]
    assert 10 < len(words) < 300, "in words"


def test_most_attacks_that_mix_rows_do_so_when_nobody_looks() -> None:
    source, leaking, names = np.random.default_rng(0), [], list(attacks.ATTACKS)
    for name in names[: names.index(LAST_THAT_MIXES)]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(
                attacks.ATTACKS[name](), options, providers=["CPUExecutionProvider"]
            )
        except Exception:
            continue
        (value,) = session.get_inputs()
        rows, others = (source.normal(size=(3, value.shape[1])).astype(np.float32) for _ in "ab")

        def run(cells: Any, session: Any = session, given: str = value.name) -> Any:
            return session.run(None, {given: cells})[0]

        leaking += [name] if swapping.leaks(run, rows, others) else []
    assert len(leaking) >= 30, leaking
