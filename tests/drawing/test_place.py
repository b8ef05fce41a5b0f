"""Where a page is written, looked at before anything is paid."""

import pytest

from heldout.drawing.page import checked_place
from heldout.errors import ArgumentError


@pytest.mark.parametrize("name", ["\ud800.html", "p" * 300 + ".html", "a\0.html"], ids=range(3))
def test_a_page_whose_name_no_system_can_spell_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="must be a file that can be written") as caught:
        checked_place(name)
    assert str(caught.value).isprintable()
