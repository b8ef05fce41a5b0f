"""Plant one fault at a time in a copy of the package, and count those that a test notices.

    python tools/mutants.py                     every fault of tools/faults.toml
    python tools/mutants.py noise bound         those whose name or room has one of these words
    python tools/mutants.py --list              check that every fault still fits the source
    python tools/mutants.py --out docs/mutants.md    and write the table; faults that this run did
                                                     not plant keep their lines
    python tools/mutants.py --missing --out ...      those that the table does not have
    python tools/mutants.py --older --out ...        those that were not judged today

A fault is a text that stands once in `src/heldout`, what to write in its stead, and the tests that
ought to fail. It is found by the text and not by a path, so that it survives when files move; test
files are found by their names. Hashes of proofs, which notice any change, do not count. At the end
the tests that noticed something run once more without a fault: whatever they notice then, it is not
the fault.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAULTS = Path(__file__).with_name("faults.toml")
LEFT = (".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis", "site")
"""What a copy of the repository does not need."""
TODAY = date.today().isoformat()
NO_TESTS = 5  # pytest's status where all of them are slow
LONGEST = 1800
"""Seconds for the tests of one fault, also on busy cores: a fault that hangs is noticed."""


@cache
def sources(root: Path) -> dict[Path, str]:
    """Read the package's files, before anything is planted."""
    files = sorted((root / "src" / "heldout").rglob("*.py"))
    return {file: file.read_text(encoding="utf-8") for file in files}


@dataclass(frozen=True)
class Fault:
    """A planted fault: `new` in place of `old`."""

    name: str
    room: str
    old: str
    new: str
    tests: tuple[str, ...]

    def place(self, root: Path) -> Path:
        """Return the one file that has the text."""
        counts = {file: text.count(self.old) for file, text in sources(root).items()}
        count = sum(counts.values())
        if count != 1:
            raise SystemExit(f"{self.name}: its text must stand once in src, got {count} times.")
        return max(counts, key=lambda file: counts[file])

    def selections(self, root: Path) -> list[list[str]]:
        """Return pytest's arguments: folders and files by name, wherever they are now.

        Whatever has words for -k is a run of its own, as the words would choose among all paths.
        """
        whole: list[str] = []
        parts: list[list[str]] = []
        for test in self.tests:
            path, _, words = test.partition(" -k ")
            if not (root / "tests" / path).exists():
                moved = sorted((root / "tests").rglob(Path(path).name))
                if not moved:
                    raise SystemExit(f"{self.name}: no tests/{path}.")
                path = str(moved[0].relative_to(root / "tests"))
            if words:
                parts.append([f"tests/{path}", "-k", words])
            else:
                whole.append(f"tests/{path}")
        return [whole, *parts] if whole else parts


def faults() -> list[Fault]:
    """Read the list; a room says which tests are run unless a fault does."""
    content = tomllib.loads(FAULTS.read_text(encoding="utf-8"))
    listed = []
    for one in content["fault"]:
        tests = one.get("tests") or content["tests"][one["room"]]
        listed.append(Fault(one["name"], one["room"], one["old"], one["new"], tuple(tests)))
    names = [one.name for one in listed]
    if len(set(names)) < len(names):
        raise SystemExit("Two faults have the same name.")
    return listed


@dataclass(frozen=True)
class Verdict:
    """How a fault fared."""

    fault: Fault
    noticed: bool
    by: str
    seconds: float
    day: str
    """When it was judged, on the code of that day."""


def selection_of(by: str, root: Path) -> list[list[str]]:
    """Return pytest's arguments for the test that noticed a fault before, if it is still there."""
    name, _, function = by.partition("::")
    files = sorted((root / "tests").rglob(name)) if function else []
    test = function.partition("[")[0]
    return [
        [f"{file.relative_to(root)}::{test}"]
        for file in files
        if f"def {test}(" in file.read_text(encoding="utf-8")
    ]


def judge(fault: Fault, root: Path, before_by: str = "") -> Verdict:
    """Plant a fault in the copy, run its tests, and take it out again.

    The test that noticed it before comes first: where it still does, no other needs to be run.
    """
    file = fault.place(root)
    status: int | None
    before = file.read_text(encoding="utf-8")
    begun = time.monotonic()
    try:
        write(file, before.replace(fault.old, fault.new))
        compile(file.read_text(encoding="utf-8"), str(file), "exec")
        status, printed = 0, ""
        quick = [*fault.selections(root)]
        for selection in selection_of(before_by, root):
            if status == 0:
                status, printed = run(selection, root, slow=True)
        for slow in (False, True):
            for selection in quick:
                if status == 0:
                    status, printed = run(selection, root, slow=slow)
    finally:
        write(file, before)
    failed = re.search(r"^(?:FAILED|ERROR) (?:[^\s:]*/)?(\S+)", printed, re.MULTILINE)
    by = (
        failed[1].partition("[")[0]
        if failed
        else "it hangs"
        if status is None
        else f"status {status}"
    )
    spent = time.monotonic() - begun
    return Verdict(fault, status != 0, by if status != 0 else "", spent, TODAY)


def write(file: Path, text: str) -> None:
    """Write with a time of its own: what Python compiled before is told apart by seconds."""
    later = int(file.stat().st_mtime) + 2
    file.write_text(text, encoding="utf-8")
    os.utime(file, (later, later))


