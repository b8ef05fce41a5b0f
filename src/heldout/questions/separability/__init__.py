"""Is privatized data still the data? A classifier tries to tell the two apart.

`heldout.separability(...)` reads the ground truth without noise: its numbers are for the custodian
only. `heldout.private_separability(...)` is the version for publication, through the one door.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heldout.questions.separability.result import Separability


class _Callable(ModuleType):
    """Importing this package puts it where the function of its name is looked for."""

    def __call__(self, *arguments: Any, **words: Any) -> "Separability":
        from heldout.questions.separability.score import separability

        return separability(*arguments, **words)


sys.modules[__name__].__class__ = _Callable
