"""Figures that heldout promises, each measured against a reference in the same run."""
