"""The form by which a custodian registers rows."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from heldout.drawing.words import decimal
from heldout.errors import ArgumentError, HeldoutError
from heldout.server import datasets
from heldout.server.gate import Anyone, status_of
from heldout.server.site import Sent, Signed, noted, page, redirect
from heldout.server.site_custodian import Order

__all__ = ["router"]

router = APIRouter()


@router.get("/register")
def register_page(
    service: Anyone, request: Request, person: Signed, again: str | None = None
) -> Response:
    """The form for a new data set, or for one that was refused."""
    person.must_be("custodian")
    told = {} if again is None else _told(service, datasets.owned(service, person, again))
    return page(request, "register.html", told=told, rows=service.settings.rows)


def _told(service: Any, held: datasets.Held) -> dict[str, Any]:
    """What was said in the form when a data set was registered."""
    said = held.declared.of_dataset
    groups = said["groups"] or {}
    own = {
        "name": held.name,
        "kind": next((each for each in ("database", "spark") if each in held.source), "file"),
        "table": held.source.get("table", held.source.get("spark", "")),
        "facts": held.facts,
        "label": held.declared.label,
        "row_key": held.declared.row_key,
        "features": ", ".join(held.declared.features or ()),
        "lowest": f"{said['score_range'][0]:g}",
        "highest": f"{said['score_range'][1]:g}",
        "groups": "\n".join(f"{name}: {', '.join(map(str, of))}" for name, of in groups.items()),
        "budget": decimal(held.budget.epsilon) if held.budget.epsilon is not None else "",
        "people": held.declared.content.get("people", ""),
        "new": "yes" if held.declared.content.get("new") else "",
    }
    file, root = held.source.get("file", ""), service.settings.rows
    if file and root is not None:
        file = str(Path(file).relative_to(root.resolve()))
    from_source = {"file": file, "database": held.source.get("database", "")}
    plain = {each: said[each] for each in ("rows_per_unit", "neighbours")}
    maybe = {"unit": held.declared.unit or "", "expected_rows": held.declared.expected_rows or ""}
    maybe["prevalence"] = held.declared.prevalence or ""
    maybe["classes"] = ", ".join(map(str, held.declared.classes))
    if not held.declared.classes:
        maybe["positive"] = said["positive"]
        maybe["negative"] = "" if said["negative"] is None else said["negative"]
    return own | from_source | plain | maybe


@router.post("/register")
def register(service: Anyone, request: Request, order: Order) -> Response:
    """Keep what is declared; a worker looks at the rows."""
    name = order.text("name")
    try:
        datasets.register(
            service,
            order.person,
            name=name,
            source=_source(order),
            declaration=_declaration(order),
            budget=order.text("budget"),
            facts=order.text("facts"),
        )
    except HeldoutError as error:
        told = {key: value for key, value in order.form.items() if isinstance(value, str)}
        return page(
            request,
            "register.html",
            status=status_of(error),
            told=told,
            rows=service.settings.rows,
            wrong=str(error),
        )
    noted(request, order.person.name, "register", name)
    return redirect(f"/datasets/{name}?done=registered")


def _source(order: Sent) -> dict[str, str]:
    if order.text("kind") == "database":
        return {"database": order.text("database"), "table": order.text("table")}
    if order.text("kind") == "spark":
        return {"spark": order.text("table")}
    return {"file": order.text("file")}


def _declaration(order: Sent) -> dict[str, Any]:
    """What the form says of the columns, as the API would be sent it."""
    told: dict[str, Any] = {
        "label": order.text("label"),
        "row_key": order.text("row_key"),
        "neighbours": order.text("neighbours") or "replace-one",
        "score_range": [order.text("lowest") or "0", order.text("highest") or "1"],
    }
    if order.lines("classes"):
        told["classes"] = [_value(each) for each in order.lines("classes")]
    else:
        told["positive"] = _value(order.text("positive") or "1")
        if order.text("negative"):
            told["negative"] = _value(order.text("negative"))
    told["score_range"] = [_float("score range", each) for each in told["score_range"]]
    if order.lines("features"):
        told["features"] = order.lines("features")
    if order.text("unit"):
        told["unit"] = order.text("unit")
        told["rows_per_unit"] = _whole("rows of one person", order.text("rows_per_unit") or "1")
    if order.text("people"):
        told["people"] = order.text("people")
    if order.text("new"):
        told["new"] = True
    if order.text("expected_rows"):
        told["expected_rows"] = _whole("number of rows", order.text("expected_rows"))
    if order.text("prevalence"):
        told["prevalence"] = _float("share of positive rows", order.text("prevalence"))
    groups = [line.partition(":") for line in order.text("groups").splitlines() if line.strip()]
    if groups:
        told["groups"] = {
            name.strip(): [_value(each.strip()) for each in values.split(",") if each.strip()]
            for name, _, values in groups
        }
    return told


def _value(text: str) -> Any:
    """A number if it looks like one, else a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _float(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"The {what} must be a number.") from None


def _whole(what: str, text: str) -> int:
    try:
        return int(text.replace(",", ""))
    except ValueError:
        raise ArgumentError(f"The {what} must be a whole number.") from None
