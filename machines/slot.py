"""The chart of a request file: an agent posts it as the slot of a shared schedule, or because a person asked.

A slot's key is made of the due time, so of all agents that find it due one CREATE wins and the others are refused. A
request never changes once it is posted; how far it is stands in its status. It is swept before its cancel file and
its status, so that nobody can claim it again.
"""

from machines.chart import Chart, Row
from models import slot as s
from models.slot import Request, SlotFacts, SlotState
from models.step import ABSENT

POSTED = SlotState.POSTED

SLOT: Chart[Request, SlotFacts] = Chart(
    "slot",
    states=SlotState,
    rows=[
        Row("post", ABSENT, POSTED, s.post, (s.of_a_schedule, s.due, s.before_deadline)),
        Row("post", ABSENT, POSTED, s.post, (~s.of_a_schedule, s.asked)),
        Row("sweep", POSTED, ABSENT, s.sweep, (s.status_final, s.kept_long_enough, s.past_deadline)),
    ],
)
