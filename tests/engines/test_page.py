"""What docs/engines.md shows of a server is run where there is one."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heldout.examples import readmission

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engines.md"
BLOCK = re.compile(r"(<!-- run by tests/engines: (\w+) -->\n)?^```python\n(.*?)^```$", re.M | re.S)
ADDRESS = "postgresql://reader@db.example/clinic"


def run(engine: str, replaced: dict[str, str]) -> dict[str, Any]:
    """The page's blocks for files and for this engine, one after the other."""
    namespace: dict[str, Any] = {}
    for _, needed, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if needed in ("", engine):
            for old, new in replaced.items():
                text = text.replace(old, new)  # noqa: PLW2901
            exec(compile(text, "docs/engines.md", "exec"), namespace)
    return namespace


def stays() -> pa.Table:
    found = readmission()
    return found if isinstance(found, pa.Table) else pa.table(dict(found))


def test_the_example_with_postgresql_runs(
    postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = postgres.hold(stays()).table
    found = run("postgres", {ADDRESS: postgres.address, "public.stays": table})
    assert str(found["again"].remaining) == "epsilon 1"
    assert found["old"].public_rows is None


def test_the_example_with_spark_runs(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(stays(), tmp_path / "stays.parquet")
    monkeypatch.chdir(tmp_path)
    place = (tmp_path / "stays.parquet").as_uri()
    found = run("spark", {"stays.parquet": place})
    assert str(found["session"].remaining) == "epsilon 2"


def test_each_engine_has_an_example() -> None:
    assert {needed for _, needed, _ in BLOCK.findall(PAGE.read_text())} == {"", "postgres", "spark"}
    assert importlib.util.find_spec("heldout.data.spark") is not None
