"""Coverage-guided fuzzing of the public entries with atheris: a typed line or a valid answer.

    python -m venv --system-site-packages /tmp/fuzz   # or any environment that has heldout
    /tmp/fuzz/bin/pip install atheris
    /tmp/fuzz/bin/python tools/fuzz.py -atheris_runs=100000 -len_control=0 -max_len=512

libFuzzer's options follow; a crash is written to a file, which as an argument runs it again.
HELDOUT_FUZZ_ENTRIES=areas,select fuzzes these alone; without it each run picks one. What is done to
an entry is that of tests/audit/fuzz_entries.py: good arguments, one to three of them awkward.
`make test` looks for the same without guidance (tests/audit/test_fuzz.py).
"""

import atexit
import collections
import importlib
import logging
import os
import pkgutil
import sys
import time
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "audit"))
UNSEEN = ("heldout.data.spark", "heldout.server")

with atheris.instrument_imports(include=["heldout"]):
    import heldout

    for _module in pkgutil.walk_packages(heldout.__path__, "heldout."):
        if not _module.name.startswith(UNSEEN) and not _module.name.endswith("__main__"):
            importlib.import_module(_module.name)

entries: Any = importlib.import_module("fuzz_entries")
inputs: Any = importlib.import_module("fuzz_inputs")
commands: Any = importlib.import_module("fuzz_commands")

NAMED = [each for each in os.environ.get("HELDOUT_FUZZ_ENTRIES", "").split(",") if each]
KNOWN = {**entries.ENTRIES, **commands.ENTRIES}
CHOSEN = [KNOWN[name] for name in NAMED] if NAMED else list(KNOWN.values())
RUNS: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
BEGUN = time.monotonic()


class Bytes:
    """Choices out of atheris' bytes."""

    def __init__(self, content: bytes) -> None:
        self._data = atheris.FuzzedDataProvider(content)

    def whole(self, low: int, high: int) -> int:
        return int(self._data.ConsumeIntInRange(low, high))

    def number(self) -> float:
        return float(self._data.ConsumeFloat())

    def text(self, most: int) -> str:
        return str(self._data.ConsumeUnicode(most))

    def octets(self, most: int) -> bytes:
        return bytes(self._data.ConsumeBytes(most))


def one(content: bytes) -> None:
    """Refused in one line without a canary, or answered; all else is a crash."""
    choices = Bytes(content)
    entry = inputs.pick(choices, CHOSEN)
    counter = RUNS[entry.name]
    counter["runs"] += 1
    refused = entries.refusal(entry, inputs.spoilt(entry, choices))
    counter["answers" if refused is None else "refusals"] += 1


def report() -> None:
    """How often each entry was run, on standard error."""
    total = sum(each["runs"] for each in RUNS.values())
    print(f"{total:,} runs in {time.monotonic() - BEGUN:,.0f} s", file=sys.stderr)
    for name, found in sorted(RUNS.items()):
        print(f"  {name}: {dict(found)}", file=sys.stderr)
    sys.stderr.flush()


if __name__ == "__main__":
    logging.disable()
    atexit.register(report)
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
