"""Bundled examples: synthetic public data; no private row passes here."""

from heldout.examples.breast_cancer import breast_cancer
from heldout.examples.readmission import readmission

__all__ = ["breast_cancer", "readmission"]
