"""A model from outside: a million rows of a boosted ensemble, one at a time, in the sandbox.

python -m benchmarks.outside_models
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.figure import judge

ROWS, WIDTH, TREES = 1_000_000, 10, 100
NAMES = [f"x{i}" for i in range(WIDTH)]


def ensemble() -> tuple[bytes, Any]:
    """A gradient boosting model of 100 trees as ONNX, and rows for it."""
    import numpy as np
    from skl2onnx import to_onnx
    from sklearn.ensemble import GradientBoostingClassifier

    rows = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
    some = rows[:5000]
    label = some[:, 0] - some[:, 1] * some[:, 2] > 0
    trained = GradientBoostingClassifier(n_estimators=TREES).fit(some, label)
    return bytes(to_onnx(trained, some[:1]).SerializeToString()), rows


def bare(content: bytes, rows: Any) -> float:
    """Seconds that onnxruntime alone needs for the rows, one at a time, with one thread."""
    import onnxruntime

    from heldout.models.verify import examine

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        examine(content, output=None)[1], options, providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    began = time.perf_counter()
    for row in range(len(rows)):
        session.run(None, {given.name: rows[row : row + 1]})
    return time.perf_counter() - began


ONE_RUN = """
import pathlib, re, sys, time
import heldout as ho

folder, count = sys.argv[1:]
model = ho.models.load(f"{folder}/model.onnx")
names = [f"x{i}" for i in range(10)]
began = time.perf_counter()
file = f"{folder}/{count}.parquet"
ho.models.score(model, file, features=names, out=file.replace(".parquet", "-scored.parquet"))
taken = time.perf_counter() - began
status = pathlib.Path("/proc/self/status").read_text()  # what getrusage says begins at the parent's
print(taken, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024)
"""


def scored(folder: str, count: int) -> tuple[float, float]:
    """Seconds and megabytes that a fresh process needs to score a file into another."""
    command = [sys.executable, "-c", ONE_RUN, folder, str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def main() -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    content, rows = ensemble()
    alone = bare(content, rows)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.onnx").write_bytes(content)
        for count in (ROWS // 4, ROWS):
            table = pa.table({name: rows[:count, i] for i, name in enumerate(NAMES)})
            pq.write_table(table, Path(folder) / f"{count}.parquet", row_group_size=2**17)
        (_, few), (taken, many) = scored(folder, ROWS // 4), scored(folder, ROWS)
    print(f"{ROWS:,} rows: {taken:.1f} s in the sandbox, {alone:.1f} s bare, one at a time")
    print(f"memory of the parent: {few:.0f} MB for a quarter of the rows, {many:.0f} MB for all")
    return all(
        [
            judge("in the sandbox, against bare single rows", taken / alone, 1.5, unit=" times"),
            judge("memory for four times the rows", many - few, 50, unit=" MB more"),
        ]
    )


if __name__ == "__main__":
    main()
