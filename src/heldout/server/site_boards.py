"""The pages of leaderboards: public to read, for analysts to submit, for custodians to open."""

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from heldout.drawing.chart import Figure
from heldout.drawing.pictures import interval_plot
from heldout.errors import ArgumentError, HeldoutError
from heldout.intervals.measure import Measure
from heldout.questions.boards.plan import TITLES
from heldout.server import artifacts, boards, datasets
from heldout.server.gate import Anyone, status_of
from heldout.server.limits import address_of
from heldout.server.site import Posted, Sent, noted, page, redirect, visitor
from heldout.server.site_custodian import custodian

__all__ = ["router"]

router = APIRouter()
Order = Annotated[Sent, Depends(custodian)]


@router.get("/boards")
def listed(service: Anyone, request: Request) -> Response:
    """Every board; nobody needs to sign in."""
    return _list(service, request)


def _list(service: Any, request: Request, **more: Any) -> Response:
    person = visitor(request)
    own = datasets.visible(service, person) if person and person.role == "custodian" else []
    public = [each for each in own if each.about is not None and each.about.rows is not None]
    found = [each.public() for each in boards.everyone(service)]
    return page(request, "boards.html", boards=found, metrics=TITLES, own=public, **more)


@router.post("/boards")
def open_board(service: Anyone, request: Request, order: Order) -> Response:
    """Open a board, or say why it would show nothing."""
    try:
        terms: dict[str, Any] = {
            "price": order.text("price"),
            "improvements": _number(order, "improvements"),
            "submissions": _number(order, "submissions"),
            "metric": order.text("metric"),
            "start": float(_number(order, "start", whole=False)),
        }
        if order.text("least_class"):
            terms["least_class"] = _number(order, "least_class")
        name = order.text("name")
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
        return _list(service, request, wrong=str(error), status=status_of(error))
    noted(request, order.person.name, "open board", name)
    return redirect(f"/boards/{name}")


def _number(order: Sent, name: str, *, whole: bool = True) -> float:
    try:
        return int(order.text(name)) if whole else float(order.text(name))
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise ArgumentError(f"{name} must be {kind}.") from None


@router.get("/boards/{name}")
def show(service: Anyone, request: Request, name: str) -> Response:
    """What a board has shown, with intervals and certificate; own submissions below."""
    return _show(service, request, name)


def _show(service: Any, request: Request, name: str, **more: Any) -> Response:
    posted, person = boards.find_board(service, name), visitor(request)
    mine: list[dict[str, Any]] = []
    models: list[dict[str, Any]] = []
    if person is not None and person.role in ("analyst", "custodian"):
        mine = boards.mine(service, person, name)
    if person is not None and person.role == "analyst":
        models = [each for each in artifacts.mine(service, person) if each["state"] != "refused"]
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
    """The shown scores: how far noise may have moved each, and what is certified of it."""
    bound = float(posted.public()["certificate"]["bound"])
    half = posted.plan.noise_half_width()
    measures = {
        f"{place}. {each['title']}": _measure(each["title"], float(each["score"]), half, bound)
        for place, each in enumerate(posted.shown, 1)
        if each["score"] is not None
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


@router.post("/boards/{name}/submissions")
def submit(service: Anyone, request: Request, posted: Posted, name: str) -> Response:
    """Put an own model before the board."""
    posted.person.must_be("analyst", scope="ask")
    try:
        row = boards.submit(
            service,
            posted.person,
            name,
            artifact=posted.text("artifact"),
            title=posted.text("title"),
            key=posted.text("key"),
        )
    except HeldoutError as error:
        return _show(service, request, name, wrong=str(error), status=status_of(error))
    noted(request, posted.person.name, "submit to board", f"{name} {row.id}")
    return redirect(f"/boards/{name}#mine")


@router.post("/boards/{name}/submissions/{identity}/cancel")
def cancel(service: Anyone, request: Request, posted: Posted, name: str, identity: str) -> Response:
    """Cancel an own submission before it is judged."""
    posted.person.must_be("analyst", scope="ask")
    boards.cancel(service, posted.person, name, identity)
    noted(request, posted.person.name, "cancel submission", f"{name} {identity}")
    return redirect(f"/boards/{name}#mine")
