"""Tries to break everything else: audits, planted violators, attacks on un-noised metrics.

>>> from heldout.audit import audit
>>> found = audit("half-the-scale", epsilon="1", samples=4000, workers=1)
>>> found.violated
True
"""

from heldout.audit.attacks import (
    Exposure,
    exposure,
    label_from_auc,
    label_from_average_precision,
    label_from_roc,
)
from heldout.audit.auditor import audit, audit_all
from heldout.audit.events import AuditResult, Finding
from heldout.audit.subjects import Pair, Subject, register, registered

__all__ = [
    "AuditResult",
    "Exposure",
    "Finding",
    "Pair",
    "Subject",
    "audit",
    "audit_all",
    "exposure",
    "label_from_auc",
    "label_from_average_precision",
    "label_from_roc",
    "register",
    "registered",
]
