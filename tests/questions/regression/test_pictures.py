"""Pictures and the page of a residual plot: readable, self-contained, without a script."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import heldout as ho
from heldout.errors import ArgumentError
from heldout.examples import readmission, salaries
from heldout.questions.regression.logistic import binned_residuals
from heldout.questions.regression.page import KINDS, MOST_POINTS, figure


@pytest.fixture(scope="module")
def plot():
    # Bounds are declared, so that no search can overshoot, and noise is small.
    return ho.regression.residual_plot(
        salaries(),
        observed="salary",
        predicted="fitted",
        epsilon="4",
        bounds={"predicted": (0, 120_000), "residual": 100_000},
    )


def _records(chart, name):
    """All records of a chart that have a field of this name."""
    found = chart.to_dict()
    layers = [each.get("data", {}).get("values", []) for each in found["layer"]]
    every = [*layers, *found.get("datasets", {}).values()]
    return [record for records in every for record in records if name in record]


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_is_an_svg_that_a_screen_reader_can_say(plot, kind):
    drawn = figure(plot, kind)
    root = ElementTree.fromstring(drawn.svg)
    assert root.get("role") == "img"
    assert KINDS[kind] in (root.get("aria-label") or "")
    assert "<script" not in drawn.svg
    assert len(drawn.caption) > 40


def test_the_heat_map_has_a_cell_for_each_cell(plot):
    cells = _records(plot.chart("density"), "share")
    assert len(cells) == plot.counts.size
    assert max(each["share"] for each in cells) == 1
    assert min(each["share"] for each in cells) >= 0


def test_points_are_as_many_as_rows_and_not_too_many(plot):
    # Two more are the ends of the dashed line.
    points = _records(plot.chart("points"), "x")
    assert len(points) - 2 == min(MOST_POINTS, int(plot.counts.sum()))


def test_a_kind_that_is_not_there_is_refused(plot):
    with pytest.raises(ArgumentError, match="kind must be one of density, points, mean, spread"):
        plot.svg("histogram")


def test_the_page_stands_alone_and_says_what_was_found(plot, tmp_path):
    place = plot.save(tmp_path / "plot.html")
    page = place.read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert str(plot.verdict) in page.replace("&#x27;", "'")
    assert page.count("<figure>") == 6
    assert "<code>salary</code> as predicted by <code>fitted</code>" in page
    assert plot.receipt.hash in page
    ids = re.findall(r' id="([a-z-]+)"', page)
    assert len(ids) == len(set(ids))


def test_what_was_paid_for_is_on_the_page():
    from heldout.data.measured import RegressionTable
    from heldout.questions.regression.session import RegressionSession

    table = RegressionTable(salaries(), observed="salary", predicted="fitted")
    session = RegressionSession(table, budget=ho.Budget(epsilon=3))
    plot = session.residual_plot(epsilon=1, scale=1000)
    errors = session.metrics(epsilon="1/2", scale=1000)
    page = plot.html(metrics=errors, title="Pay after the reform")
    assert "<h1>Pay after the reform</h1>" in page
    assert "All of this page cost epsilon 1.5," in page
    for release in (plot, errors):
        assert release.receipt.hash in page
    for name in errors.measures:
        assert name[:1].upper() + name[1:] in page
    for name in ("curvature", "fan", "trend"):
        assert f'<span class="name">{name}</span>' in page


def test_a_page_goes_only_where_a_file_can_be(plot, tmp_path):
    with pytest.raises(ArgumentError):
        plot.save(tmp_path / "none" / "plot.html")


def test_the_release_says_its_verdict_and_its_numbers(plot):
    content = plot.as_dict()
    assert str(plot).startswith(str(plot.verdict))
    assert "fan" in content["verdict"]["faults"]
    assert set(content["verdict"]["scores"]) >= {"curvature", "fan"}
    assert list(content["measures"]) == [
        "share of rows outside the bounds", "curvature", "fan", "trend", "mean residual",
        "spread of the residuals",
    ]  # fmt: skip
    bands = content["mean_by_prediction"]
    assert len(bands["values"]) + 1 == len(bands["predicted_edges"])
    assert plot.similarity(plot) == 0


def test_binned_residuals_are_the_reliability_diagram_less_its_diagonal():
    stays = ho.Dataset(readmission(), label="readmitted", score="risk_b", positive=1)
    session = ho.Session(stays, budget=ho.Budget(epsilon="2"))
    curves = session.curves(epsilon="2")
    found = binned_residuals(curves)
    assert np.allclose(found.residual + found.predicted, curves.calibration.observed)
    low, high = found.interval()
    assert ((low <= found.residual) & (found.residual <= high)).all()
    assert session.remaining == ho.Loss.pure(0)  # nothing more was paid
    ElementTree.fromstring(found.svg())
    assert len(found.as_dict()["residual"]) == len(found.predicted)
