"""Leaderboards: public to read, for analysts to submit, for custodians to open; API and pages."""

import secrets
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from heldout.drawing.chart import Figure
from heldout.drawing.page import interval_plot
from heldout.errors import ArgumentError, HeldoutError
from heldout.intervals.measure import Measure
from heldout.questions.boards import TITLES
from heldout.server import artifacts, boards, datasets
from heldout.server.gate import PROBLEMS, Body, Caller, Key, Serving, status_of
from heldout.server.service import Service, address_of
from heldout.server.settings import ROLES
from heldout.server.site import Order, Posted, Sent, page, redirect, visitor
from heldout.server.storage import Json

api = APIRouter(prefix="/api/v1/boards", responses=PROBLEMS)
pages = APIRouter(prefix="/boards")


class NewBoard(Body):
    """A board's terms; `terms` has price, improvements, submissions, metric, start and step."""

    name: str
    dataset: str
    terms: Json
    facts: str = ""
    each: int | None = None
    ends: float | None = None


class NewSubmission(Body):
    """A model before a board, and what it is called there."""

    artifact: str
    title: str


@api.get("")
def list_boards(service: Serving, person: Caller) -> list[Json]:
    """Every board."""
    person.must_be(*ROLES)
    return [board.public(person.name) for board in boards.everyone(service)]


@api.post("", status_code=201)
def open_board(service: Serving, person: Caller, body: NewBoard) -> Json:
    """Open a board on an own data set; custodians. Refuses one that would show nothing."""
    boards.open_board(service, person, **body.model_dump())
    return boards.find_board(service, body.name).public(person.name)


@api.get("/{name}")
def show_board(service: Serving, person: Caller, name: str) -> Json:
    """Show what the board has published, with intervals and certificate."""
    person.must_be(*ROLES)
    return boards.find_board(service, name).public(person.name)


@api.get("/{name}/submissions")
def list_submissions(service: Serving, person: Caller, name: str) -> list[Json]:
    """The caller's own submissions; the board's custodian sees all."""
    return boards.mine(service, person, name)


@api.post("/{name}/submissions", status_code=202)
def submit(
    service: Serving, person: Caller, name: str, body: NewSubmission, idempotency_key: Key
) -> Json:
    """Submit a model; it learns whether it improved. The same key is one submission."""
    row = boards.submit(service, person, name, key=idempotency_key, **body.model_dump())
    return boards.public_submission(row)


@api.delete("/{name}/submissions/{identity}")
def cancel(service: Serving, person: Caller, name: str, identity: str) -> Json:
    """Cancel an own submission before it is judged; it does not count as one."""
    return boards.public_submission(boards.cancel(service, person, name, identity))


# --- pages ---------------------------------------------------------------------------------------


@pages.get("")
def listed(service: Serving, request: Request) -> Response:
    """Every board; nobody needs to sign in."""
    return _list(service, request)


def _list(
    service: Service, request: Request, wrong: str | None = None, status: int = 200
) -> Response:
    person = visitor(request)
    own = datasets.visible(service, person) if person and person.role == "custodian" else []
    return page(
        request,
        "boards.html",
        status=status,
        wrong=wrong,
        boards=[board.public() for board in boards.everyone(service)],
        metrics=TITLES,
        own=[one for one in own if one.description is not None and one.description.rows],
    )


@pages.post("")
def open_board_page(service: Serving, request: Request, order: Order) -> Response:
    """Open a board, or say why it would show nothing."""
    name = order.text("name")
    try:
        terms: Json = {
            "price": order.text("price"),
            "improvements": _number(order, "improvements"),
            "submissions": _number(order, "submissions"),
            "metric": order.text("metric"),
            "start": float(_number(order, "start", whole=False)),
        }
        if order.text("least_class"):
            terms["least_class"] = _number(order, "least_class")
        boards.open_board(
            service,
            order.person,
            name=name,
            dataset=order.text("dataset"),
            terms=terms,
            facts=order.text("facts"),
            each=int(_number(order, "each")) if order.text("each") else None,
        )
    except HeldoutError as error:
        return _list(service, request, str(error), status_of(error))
    return redirect(f"/boards/{name}")


def _number(order: Sent, name: str, *, whole: bool = True) -> float:
    try:
        return int(order.text(name)) if whole else float(order.text(name))
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise ArgumentError(f"{name} must be {kind}.") from None


@pages.get("/{name}")
def show(service: Serving, request: Request, name: str) -> Response:
    """Show what a board has published, with intervals and certificate; own submissions below."""
    return _show(service, request, name)


def _show(service: Service, request: Request, name: str, **more: Any) -> Response:
    posted, person = boards.find_board(service, name), visitor(request)
    mine: list[Json] = []
    models: list[Json] = []
    if person is not None and person.role in ("analyst", "custodian"):
        mine = boards.mine(service, person, name)
    if person is not None and person.role == "analyst":
        models = [one for one in artifacts.mine(service, person) if one["state"] != "refused"]
    who = f"at {address_of(request.scope)}" if person is None else person.name
    with service.free.of(who):
        figures = _figures(posted)
    return page(
        request,
        "board.html",
        board=posted.public(None if person is None else person.name),
        metric=TITLES[posted.plan.metric],
        figures=figures,
        mine=mine,
        models=models,
        owner=person is not None and person.name == posted.owner,
        key=secrets.token_hex(10),
        **more,
    )


def _figures(posted: boards.Posted) -> list[Figure]:
    """Draw the shown scores: how far noise may have moved each, and what is certified of it."""
    bound = float(posted.public()["certificate"]["bound"])
    half = posted.plan.noise_half_width()
    measures = {
        f"{place}. {shown['title']}": _measure(shown["title"], float(shown["score"]), half, bound)
        for place, shown in enumerate(posted.shown, 1)
        if shown["score"] is not None
    }
    return [interval_plot(measures, level=0.95)] if measures else []


def _measure(name: str, score: float, half: float, bound: float) -> Measure:
    return Measure(
        score,
        name=name,
        terms="",
        noise_interval=lambda _: (max(score - half, 0.0), min(score + half, 1.0)),
        interval=lambda _: (max(score - bound, 0.0), min(score + half, 1.0)),
    )


@pages.post("/{name}/submissions")
def submit_page(service: Serving, request: Request, posted: Posted, name: str) -> Response:
    """Put an own model before the board."""
    posted.person.must_be("analyst", scope="ask")
    sent = {field: posted.text(field) for field in ("artifact", "title", "key")}
    try:
        boards.submit(service, posted.person, name, **sent)
    except HeldoutError as error:
        return _show(service, request, name, wrong=str(error), status=status_of(error))
    return redirect(f"/boards/{name}#mine")


@pages.post("/{name}/submissions/{identity}/cancel")
def cancel_page(service: Serving, posted: Posted, name: str, identity: str) -> Response:
    """Cancel an own submission before it is judged."""
    boards.cancel(service, posted.person, name, identity)
    return redirect(f"/boards/{name}#mine")
