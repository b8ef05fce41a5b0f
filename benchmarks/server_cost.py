"""Processor time of a booked evaluation and of an idle worker, and ratios of throughput.

bash tools/with_postgres.sh python -m benchmarks.server_cost [SECONDS]

On PostgreSQL where HELDOUT_TEST_POSTGRES is set, on SQLite otherwise. Processor times come from
the kernel's scheduler, in nanoseconds; PostgreSQL's own are left out. Ratios are of one run, so
that a busy machine changes both of their sides.
"""

import contextlib
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.figure import judge
from benchmarks.server import AUC, Caller, until_up
from benchmarks.server_kill import Fleet, prepared

WORKERS = (1, 2, 4)
CLIENTS = 8
IDLE = 15.0


def computed(process: int) -> float:
    """Return the processor seconds of all threads of a process that still live, and have ended."""
    nanoseconds = 0
    for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            nanoseconds += int(thread.read_text().split()[0])
    return nanoseconds / 1e9


def by_role(fleet: Fleet) -> dict[str, float]:
    """Return the processor seconds of web processes and of workers."""
    spent = {"web": 0.0, "worker": 0.0}
    for (role, _), process in fleet.alive.items():
        spent[role] += computed(process)
    return spent


def measured(
    fleet: Fleet, tokens: list[str], artifacts: list[str], seconds: float
) -> tuple[float, dict[str, float]]:
    """Return evaluations a second, and processor milliseconds per evaluation by role."""
    counts, stop = [0] * CLIENTS, threading.Event()
    stamp = f"{time.monotonic()}"

    def run(at: int) -> None:
        call = Caller(fleet.ports[at % len(fleet.ports)], tokens[at % 2])
        while not stop.is_set():
            body = {"dataset": "stays", "artifact": artifacts[at % 2], "questions": AUC}
            key = {"Idempotency_Key": f"{stamp} {at} {counts[at]}"}
            answer = call("POST", "/api/v1/evaluations", body, **key)
            while answer["state"] == "waiting":
                answer = call("GET", f"/api/v1/evaluations/{answer['id']}", Prefer="wait=10")
            assert answer["state"] == "answered", answer["words"]
            counts[at] += 1

    people = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(CLIENTS)]
    for person in people:
        person.start()
    time.sleep(3.0)  # until everything that stays in memory has been made
    began, done, before = time.monotonic(), sum(counts), by_role(fleet)
    time.sleep(seconds)
    done, taken = sum(counts) - done, time.monotonic() - began
    spent = {role: 1000 * (now - before[role]) / done for role, now in by_role(fleet).items()}
    stop.set()
    for person in people:
        person.join(30)
    return done / taken, spent


def idle(fleet: Fleet) -> float:
    """Return the processor milliseconds of a worker without work, per 5 seconds."""
    time.sleep(2.0)
    before = by_role(fleet)["worker"]
    time.sleep(IDLE)
    spent = by_role(fleet)["worker"] - before
    return 1000 * spent * 5 / IDLE / fleet.workers


def pages(port: int, seconds: float) -> dict[str, float]:
    """Return requests a second of one connection, by what is asked for."""
    rates = {}
    for name, path in (("/ready", "/ready"), ("the sign-in page", "/sign-in")):
        call, end, done = Caller(port, ""), time.monotonic() + seconds, 0
        while time.monotonic() < end:
            call("GET", path)
            done += 1
        rates[name] = done / seconds
    return rates


def main(seconds: float) -> bool:
    database = os.environ.get("HELDOUT_TEST_POSTGRES")
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    os.environ["HELDOUT_BENCHMARK_LEASE"] = "60"  # as served
    met, rates = [], {}
    with tempfile.TemporaryDirectory(prefix="heldout-cost-") as name:
        folder = Path(name) / "server"
        service, tokens, artifacts = prepared(folder, budget=100_000, database=database)
        for workers in WORKERS:
            with Fleet(folder, database, webs=1, workers=workers) as fleet:
                until_up(fleet.ports[0])
                if workers == 1:
                    met.append(judge("idle worker per 5 s", idle(fleet), 10.0, unit=" ms"))
                    others = pages(fleet.ports[0], 2.0)
                rates[workers], spent = measured(fleet, tokens, artifacts, seconds)
                whole = sum(spent.values())
                print(
                    f"{workers} workers: {rates[workers]:.1f} evaluations a second; "
                    f"{whole:.1f} ms each (worker {spent['worker']:.1f}, web {spent['web']:.1f})"
                )
                if workers == 1:
                    met.append(judge("processor time of an evaluation", whole, 30.0, unit=" ms"))
        service.close()
    base = rates[WORKERS[0]]
    for workers in WORKERS:
        print(f"{workers} workers over one: {rates[workers] / base:.2f}")
    for what, rate in others.items():
        print(f"{what} over an evaluation with one worker: {rate / base:.1f}")
    return all(met)


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word.replace(".", "").isdigit()]
    raise SystemExit(0 if main(float(given[0]) if given else 10.0) else 1)
