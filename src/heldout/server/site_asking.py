"""Asking: what to know, how exact or at which price, and paying it."""

import secrets
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from heldout.errors import ArgumentError
from heldout.server import artifacts, asking, datasets, evaluations, quotes
from heldout.server.accounts import Person
from heldout.server.gate import Anyone
from heldout.server.service import TooMany
from heldout.server.site import Posted, noted, page, redirect
from heldout.server.site_analyst import Analyst

__all__ = ["router"]

router = APIRouter()


@router.get("/datasets/{name}/ask")
def ask(service: Anyone, request: Request, person: Analyst, name: str) -> Response:
    """Tick questions, drag what they may cost or how exact they are to be, and see the other.

    The page is there at once; its script then asks for the price, and so does whoever drags.
    """
    held = datasets.seen(service, person, name)
    held.ready()
    wish = asking.Wish.of(request.query_params, held)
    part = "hx-request" in request.headers
    offer, wrong = None, None
    if part or "by" in request.query_params:
        try:
            offer = asking.offered(service, person, held, wish)
        except (ArgumentError, TooMany) as error:
            wrong = str(error)
    content = _asking(service, person, held, wish, offer) | {"wrong": wrong}
    return page(request, "offer.html" if part else "ask.html", **content)


def _asking(
    service: Any, person: Person, held: datasets.Held, wish: asking.Wish, offer: Any
) -> dict[str, Any]:
    mine = [each for each in artifacts.mine(service, person) if each["state"] != "refused"]
    if not wish.artifact and len(mine) == 1:
        wish = replace(wish, artifact=mine[0]["id"])
    account = datasets.share_of(service, person, held.name)
    return {
        "held": held,
        "wish": wish,
        "offer": offer,
        "standing": datasets.standing(service, account),
        "choices": asking.choices(held),
        "ladder": asking.LADDER,
        "widths": asking.WIDTHS,
        "mine": mine,
        "missing": _missing(wish, [each["id"] for each in mine]),
    }


def _missing(wish: asking.Wish, mine: list[str]) -> str:
    """What is still to be chosen before anything can be bought."""
    if not mine:
        return "Submit a model first."
    if wish.artifact not in mine:
        return "Choose the model that it is about."
    if not wish.ticked:
        return "Tick at least one question."
    if wish.compares and (wish.rival not in mine or wish.rival == wish.artifact):
        return "Choose the other model to compare with."
    return ""


@router.get("/datasets/{name}/confirm")
def confirm(service: Anyone, request: Request, person: Analyst, name: str) -> Response:
    """The price and what will be left, before anything is bought."""
    held = datasets.seen(service, person, name)
    held.ready()
    wish = asking.Wish.of(request.query_params, held)
    try:
        offer = asking.offered(service, person, held, wish)
        content = _asking(service, person, held, wish, offer)
        wish = content["wish"]
        if content["missing"] or offer is None or offer.why_not:
            content["wrong"] = content["missing"] or None
            return page(request, "ask.html", status=409, **content)
        agreed = quotes.signed(service, person, name, offer.questions, wish.guessed())
    except ArgumentError as error:
        content = _asking(service, person, held, wish, None)
        return page(request, "ask.html", status=422, **content | {"wrong": str(error)})
    named = {each["id"]: each["name"] for each in content["mine"]}
    return page(
        request,
        "confirm.html",
        **content,
        quote=agreed["quote"],
        key=secrets.token_urlsafe(16),
        model=named[wish.artifact],
        rival=named.get(wish.rival, "") if wish.compares else "",
        back=urlencode(list(request.query_params.multi_items())),
    )


@router.post("/evaluations")
def pay(service: Anyone, request: Request, posted: Posted) -> Response:
    """Ask and pay: the button of the page that showed the price."""
    posted.person.must_be("analyst", scope="ask")
    agreed = quotes.opened(service, posted.person, posted.text("quote"))
    row, new = evaluations.submit(
        service,
        posted.person,
        dataset=agreed["dataset"],
        artifact=posted.text("artifact"),
        rival=posted.text("rival") or None,
        content=agreed["questions"],
        key=posted.text("key"),
        most=agreed["loss"],
    )
    if new:
        noted(request, posted.person.name, "evaluate", row.id)
    return redirect(f"/evaluations/{row.id}")
