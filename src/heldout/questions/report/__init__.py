"""Figures, HTML and JSON of what was released. No row and no noise here."""

from heldout.questions.report.report import Report

__all__ = ["Report"]
