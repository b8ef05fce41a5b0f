"""The pages that register rows: a source is chosen, a worker reads its columns, and each step picks
from them. Everything works without scripts: every step is a form, and a page that waits reloads."""

from pathlib import PurePath
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from heldout.arguments import Values
from heldout.errors import ArgumentError, HeldoutError
from heldout.server import datasets, drafts, sources
from heldout.server.accounts import Person
from heldout.server.declaration import Declaration
from heldout.server.drafts import Draft, Form
from heldout.server.gate import Serving, status_of
from heldout.server.parts import PARTS, names_column
from heldout.server.service import Service, kilobytes
from heldout.server.site import Order, Sent, Signed, page, redirect, sent
from heldout.server.storage import Json

api = APIRouter()
pages = APIRouter()
PIECE: Final = 2**20
WAITING: Final = ("surveying", "looking")


@pages.get("/register")
def begin_page(service: Serving, request: Request, person: Signed) -> Response:
    """Say what registering takes, and lead back to what was begun."""
    person.must_be("custodian")
    return page(request, "register.html", draft=drafts.of(service, person))


@pages.post("/register")
def begin(service: Serving, order: Order) -> Response:
    """Begin a registration; a worker lists what there is to choose from."""
    return redirect(f"/register/{drafts.begin(service, order.person)}")


@pages.post("/datasets/{name}/again")
def again(service: Serving, order: Order, name: str) -> Response:
    """Begin again with what a data set was registered with."""
    return redirect(f"/register/{drafts.again(service, order.person, name)}")


@pages.post("/register/upload")
async def upload(service: Serving, request: Request, person: Signed) -> Response:
    """Take a file of rows, which a worker then moves to where the web cannot read it."""
    person.must_be("custodian", scope="manage")
    order = await sent(request, person)
    draft = await run_in_threadpool(drafts.find, service, person, order.text("draft"))
    file = order.form.get("file")
    try:
        if not isinstance(file, UploadFile) or not file.filename:
            raise ArgumentError("Choose a file first.")
        name = PurePath(file.filename.replace("\\", "/")).name
        ending = PurePath(name).suffix.lower()
        if ending not in sources.ENDINGS:
            raise ArgumentError("The name of the file must end in .parquet or .csv.")
        place = sources.arrived(draft.id, ending, service.settings)
        place.unlink(missing_ok=True)
        place.touch(mode=0o600)
        with place.open("wb") as stored:
            while piece := await file.read(PIECE):
                stored.write(piece)
        source: Json = {"upload": draft.id, "file": name}
        await run_in_threadpool(drafts.choose, service, draft, source)
    except HeldoutError as error:
        return _choosing(service, request, draft, status_of(error), str(error))
    return redirect(f"/register/{draft.id}")


@pages.get("/register/{identity}")
def draft_page(
    service: Serving, request: Request, person: Signed, identity: str, step: str = ""
) -> Response:
    """The step that comes next, or the one that somebody goes back to."""
    draft = drafts.find(service, person, identity)
    if "hx-request" in request.headers:
        new = {} if draft.state in WAITING else {"HX-Refresh": "true"}
        return Response(status_code=204, headers=new)
    if draft.state in WAITING:
        return page(request, "draft_waits.html", draft=draft)
    if draft.state == "choosing" or step == "source":
        wrong = draft.words if draft.source and step != "source" else None
        return _choosing(service, request, draft, 200, wrong)
    return _step(service, request, person, draft, step if step in draft.steps else draft.step)


def _choosing(
    service: Service, request: Request, draft: Draft, status: int, wrong: str | None
) -> Response:
    settings = service.settings
    content: Json = {"draft": draft, "offered": draft.offered or {}, "wrong": wrong, "step": ""}
    content |= {"anywhere": settings.rows is None, "most": kilobytes(settings.most_upload)}
    return page(request, "draft_source.html", status=status, **content)


