"""What every route of the API stands on: problems as JSON, bodies, waiting, the log."""

import re
from typing import Annotated, Any

from fastapi import Header
from pydantic import BaseModel, ConfigDict

from heldout import questions
from heldout.server import logs

__all__ = [
    "ASKING",
    "LOOKING",
    "PROBLEMS",
    "QUESTION",
    "Amount",
    "Body",
    "Json",
    "Wait",
    "logs_of",
    "question_schemas",
    "seconds",
]


class Problem(BaseModel):
    """What went wrong, in words."""

    type: str
    status: int
    detail: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": words,
        "content": {"application/problem+json": {"schema": Problem.model_json_schema()}},
    }
    for status, words in {
        400: "The request cannot be read.",
        401: "No token, or one that opens nothing.",
        402: "It costs more than is left. Nothing was charged.",
        403: "Not for this role, scope or share.",
        404: "No such thing that the caller may see.",
        405: "No such method here.",
        408: "The request took too long to arrive.",
        409: "It does not fit the state that things are in.",
        413: "More bytes than are taken.",
        421: "Addressed to a name that this server does not answer to.",
        422: "An argument breaks its rule.",
        429: "Too many requests, waiting jobs or processor seconds; Retry-After says when.",
        503: "The ledger cannot be trusted; nothing is booked.",
    }.items()
}

Json = dict[str, Any]
Wait = Annotated[str | None, Header(alias="Prefer", pattern=r"^wait=\d{1,3}$")]
ASKING = ("analyst",)
LOOKING = ("custodian", "analyst", "auditor")


class Body(BaseModel):
    """A request's JSON: fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


QUESTION = "#/components/schemas/Question"
"""Where the description of the API says what a question may be."""


def question_schemas() -> dict[str, Json]:
    """Return the schema of every registered kind of question, and of any of them."""
    several = {f"Question-{each.kind}": each.schema() for each in questions.registered()}
    places = {name: f"#/components/schemas/{name}" for name in several}
    kinds = {name.removeprefix("Question-"): place for name, place in places.items()}
    any_kind = {
        "oneOf": [{"$ref": place} for place in places.values()],
        "discriminator": {"propertyName": "question", "mapping": kinds},
    }
    return {"Question": any_kind, **several}


Amount = str | int | float | dict[str, str]


def seconds(prefer: str | None, default: float) -> float:
    found = re.fullmatch(r"wait=(\d{1,3})", prefer or "")
    return default if found is None else min(float(found[1]), 30.0)


def logs_of(service: Any, person: Any, action: str, subject: str) -> None:
    logs.note(service, person=person.name, action=action, subject=subject, status=200)
