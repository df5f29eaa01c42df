"""Wrong versions of the mailbox: who may hold a request, when it ends, and what a worker does that lost it."""

from .mutant import Mutant

CHART, MAILBOX, LOOK, SWEEP, HOLD = (
    "machines.request",
    "fdagent.fleet.mailbox",
    "fdagent.fleet.look",
    "fdagent.fleet.sweep",
    "fdagent.work.requesthold",
)
POLL = '("cancel", "expire", "give_up", "reject", "take_over", "adopt", "claim", "hand_back", "sweep")'

MUTANTS = (
    Mutant(
        "the deadline comes before a wish to cancel",
        CHART,
        POLL,
        POLL.replace('"cancel", "expire"', '"expire", "cancel"'),
        ("request-cancel",),
    ),
    Mutant(
        "a new start adopts nothing",
        CHART,
        POLL,
        POLL.replace('"adopt", ', ""),
        ("test_4a_a_new_start_adopts_what_the_old_one_claimed",),
        trace="4a",
    ),
    Mutant(
        "an agent that stopped for good is never gone",
        "models.liveness",
        "    return state is Liveness.LOST or (state is Liveness.STOPPED",
        "    return state is Liveness.LOST or (False",
        ("test_4b_what_an_agent_left_when_it_stopped_for_good_is_taken_over",),
        trace="4b",
    ),
    Mutant(
        "an agent without a record is gone",
        LOOK,
        "        if file is None or record is None:\n            return False\n        return is_gone(",
        "        if file is None or record is None:\n            return True\n        return is_gone(",
        ("test_4c_what_an_agent_without_a_record_holds_is_abandoned_by_a_person_only",),
        trace="4c",
    ),
    Mutant(
        "what runs never expires, though its agent is gone",
        CHART,
        '        Row("expire", RUNNING, EXPIRED, s.expire, (r.past_deadline, r.holder_gone)),\n',
        "",
        ("test_5_a_run_whose_agent_died_after_its_deadline_expires",),
        trace="5",
    ),
    Mutant(
        "what runs expires though its agent lives",
        CHART,
        'Row("expire", RUNNING, EXPIRED, s.expire, (r.past_deadline, r.holder_gone))',
        'Row("expire", RUNNING, EXPIRED, s.expire, (r.past_deadline,))',
        ("request",),
    ),
    Mutant(
        "a write of one's own that landed late is nobody's",
        CHART,
        '        Row("adopt", OPEN, None, s.adopt_own, (r.mine, r.no_job_here, ~r.offered, r.holds_name, *_SERVED)),\n',
        "",
        ("test_6_a_write_that_lands_after_its_agent_gave_it_up_leaves_nothing_behind", "request"),
        trace="6",
    ),
    Mutant(
        "holds are not counted",
        MAILBOX,
        "            max_attempts=self.patience.max_attempts,\n            holder_gone",
        "            max_attempts=99,\n            holder_gone",
        ("request-give-up",),
        trace="8a",
    ),
    Mutant(
        "who held it is not named",
        "models.status",
        "', '.join(was.holds) or 'nobody'",
        "was.agent",
        ("request-give-up",),
    ),
    Mutant(
        "what can't run here soon is kept",
        CHART,
        POLL,
        POLL.replace('"hand_back", ', ""),
        ("request-retry",),
        trace="8b",
    ),
    Mutant(
        "what a live agent holds is taken over",
        CHART,
        "(r.may_take_over, r.up_for_taking, *_SERVED,",
        "(r.may_take_over, *_SERVED,",
        ("request",),
    ),
    Mutant(
        "a wish to cancel ends what a live agent runs",
        CHART,
        'Row("cancel", RUNNING, CANCELLED, s.cancel, (r.cancel_wished, r.holder_gone))',
        'Row("cancel", RUNNING, CANCELLED, s.cancel, (r.cancel_wished,))',
        ("request-cancel",),
    ),
    Mutant(
        "whoever lost a request ends it",
        CHART,
        'Row("succeed", RUNNING, RequestState.SUCCEEDED, s.succeed, (r.mine,))',
        'Row("succeed", RUNNING, RequestState.SUCCEEDED, s.succeed)',
        ("request-freeze",),
    ),
    Mutant(
        "a final status is overwritten",
        CHART,
        'Row("succeed", RUNNING, RequestState.SUCCEEDED, s.succeed, (r.mine,))',
        'Row("succeed", (RUNNING, EXPIRED), RequestState.SUCCEEDED, s.succeed, (r.mine,))',
        ("request-freeze-late",),
    ),
    Mutant(
        "the status is swept before its request",
        SWEEP,
        "        key = request_key(request_id)\n"
        "        self._delete(SLOT, StoreCell(self.store, key, _any_request, dump), key, lambda _: facts)\n",
        "        key = request_key(request_id)\n"
        "        gone = RequestFacts(\n"
        "            store_now=self.look.store_now(), deadline=deadline, request_file=False, cancel_file=False,\n"
        "            retention_seconds=self.retention_seconds,\n"
        "        )\n"
        "        self._delete(REQUEST, status_cell(self.store, request_id), status_key(request_id), lambda _: gone)\n"
        "        self._delete(SLOT, StoreCell(self.store, key, _any_request, dump), key, lambda _: facts)\n",
        ("request-sweep",),
        trace="7",
    ),
    Mutant(
        "deadlines are read by one's own clock",
        LOOK,
        "return None if offset is None else self.clock.wall() + offset",
        "return self.clock.wall()",
        ("request",),
    ),
    Mutant(
        "what the look showed is believed at the write",
        MAILBOX,
        "self._job(request_id), serving, fresh=True)",
        "self._job(request_id), serving, fresh=False)",
        ("request-alone",),
        trace="16",
    ),
    Mutant(
        "a worker does not stand down",
        HOLD,
        "        if not self._mine(status):\n",
        "        if False:\n",
        ("request-freeze",),
    ),
    Mutant(
        "a worker does not look before its commit",
        "fdagent.engine.landing",
        "        self.still_mine()\n        self.flying = plan",
        "        self.flying = plan",
        ("request-landing",),
        trace="10",
    ),
    Mutant(
        "the first agent that may not serve a request rejects it",
        MAILBOX,
        "(request is not None and not could and self.look.nobody_else(request, resolved))",
        "(request is not None and not may)",
        ("test_8d_what_one_agent_may_not_serve_it_leaves_to_those_that_may",),
        trace="8d",
    ),
)
