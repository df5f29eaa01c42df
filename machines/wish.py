"""The chart of a cancel file: somebody's wish that a request ends.

Any file under the request's id is a wish, whatever it holds. What it does stands in the request's chart. It is swept
after its request file, or alone when it belongs to nothing.
"""

from machines.chart import Chart, Row
from models import wish as w
from models.slot import kept_long_enough, past_deadline, status_final
from models.step import ABSENT
from models.wish import Wish, WishFacts, WishState

POSTED = WishState.POSTED

WISH: Chart[Wish, WishFacts] = Chart(
    "wish",
    states=WishState,
    rows=[
        Row("post", ABSENT, POSTED, w.post, (w.asked,)),
        Row("sweep", POSTED, ABSENT, w.sweep, (status_final, kept_long_enough, past_deadline)),
        Row("sweep", POSTED, ABSENT, w.sweep, (~status_final, w.orphan, w.old)),
    ],
)
