"""Scopes that are too large for every test run: three agents, and two with every fault. `make soak` searches them."""

from dataclasses import replace

from . import jobs, mailbox, slots
from .scope import Scope
from .scopes import (
    REQUEST,
    SCOPES,
    THREE,
    beating,
    evaluating,
    landing,
    leasing,
    posting,
    requests,
    working,
)

_RETRY, _SWEEP = SCOPES["request-retry"], SCOPES["request-sweep-both"]
LARGE: dict[str, Scope] = {
    scope.name: scope
    for scope in (
        replace(_RETRY, name="request-retry-full", faults=REQUEST.faults),
        replace(_SWEEP, name="request-sweep-full", faults=REQUEST.faults),
        replace(
            REQUEST,
            name="request-kills",
            faults=frozenset({"crash"}),
            budget=2,
            boots=3,
            until=300.0,
            sometimes=frozenset({"give_up", "adopt", "take_over"}),
        ),
        landing("append-3", merge=False, keys=(("R",), ("R",), ("R",)), foreign=1, cleans=1),
        landing("merge-3", merge=True, keys=(("R",), ("R",), ("R",)), foreign=1, cleans=1),
        leasing("lease-any-time", lockstep=False, until=6.0),
        leasing("lease-3", THREE),
        leasing("lease-workers-3", THREE, ("m", "m", "m")),
        requests("request-3", THREE),
        requests("request-cancel-3", THREE, by_itself=mailbox.beats_and_wish, sometimes=frozenset({"cancel"})),
        working("job-3", 3, (jobs.work, jobs.run, jobs.rest), until=18.0),
        beating("agent-3", THREE),
        posting("slot-3", (slots.INTERVAL, -slots.INTERVAL, 0.0)),
        evaluating("ledger-3", THREE),
    )
}
