"""What docs/custodian.md shows of other libraries is run where they are installed."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import heldout as ho
from heldout.examples import readmission

PAGE = Path(__file__).resolve().parents[2] / "docs" / "custodian.md"
BLOCK = re.compile(
    r"<!-- run by tests/models: (\w+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
BLOCKS = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
COLUMNS = ["age", "haemoglobin", "creatinine"]


def test_the_page_shows_every_library() -> None:
    assert set(BLOCKS) == {"xgboost", "lightgbm", "torch", "R"}


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "torch"])
@pytest.mark.filterwarnings("ignore")
def test_a_model_exported_as_shown_is_proven(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = (library, "onnxscript" if library == "torch" else "onnxmltools")
    if any(importlib.util.find_spec(each) is None for each in needed):
        pytest.skip(f"{' and '.join(needed)} are not installed")
    monkeypatch.chdir(tmp_path)
    frame: Any = readmission(500).to_pandas()
    namespace = {"frame": frame, "public": frame[COLUMNS].astype("float32").to_numpy()}
    exec(compile(BLOCKS[library], str(PAGE), "exec"), namespace)
    model = ho.models.load(bytes(namespace["content"]))
    assert model.row_wise, model.why_not
    assert ho.models.score(model, frame, features=COLUMNS).scores == ("score",)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_coefficients_of_r_are_read_as_shown(tmp_path: Path) -> None:
    made_up = (
        "public <- data.frame(age = 1:40, sex = rep(c('F', 'M'), 20), "
        "readmitted = as.integer((1:40 * 7) %% 5 > 1))\n"
    )
    (tmp_path / "fit.R").write_text(made_up + BLOCKS["R"])
    subprocess.run(["Rscript", "fit.R"], cwd=tmp_path, check=True, capture_output=True)
    model = ho.models.load(tmp_path / "model.json")
    assert [each.name for each in model.inputs] == ["age", "sex"]
