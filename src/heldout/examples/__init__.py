"""Bundled examples: synthetic public data; no private row passes here."""

from heldout.examples.breast_cancer import breast_cancer
from heldout.examples.messages import messages
from heldout.examples.parole import parole
from heldout.examples.readmission import readmission
from heldout.examples.salaries import salaries

__all__ = ["breast_cancer", "messages", "parole", "readmission", "salaries"]
