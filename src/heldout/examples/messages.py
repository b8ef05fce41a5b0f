"""Synthetic public data; no private row passes here.

Short text messages, about one in seven of them unwanted.
"""

from typing import Any

import numpy as np

from heldout.arguments.rules import Whole
from heldout.examples.chance import uniform
from heldout.examples.size import MOST

SPAM = 0.14
LONGEST = 24
_COMMON = """
i you to a the and in is me my it for your of that have on are so not but do at be can if we
will what get just now with no how up when this go all ok like know good out then come got
time there from call one was want about he she day need love home think see back later
"""
_PRIVATE = """
lunch tonight sorry mum dinner sleep class friend movie bus train yeah haha morning tired work
exam birthday miss dear happy night tomorrow meeting house car buy eat walk rain phone weekend
doctor school office soon wait late leave reach pick send message thanks really feel hope
nothing something maybe never always week
"""
_UNWANTED = """
free txt win prize claim cash won urgent mobile reply stop text www com 150p nokia award
guaranteed ringtone services customer offer voucher entry weekly latest camera tone landline
box await collection 1000 5000 08712 4u min per sms contact draw statement xxx chat dating
"""


def messages(rows: int = 4000) -> Any:
    """A table of text messages, as a pyarrow Table: `message_id`, `message` and `spam` (0 or 1).

    The words are real and the messages are not: each word is drawn alone. The same call gives the
    same table everywhere.

    >>> table = messages()
    >>> table.num_rows, table.column_names
    (4000, ['message_id', 'message', 'spam'])
    """
    rows = Whole(1, MOST)(rows, "rows")
    import pyarrow

    spam = uniform(1, rows) < SPAM
    chatter = uniform(2, rows)
    sizes = np.where(spam, 8 + chatter * (LONGEST - 8), 2 - 5 * np.log(chatter)).astype(int)
    sizes = np.clip(sizes, 1, LONGEST)
    kinds, places = uniform(3, rows * LONGEST), uniform(4, rows * LONGEST)
    texts = []
    for row in range(rows):
        own = slice(row * LONGEST, row * LONGEST + int(sizes[row]))
        words = [
            _word(_topic(kind, bool(spam[row])), place)
            for kind, place in zip(kinds[own], places[own], strict=True)
        ]
        texts.append(" ".join(words))
    return pyarrow.table(
        {
            "message_id": np.arange(rows) + 70001,
            "message": texts,
            "spam": spam.astype(np.int64),
        }
    )


def _topic(kind: float, spam: bool) -> str:
    """Common words mostly; spam has a little private talk in it, and talk a little spam."""
    if kind < 0.6:
        return _COMMON
    usual, rare = (_UNWANTED, _PRIVATE) if spam else (_PRIVATE, _UNWANTED)
    return rare if kind > 0.97 else usual


def _word(topic: str, place: float) -> str:
    """Words further down the list are rarer, as in Zipf's law."""
    words = topic.split()
    return words[int(len(words) ** place) - 1]