@pages.post("/register/{identity}/source")
def choose(service: Serving, request: Request, order: Order, identity: str) -> Response:
    """Choose a file, or a table; a worker reads its columns."""
    draft = drafts.find(service, order.person, identity)
    try:
        drafts.choose(service, draft, _source(order))
    except HeldoutError as error:
        return _choosing(service, request, draft, status_of(error), str(error))
    return redirect(f"/register/{identity}")


def _source(order: Sent) -> Json:
    kind = order.text("kind")
    if kind == "table":
        database, _, table = order.text("table").partition(" ")
        if table:
            return {"database": database, "table": table}
    elif kind == "spark" and order.text("spark"):
        return {"spark": order.text("spark")}
    elif kind == "path" and order.text("path"):
        return {"file": order.text("path")}
    elif kind == "file" and order.text("file"):
        return {"file": order.text("file")}
    raise ArgumentError("Choose where the rows are.")


@pages.post("/register/{identity}/discard")
def discard(service: Serving, order: Order, identity: str) -> Response:
    """Forget what was begun, and what was uploaded for it."""
    drafts.find(service, order.person, identity)
    drafts.discard(service, order.person)
    return redirect("/register")


@pages.post("/register/{identity}/{step}")
def fill_in(service: Serving, request: Request, order: Order, identity: str, step: str) -> Response:
    """Check a step and go on to the next; the last one registers."""
    draft = drafts.find(service, order.person, identity)
    if draft.state != "ready" or step not in draft.steps:
        return redirect(f"/register/{identity}")
    form = _form(order)
    try:
        if step == "spend":
            name = drafts.register(service, order.person, draft, form)
            return redirect(f"/datasets/{name}?done=registered")
        draft = drafts.fill_in(service, draft, step, form)
    except HeldoutError as error:
        return _step(service, request, order.person, draft, step, form, error)
    return redirect(f"/register/{identity}?step={draft.after(step)}")


def _form(order: Sent) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for name, value in order.form.multi_items():
        if isinstance(value, str) and name != "form_token" and value.strip():
            texts.setdefault(name, []).append(value.strip())
    return texts


def _step(  # noqa: PLR0917
    service: Service,
    request: Request,
    person: Person,
    draft: Draft,
    step: str,
    form: Form | None = None,
    error: HeldoutError | None = None,
) -> Response:
    """Return the form of a step: as it was sent, as it was kept, or as an older one had it."""
    before = _before(service, person, draft)
    known = form if form is not None else draft.picks.get(step, before.get(step))
    earlier = draft.steps[: draft.steps.index(step)]
    content: Json = {
        "draft": draft,
        "step": step,
        "title": drafts.TITLES[step],
        "typed": {name: values[0] for name, values in (known or {}).items()},
        "fresh": known is None,
        "wrong": None if error is None else str(error),
        "sorts": drafts.SORTS,
        "parts": _parts(),
        "kinds": drafts.KINDS,
    }
    if step == "columns":
        content["taken"] = drafts.own_columns(draft)
    if step == "spend":
        own = datasets.visible(service, person)
        content["others"] = [one.name for one in own if one.state == "open"]
        content["declared"] = Declaration.of(drafts.declaration_of(draft, earlier))
    status = 200 if error is None else status_of(error)
    return page(request, f"draft_{step}.html", status=status, **content)


def _before(service: Service, person: Person, draft: Draft) -> dict[str, dict[str, list[str]]]:
    """Return the forms of a data set that is registered again."""
    name = draft.picks.get("again", {}).get("name", [""])[0]
    if not name:
        return {}
    return drafts.registered_forms(datasets.owned(service, person, name), draft)


def _parts() -> dict[str, Json]:
    """Return the kinds of rows without a model that a page can ask about, with their fields."""
    return {
        name: {
            "words": part.of.rows_in_words.capitalize(),
            "brought": any(isinstance(field.rule, Values) for field in drafts.part_fields(name)),
            "fields": [(field, names_column(field)) for field in drafts.part_fields(name)],
        }
        for name, part in PARTS.items()
        if drafts.part_fields(name)
    }
