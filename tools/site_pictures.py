"""The pictures of the site, made anew by every build from bundled, made-up data.

A page shows one by a line `<!-- picture: roc -->`. In the repository the line is a comment.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import heldout as ho
from heldout.drawing.chart import Figure
from heldout.examples import breast_cancer, parole, readmission, salaries


@cache
def _session() -> Any:
    rows = ho.Dataset(readmission(), label="readmitted", score="risk_b", rivals=["risk_a"])
    return ho.Session(rows, budget=ho.Budget(10))


@cache
def _report() -> Any:
    return _session().report(epsilon="2", threshold=0.3, curves=True)


@cache
def _curves() -> list[Figure]:
    figures: list[Figure] = _report()["curves"].figures()
    return figures


@cache
def _residuals() -> list[Figure]:
    plot = ho.regression.residual_plot(
        salaries(), observed="salary", predicted="fitted", epsilon="2", scale=1000
    )
    figures: list[Figure] = plot.figures()
    return figures


@cache
def _groups() -> Any:
    rows = ho.Dataset(parole(), label="reoffended", score="risk", unit="person_id",
                      rows_per_unit=2, groups={"district": ["north", "south"]})  # fmt: skip
    session = ho.Session(rows, budget=ho.Budget(2))
    return session.confusion(threshold=0.5, epsilon="2", by="district").figures()[0]


@cache
def _residuals_by_group() -> Figure:
    rows = ho.regression.RegressionTable(
        salaries(), observed="log_salary", predicted="log_fitted", groups={"education": [12, 16]}
    )
    session = ho.regression.RegressionSession(rows, budget=ho.Budget(2))
    bounds = {"predicted": (9.5, 12), "residual": 1.5}
    plots = session.residual_plot(epsilon="2", by="education", bounds=bounds)
    figure: Figure = plots.figures()[0]
    return figure


@cache
def _pooled() -> Figure:
    table, answers = readmission(3000), []
    for start in (0, 1000, 2000):
        rows = ho.Dataset(table.slice(start, 1000), label="readmitted", score="risk_a")
        answers.append(ho.Session(rows, budget=ho.Budget(2)).auc(epsilon="2"))
    figure: Figure = ho.pool(answers, names=["north", "south", "east"]).figures()[0]
    return figure


@cache
def _space() -> Figure:
    from heldout import precision_recall as pr

    rows = breast_cancer()
    curve = pr.curve(rows["malignant"].to_numpy(), rows["risk"].to_numpy())
    return Figure(curve.svg(), "Precision-recall space of a public test set: grey is out of reach.")


@cache
def _measures() -> Figure:
    from heldout.drawing.page import interval_plot

    return interval_plot(_report().plotted(), level=0.95)


PICTURES: dict[str, Callable[[], Figure]] = {
    "measures": _measures,
    "confusion": lambda: _report()["confusion"].figures()[0],
    "roc": lambda: _curves()[0],
    "precision-recall": lambda: _curves()[1],
    "calibration": lambda: _curves()[2],
    "groups": _groups,
    "pooled": _pooled,
    "space": _space,
    "residuals": lambda: _residuals()[0],
    "residual-points": lambda: _residuals()[1],
    "residual-mean": lambda: _residuals()[2],
    "residual-spread": lambda: _residuals()[3],
    "scale-location": lambda: _residuals()[4],
    "qq": lambda: _residuals()[5],
    "residuals-by-group": _residuals_by_group,
}
"""By the name that pages call them."""
