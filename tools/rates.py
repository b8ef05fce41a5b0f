"""Find how often tests of chance fail, by noise whose tails are so many times as long.

    python tools/rates.py                              all of them, 6 runs at 20 times the noise
    python tools/rates.py --times 10 --runs 24 tests/test_auc.py    those of a file, closer

It prints the mark of each function: `louder(1, 24, 10)` is the rate that follows (see
tests/chances.py), for the parameters that failed most often. Tests of a law, which noise of another
scale must fail, have rates of their own.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.chances import louder  # noqa: E402

PYTEST = [sys.executable, "-m", "pytest", "-q", "-m", "chance and not slow", "-pno:cacheprovider"]
NAMED = re.compile(r"^(?:(?:FAILED|ERROR) )?(\S+\.py::[^\n]*?)(?: - .*)?$", re.MULTILINE)


def run(*options: str) -> set[str]:
    """Run pytest and return the tests that its output names."""
    printed = subprocess.run([*PYTEST, *options], cwd=ROOT, capture_output=True, text=True).stdout  # noqa: PLW1510 - failures are the subject
    return set(NAMED.findall(printed))


def main() -> None:
    """Run the tests and print a line for each function."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--times", type=int, default=20)
    asked = parser.parse_args()
    tests = run("--collect-only", *asked.paths)
    failures: Counter[str] = Counter()
    for seed in range(1, asked.runs + 1):
        noise = ("--seed", str(seed), "--louder", str(asked.times))
        failed = run("--tb=no", *noise, *asked.paths) & tests
        failures.update(failed)
        print(f"run {seed}:", *sorted(failed), sep="\n  ", file=sys.stderr, flush=True)
    worst: dict[str, int] = defaultdict(int)
    for test in sorted(tests):
        function = test.partition("[")[0]
        worst[function] = max(worst[function], failures[test])
    for function, failed in sorted(worst.items(), key=lambda one: one[1]):
        rate = louder(failed, asked.runs, asked.times)
        print(f"{rate:8.1e}  louder({failed}, {asked.runs}, {asked.times})  {function}")


if __name__ == "__main__":
    main()
