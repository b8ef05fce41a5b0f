"""`heldout separability` for the custodian, and with a price for everybody."""

import json
from pathlib import Path

import numpy as np
import pytest

from heldout.cli.presets import separability
from heldout.errors import ArgumentError, BudgetExceeded


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    rng = np.random.default_rng(6)
    truth = rng.poisson(0.3, (400, 4))
    noisy = np.maximum(np.rint(truth + rng.laplace(0, 2, truth.shape)), 0)
    keys = np.arange(400)[:, None]
    paths = tmp_path / "truth.csv", tmp_path / "privatized.csv"
    for path, table in zip(paths, (truth, noisy), strict=True):
        content = np.hstack([keys % 8, keys % 12, table])
        header = "area,month,a,b,c,d"
        np.savetxt(path, content, delimiter=",", header=header, comments="", fmt="%d")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return paths


def test_the_custodian_gets_a_sentence_a_table_and_a_page(tables, capsys):
    out = tables[0].with_name("report.html")
    separability(*tables, groups="area,month", out=out, random_state=1, shuffles=5)
    shown = capsys.readouterr().out
    assert shown.count("for the custodian only") >= 3
    assert "Separability 0." in shown
    assert "Lost zeros" in shown
    assert "area: variance" in shown
    assert "month: variance" in shown
    assert "For the custodian only" in out.read_text(encoding="utf-8")


def test_json_is_json_alone_and_says_whom_it_is_for(tables, capsys):
    separability(*tables, ignore="area,month", random_state=1, shuffles=5, as_json=True)
    content = json.loads(capsys.readouterr().out)
    assert content["audience"].startswith("for the custodian only")
    assert content["columns"] == 4


def test_with_a_price_the_number_is_private_and_booked(tables, capsys):
    words = {"ignore": "area,month", "epsilon": "1", "ledger": "ledger.sqlite"}
    separability(*tables, **words, budget="3/2", as_json=True)
    content = json.loads(capsys.readouterr().out)
    assert content["loss"]["epsilon"] == "1"
    assert content["claim"] == "joint-separability"
    assert "audience" not in content
    with pytest.raises(BudgetExceeded):
        separability(*tables, **words)
    separability(*tables, ignore="area,month", epsilon="1/2", ledger="ledger.sqlite")
    assert "This may be published" in capsys.readouterr().out


def test_what_belongs_to_the_other_version_is_refused(tables):
    with pytest.raises(ArgumentError, match="--groups and --out must be left out"):
        separability(*tables, epsilon="1", groups="area")
    with pytest.raises(ArgumentError, match="--epsilon must be given"):
        separability(*tables, ledger="ledger.sqlite")
