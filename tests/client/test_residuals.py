"""Residuals on a server: the client and `heldout residuals --server` ask about a regression."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.client.conftest import server, serving
from tests.client.test_client import called

from heldout import questions as q
from heldout.errors import ArgumentError
from heldout.questions.regression.measures import RegressionMetrics
from heldout.questions.regression.release import PlotsByGroup

ROWS = 2000
FIT = {"intercept": 20, "age": 3}


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server whose data set has a numeric outcome, with a share for ana."""
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("residuals")
    site = server.Site(folder / "server", tick=0.02)
    random = np.random.default_rng(5)
    age = random.uniform(0, 10, ROWS)
    table = {
        "id": np.arange(ROWS),
        "age": age,
        "sex": np.array(["F", "M"])[np.arange(ROWS) % 2],
        "cost": 20 + 3 * age + random.normal(0, 2, ROWS),
    }
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "costs.parquet")
    body = {"name": "costs", "source": str(folder / "costs.parquet"), "budget": "1000"}
    outcome = {"outcome": "cost", "bounds": [0, 100], "row_key": "id"}
    declared = {"declaration": outcome | {"groups": {"sex": ["F", "M"]}}}
    at_once = {"Prefer": "wait=0"}
    made = site.client("carol").post("/api/v1/datasets", json=body | declared, headers=at_once)
    made.raise_for_status()
    site.work()
    site.grant(name="costs", budget="900")
    with serving(site, folder) as running:
        yield running


@pytest.fixture
def fit(tmp_path: Path) -> Path:
    file = tmp_path / "fit.json"
    file.write_text(json.dumps(FIT))
    return file


def there(costs: Any) -> tuple[object, ...]:
    whose = ("--dataset", "costs", "--server-key", costs.key)
    return ("--server", costs.url, "--token-file", costs.token_file, *whose)


@pytest.mark.chance(1e-6, "half a unit off: the noise interval at 1 - 1e-6 is narrower")
def test_the_client_asks_about_a_regression(costs: Any, fit: Path) -> None:
    rows = costs.opened(key=costs.key).dataset("costs")
    metrics, plots = rows.ask(
        q.RegressionMetrics(epsilon=8), q.ResidualPlot(epsilon=8, by="sex"), model=fit
    )
    assert isinstance(metrics, RegressionMetrics)
    assert metrics.measures["root mean squared error"].value == pytest.approx(2, abs=0.5)
    assert isinstance(plots, PlotsByGroup)
    before = rows.spent
    with pytest.raises(ArgumentError, match="needs rows with a label"):
        rows.ask(q.Auc(epsilon=1), model=fit)
    assert rows.spent == before
    [widths] = rows.quote(q.RegressionMetrics(epsilon=1), spread=2).half_widths
    assert 0 < widths["root mean squared error"].noise < 5


@pytest.mark.chance(1e-6)
@pytest.mark.parametrize("option", ["--model", "--coefficients"])
def test_residuals_are_bought_of_a_server_with_their_page(
    costs: Any, fit: Path, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "plot.html"
    words = ("residuals", *there(costs), option, fit, "--epsilon", "8", "--metrics", "8")
    code, out, err = called(capsys, *words, "--scale", "5", "--out", page)
    assert code == 0, err
    assert "Paid epsilon 8" in out
    assert "root mean squared error" in out
    assert f"Picture: {page}" in out
    code, out, _ = called(capsys, "verify", page, "--server-key", costs.key)
    assert (code, "Signature: good." in out) == (0, True)
    picture = tmp_path / "plot.svg"
    code, _, err = called(capsys, *words, "--kind", "points", "--out", picture)
    assert code == 0, err
    assert picture.read_text().startswith("<svg")
    code, out, err = called(capsys, *words, "--by", "sex", "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert set(answer["groups"]) == {"F", "M", "other"}
    assert "groups" in answer["metrics"]


def test_two_models_of_one_command_are_refused(
    costs: Any, fit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ("--model", fit, "--coefficients", fit)
    code, out, err = called(capsys, "residuals", *there(costs), *both, "--epsilon", "1")
    assert (code, out) == (2, "")
    assert "leave one out" in err
