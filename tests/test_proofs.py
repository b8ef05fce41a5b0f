"""Each claim has a proof; each proof has a claim, a test, and the source it was read against."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
CLAIM = re.compile(r"\[claim: ([a-z0-9-]+)\]")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:`?::`?(\w+))?`")


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
each_proof = pytest.mark.parametrize("proof", PROOFS, ids=lambda path: path.stem)


def _claims() -> set[str]:
    files = (ROOT / "src").rglob("*.py")
    return {claim for file in files for claim in CLAIM.findall(file.read_text(encoding="utf-8"))}


def test_every_claim_in_the_source_has_a_proof() -> None:
    assert _claims() - {path.stem for path in PROOFS} == set()


def test_every_proof_is_claimed_in_the_source() -> None:
    assert {path.stem for path in PROOFS} - _claims() == set()


@each_proof
def test_a_proof_opens_with_a_title_and_its_claim(proof: Path) -> None:
    title, *rest = [line for line in proof.read_text(encoding="utf-8").splitlines() if line]
    assert title.startswith("# ")
    assert rest[0] == f"Claim: `{proof.stem}`"


@each_proof
def test_a_proof_was_read_against_the_source_as_it_is_now(proof: Path) -> None:
    sources = list(hashes.sources(proof))
    lines = proof.read_text(encoding="utf-8").count("\nSource: ")
    assert sources, "a proof names the code that it proves"
    assert len(sources) == lines, "a Source line that the tool cannot read"
    stale = [str(source) for source in sources if source.stale]
    assert not stale, f"reread the proof, then tools/proof_hashes.py --write {proof.stem}"


@each_proof
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
    line = "Source: `src/heldout/statistics/base.py`::`rows_moved` sha256 `{}`\n"
    now = hashes.digest(hashes.find("src/heldout/statistics/base.py", "rows_moved"))
    proof = tmp_path / "proof.md"
    proof.write_text(line.format("0" * 16))
    assert [source.stale for source in hashes.sources(proof)] == [True]
    assert hashes.write(proof) == 1
    assert proof.read_text() == line.format(now)
    assert [source.stale for source in hashes.sources(proof)] == [False]


def test_methods_and_properties_can_be_proved() -> None:
    file = "src/heldout/mechanisms/discrete_laplace.py"
    names = ("DiscreteLaplace", "DiscreteLaplace.for_epsilon", "DiscreteLaplace.float_scale")
    found = {hashes.digest(hashes.find(file, name)) for name in names}
    assert len(found) == len(names)
