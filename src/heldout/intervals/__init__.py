"""Read released statistics: arithmetic for people. No sensitivity here.

A metric of the confusion matrix is one entry of the table in `registry`; the command line, the
report, the documentation's table and the tests find it there.
"""

from heldout.intervals.readings import Contrast, Metric, contrasts, registered

__all__ = ["Contrast", "Metric", "contrasts", "registered"]
