"""Analysts over data sets of one people account, interleaved and killed at random.

    python tests/kernel/ledger/interleave.py LEDGER ROUNDS

A program of its own, so that it forks from a clean process. Each round has people, data sets and
analysts of its own in the one ledger; an answer is visible once its receipt is in the pipe. Prints
one JSON line, and fails if an account is over its budget or an answer was not booked.
"""

import json
import os
import random
import select
import signal
import sys
import time
from fractions import Fraction

from heldout.errors import BudgetExceeded
from heldout.kernel import Account, Budget, Event, Ledger

ANALYSTS, DATA_SETS, TRIES = 8, 3, 3
STEP = Fraction(1, 12)


def one_analyst(ledger, shares, pipe, seed):
    chance = random.Random(seed)
    for _ in range(TRIES):
        event = Event("exponential", {"epsilon": STEP * chance.randint(1, 3)})
        time.sleep(chance.expovariate(500))
        try:
            receipt = ledger.book(chance.choice(shares), event, request={})
        except BudgetExceeded:
            continue
        os.write(pipe, f"{receipt.hash}\n".encode())


def open_round(ledger, number, chance):
    """People, three data sets and a share of each for every analyst, with budgets that bind."""
    people = f"people {number}"
    ledger.register(people, budget=Budget(epsilon=STEP * 18), unit="id")
    names = [f"data {number} {each}" for each in range(DATA_SETS)]
    for name in names:
        ledger.register(name, budget=Budget(epsilon=STEP * 8), unit="id", people=people)
    return people, names, [
        [
            ledger.grant(name, analyst=f"analyst {each}", budget=Budget(epsilon=STEP * 4))
            for name in chance.sample(names, 1 if each else DATA_SETS)
        ]
        for each in range(ANALYSTS)
    ]  # fmt: skip


def one_round(ledger, number, chance):
    people, names, shares = open_round(ledger, number, chance)
    reading, writing = os.pipe()
    children = []
    for mine in shares:
        seed = chance.random()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(reading)
                one_analyst(ledger, mine, writing, seed)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    os.close(writing)
    victims = [child for child in children if chance.random() < 0.4]
    time.sleep(chance.uniform(0, 0.03))
    for child in victims:
        os.kill(child, signal.SIGKILL)
    visible = b""
    while select.select([reading], [], [])[0] and (part := os.read(reading, 65536)):
        visible += part
    os.close(reading)
    codes = {child: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
    assert all(code == 0 or child in victims for child, code in codes.items()), codes
    answers = visible.decode().split("\n")[:-1]
    check_round(ledger, people, names, shares, answers)
    return len(answers), sum(code != 0 for code in codes.values())


def check_round(ledger, people, names, shares, answers):
    entries = ledger.entries(people)
    assert set(answers) <= {entry.hash for entry in entries}, "an answer without a booking"
    charged = {}
    for entry in entries:
        for told in entry.path:
            charged.setdefault(told["account"], []).append(entry.charge.epsilon)
    accounts = [people, *names, *(share for mine in shares for share in mine)]
    for account in accounts:
        spent, budget = ledger.spent(account).epsilon, ledger.budget(account).epsilon
        assert spent <= budget, "an account is over its budget"
        if isinstance(account, Account):
            assert spent == sum(charged.get(account.id, [])), "a total is not the sum"
    assert ledger.spent(people).epsilon == sum(entry.charge.epsilon for entry in entries)


def main():
    where, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    chance, answers, killed = random.Random(seed), 0, 0
    ledger = Ledger.open(where)
    for number in range(rounds):
        answered, dead = one_round(ledger, number, chance)
        answers, killed = answers + answered, killed + dead
    entries = ledger.verify().entries
    print(json.dumps({"rounds": rounds, "answers": answers, "killed": killed, "entries": entries}))


if __name__ == "__main__":
    main()
