"""Writes clients/r/R/api.R: a function of R for each operation of the server's API.

python tools/r_client.py            is the file current?
python tools/r_client.py --write    make it anew
"""

import sys
from pathlib import Path
from typing import Any

PLACE = Path(__file__).resolve().parent.parent / "clients" / "r" / "R" / "api.R"
HEAD = "# Made by tools/r_client.py from the server's OpenAPI description. Do not edit.\n"


def described() -> dict[str, Any]:
    """Return the description that a server serves at /api/v1/openapi.json."""
    from heldout.server.app import make_app
    from heldout.server.service import Service
    from heldout.server.settings import Settings

    return make_app(Service(Settings(folder=Path("nowhere")))).openapi()


def function(method: str, path: str, operation: dict[str, Any]) -> str:
    """Return the function of one operation."""
    name = operation["operationId"].partition("_api_v1_")[0]
    places = {"path": [], "query": [], "header": []}
    for parameter in operation.get("parameters", []):
        places[parameter["in"]].append(parameter["name"])
    content = (operation.get("requestBody") or {}).get("content", {})
    takes_file = len(content) > 1
    arguments = ["server", *places["path"]]
    arguments += ["file", "type"] if takes_file else ["body"] * bool(content)
    arguments += [f"{_word(each)} = NULL" for each in places["query"] + places["header"]]
    route = path.removeprefix("/api/v1")
    filled = [f'"{route}"', *(f"{each} = {each}" for each in places["path"])]
    call = [f'"{method.upper()}"', f"ho_path({', '.join(filled)})"]
    for kind, option in (("query", "query"), ("header", "headers")):
        if places[kind]:
            given = ", ".join(f"`{each}` = {_word(each)}" for each in places[kind])
            call.append(f"{option} = list({given})")
    call += ["file = file", "type = type"] if takes_file else ["body = body"] * bool(content)
    summary = (operation.get("description") or operation["summary"]).splitlines()[0]
    return (
        f"#' {summary}\n#' @export\n"
        f"ho_{name} <- function({', '.join(arguments)}) {{\n"
        f"  ho_call(server, {', '.join(call)})\n}}\n"
    )


def _word(name: str) -> str:
    return name.lower().replace("-", "_")


def written(description: dict[str, Any]) -> str:
    """Return the whole file."""
    functions = [
        function(method, path, operation)
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
        if path.startswith("/api/v1")
    ]
    return HEAD + "\n" + "\n".join(functions)


def main() -> int:
    wanted = written(described())
    if "--write" in sys.argv:
        PLACE.write_text(wanted, encoding="utf-8")
        return 0
    current = PLACE.is_file() and PLACE.read_text(encoding="utf-8") == wanted
    print("current" if current else "stale: run python tools/r_client.py --write")
    return not current


if __name__ == "__main__":
    raise SystemExit(main())
