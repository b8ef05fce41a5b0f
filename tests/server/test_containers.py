"""The image and the compose file hold what docs/server.md says, and the steps are the same."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from heldout.cli import make_app

PYTHON = "3.11"  # for which tools/server_pins.py resolves

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def image() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    joined = re.sub(r"\\\n", " ", text)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def filled(text: str) -> str:
    """What compose makes of a text, with the values that the page exports."""
    text = text.replace("${HELDOUT_ADDRESS:-http://localhost:8000}", "https://evaluate.example.org")
    return re.sub(r"\$\{HELDOUT_\w+_PASSWORD:\?[^}]*\}", "PASSWORD", text)


def test_there_is_a_web_two_workers_and_a_database(compose: Any) -> None:
    services = compose["services"]
    assert set(services) == {"database", "prepare", "web", "worker"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert services["database"]["image"] == "${HELDOUT_POSTGRES_IMAGE:-postgres:17}"
    assert services["prepare"]["depends_on"]["database"]["condition"] == "service_healthy"
    ended = services["web"]["depends_on"]["prepare"]["condition"]
    assert ended == "service_completed_successfully"
    assert {each.split(":")[0] for each in services["web"]["volumes"]} <= set(compose["volumes"])


def test_the_commands_are_those_of_the_page_and_the_command_line_takes_them(compose: Any) -> None:
    shown = {line.removeprefix("$ heldout ") for line in DOCS.splitlines() if "$ heldout" in line}
    for name in ("prepare", "web", "worker"):
        command = filled(compose["services"][name]["command"])
        assert command in shown
        _, bound, _ = make_app().parse_args(
            shlex.split(command), exit_on_error=False, print_error=False
        )
        assert bound.args[0] == Path("/data")
        address = filled(compose["services"][name]["environment"]["HELDOUT_SERVER_DATABASE"])
        assert f"$ export HELDOUT_SERVER_DATABASE={address} " in DOCS


def test_the_page_and_the_readme_export_what_compose_asks_for(compose: Any) -> None:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    needed = set(re.findall(r"\$\{(\w+):\?", text))
    assert needed == {f"HELDOUT_{role}_PASSWORD" for role in ("DATABASE", "WEB", "WORKER")}
    for page in (DOCS, README):
        assert "docker compose up --build" in page
        assert needed <= set(re.findall(r"HELDOUT_\w+", page))
    assert set(re.findall(r"\$\{(\w+)", text)) <= set(re.findall(r"HELDOUT_\w+", DOCS))


def test_the_web_has_no_way_to_the_rows(compose: Any) -> None:
    web, worker = compose["services"]["web"], compose["services"]["worker"]
    assert web["volumes"] == ["server:/data"]
    assert any(each.startswith("/data/private:") for each in web["tmpfs"])
    inside = {each.split(":")[-2 if each.endswith(":ro") else -1] for each in worker["volumes"]}
    assert inside == {"/data", "/data/private", "/rows"}
    assert [each for each in worker["volumes"] if each.endswith(":/rows:ro")]


def test_each_role_has_its_own_rights_in_the_database_and_no_other_secret(compose: Any) -> None:
    services = compose["services"]
    for name in ("web", "worker"):
        environment = services[name]["environment"]
        [address] = environment.values()
        assert f"//heldout_{name}:${{HELDOUT_{name.upper()}_PASSWORD" in address
    assert not [each for each in services["web"]["volumes"] if "private" in each]
    for name in ("web", "prepare"):  # where the ledger's key is, they have an empty folder
        assert any(each.startswith("/data/private:") for each in services[name]["tmpfs"])


def test_only_the_web_has_a_way_out_and_everybody_has_limits(compose: Any) -> None:
    assert compose["networks"]["inside"] == {"internal": True}
    for name, service in compose["services"].items():
        assert service["networks"] == (["inside", "outside"] if name == "web" else ["inside"])
        assert service["mem_limit"]
        assert service["pids_limit"] <= 256
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert ("cap_add" in service) == (name == "database")


def test_nothing_runs_as_root_or_gains_rights(compose: Any, image: list[tuple[str, str]]) -> None:
    assert dict(image)["USER"] == "heldout"
    for name in ("web", "worker"):
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    [port] = compose["services"]["web"]["ports"]
    assert port.startswith("127.0.0.1:")


def test_the_image_is_installed_from_files_whose_hashes_are_on_record(
    image: list[tuple[str, str]],
) -> None:
    """What `make install` installs, which `test_pins.py` compares; nothing else is fetched."""
    assert "'.[models,postgres,server]'" in _target("installed")
    first, second = [text for what, text in image if what == "RUN" and "pip install" in text]
    assert "--require-hashes" in first
    assert first.endswith("-r requirements-server.txt")
    assert "--no-deps --no-build-isolation ." in second
    assert dict(image)["ARG"] == f"PYTHON_IMAGE=python:{PYTHON}-slim"
    assert dict(image)["FROM"] == "${PYTHON_IMAGE}"
    copied = " ".join(text for what, text in image if what == "COPY").split()
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    for name in (each for each in copied if each != "./"):
        assert (ROOT / name).exists()
        assert f"!{name}" in kept
    words = shlex.split(" ".join(_listed(dict(image)["CMD"])))
    make_app().parse_args(words, exit_on_error=False, print_error=False)
    assert _listed(dict(image)["ENTRYPOINT"]) == ["heldout"]


def _target(name: str) -> str:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return text[text.index(f".venv/{name}:") :].split("\n\n")[0]


def _listed(text: str) -> list[str]:
    found = yaml.safe_load(text)
    assert isinstance(found, list)
    return found
