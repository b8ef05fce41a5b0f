"""The server on two cores: quotes, booked answers, a page beside a busy worker, memory.

python -m benchmarks.server

Beside each rate stands what it costs in processor time: on a machine that does something else too,
the rate says more of that than of the server.
"""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.figure import judge
from benchmarks.server_kill import Fleet, free_port, prepared

SECONDS = 8.0
ROWS = 1_000_000
UPLOAD = 100 * 2**20
AUC = [{"question": "auc", "epsilon": "1/1000"}]


class Caller:
    """One connection that stays open, as a program's does."""

    def __init__(self, port: int, token: str, *, cookie: str = "") -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if cookie:
            self._headers["Cookie"] = f"heldout={cookie}"

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._http.request(method, path, data, self._headers | named)
        answer = self._http.getresponse()
        content = answer.read()
        assert answer.status < 400, (answer.status, content[:300])
        is_json = answer.headers.get_content_type() == "application/json"
        return json.loads(content) if is_json else content


def processor(processes: list[int]) -> float:
    """Seconds that these have computed so far."""
    ticks = 0
    for each in processes:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def rate(
    fleet: Fleet, work: Callable[[int, int], None], *, threads: int = 8
) -> tuple[float, float]:
    """How often work was done in a second, and what it cost the server in processor time."""
    counts, stop = [0] * threads, threading.Event()

    def run(at: int) -> None:
        while not stop.is_set():
            work(at, counts[at])
            counts[at] += 1

    people = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(threads)]
    for each in people:
        each.start()
    time.sleep(2.0)  # until everything that is kept has been made
    began, done, computed = time.monotonic(), sum(counts), processor(list(fleet.alive.values()))
    time.sleep(SECONDS)
    done, taken = sum(counts) - done, time.monotonic() - began
    computed = processor(list(fleet.alive.values())) - computed
    stop.set()
    for each in people:
        each.join(30)
    return done / taken, computed / max(done, 1)


def quotes(fleet: Fleet, tokens: list[str]) -> bool:
    callers = [Caller(fleet.ports[at % 2], tokens[at % 2]) for at in range(8)]

    def quote(at: int, count: int) -> None:
        body = {"dataset": "stays", "questions": [AUC[0] | {"epsilon": f"{count % 50 + 1}/50"}]}
        callers[at]("POST", "/api/v1/quotes", body)

    return _judged("a quote", *rate(fleet, quote), least=100)


def evaluations(fleet: Fleet, tokens: list[str], artifacts: list[str]) -> bool:
    callers = [Caller(fleet.ports[at % 2], tokens[at % 2]) for at in range(16)]

    def evaluate(at: int, count: int) -> None:
        body = {"dataset": "stays", "artifact": artifacts[at % 2], "questions": AUC}
        key = {"Idempotency_Key": f"{at} {count}"}
        found = callers[at]("POST", "/api/v1/evaluations", body, **key)
        while found["state"] == "waiting":
            path = f"/api/v1/evaluations/{found['id']}"
            found = callers[at]("GET", path, Prefer="wait=10")
        assert found["state"] == "answered", found["words"]

    return _judged("a booked AUC", *rate(fleet, evaluate, threads=16), least=40)


def _judged(what: str, often: float, cost: float, *, least: float) -> bool:
    print(f"{what}: {often:.0f} a second; {cost * 1000:.1f} ms of processor time, so two cores")
    print(f"  that do nothing else give about {2 / cost:.0f} a second")
    return judge(f"seconds for {what}", 1 / often, 1 / least, unit=" s")


