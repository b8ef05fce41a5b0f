"""Asking, paying, waiting, answers and comparing: the API and the analyst's pages."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response
from pydantic import Field, WithJsonSchema

from heldout import questions as q
from heldout.drawing import chart
from heldout.drawing.chart import MUTED, PALETTE, Chart, Figure, Layer, Numbers, records
from heldout.drawing.page import interval_plot
from heldout.drawing.words import spread
from heldout.errors import ArgumentError
from heldout.intervals.confusion import ConfusionRelease
from heldout.intervals.groups import ByGroup
from heldout.intervals.measure import Measure, measures_of
from heldout.questions.curves.release import CurvesRelease
from heldout.questions.report import Report
from heldout.server import artifacts, asking, datasets, evaluations, fitting
from heldout.server.accounts import Person
from heldout.server.datasets import Registered
from heldout.server.evaluations import MOST_QUESTIONS
from heldout.server.gate import (
    PROBLEMS,
    REPORT_POLICY,
    Body,
    Caller,
    Key,
    Serving,
    Wait,
    after_wait,
)
from heldout.server.service import Service, TooMany
from heldout.server.site import Posted, Signed, page, redirect
from heldout.server.storage import Json
from heldout.server.web_models import Analyst

api = APIRouter(prefix="/api/v1", responses=PROBLEMS)
pages = APIRouter()
QUESTION = "#/components/schemas/Question"
"""Where the description of the API says what a question may be."""
Questions = Annotated[
    list[Json],
    WithJsonSchema(
        {"type": "array", "items": {"$ref": QUESTION}, "minItems": 1, "maxItems": MOST_QUESTIONS}
    ),
]
"""Questions as `Question.as_dict` gives them; they are read by their own rules, in words."""


class NewQuote(Body):
    """Questions as data; the guess says what the rows may be like."""

    dataset: str
    questions: Questions
    guess: Json = Field(default_factory=dict)
    artifact: str | None = None
    rival: str | None = None


class NewEvaluation(Body):
    """Questions about an artefact, or a quote of them."""

    dataset: str | None = None
    artifact: str | None = None
    rival: str | None = None
    questions: Questions | None = None
    quote: str | None = None


def question_schemas() -> dict[str, Json]:
    """Return the schema of every registered kind of question, and of any of them."""
    schemas = {f"Question-{kind.kind}": kind.schema() for kind in q.registered()}
    places = {name: f"#/components/schemas/{name}" for name in schemas}
    kinds = {name.removeprefix("Question-"): place for name, place in places.items()}
    any_kind = {
        "oneOf": [{"$ref": place} for place in places.values()],
        "discriminator": {"propertyName": "question", "mapping": kinds},
    }
    return {"Question": any_kind, **schemas}


@api.post("/quotes")
def quote(service: Serving, person: Caller, body: NewQuote) -> Json:
    """The exact price and the half-widths to expect; signed, and good for a while."""
    models = [model for model in (body.artifact, body.rival) if model is not None]
    return evaluations.signed_quote(
        service, person, body.dataset, body.questions, body.guess, models
    )


@api.post("/evaluations", status_code=202)
def evaluate(service: Serving, person: Caller, body: NewEvaluation, idempotency_key: Key) -> Json:
    """Ask and pay: one booking for all questions. The same key is never charged twice."""
    person.must_be("analyst", scope="ask")
    if body.quote is not None:
        if body.questions is not None:
            raise ArgumentError("Send a quote or questions, not both.")
        return _paid(service, person, body.quote, body.artifact, body.rival, idempotency_key)
    if body.dataset is None or body.questions is None:
        raise ArgumentError("Send dataset and questions, or a quote.")
    row = evaluations.submit(
        service,
        person,
        dataset=body.dataset,
        artifact=body.artifact,
        rival=body.rival,
        content=body.questions,
        key=idempotency_key,
    )
    return evaluations.public(service, row, reader=person, new=True)


def _paid(  # noqa: PLR0917
    service: Service, person: Person, quote: str, artifact: str | None, rival: str | None, key: str
) -> Json:
    """Ask and pay what was quoted."""
    person.must_be("analyst", scope="ask")
    agreed = evaluations.agreed_quote(service, person, quote)
    row = evaluations.submit(
        service,
        person,
        dataset=agreed["dataset"],
        artifact=artifact,
        rival=rival,
        content=agreed["questions"],
        key=key,
        most=agreed["loss"],
    )
    return evaluations.public(service, row, reader=person, new=True)


@api.get("/evaluations")
def list_evaluations(service: Serving, person: Caller, dataset: str | None = None) -> list[Json]:
    """The caller's own, or those of a custodian's data sets."""
    return evaluations.listed(service, person, dataset)


@api.get("/evaluations/{identity}")
async def show_evaluation(
    service: Serving, person: Caller, identity: str, prefer: Wait = None
) -> Json:
    """Its state, its place in the queue, and its answer once it is there."""
    await after_wait(  # one small statement a look: everything else is worked out once
        lambda: evaluations.glance(service, person, identity), evaluations.is_visible, prefer
    )

    def shown() -> Json:
        row = evaluations.find_one(service, person, identity)
        return evaluations.public(service, row, reader=person)

    return await run_in_threadpool(shown)


@api.delete("/evaluations/{identity}")
def cancel_evaluation(service: Serving, person: Caller, identity: str) -> Json:
    """Cancel an own evaluation before its price is booked; nothing is charged."""
    return evaluations.public(service, evaluations.cancel(service, person, identity))


@api.get("/reports/{identity}.html", response_class=HTMLResponse)
def report(service: Serving, person: Caller, identity: str) -> HTMLResponse:
    """The answer as one self-contained page, with its receipt."""
    return _report(service, person, identity)


def _report(service: Service, person: Person, identity: str) -> HTMLResponse:
    row = evaluations.find_one(service, person, identity)
    headers = {"Content-Security-Policy": REPORT_POLICY.decode()}
    with service.free.of(person.name):
        return HTMLResponse(evaluations.page(row), headers=headers)


# --- asking --------------------------------------------------------------------------------------


@pages.get("/datasets/{name}/ask")
def ask(service: Serving, request: Request, person: Analyst, name: str) -> Response:
    """Tick questions, drag what they may cost or how exact they are to be, and see the other.

    The page is there at once; its script then asks for the price, and so does whoever drags.
    """
    registered = datasets.seen(service, person, name)
    registered.ready()
    bought = evaluations.positives_bought(service, person, name)
    wish = asking.Wish.of(request.query_params, registered, bought)
    part = "hx-request" in request.headers
    offer, wrong = None, None
    if part or "by" in request.query_params:
        try:
            offer = asking.offered(service, person, registered, wish)
        except (ArgumentError, TooMany) as error:
            wrong = str(error)
    content = _asking(service, person, registered, wish, offer) | {"wrong": wrong}
    return page(request, "offer.html" if part else "ask.html", **content)


def _asking(
    service: Service,
    person: Person,
    registered: Registered,
    wish: asking.Wish,
    offer: asking.Offer | None,
) -> Json:
    usable = [model for model in artifacts.mine(service, person) if model["state"] != "refused"]
    mine = [model for model in usable if model["kind"] != artifacts.COPY]
    sent = [model for model in usable if model["kind"] == artifacts.COPY]
    if not wish.artifact and len(mine) == 1:
        wish = replace(wish, artifact=mine[0]["id"])
    account = datasets.share_of(service, person, registered.name)
    chosen = [wish.artifact if wish.takes_model else "", wish.rival if wish.compares else ""]
    known = {model["id"] for model in usable}
    models = [artifacts.find(service, person, model) for model in chosen if model in known]
    misfits = (fitting.why_not(registered, model) for model in models)
    return {
        "dataset": registered,
        "wish": wish,
        "offer": offer,
        "standing": datasets.standing(service, account),
        "choices": asking.choices(registered),
        "ladder": asking.LADDER,
        "widths": [f"{width:g}" for width in asking.widths_of(registered)],
        "mine": mine,
        "copies": sent,
        "file_field": artifacts.file_field,
        "missing": _missing(wish, mine, sent) or next(filter(None, misfits), ""),
        "notes": _notes(service, person, registered, wish, models),
        "counts_first": asking.counts_first(registered, wish),
        "asked_for": datasets.allowance_request(service, registered.name, person.name),
    }


def _notes(
    service: Service, person: Person, registered: Registered, wish: asking.Wish, models: list[Any]
) -> list[str]:
    """Return what to know before paying: of the models, and of questions that tell the same."""
    notes = [note for model in models for note in fitting.notes(registered, model)]
    about = registered.about(q.find(wish.ticked[0])) if wish.takes_copy else None
    if about is not None and wish.copy:
        others = artifacts.not_comparable(artifacts.find(service, person, wish.copy), about)
        notes += [f"Not compared: {', '.join(others)}."] if others else []
    return notes + asking.redundant(wish)


def _missing(wish: asking.Wish, mine: list[Json], sent: list[Json]) -> str:
    """Return what is still to be chosen before anything can be bought."""
    models = [model["id"] for model in mine]
    if wish.takes_copy:
        known = [copy["id"] for copy in sent]
        return "" if wish.copy in known else "Send or choose the copy that is compared."
    about_model = wish.takes_model or not wish.ticked
    lacking = {
        "Submit a model first.": not models,
        "Choose the model that it is about.": wish.artifact not in models,
        "Tick at least one question.": not wish.ticked,
        "Choose the other model to compare with.": wish.compares
        and (wish.rival not in models or wish.rival == wish.artifact),
    }
    return next((words for words, lacks in lacking.items() if lacks and about_model), "")


@pages.get("/datasets/{name}/confirm")
def confirm(service: Serving, request: Request, person: Analyst, name: str) -> Response:
    """The price and what will be left, before anything is bought."""
    registered = datasets.seen(service, person, name)
    registered.ready()
    bought = evaluations.positives_bought(service, person, name)
    wish = asking.Wish.of(request.query_params, registered, bought)
    try:
        offer = asking.offered(service, person, registered, wish)
        content = _asking(service, person, registered, wish, offer)
        wish = content["wish"]
        if content["missing"] or offer is None or offer.why_not:
            content["wrong"] = content["missing"] or None
            return page(request, "ask.html", status=409, **content)
        sent = [wish.copy] if wish.takes_copy else []
        agreed = evaluations.signed_quote(
            service, person, name, offer.questions, wish.guessed(), sent
        )
    except ArgumentError as error:
        content = _asking(service, person, registered, wish, None)
        return page(request, "ask.html", status=422, **content | {"wrong": str(error)})
    about = wish.copy if wish.takes_copy else wish.artifact if wish.takes_model else ""
    named = {model["id"]: model["name"] for model in content["mine"] + content["copies"]}
    return page(
        request,
        "confirm.html",
        **content,
        quote=agreed["quote"],
        key=secrets.token_urlsafe(16),
        about=about,
        model=named[about] if about else "",
        rival=named.get(wish.rival, "") if wish.compares else "",
        back=urlencode(list(request.query_params.multi_items())),
    )


@pages.post("/evaluations")
def pay(service: Serving, posted: Posted) -> Response:
    """Ask and pay: the button of the page that showed the price."""
    quote, artifact, rival, key = map(posted.text, ("quote", "artifact", "rival", "key"))
    bought = _paid(service, posted.person, quote, artifact or None, rival or None, key)
    return redirect(f"/evaluations/{bought['id']}")


# --- waiting and answers -------------------------------------------------------------------------


@pages.get("/evaluations/{identity}")
def evaluation(  # noqa: PLR0917  the framework passes them by name
    service: Serving,
    request: Request,
    person: Signed,
    identity: str,
    place: int | None = None,
    due: float | None = None,
) -> Response:
    """Its state while it waits; its answer when it is there. A page that looks again says what
    place in the queue it shows, and is sent nothing until there is something new."""
    row = evaluations.find_one(service, person, identity)
    shown = evaluations.public(service, row)
    if request.headers.get("hx-request"):
        if shown["state"] != "waiting":
            return Response(status_code=204, headers={"HX-Refresh": "true"})
        if (shown["queue_place"], shown["expected"]) == (place, due):
            return Response(status_code=204)
        return page(request, "state_evaluation.html", found=shown)
    blocks: tuple[Block, ...] = ()
    if shown["state"] == "answered":
        with service.free.of(person.name):
            blocks = blocks_of(row)
    names = artifacts.names(service, [row.artifact, row.rival or ""])
    of_copy = artifacts.needs_copy(row.questions)
    content: Json = {"found": shown, "blocks": blocks, "names": names, "of_copy": of_copy}
    return page(request, "evaluation_page.html", **content)


@pages.post("/evaluations/{identity}/cancel")
def cancel(service: Serving, posted: Posted, identity: str) -> Response:
    """Cancel an own evaluation before its price is booked."""
    evaluations.cancel(service, posted.person, identity)
    return redirect(f"/evaluations/{identity}")


@pages.get("/evaluations/{identity}/report.html")
def report_file(
    service: Serving, person: Signed, identity: str, download: bool = False
) -> HTMLResponse:
    """The answer as one self-contained file, with its receipt."""
    answer = _report(service, person, identity)
    if download:
        answer.headers["Content-Disposition"] = f'attachment; filename="report-{identity}.html"'
    return answer


@pages.get("/compare")
def compare(
    service: Serving,
    request: Request,
    person: Analyst,
    dataset: str | None = None,
    measure: str | None = None,
) -> Response:
    """Own answers side by side: arithmetic on what was paid for."""
    known = [registered.name for registered in datasets.visible(service, person)]
    chosen = dataset if dataset in known else next(iter(known), None)
    rows = evaluations.history(service, person, chosen)[::-1] if chosen else []
    answered = [row for row in rows if row.state == "answered" and evaluations.is_visible(row)]
    names = artifacts.names(service, [row.artifact for row in answered])
    with service.free.of(person.name):
        together = side_by_side(
            [(names.get(row.artifact, row.artifact), row) for row in answered], measure
        )
    return page(
        request,
        "compare.html",
        known=known,
        chosen=chosen,
        found=together,
        sharper=[kind for kind in q.registered() if kind.rival_field() is not None],
    )


# --- answers as a page shows them, alone and side by side -----------------------------------------

LEVEL = 0.95
MOST = len(PALETTE)
"""Curves that one picture shows: as many as there are colours to tell them apart."""


@dataclass(frozen=True)
class Block:
    """One answer: its first number, its pictures, all its numbers."""

    heading: str
    title: str
    value: str
    interval: str
    noise: str
    figures: tuple[Figure, ...]
    rows: tuple[tuple[str, ...], ...]
    finding: str | None = None
    """One sentence that says what it shows."""


@dataclass(frozen=True)
class SideBySide:
    """Own models on one picture."""

    measures: tuple[str, ...]
    chosen: str
    figures: tuple[Figure, ...]
    rows: tuple[tuple[str, ...], ...]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def blocks_of(row: Any) -> tuple[Block, ...]:
    """Return the answers of an evaluation, in the order of the questions."""
    drawn = list(map(_block, row.questions, evaluations.releases(row)))
    captions: set[str] = set()
    for place, block in enumerate(drawn):
        # What dots and bars are is said once on a page.
        figures = tuple(
            replace(figure, caption="") if figure.caption in captions else figure
            for figure in block.figures
        )
        captions |= {figure.caption for figure in figures}
        drawn[place] = replace(block, figures=figures)
    return tuple(drawn)


def _block(question: Mapping[str, Any], release: Any) -> Block:
    measures = measures_of(release)
    headline: Measure = (
        release.largest_gap(LEVEL) if isinstance(release, ByGroup) else release.headline
    )
    if isinstance(release, Report):
        inner = [figure for section in release for figure in section.figures(LEVEL)]
        readable = {name: one for name, one in release.plotted().items() if one.informative}
        figures = ([interval_plot(readable, level=LEVEL)] if readable else []) + inner
    else:
        figures = list(release.figures(LEVEL)) or _intervals(measures)
    value, interval, noise = spread(headline, LEVEL)
    rows = tuple((_capital(name), *spread(one, LEVEL)) for name, one in measures.items())
    heading = q.find(question["question"]).asks
    if isinstance(release, ConfusionRelease):
        heading = f"{heading} Calling rows positive from a score of {release.threshold:g}"
    title = _capital(headline.name)
    finding = release.finding(LEVEL)
    return Block(heading, title, value, interval, noise, tuple(figures), rows, finding)


def _intervals(measures: Mapping[str, Measure]) -> list[Figure]:
    shares = {name: one for name, one in measures.items() if _is_share(one)}
    return [interval_plot(shares, level=LEVEL)] if shares else []


def _is_share(measure: Measure) -> bool:
    return all(0 <= end <= 1 for end in measure.interval(LEVEL)) and not measure.whole


def side_by_side(answers: Sequence[tuple[str, Any]], chosen: str | None) -> SideBySide:
    """Return the same measure of several evaluations, each with the name of its model."""
    shared_by: dict[str, dict[str, Measure]] = {}
    curves: dict[str, CurvesRelease] = {}
    for model, row in answers:
        for release in evaluations.releases(row):
            for name, measure in measures_of(release).items():
                if _is_share(measure):
                    of = shared_by.setdefault(name, {})
                    of[_another(model, of)] = measure
            for part in release if isinstance(release, Report) else (release,):
                if isinstance(part, CurvesRelease):
                    curves[_another(model, curves)] = part
    shared = sorted(shared_by, key=lambda name: -len(shared_by[name]))
    of_all = chosen if chosen in shared_by else next(iter(shared), "")
    shown = dict(list(shared_by.get(of_all, {}).items())[-12:])
    figures = [interval_plot(shown, level=LEVEL)] if shown else []
    if curves:
        figures.append(_overlaid(dict(list(curves.items())[-MOST:])))
    rows = tuple((name, *spread(one, LEVEL)) for name, one in shown.items())
    return SideBySide(tuple(shared), of_all, tuple(figures), rows)


def _another(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name that is not taken: the second answer about a model says that it is one."""
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name} ({count})"
    return free


def _overlaid(curves: Mapping[str, CurvesRelease]) -> Figure:
    """Several ROC curves on one picture."""
    colours = dict(zip(curves, PALETTE, strict=False))
    chance = Layer(
        "line",
        [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}],
        color=MUTED,
        style={"strokeDash": [4, 3], "strokeWidth": 1.2},
    )
    points = [
        point | {"model": name}
        for name, release in curves.items()
        for point in records(x=release.roc.fpr, y=release.roc.tpr)
    ]
    picture = Chart(
        [chance, Layer("line", points, color=chart.Field("model"))],
        x=Numbers("False positive rate"),
        y=Numbers("True positive rate"),
        title="ROC curves",
        colours=colours,
    )
    says = f"The ROC curves of {', '.join(curves)}; the dashed line is chance."
    return Figure(picture.svg(says=says), says)
