"""What people read: arithmetic on released statistics. No sensitivity here.

A metric of the confusion matrix is one file that calls `register`; the command line, the report,
the documentation's table and the tests find it.
"""

from heldout.metrics.registry import Metric, register, registered

__all__ = ["Metric", "register", "registered"]