def run(selection: list[str], root: Path, *, slow: bool = False) -> tuple[int | None, str]:
    """Run tests in the copy until the first that fails; slow ones as well, or not."""
    environment = os.environ | {"PYTHONPATH": f"{root}/src:{root}/papers/src"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    options = ["-q", "-x", "-pno:cacheprovider", "--tb=no"]
    options += [] if slow else ["-m", "not slow"]
    # Plugins are most of the time that a few tests take.
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    options += ["-p_hypothesis_pytestplugin"]
    command = [sys.executable, "-m", "pytest", *options, *selection]
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False,
            timeout=LONGEST,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    if done.returncode == NO_TESTS:
        return 0, ""
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"pytest could not run:\n{done.stdout}\n{done.stderr}")
    return done.returncode, done.stdout


def control(chosen: list[Fault], root: Path) -> None:
    """Refuse tests that cannot even be read without a fault: all faults would be noticed."""
    paths = {
        word
        for one in chosen
        for selection in one.selections(root)
        for word in selection
        if word.startswith("tests/")
    }
    status, printed = run(["--collect-only", *sorted(paths)], root)
    if status != 0:
        raise SystemExit(f"The tests cannot be collected without a fault:\n{printed}")


def without_fault(verdicts: list[Verdict], root: Path) -> list[Verdict]:
    """Take back verdicts of tests that fail without a fault too."""
    tests = {one.by: [path for found in selection_of(one.by, root) for path in found]
             for one in verdicts}  # fmt: skip
    paths = sorted({path for some in tests.values() for path in some})
    if not paths or run(paths, root, slow=True)[0] == 0:
        return verdicts
    failing = {by for by, some in tests.items() if some and run(some, root, slow=True)[0] != 0}
    return [replace(one, noticed=False, by="") if one.by in failing else one for one in verdicts]


LINE = re.compile(
    r"^\| ([^|]+) \| ([^|]+) \| (?:`([^`]+)`|\*\*none\*\*) \|(?: ([^|]+) \|)?$", re.MULTILINE
)


def earlier(page: Path | None) -> dict[str, Verdict]:
    """Read the verdicts of a page, by the names of faults that are still listed."""
    if page is None or not page.is_file():
        return {}
    listed = {one.name: one for one in faults()}
    lines = LINE.findall(page.read_text(encoding="utf-8"))
    return {
        name: Verdict(listed[name], bool(by), by, 0, day or "before 2026-11-18")
        for _, name, by, day in lines
        if name in listed
    }


def table(verdicts: list[Verdict]) -> str:
    """Return the page that tells how many faults were noticed, and by which test."""
    noticed = sum(one.noticed for one in verdicts)
    newest = max((one.day for one in verdicts if one.day[0].isdigit()), default="")
    new = sum(one.day == newest for one in verdicts)
    lines = [
        "# Planted faults",
        "",
        "<!-- written by tools/mutants.py -->",
        "",
        f"`make mutants` plants {len(faults())} faults in a copy of the package, one at a time,",
        f"and runs the tests of that room. Of {len(verdicts)} that were judged, **{noticed}** were",
        f"noticed; {new} of the verdicts are of the code of {newest}.",
        "Hashes of proofs, which notice every change of a proven function, do not count, and the",
        "tests named here pass without a fault. The faults are in `tools/faults.toml`.",
        "",
        "| room | fault | first test that fails | judged |",
        "|---|---|---|---|",
    ]
    for one in sorted(verdicts, key=lambda one: (one.fault.room, one.fault.name)):
        by = f"`{one.by}`" if one.noticed else "**none**"
        lines.append(f"| {one.fault.room} | {one.fault.name} | {by} | {one.day} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Judge the chosen faults; status 1 if one of them was not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--older", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    listed = faults()
    chosen = listed
    if options.words:  # in the order of the words
        names = {f"{one.room} {one.name}": one for one in listed}
        chosen = [names[name] for word in options.words for name in names if word in name]
        chosen = list(dict.fromkeys(chosen))
    known = earlier(options.out)
    if options.missing:
        chosen = [one for one in chosen if one.name not in known]
    if options.older:
        today = {name for name, verdict in known.items() if verdict.day == TODAY}
        chosen = [one for one in chosen if one.name not in today]
    for one in chosen:
        place, _ = one.place(ROOT), one.selections(ROOT)
        if options.list:
            print(f"{one.room:16} {one.name:60} {place.relative_to(ROOT)}")
    if options.list:
        print(f"{len(chosen)} faults")
        return 0
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "copy"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*LEFT))
        control(chosen, root)
        for one in chosen:
            verdict = judge(one, root, known[one.name].by if one.name in known else "")
            verdicts.append(verdict)
            word = f"noticed by {verdict.by}" if verdict.noticed else "NOT NOTICED"
            print(f"{verdict.seconds:5.0f} s  {one.room}: {one.name}: {word}", flush=True)
            known[one.name] = verdict
            if options.out is not None:  # after each, so that a run that is ended keeps them
                options.out.write_text(table([*known.values()]), encoding="utf-8")
        verdicts = without_fault(verdicts, root)
        known |= {one.fault.name: one for one in verdicts}
    if options.out is not None:
        options.out.write_text(table([*known.values()]), encoding="utf-8")
    for one in verdicts:
        if not one.noticed:
            print(f"not noticed: {one.fault.room}: {one.fault.name}")
    noticed = sum(one.noticed for one in verdicts)
    print(f"{noticed} of {len(verdicts)} faults were noticed")
    return 0 if noticed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
