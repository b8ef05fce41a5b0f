"""Writes requirements-server.txt: what the server's image installs, each file by its SHA-256.

    python tools/server_pins.py

The versions are those of constraints.txt; pip says which files they are, for each machine that an
image is built for. `pip install --require-hashes -r requirements-server.txt` takes no others.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path

MACHINES = ("x86_64", "aarch64")
PYTHON = "3.11"
EXTRAS = ("models", "postgres", "server")
HEAD = "# Made by tools/server_pins.py from pyproject.toml and constraints.txt. Do not edit.\n"


def wanted(project: dict[str, dict[str, object]]) -> list[str]:
    """The direct requirements of the library with the server's extras."""
    about = project["project"]
    extras = about["optional-dependencies"]
    assert isinstance(extras, dict)
    own = about["dependencies"]
    assert isinstance(own, list)
    build = project["build-system"]["requires"]  # the image builds the library without the network
    assert isinstance(build, list)
    return [*own, *build, *(each for extra in EXTRAS for each in extras[extra])]


def resolved(requirements: list[str], machine: str) -> dict[str, tuple[str, str]]:
    """Name to version and SHA-256, as pip would install them there; nothing is installed."""
    kinds = ("2014", *(f"_2_{minor}" for minor in range(17, 35)))
    platforms = [f"--platform=manylinux{kind}_{machine}" for kind in kinds]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--target", folder, "--only-binary=:all:", *platforms]
        command += ["--python-version", PYTHON, "--constraint", "constraints.txt"]
        subprocess.run([*command, "--report", str(report), *requirements], check=True)
        found = json.loads(report.read_text())["install"]
    return {
        each["metadata"]["name"].lower().replace("_", "-"): (
            each["metadata"]["version"],
            each["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for each in found
    }


def main() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())
    versions: dict[str, set[str]] = defaultdict(set)
    hashes: dict[str, set[str]] = defaultdict(set)
    for machine in MACHINES:
        for name, (version, digest) in resolved(wanted(project), machine).items():
            versions[name].add(version)
            hashes[name].add(digest)
    lines = []
    for name in sorted(versions):
        (version,) = versions[name]
        digests = " \\\n".join(f"    --hash=sha256:{each}" for each in sorted(hashes[name]))
        lines.append(f"{name}=={version} \\\n{digests}\n")
    Path("requirements-server.txt").write_text(HEAD + "".join(lines))
    print(f"{len(lines)} packages, {sum(map(len, hashes.values()))} files")


if __name__ == "__main__":
    main()
