"""Every route with made-up requests: no error inside, and no answer that is not declared."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies
from tests.server import test_threats_roles as roles
from tests.server.conftest import DECLARATION, Site, write_rows

from heldout import questions as q
from heldout.server import declaration
from heldout.server import site as site_module
from heldout.server.app import make_app
from heldout.server.declaration import SERVED
from heldout.server.service import Service, Settings

DEEP = os.environ.get("HELDOUT_FUZZ") == "deep"
EXAMPLES = 150 if DEEP else 6
BRIEFLY = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not DEEP,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)
PATIENCE = 300
"""Seconds for an answer: a busy machine must not turn a test red, and 10 are the usual."""
ROLES = {
    "/boards": "carol",
    "/datasets": "carol",
    "/artifacts": "ana",
    "/quotes": "ana",
    "/evaluations": "ana",
    "/reports": "ana",
    "/ledger": "olga",
    "/audit": "olga",
    "/audit.csv": "olga",
    "/people": "adam",
    "/tokens": "bert",
    "/me": "olga",
}
"""By whose token each part of the API is called."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from opened(tmp_path_factory)


@pytest.fixture(scope="module")
def schema(site: Site) -> Any:
    schemathesis = pytest.importorskip("schemathesis")  # 2 s, which not every process needs
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", site.app)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose shares no made-up request has changed."""
    yield from opened(tmp_path_factory)


def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("schema")
    found = Site(folder / "server", requests_per_minute=10**6, sign_ins_per_minute=10**6)
    found.register(write_rows(folder / "rows.parquet", 50), budget="99")
    found.grant()
    yield found
    found.service.close()


