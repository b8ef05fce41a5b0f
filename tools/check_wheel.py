"""Builds the wheel, installs it where nothing else is, and uses it as a newcomer would.

Then adds heldout-papers, which the wheel must not carry and `heldout reproduce` must find.

    python tools/check_wheel.py

The environment is empty and has no development dependency; heldout is imported from outside the
source tree. Ends with one line that begins with PASS, or with an error and status 1.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
HOURS = sorted((ROOT / "docs").glob("tutorial-*.md"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNWANTED = ("tests/", "benchmarks/", "docs/", "proofs/", "tools/", "papers/")
ONE_CONFUSION_MATRIX = """
import pathlib, sys
import heldout as ho

here = pathlib.Path(ho.__file__).resolve()
assert pathlib.Path(sys.prefix).resolve() in here.parents, here
for absent in ("pytest", "hypothesis", "mypy", "pandas", "polars"):
    try:
        __import__(absent)
    except ImportError:
        continue
    raise SystemExit(f"{absent} is there, so this environment shows nothing")
rows = {"y": [1, 0] * 500, "p": [0.8, 0.3] * 500}
session = ho.Session(
    ho.Dataset(rows, label="y", score="p"), budget=ho.Budget(epsilon="1"), ledger="ledger.sqlite"
)
answer = session.confusion(threshold=0.5, epsilon="1/2")
assert answer.accuracy > 0.9, answer
assert "heldout.testing" not in sys.modules, "an answer must not load what can seed its noise"
assert str(session.remaining) == "epsilon 0.5", session.remaining
print(answer)
"""


def run(*command: str | Path, within: Path) -> str:
    """Run a command with nothing of ours in its environment; its output, or the end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=within,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "pip" in command and not online():
        print("SKIP wheel: it is installed from the package index, and there is no network here")
        raise SystemExit(0)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        raise SystemExit(f"FAIL wheel: {' '.join(str(part) for part in command)}")
    return done.stdout


def online() -> bool:
    """Return whether the machine has a network beside its loopback."""
    states = [Path("/sys/class/net") / name / "operstate" for _, name in socket.if_nameindex()]
    up = [each for each in states if not each.exists() or each.read_text() != "down\n"]
    return any(each.parent.name != "lo" for each in up)


def must(condition: bool, rule: str) -> None:
    if not condition:
        raise SystemExit(f"FAIL wheel: {rule}")


def build(source: Path, *, into: Path) -> Path:
    """The wheel, built as pip builds it for anybody."""
    into.mkdir()
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", into, source,
        within=into)  # fmt: skip
    wheels = list(into.glob("*.whl"))
    must(len(wheels) == 1, f"one wheel must be built, got {len(wheels)}")
    return wheels[0]


def check_content(wheel: Path) -> int:
    """What must be in it, and what must not."""
    names = zipfile.ZipFile(wheel).namelist()
    must("heldout/py.typed" in names, "it must hold heldout/py.typed")
    must(any(name.endswith("licenses/LICENSE") for name in names), "it must hold LICENSE")
    must(any(name.endswith("entry_points.txt") for name in names), "it must have the command")
    strays = [name for name in names if name.startswith(UNWANTED) or "/tests/" in name]
    must(not strays, f"it must hold the package alone, got {strays[:3]}")
    roots = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    must(roots == {"heldout"}, f"it must have one root, got {roots}")
    drawn = [
        ROOT / "src" / "heldout" / each
        for each in ("drawing/templates", "server/pages", "server/static")
    ]
    beside = {
        path.relative_to(ROOT / "src").as_posix() for folder in drawn for path in folder.iterdir()
    }
    must(beside <= set(names), f"it must hold every page, not {sorted(beside - set(names))}")
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    must(sources <= set(names), f"it must hold every module, not {sorted(sources - set(names))}")
    return len(names)


def script(page: Path, command: Path) -> str:
    """What a tutorial shows, as one program: its Python, and its commands where they stand."""
    lines = ["import shlex, subprocess"]
    for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            lines.append(text)
        elif language == "console":
            for each in text.splitlines():
                words = [str(command), *each.removeprefix("$ heldout ").split(" ")]
                joined = " ".join(words)
                lines.append(f"subprocess.run(shlex.split({joined!r}), check=True)")
    return "\n".join(lines)


def first_hour(page: Path, python: Path, command: Path, *, within: Path) -> None:
    """A kind of user follows the tutorial, from the wheel to the final picture."""
    place = within / page.stem
    place.mkdir()
    begun = time.monotonic()
    run(python, "-c", script(page, command), within=place)
    drawn = [each for each in place.iterdir() if each.suffix in (".svg", ".html")]
    must(bool(drawn), f"{page.name} must end with a picture")
    must(all("<svg" in each.read_text(encoding="utf-8") for each in drawn), "a picture is an SVG")
    print(f"{page.stem}: {len(drawn)} pictures in {time.monotonic() - begun:.0f} s")


def check_use(wheel: Path, papers: Path, *, within: Path, hours: bool) -> None:
    """Install it where nothing is, then import it, ask it and start its command."""
    environment = within / "environment"
    venv.create(environment, with_pip=True)
    binaries = environment / ("Scripts" if os.name == "nt" else "bin")
    python, command = binaries / "python", binaries / "heldout"
    constraint = ("--constraint", CONSTRAINTS) if CONSTRAINTS.is_file() else ()
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraint,
        wheel, within=within)  # fmt: skip
    run(python, "-m", "pip", "check", within=within)
    work = within / "work"
    work.mkdir()
    print(run(python, "-c", ONE_CONFUSION_MATRIX, within=work).strip())
    version = wheel.name.split("-")[1]
    must(version in run(command, "--version", within=work), f"--version must say {version}")
    must("evaluate" in run(command, "--help", within=work), "--help must name evaluate")
    for page in HOURS if hours else ():
        first_hour(page, python, command, within=within)
    alone = subprocess.run([command, "reproduce", "--list"], capture_output=True, check=False)
    said = alone.stderr.decode()
    must(alone.returncode == 2 and "pip install heldout-papers" in said and said.count("\n") == 1,
         f"reproduce must say how to install the papers, got {said}")  # fmt: skip
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraint,
        papers, within=within)  # fmt: skip
    run(python, "-m", "pip", "check", within=within)
    listed = run(command, "reproduce", "--list", within=work)
    must("boyd-2014" in listed, "reproduce must find the papers once they are installed")


def main() -> int:
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="heldout-wheel-") as folder:
        within = Path(folder).resolve()
        wheel = build(ROOT, into=within / "heldout")
        papers = build(ROOT / "papers", into=within / "papers")
        files = check_content(wheel)
        check_use(wheel, papers, within=within, hours="--hours" in sys.argv[1:])
        name = wheel.name
    print(
        f"PASS {name}: {files} files, installed, imported and run without development "
        f"dependencies, {time.monotonic() - start:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