def page_beside_scoring(fleet: Fleet, service: Any) -> bool:
    """The 95th percentile of a page's time while a worker scores a million rows."""
    import pyarrow
    import pyarrow.parquet

    from heldout.server import accounts, datasets
    from heldout.server import evaluations as asked

    rows = {
        "id": range(ROWS),
        "x": [at % 100 / 100 for at in range(ROWS)],
        "y": [0, 1] * (ROWS // 2),
    }
    place = service.settings.folder / "many.parquet"
    pyarrow.parquet.write_table(pyarrow.table(rows), place)
    carol = accounts.Person("carol", "custodian", "", "browser", accounts.SCOPES)
    ana = accounts.Person("ana", "analyst", "", "browser", accounts.SCOPES)
    declared = {"label": "y", "row_key": "id", "features": ["x"]}
    datasets.register(
        service, carol, name="many", source=str(place), declaration=declared, budget="1000"
    )
    while datasets.find(service, "many").state == "checking":
        time.sleep(0.2)
    assert datasets.find(service, "many").state == "open", datasets.find(service, "many").words
    datasets.grant(service, carol, "many", analyst="ana", budget="1000")
    cookie = accounts.sign_in_by_link(service, accounts.new_link(service, "ana"))
    caller = Caller(fleet.ports[0], "", cookie=cookie)
    for _ in range(20):
        caller("GET", "/datasets/many")
    artifact = asked_model(service, ana)
    row = asked.submit(service, ana, dataset="many", artifact=artifact, content=AUC, key="many")
    times, end = [], time.monotonic() + 120
    while time.monotonic() < end:
        began = time.perf_counter()
        caller("GET", "/datasets/many")
        times.append(time.perf_counter() - began)
        if asked.find_one(service, ana, row.id).state not in asked.UNPAID:
            break
        time.sleep(0.02)
    assert asked.find_one(service, ana, row.id).state == "answered"
    slow = sorted(times)[int(0.95 * len(times))]
    print(f"{len(times)} pages while a worker scored {ROWS:,} rows")
    return judge("95% of pages beside a busy worker", slow, 0.15, unit=" s")


def asked_model(service: Any, person: Any) -> str:
    """An ONNX model, which is scored one row at a time in the sandbox."""
    import asyncio

    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    from heldout.server import artifacts

    value = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.array([[1.5]], dtype=np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Sigmoid", ["s"], ["p"]),
    ]
    shape = [value("x", TensorProto.FLOAT, [None, 1])], [value("p", TensorProto.FLOAT, [None, 1])]
    graph = helper.make_graph(nodes, "logistic", *shape, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    async def content() -> Any:
        yield model.SerializeToString()

    stored = artifacts.store(
        service, person, content(), content_type="application/onnx", name="logistic", features=["x"]
    )
    return asyncio.run(stored)


def memory_of_an_upload(folder: Path) -> bool:
    """What a web process holds at most while it takes 100 MB, in a server of its own."""
    from heldout.server import accounts
    from heldout.server.run import prepare
    from heldout.server.service import Service, Settings

    service = Service(Settings.at(folder))
    prepare(service)
    accounts.add_person(service, name="ana", role="analyst")
    person = accounts.Person("ana", "analyst", "", "browser", accounts.SCOPES)
    token = accounts.make_token(service, person, label="upload")["token"]
    service.close()
    port = free_port()
    command = [sys.executable, "-m", "heldout", "serve", str(folder), "--workers", "0"]
    web = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        until_up(port)

        def pieces() -> Iterator[bytes]:
            for _ in range(UPLOAD // 2**16):
                yield b"x" * 2**16

        http_ = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/onnx"}
        headers |= {"Content-Length": str(UPLOAD), "Prefer": "wait=0"}
        before, began = _peak(web.pid), time.monotonic()
        http_.request("PUT", "/api/v1/artifacts", pieces(), headers)
        assert http_.getresponse().status == 201
        taken = time.monotonic() - began
        print(f"100 MB took {taken:.1f} s; {before} MB before, {_peak(web.pid)} MB after")
        return judge("memory of the web at most", _peak(web.pid), 150, unit=" MB")
    finally:
        web.terminate()
        web.wait(30)


def until_up(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError):
            Caller(port, "")("GET", "/health")
            return
        time.sleep(0.1)
    raise TimeoutError("the web did not start")


def _peak(process: int) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


def main() -> bool:
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="heldout-server-") as name:
        folder = Path(name)
        met = [memory_of_an_upload(folder / "upload")]
        service, tokens, artifacts = prepared(folder / "server", budget=100_000, database=None)
        with Fleet(folder / "server", None, webs=2, workers=2) as fleet:
            for port in fleet.ports:
                until_up(port)
            met.append(quotes(fleet, tokens))
            met.append(evaluations(fleet, tokens, artifacts))
            met.append(page_beside_scoring(fleet, service))
        service.close()
    return all(met)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
