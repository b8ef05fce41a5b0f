"""The client for R: its functions are those of the API, and an answer comes back where R is."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
source("clients/r/R/client.R")
source("clients/r/R/api.R")
given <- commandArgs(TRUE)
server <- ho_server(given[1], readLines(given[2]))
stopifnot(!grepl(server$token, capture.output(print(server))))
asked <- list(list(question = "auc", epsilon = "1/2"))
key <- ho_key()
answer <- ho_ask(server, "readmissions", asked, model = given[3], key = key)
stopifnot(answer$answers[[1]]$kind == "auc", answer$price$epsilon == "1/2")
again <- ho_ask(server, "readmissions", asked, model = answer$artifact, key = key)
stopifnot(again$id == answer$id)
refused <- tryCatch(
  ho_ask(server, "readmissions", list(list(question = "auc", epsilon = "900")), model = given[3]),
  error = conditionMessage
)
stopifnot(grepl("epsilon must be at most", refused))
stopifnot(grepl("<html", ho_report(server, answer$id)))
cat("answered\\n")
"""


def test_the_functions_are_those_of_the_api() -> None:
    done = subprocess.run(
        [sys.executable, "tools/r_client.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_r_asks_a_server(running) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("there is no R here")
    known = subprocess.run(
        ["Rscript", "-e", "q(status = !requireNamespace('httr2', quietly = TRUE))"], check=False
    )
    if known.returncode:
        pytest.skip("R has no httr2 here")
    done = subprocess.run(
        ["Rscript", "-e", PROGRAM, running.url, running.token_file, running.model],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("answered\n")
