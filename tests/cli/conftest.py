"""Bundled data in a directory of its own, and the command line called in this process."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from heldout.cli import main
from heldout.examples import readmission

MODEL = (
    '{"coefficients": {"(Intercept)": -4, "age": 0.03, "prior_admissions": 0.2}, "link": "logit"}'
)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def bundled() -> pyarrow.Table:
    return readmission(2000)


@pytest.fixture(scope="session")
def tables_of_the_help(bundled: pyarrow.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with tables and a model, by the names that the help pages give them."""
    place = tmp_path_factory.mktemp("help")
    pyarrow.parquet.write_table(bundled, place / "test.parquet")
    pyarrow.csv.write_csv(bundled, place / "test.csv")
    flowers = {"species": list("abc") * 200, "pa": [0.6, 0.2, 0.2] * 200,
               "pb": [0.3, 0.5, 0.3] * 200, "pc": [0.1, 0.3, 0.5] * 200}  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table(flowers), place / "flowers.parquet")
    survey = {"y": [1, 0, 0, 1] * 300, "p": [0.9, 0.2, 0.6, 0.3] * 300,
              "w": [4.0, 1.0, 1.0, 2.0] * 300}  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table(survey), place / "survey.parquet")
    results = {"query": [each // 4 for each in range(1600)], "relevant": [1, 0, 1, 0] * 400,
               "p": [0.9, 0.7, 0.5, 0.2] * 400}  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table(results), place / "results.parquet")
    (place / "model.json").write_text(MODEL)
    return place


@pytest.fixture
def here(tmp_path: Path, tables_of_the_help: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with copies of them."""
    shutil.copytree(tables_of_the_help, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("HELDOUT_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def run(here: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> Outcome:
        capfd.readouterr()
        code = main(words)
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


EVALUATE = ("evaluate", "test.parquet", "--label", "readmitted", "--score", "risk_b")


@pytest.fixture
def evaluate(run: Run) -> Run:
    """`heldout evaluate` on the bundled data, with further words."""

    def call(*words: str) -> Outcome:
        return run(*EVALUATE, *words)

    return call