def operations() -> list[tuple[str, str]]:
    """Every declared operation; the application says so without any folder or database."""
    paths = make_app(Service(Settings(folder=Path("nowhere")))).openapi()["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods]


@pytest.mark.parametrize(("path", "method"), operations())
def test_no_request_breaks_the_api_or_gets_an_undeclared_answer(
    site: Site, schema: Any, path: str, method: str
) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    asked = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    operation = schema[path][method.upper()]
    token = site.tokens[ROLES["/" + path.removeprefix("/api/v1/").split("/")[0].partition(".")[0]]]
    sent = []

    @BRIEFLY
    @hypothesis.given(
        case=strategies.one_of(
            operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
            operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
        ),
        there=strategies.booleans(),
    )
    def every(case: Any, there: bool) -> None:
        if there and method != "delete":  # the same of what is there
            known = {"name": "readmissions", "analyst": "ana"}
            for name in set(known) & set(case.path_parameters or {}):
                case.path_parameters[name] = known[name]
            if isinstance(case.body, dict) and "dataset" in case.body:
                case.body["dataset"] = "readmissions"
        headers = {"Authorization": f"Bearer {token}", "Prefer": "wait=0"}
        answer = case.call_and_validate(headers=headers, checks=asked, timeout=PATIENCE)
        sent.append(answer.status_code)

    every()
    assert len(sent) >= 1


# --- what the schema calls an object, with the names that mean something ------------------------

ODD = strategies.one_of(
    strategies.none(),
    strategies.booleans(),
    strategies.integers(-(10**20), 10**20),
    strategies.floats(),
    strategies.text(max_size=8),
    strategies.sampled_from(["1", "1/2", "rival", "sex", "age", "0.5", "score", "1e999", "-1"]),
    strategies.lists(strategies.integers(-2, 2) | strategies.text(max_size=3), max_size=3),
    strategies.dictionaries(strategies.text(max_size=3), strategies.integers(), max_size=2),
)
ASKED = [kind for kind in q.registered() if set(kind.of) & set(SERVED)]
FIELDS = sorted({each.name for kind in ASKED for each in fields(kind)})
QUESTION = strategies.builds(
    lambda kind, more: {"question": kind, "epsilon": "1/100"} | more,
    strategies.sampled_from([kind.kind for kind in ASKED]),
    strategies.dictionaries(strategies.sampled_from(FIELDS), ODD, max_size=2),
)
DECLARED = strategies.builds(
    lambda more: DECLARATION | more,
    strategies.dictionaries(strategies.sampled_from(sorted(declaration.FIELDS)), ODD, max_size=2),
)
ANSWERS = (200, 201, 202, 400, 402, 409, 422)


def as_json(content: Any) -> dict[str, Any]:
    return {
        "content": json.dumps(content).encode(),
        "headers": {"Content-Type": "application/json", "Prefer": "wait=0", "Idempotency-Key": "k"},
    }


@hypothesis.settings(BRIEFLY, max_examples=8 * EXAMPLES)
@hypothesis.given(questions=strategies.lists(QUESTION, max_size=3), guess=ODD)
def test_odd_questions_are_priced_or_refused(untouched: Site, questions: Any, guess: Any) -> None:
    site = untouched
    odd = {"rows": guess} if not isinstance(guess, dict) else guess
    body = {"dataset": "readmissions", "questions": questions, "guess": odd}
    answer = site.client("ana").post("/api/v1/quotes", **as_json(body))
    assert answer.status_code in ANSWERS, answer.text
    body = {"dataset": "readmissions", "questions": questions, "artifact": "none"}
    answer = site.client("ana").post("/api/v1/evaluations", **as_json(body))
    assert answer.status_code in (*ANSWERS, 404), answer.text


@hypothesis.settings(BRIEFLY, max_examples=4 * EXAMPLES)
@hypothesis.given(declared=DECLARED, number=strategies.integers(1, 10**9))
def test_odd_declarations_are_refused_or_checked_to_an_end(
    site: Site, declared: Any, number: int
) -> None:
    place = str(site.service.settings.folder.parent / "rows.parquet")
    body = {"name": f"d{number}", "source": place, "declaration": declared, "budget": "1"}
    answer = site.client("carol").post("/api/v1/datasets", **as_json(body))
    assert answer.status_code in ANSWERS, answer.text
    site.work()
    for each in site.client("carol").get("/api/v1/datasets").json():
        assert each["state"] != "checking"
        assert "given up" not in each["words"], declared


# --- pages ---------------------------------------------------------------------------------------

TEMPLATES = Path(site_module.__file__).parent / "pages"
NAMES = sorted(
    {
        name
        for each in TEMPLATES.glob("*.html")
        for name in re.findall(r'name="(\w+)"', each.read_text(encoding="utf-8"))
    }
)
TYPED = strategies.one_of(
    strategies.text(max_size=12),
    strategies.sampled_from(["", "0", "-1", "1e999", "nan", "1/0", "9" * 400, "\x00", "{}", "a,b"]),
    strategies.sampled_from(["readmissions", "ana", "auc", "compare", "curves", "0.5", "1/100"]),
)
FORM = strategies.dictionaries(strategies.sampled_from(NAMES), TYPED, max_size=6)


@pytest.mark.parametrize("route", sorted(roles.SITE), ids=" ".join)
def test_odd_forms_and_addresses_get_a_page(site: Site, route: tuple[str, str]) -> None:
    method, path = route
    if path in ("/sign-out", "/account/password") or path.endswith("/close"):
        return
    browser = roles.session(site, roles.ROLES[sorted(roles.SITE[route])[0]])
    filled = re.sub(r"\{name\}", "readmissions", path).replace("{analyst}", "ana")
    filled = filled.replace("{identity}", "nothing")
    if path.startswith("/people"):
        filled = filled.replace("readmissions", "nobody")

    @hypothesis.settings(BRIEFLY, max_examples=EXAMPLES // 2)
    @hypothesis.given(form=FORM)
    def every(form: dict[str, str]) -> None:
        if method == "GET":
            answer = browser.get(filled, params=form, follow_redirects=False)
        else:
            sent = form | {"form_token": browser.form}
            answer = browser.post(filled, data=sent, follow_redirects=False)
        assert answer.status_code < 500, answer.text
        assert answer.headers.get("location") != "/sign-in"

    every()
