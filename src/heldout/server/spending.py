"""What was spent on a data set: over time, by analyst and by model."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

import sqlalchemy as sa

from heldout.drawing.chart import Chart, Field, Figure, Layer, Numbers
from heldout.drawing.colours import PALETTE
from heldout.drawing.words import decimal
from heldout.kernel import Loss
from heldout.server import artifacts
from heldout.server.service import Service
from heldout.server.storage import evaluations
from heldout.server.words import moment

__all__ = ["Spending", "spending"]

NOBODY = "nobody named"
UNITS = ((24.0, "Days"), (1.0, "Hours"), (1 / 60, "Minutes"))
"""Of the axis of time, in hours; the largest that something took longer than."""


@dataclass(frozen=True)
class Spending:
    """Sums by whom and on what, the largest first, and a picture over time."""

    by_analyst: tuple[tuple[str, str], ...]
    by_model: tuple[tuple[str, str], ...]
    figure: Figure | None


def spending(service: Service, entries: list[dict[str, Any]]) -> Spending:
    """From the entries of a data set's ledger."""
    booked = [each for each in entries if each["kind"] == "booking"]
    models = _models(service, [str(each["evaluation"]) for each in booked])
    by_analyst: defaultdict[str, Fraction] = defaultdict(Fraction)
    by_model: defaultdict[str, Fraction] = defaultdict(Fraction)
    points: list[dict[str, Any]] = []
    for each in booked:
        loss = Loss.from_dict(each["charge"])
        price = loss.rho if loss.epsilon is None else loss.epsilon
        assert price is not None
        who = each["analyst"] or NOBODY
        by_analyst[who] += price
        by_model[models.get(str(each["evaluation"]), NOBODY)] += price
        points.append({"who": who, "time": each["time"], "spent": float(by_analyst[who])})
    return Spending(_sorted(by_analyst), _sorted(by_model), _figure(points) if points else None)


def _models(service: Service, identities: list[str]) -> dict[str, str]:
    """The name of the model that each evaluation was about."""
    query = sa.select(evaluations.c.id, evaluations.c.artifact)
    with service.store.read() as connection:
        rows = connection.execute(query.where(evaluations.c.id.in_(set(identities)))).all()
    names = artifacts.names(service, [row.artifact for row in rows])
    return {row.id: names.get(row.artifact, NOBODY) for row in rows}


def _sorted(sums: dict[str, Fraction]) -> tuple[tuple[str, str], ...]:
    largest = sorted(sums.items(), key=lambda each: (-each[1], each[0]))
    return tuple((name, decimal(total)) for name, total in largest)


def _figure(points: list[dict[str, Any]]) -> Figure:
    """What each analyst had spent in all."""
    first = min(datetime.fromisoformat(each["time"]) for each in points)
    for each in points:
        passed = datetime.fromisoformat(each["time"]) - first
        each["hours"] = passed.total_seconds() / 3600
    last = max(each["hours"] for each in points)
    unit, title = next(each for each in UNITS if last > each[0] or each is UNITS[-1])
    end = max(last / unit, 1.0) * 1.02
    most = sorted({each["who"]: each["spent"] for each in points}.items(), key=lambda of: -of[1])
    colours = dict(zip((who for who, _ in most), PALETTE, strict=False))
    lines = []
    for who in colours:
        own = [each for each in points if each["who"] == who]
        steps = [(0.0, 0.0), *((each["hours"] / unit, each["spent"]) for each in own)]
        lines += [{"x": x, "y": y, "who": who} for x, y in (*steps, (end, own[-1]["spent"]))]
    chart = Chart(
        [Layer("line", lines, color=Field("who"), style={"interpolate": "step-after"})],
        x=Numbers(f"{title} since {moment(first.timestamp())} UTC", 0.0, end),
        y=Numbers("Spent in all (epsilon)", 0.0, most[0][1] * 1.05),
        title="Spending over time",
        width=520,
        height=240,
        colours=colours,
    )
    says = "What each analyst had spent in all."
    return Figure(chart.svg(says=says), says)
