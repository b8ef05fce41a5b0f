"""Many processes on one ledger: started by the tests as a program of its own, so that it forks
from a clean process. Prints one JSON line: how many were granted and refused in each round."""

import json
import multiprocessing
import os
import sys
import traceback

from heldout.errors import BudgetExceeded
from heldout.kernel import Budget, Event, Ledger

PROCESSES, GRANTS = 64, 10


def one_process(where, rows, barrier, outcomes):
    try:
        ledger = Ledger.open(where)
        account = ledger.account(rows, budget=Budget(epsilon=f"{GRANTS}/7"))
        barrier.wait()
        try:
            ledger.book(account, Event("exponential", {"epsilon": "1/7"}), request={})
            outcomes.put(("granted", account.id))
        except BudgetExceeded:
            outcomes.put(("refused", account.id))
    except BaseException:
        outcomes.put(("failed", traceback.format_exc()))
        barrier.abort()


def main():
    where, rounds = sys.argv[1], int(sys.argv[2])
    # Import before the fork what each child would import, so that it is paid once.
    Ledger.open(None).close()
    if "://" in where:
        import psycopg  # noqa: F401
        import sqlalchemy.dialects.postgresql.psycopg  # noqa: F401
    context = multiprocessing.get_context("fork")
    results = []
    for number in range(rounds):
        rows = number.to_bytes(32)
        barrier, outcomes = context.Barrier(PROCESSES), context.SimpleQueue()
        arguments = (where, rows, barrier, outcomes)
        children = [context.Process(target=one_process, args=arguments) for _ in range(PROCESSES)]
        for child in children:
            child.start()
        answers = [outcomes.get() for _ in children]
        for child in children:
            child.join()
        failures = [detail for kind, detail in answers if kind == "failed"]
        if failures:
            sys.stderr.write(failures[0])
            sys.exit(1)
        kinds = [kind for kind, _ in answers]
        results.append(
            {
                "granted": kinds.count("granted"),
                "refused": kinds.count("refused"),
                "accounts": len({account for _, account in answers}),
            }
        )
    with Ledger.open(where) as ledger:
        entries = ledger.verify().entries
    print(json.dumps({"rounds": results, "entries": entries, "process": os.getpid()}))


if __name__ == "__main__":
    main()
