"""Each claim has a proof; each proof has a claim, a test, and the source it was read against."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.source import each_of

import heldout as ho
from heldout.errors import BudgetExceeded
from heldout.kernel.noise import DiscreteLaplace

ROOT = Path(__file__).resolve().parent.parent
CLAIM = re.compile(r"\[claim: ([a-z0-9-]+)\]")
TEST = re.compile(r"\b(tests/[\w/]+\.py)(?:`?::`?(\w+))?")


def _tool(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


hashes = _tool("proof_hashes")
PROOFS = hashes.proofs()


def _claims() -> set[str]:
    files = (ROOT / "src").rglob("*.py")
    return {claim for file in files for claim in CLAIM.findall(file.read_text(encoding="utf-8"))}


def test_every_claim_in_the_source_has_a_proof() -> None:
    assert _claims() - {path.stem for path in PROOFS} == set()


def test_every_proof_is_claimed_in_the_source() -> None:
    assert {path.stem for path in PROOFS} - _claims() == set()


@each_of(PROOFS)
def test_a_proof_opens_with_a_title_and_its_claim(proof: Path) -> None:
    title, *rest = [line for line in proof.read_text(encoding="utf-8").splitlines() if line]
    assert title.startswith("# ")
    assert rest[0] == f"Claim: `{proof.stem}`"


@each_of(PROOFS)
def test_a_proof_was_read_against_the_source_as_it_is_now(proof: Path) -> None:
    sources = list(hashes.sources(proof))
    lines = proof.read_text(encoding="utf-8").count("\nSource: ")
    assert sources, "a proof names the code that it proves"
    assert len(sources) == lines, "a Source line that the tool cannot read"
    stale = [str(source) for source in sources if source.stale]
    assert not stale, f"reread the proof, then tools/proof_hashes.py --write {proof.stem}"


@each_of(PROOFS)
def test_a_proof_names_a_test_that_can_falsify_it(proof: Path) -> None:
    named = TEST.findall(proof.read_text(encoding="utf-8"))
    assert named
    for file, function in named:
        assert (ROOT / file).is_file(), file
        if function:
            assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), function


def test_the_page_of_proofs_lists_them_all() -> None:
    page = hashes.PAGE.read_text(encoding="utf-8")
    assert page == hashes.listed(page), "run tools/proof_hashes.py --write"
    assert all(f"]({proof.name})" in page for proof in PROOFS)


def test_a_changed_source_makes_a_proof_stale(tmp_path: Path) -> None:
    line = "Source: `src/heldout/kernel/statistic.py`::`compute` sha256 `{}`\n"
    now = hashes.digest(hashes.find("src/heldout/kernel/statistic.py", "compute"))
    proof = tmp_path / "proof.md"
    proof.write_text(line.format("0" * 16))
    assert [source.stale for source in hashes.sources(proof)] == [True]
    assert hashes.write(proof) == 1
    assert proof.read_text() == line.format(now)
    assert [source.stale for source in hashes.sources(proof)] == [False]


def test_methods_and_properties_can_be_proved() -> None:
    file = "src/heldout/kernel/noise/additive.py"
    names = ("DiscreteLaplace", "DiscreteLaplace.for_epsilon", "DiscreteLaplace.float_scale")
    found = {hashes.digest(hashes.find(file, name)) for name in names}
    assert len(found) == len(names)


# --- facts that the proofs lean on ---------------------------------------------------------------


def test_only_statistics_ask_for_exact_columns() -> None:
    """And one tool for the custodian's own eyes, which tells how exposed a published number is.

    The private matrix of features overrides what it answers, and asks its own base; so does a
    data set, which keeps the score table between two releases, and rows that a forecast made up.
    """
    asking = {
        path.relative_to(ROOT / "src" / "heldout").as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"\._fetch\(", path.read_text(encoding="utf-8"))
    }
    assert asking == {
        "kernel/statistic.py",
        "audit/attacks.py",
        "data/dataset.py",
        "data/feature_matrix.py",
        "data/measured.py",
    }


def _session() -> Any:
    rows = {"y": [1, 0] * 50, "p": [0.8, 0.3] * 50}
    return ho.Session(ho.Dataset(rows, label="y", score="p"), budget=ho.Budget(epsilon="1"))


def _watch(monkeypatch: pytest.MonkeyPatch, session: Any) -> list[str]:
    """Which steps are taken, in which order."""
    steps: list[str] = []

    def noted(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def step(*arguments: Any, **named: Any) -> Any:
            steps.append(name)
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, step)

    noted(session._ledger, "book")
    noted(session._table, "_fetch")
    noted(DiscreteLaplace, "sample")
    return steps


def test_a_price_is_booked_before_rows_are_read_and_noise_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = _session()
    steps = _watch(monkeypatch, session)
    session.confusion(threshold=0.5, epsilon="1/2")
    assert steps == ["book", "_fetch", "sample"]


def test_a_refused_request_reads_nothing_draws_nothing_and_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = _session()
    steps = _watch(monkeypatch, session)
    with pytest.raises(BudgetExceeded):
        session.confusion(threshold=0.5, epsilon="2")
    assert steps == ["book"]
    assert str(session.remaining) == "epsilon 1"


@pytest.mark.parametrize("step", ["_fetch", "sample"])
def test_what_dies_after_the_booking_stays_booked(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _session()

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session._table if step == "_fetch" else DiscreteLaplace, step, die)
    with pytest.raises(KeyboardInterrupt):
        session.confusion(threshold=0.5, epsilon="1/4")
    assert str(session.remaining) == "epsilon 0.75"


def test_a_misspelt_proof_is_shown_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert hashes.main(["--write", "one-dor"]) != 0
    assert capsys.readouterr().out == "no such proof: one-dor. Did you mean one-door?\n"
