"""The API of artefacts, quotes, evaluations and reports."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field, WithJsonSchema

from heldout.errors import ArgumentError
from heldout.server import artifacts, evaluations, quotes
from heldout.server.api_ground import ASKING, PROBLEMS, QUESTION, Body, Json, Wait, logs_of, seconds
from heldout.server.evaluations import MOST_QUESTIONS
from heldout.server.gate import REPORT_POLICY, Anyone, Caller, announced
from heldout.server.waiting import until

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)


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


class NewEvaluation(Body):
    """Questions about an artefact, or a quote of them."""

    dataset: str | None = None
    artifact: str
    rival: str | None = None
    questions: Questions | None = None
    quote: str | None = None


@router.put(
    "/artifacts",
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                each: {"schema": {"type": "string", "format": "binary"}} for each in artifacts.KINDS
            },
        }
    },
)
async def upload(  # noqa: PLR0917  the framework passes them by name
    service: Anyone,
    person: Caller,
    request: Request,
    name: Annotated[str, Query(max_length=199)] = "model",
    features: Annotated[list[str] | None, Query()] = None,
    prefer: Wait = None,
) -> Json:
    """Send a model or predictions as the body; a worker looks at it alone, in a sandbox."""
    person.must_be(*ASKING, scope="ask")
    identity = await artifacts.store(
        service,
        person,
        request.stream(),
        length=announced(request),
        content_type=request.headers.get("content-type", ""),
        name=name,
        features=features,
    )
    logs_of(service, person, "upload", identity)

    def look() -> Json | None:
        row = artifacts.find(service, person, identity)
        return None if row.state == "checking" else artifacts.public(row)

    found = await until(look, seconds(prefer, 5))
    return found or artifacts.public(artifacts.find(service, person, identity))


@router.get("/artifacts")
def list_artifacts(service: Anyone, person: Caller) -> list[Json]:
    """The caller's own artefacts."""
    person.must_be(*ASKING)
    return artifacts.mine(service, person)


@router.get("/artifacts/{identity}")
async def show_artifact(
    service: Anyone, person: Caller, identity: str, prefer: Wait = None
) -> Json:
    """What was found, in words; its inputs; whether it is proven row by row."""
    person.must_be(*ASKING)

    def look() -> Json | None:
        row = artifacts.find(service, person, identity)
        return None if row.state == "checking" else artifacts.public(row)

    found = await until(look, seconds(prefer, 0))
    return found or artifacts.public(artifacts.find(service, person, identity))


@router.delete("/artifacts/{identity}", status_code=204)
def delete_artifact(service: Anyone, person: Caller, identity: str) -> None:
    """Forget an artefact and its scores; one that waits to be checked is cancelled by it."""
    person.must_be(*ASKING, scope="ask")
    artifacts.delete(service, person, identity)
    logs_of(service, person, "delete artefact", identity)


# --- quotes and evaluations ----------------------------------------------------------------------


@router.post("/quotes")
def quote(service: Anyone, person: Caller, body: NewQuote) -> Json:
    """The exact price and the half-widths to expect; signed, and good for a while."""
    person.must_be(*ASKING, scope="ask")
    return quotes.signed(service, person, body.dataset, body.questions, body.guess)


@router.post("/evaluations", status_code=202)
def evaluate(
    service: Anyone,
    person: Caller,
    body: NewEvaluation,
    idempotency_key: Annotated[str, Header(min_length=1, max_length=199)],
) -> Json:
    """Ask and pay: one booking for all questions. The same key is never charged twice."""
    person.must_be(*ASKING, scope="ask")
    asked = body.model_dump(exclude={"quote"})
    most = None
    if body.quote is not None:
        if body.questions is not None:
            raise ArgumentError("Send a quote or questions, not both.")
        agreed = quotes.opened(service, person, body.quote)
        asked |= {"dataset": agreed["dataset"], "questions": agreed["questions"]}
        most = agreed["loss"]
    if asked["dataset"] is None or asked["questions"] is None:
        raise ArgumentError("Send dataset and questions, or a quote.")
    content = asked.pop("questions")
    row, new = evaluations.submit(
        service, person, content=content, key=idempotency_key, most=most, **asked
    )
    if new:
        logs_of(service, person, "evaluate", row.id)
    return evaluations.public(service, row)


@router.get("/evaluations")
def list_evaluations(service: Anyone, person: Caller, dataset: str | None = None) -> list[Json]:
    """The caller's own, or those of a custodian's data sets."""
    person.must_be("analyst", "custodian")
    rows = evaluations.history(service, person, dataset)
    return [evaluations.public(service, row, answers=False) for row in rows]


@router.get("/evaluations/{identity}")
async def show_evaluation(
    service: Anyone, person: Caller, identity: str, prefer: Wait = None
) -> Json:
    """Its state, its place in the queue, and its answer once it is there."""
    person.must_be("analyst", "custodian")

    def look() -> Json | None:
        found = evaluations.public(service, evaluations.find_one(service, person, identity))
        return None if found["state"] == "waiting" else found

    found = await until(look, seconds(prefer, 0))
    return found or evaluations.public(service, evaluations.find_one(service, person, identity))


@router.delete("/evaluations/{identity}")
def cancel_evaluation(service: Anyone, person: Caller, identity: str) -> Json:
    """Cancel an own evaluation before its price is booked; nothing is charged."""
    person.must_be(*ASKING, scope="ask")
    row = evaluations.cancel(service, person, identity)
    logs_of(service, person, "cancel", identity)
    return evaluations.public(service, row)


@router.get("/reports/{identity}.html", response_class=HTMLResponse)
def report(service: Anyone, person: Caller, identity: str) -> HTMLResponse:
    """The answer as one self-contained page, with its receipt."""
    person.must_be("analyst", "custodian")
    row = evaluations.find_one(service, person, identity)
    headers = {"Content-Security-Policy": REPORT_POLICY.decode()}
    with service.free.of(person.name):
        return HTMLResponse(evaluations.page(row), headers=headers)
