"""Runs a command beside a standalone Spark cluster on loopback: a master, two workers, and Connect.

    python tools/with_cluster.py [--workers 2] [--cores 2] [--local] [--alone] command ...

HELDOUT_TEST_SPARK is the master's address, HELDOUT_TEST_CONNECT that of a Spark Connect server on
it, and HELDOUT_TEST_WORKERS the process numbers of the workers, so that a test may end one. It all
ends with the command. `--local` starts Spark Connect alone, on two threads; `--alone` the cluster
without Connect, which would hold a core of it. Needs pyspark and Java.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all of it ends
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        told = {"HELDOUT_TEST_SPARK": "1"}
        master = "local[2]"
        if not asked.local:
            master = f"spark://127.0.0.1:{free_port()}"
            told["HELDOUT_TEST_SPARK"] = master
            workers = stack.enter_context(cluster(folder, master, asked.workers, asked.cores))
            told["HELDOUT_TEST_WORKERS"] = ",".join(map(str, workers))
        if not asked.alone:
            told["HELDOUT_TEST_CONNECT"] = stack.enter_context(connect_server(folder, master))
        return subprocess.run(asked.command, env={**os.environ, **told}, check=False).returncode


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def cluster(folder: Path, master: str, workers: int, cores: int) -> Iterator[list[int]]:
    port = master.rpartition(":")[2]
    with ExitStack() as stack:
        place = ("--host", "127.0.0.1")
        run = "org.apache.spark.deploy."
        stack.enter_context(
            process(folder, "master", f"{run}master.Master", *place, "--port", port, *webui())
        )
        listening(int(port))
        size = ("--cores", str(cores), "--memory", "2g", "--work-dir", str(folder))
        started = [
            stack.enter_context(
                process(
                    folder, f"worker{each}", f"{run}worker.Worker", *place, *size, *webui(), master
                )
            )
            for each in range(workers)
        ]
        for each in range(workers):
            said(folder / f"worker{each}.log", "Successfully registered with master")
        yield [each.pid for each in started]


@contextmanager
def connect_server(folder: Path, master: str) -> Iterator[str]:
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.cores.max": "1",  # the classic session has the others
        "spark.executor.memory": "512m",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = "org.apache.spark.deploy.SparkSubmit"
    served = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with process(
        folder, "connect", submit, "--master", master, *options, "--class", served, "spark-internal"
    ):
        listening(port)
        yield f"sc://127.0.0.1:{port}"


def webui() -> tuple[str, str]:
    return ("--webui-port", str(free_port()))


@contextmanager
def process(folder: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    with (folder / f"{name}.log").open("wb") as log:
        started = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments],
            stdout=log,
            stderr=log,
            env={**os.environ, **settings, "PYSPARK_PYTHON": sys.executable},
            cwd=folder,
        )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()


def listening(port: int, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise SystemExit(f"nothing listens on port {port}")


def said(log: Path, words: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if words in log.read_text(errors="replace"):
            return
        time.sleep(0.2)
    raise SystemExit(f"{log.name} does not say {words!r}")


if __name__ == "__main__":
    sys.exit(main())
