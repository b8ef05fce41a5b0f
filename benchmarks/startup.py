"""Start-up budgets: importing the package, the help page, and a whole evaluation.

python -m benchmarks.startup
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.figure import judge, seconds

HELDOUT = str(Path(sys.executable).with_name("heldout"))


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def main() -> bool:
    import pyarrow.parquet

    from heldout.examples import readmission

    empty = seconds(lambda: run(sys.executable, "-c", "pass"))
    imported = seconds(lambda: run(sys.executable, "-c", "import heldout"))
    helped = seconds(lambda: run(HELDOUT, "--help"))
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "test.parquet")
        pyarrow.parquet.write_table(readmission(rows=10_000), file)
        asked = ("evaluate", file, "--label", "readmitted", "--score", "risk_a", "--epsilon", "1")
        evaluated = seconds(lambda: run(HELDOUT, *asked))
    print(f"a Python that does nothing: {empty:.2f} s")
    return all(
        [
            judge("import heldout", imported - empty, 0.3, unit=" s"),
            judge("heldout --help", helped, 0.5, unit=" s"),
            judge("heldout evaluate, 10,000 rows, start to end", evaluated, 1.5, unit=" s"),
        ]
    )


if __name__ == "__main__":
    main()
