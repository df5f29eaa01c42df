"""The chart of a request's status: who holds the request, and how it ends.

**Who holds it.** The agent and the start of it (instance) that the status names. Only that start may start, report,
wait, hand back, succeed and fail. Every arrow is one conditional write on the version that was read, so of two agents
that want the same arrow one wins; the other reads again and is refused in words.

**Who may take it over, when, with which write.** Another agent with taking over switched on that may serve the request
and has a worker free (where it takes only what it can start), once the holder is *gone*, or *offers* it: `take_over`,
one REPLACE of the status, before the deadline, while the request file is there, no cancel file is, and holds are
left. *Gone*: the taker has seen its agent record

- unchanged for its stale span (three beats, at least 90 seconds, unless it says otherwise) and its grace (60 seconds,
  or the span if shorter), by the taker's own clock; or
- stopped, unchanged for over 60 seconds; or
- naming another start than the status does, for longer than a stale span; or
- alive, and saying that it does not serve this mailbox.

An agent without a readable record is unknown, never gone: the deadline ends what it has not started, a person the rest
(`fdagent request ENV --abandon ID`). A new start of the same agent adopts what the old one held, at once. With taking
over switched off, the deadline ends what a gone agent held.

**What happens to the one who lost it.** Its next read or write of the status shows another holder or a version it did
not write: it begins no change of a table after that, cancels its job as handed over, and leaves the status alone. A
commit that it had already checked or sent may still land, once, as if it had finished a moment earlier; the table's
own transaction keeps the new holder from doing the same again. Tables it finished stay finished: the new holder finds
them done. It lets go of the lease of a table it was in; where it can't, the new holder takes that lease once it was
seen left alone. Run-log rows it had not written yet stay in its own queue and are written when it runs again.

**How it ends.** A final status never changes again. It keeps the last attempt's error, tables and run ids, and is swept
after its request file and cancel file. A cancel file never interrupts a running request of a live agent: that attempt
ends succeeded or failed. A hold is counted when it is claimed, taken over or adopted by another start; when they are
used up the request fails, naming each.

**Which comes first.** A poll judges each request once: the first open event in the table's order, of those it decides
by itself (cancel, expire, give_up, reject, take_over, adopt, claim, hand_back, sweep). Start, report, wait, succeed
and fail follow the job that runs the request; only a person abandons.
"""

from machines.chart import Chart, Row
from models import request as r
from models import status as s
from models.person import by_a_person, op_named
from models.status import FINAL, RequestState, Status
from models.step import ABSENT

ACCEPTED, RUNNING, FAILED = RequestState.ACCEPTED, RequestState.RUNNING, RequestState.FAILED
CANCELLED, EXPIRED, REJECTED = RequestState.CANCELLED, RequestState.EXPIRED, RequestState.REJECTED
OPEN = (ACCEPTED, RUNNING)

_SERVED = (r.may_serve, r.request_there)
_TAKEN = (r.may_take_over, r.up_for_taking, *_SERVED, r.before_deadline, r.no_cancel_file, r.attempts_left, r.room)

REQUEST: Chart[Status, s.RequestFacts] = Chart(
    "request",
    states=RequestState,
    final=frozenset(FINAL),
    rows=[
        Row("cancel", ABSENT, CANCELLED, s.cancel, (r.cancel_wished,)),
        Row("cancel", ACCEPTED, CANCELLED, s.cancel, (r.cancel_wished, r.cancel_falls_to_us)),
        Row("cancel", RUNNING, CANCELLED, s.cancel, (r.cancel_wished, r.holder_gone)),
        Row("expire", ABSENT, EXPIRED, s.expire, (r.past_deadline,)),
        Row("expire", ACCEPTED, EXPIRED, s.expire, (r.over, r.expiry_falls_to_us)),
        Row("expire", RUNNING, EXPIRED, s.expire, (r.past_deadline, r.holder_gone)),
        Row("give_up", OPEN, FAILED, s.give_up, (r.left_behind, r.before_deadline, r.no_way_on)),
        Row("reject", ABSENT, REJECTED, s.reject, (r.unreadable_long,)),
        Row("reject", ABSENT, REJECTED, s.reject, (r.readable, r.entities_unknown)),
        Row("reject", ABSENT, REJECTED, s.reject, (r.readable, ~r.entities_unknown, r.nobody_may_serve)),
        Row("take_over", OPEN, ACCEPTED, s.take_over, _TAKEN),
        Row("adopt", OPEN, None, s.adopt, (r.older_self, r.holds_name, *_SERVED, r.attempts_left)),
        Row("adopt", OPEN, None, s.adopt_own, (r.mine, r.no_job_here, ~r.offered, r.holds_name, *_SERVED)),
        Row("claim", ABSENT, ACCEPTED, s.claim, (r.readable, r.may_serve, r.before_deadline, r.no_cancel_file, r.room)),
        Row(
            "start",
            ACCEPTED,
            RUNNING,
            s.start,
            (r.mine, ~r.offered, r.request_there, r.before_deadline, r.no_cancel_file),
        ),
        Row("report", RUNNING, RUNNING, s.report, (r.mine,)),
        Row("wait", RUNNING, ACCEPTED, s.wait, (r.mine, r.to_be_tried_again, r.no_cancel_file)),
        Row("hand_back", ACCEPTED, ACCEPTED, s.hand_back, (r.mine, r.cannot_run_soon, ~r.offered)),
        Row("hand_back", RUNNING, ACCEPTED, s.hand_back, (r.mine, r.cannot_run_soon, r.no_worker_on_it)),
        Row("succeed", RUNNING, RequestState.SUCCEEDED, s.succeed, (r.mine,)),
        Row("fail", OPEN, FAILED, s.fail, (r.mine,)),
        Row("abandon", OPEN, FAILED, s.abandon, (by_a_person, op_named)),
        Row(
            "sweep",
            tuple(sorted(FINAL)),
            ABSENT,
            s.sweep,
            (r.kept_long_enough, r.past_deadline, r.request_gone, r.no_cancel_file),
        ),
    ],
)

POLL = ("cancel", "expire", "give_up", "reject", "take_over", "adopt", "claim", "hand_back", "sweep")
"""What a poll asks of each request by itself, the first open one only: the table's order, which is the precedence.

The other events follow a job of one's own (start, report, wait, succeed, fail) or a person (abandon).
"""
