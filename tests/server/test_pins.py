"""The server's image installs what was resolved once, file by file."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOLD = (ROOT / "requirements-server.txt").read_text()
PINNED = dict(re.findall(r"^([a-z0-9.-]+)==(\S+) \\$", TOLD, re.MULTILINE))


def plain(name: str) -> str:
    return re.split(r"[^\w.-]", name)[0].lower().replace("_", "-")


def test_every_package_is_pinned_to_files_by_their_hashes() -> None:
    for block in re.split(r"^(?=[a-z])", TOLD, flags=re.MULTILINE)[1:]:
        assert re.fullmatch(r"\S+==\S+ \\\n(    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", block), (
            block
        )


def test_the_versions_are_those_that_are_tested() -> None:
    tested = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    known = {plain(name): version for name, version in tested.items()}
    assert {name: known.get(name) for name in PINNED} == PINNED


def test_what_the_server_requires_is_in_it() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = about["optional-dependencies"]
    wanted = [*about["dependencies"], *extras["models"], *extras["postgres"], *extras["server"]]
    assert {plain(each) for each in wanted} <= set(PINNED), "run tools/server_pins.py"
