"""The chart of a lease: one writer of one table at a time.

Of two takers one REPLACE wins; the other reads again, finds another op, and is refused. Its holder stops believing
before its span ends for anybody else, and before it asks to release. A holder that lost it, by lapse or by `break`,
finds an op it never wrote at its next renewal and makes no further commit; one in flight meets the table's own
conditional commit. A lease that a late CREATE brings back names an op that nobody believes in, and lapses.
"""

from machines.chart import Chart, Row
from models import lease as x
from models.lease import Lease, LeaseFacts, LeaseState
from models.person import by_a_person, op_named
from models.step import ABSENT

HELD = LeaseState.HELD

LEASE: Chart[Lease, LeaseFacts] = Chart(
    "lease",
    states=LeaseState,
    rows=[
        Row("acquire", ABSENT, HELD, x.acquire),
        Row("acquire", HELD, HELD, x.acquire, (x.lapsed,)),
        Row("acquire", HELD, HELD, x.acquire, (~x.lapsed, x.left_behind)),
        Row("renew", HELD, HELD, x.renew, (x.mine, x.believed)),
        Row("release", HELD, ABSENT, x.release, (x.mine,)),
        Row("break", HELD, ABSENT, x.break_off, (by_a_person, op_named)),
    ],
)
