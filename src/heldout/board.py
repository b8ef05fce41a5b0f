"""A leaderboard that cannot be gamed: only improvements are paid for, and each has a certificate.

>>> plan = Plan(rows=50_000, price="2", improvements=10, submissions=1000)
>>> print(plan)
A submission must be 0.0028 better than the best to be seen.
"""

from heldout.questions.boards import Board, Certificate, Outcome, Plan, certified

__all__ = ["Board", "Certificate", "Outcome", "Plan", "certified"]
