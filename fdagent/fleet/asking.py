"""What a person or a pipeline asks of a mailbox: a request, the wish that one is cancelled, or the end of one.

Guarantees: the first two are one CREATE each under an id of their own; an id that was used is refused, in any letter case
as far as it can be seen before, and asking again with the same op is the same request. A request is abandoned only in
the very version that was named. Does not know whether any agent will serve it: the request's status says.
"""

from fdagent.commit import Audit, Committed, commit
from fdagent.errors import NotFound, Refused
from fdagent.fleet.records import (
    REQUESTS,
    STATUSES,
    cancel_key,
    id_of,
    request_cell,
    request_key,
    status_cell,
    status_key,
    wish_cell,
)
from fdagent.ports import Clock, Ids, Store
from machines.request import REQUEST
from machines.slot import SLOT
from machines.wish import WISH
from models.ids import check_id
from models.slot import Request, SlotFacts
from models.status import FINAL, RequestFacts, Status
from models.step import Refusal
from models.wish import Wish, WishFacts


def post_request(
    store: Store, request_id: str, request: Request, *, clock: Clock, ids: Ids, audit: Audit | None = None
) -> Request:
    """Post a request; `audit` is told when it is posted.

    Raises:
        BadId: The id may not be part of a path.
        Refused: The id is taken.
        GaveUp, StoreError: It is not known to be posted.
    """
    check_id(request_id, "request id")
    # Two that post at the same time may both pass: an agent rejects the later one then.
    for folder in (STATUSES, REQUESTS):
        for used in (id_of(entry.key) for entry in store.list(folder)):
            if used.casefold() == request_id.casefold():
                raise _taken(request_id, used)
    facts = SlotFacts(asked=True, new=request)
    answer = commit(
        SLOT,
        request_cell(store, request_id),
        "post",
        op=ids.new(),
        facts=lambda _: facts,
        clock=clock,
        ids=ids,
        key=request_key(request_id),
        audit=audit,
    )
    if isinstance(answer, Refusal) or answer.record is None:
        raise _taken(request_id, request_id)
    return answer.record


def _taken(request_id: str, used: str) -> Refused:
    which = "that id" if used == request_id else f"{used}, which differs in letter case only,"
    return Refused(f"Request {request_id} was not posted: {which} is taken.", fix="Name another with --id.")


def post_cancel(store: Store, request_id: str, *, by: str, clock: Clock, ids: Ids, audit: Audit | None = None) -> bool:
    """Wish that a request is cancelled; False when the same was wished before. `audit` is told when it is new.

    Raises:
        BadId: The id may not be part of a path.
        NotFound: There is no such request.
        GaveUp, StoreError: It is not known to be wished.
    """
    check_id(request_id, "request id")
    if store.read(request_key(request_id)) is None and store.read(status_key(request_id)) is None:
        raise NotFound(f"There is no request {request_id}.", fix="`fdagent queue ENV` lists them.")
    answer: Committed[Wish] | Refusal = commit(
        WISH,
        wish_cell(store, request_id),
        "post",
        op=ids.new(),
        facts=lambda _: WishFacts(asked=True, asked_by=by),
        clock=clock,
        ids=ids,
        key=cancel_key(request_id),
        audit=audit,
    )
    return isinstance(answer, Committed)


def abandon_request(
    store: Store, request_id: str, *, op: str, by: str, clock: Clock, ids: Ids, audit: Audit | None = None
) -> Status:
    """End a request whose agent nobody expects back; its status, which has failed.

    Args:
        store: The environment's control root.
        request_id: The request.
        op: The op of the version to end.
        by: Who asks, as the status will show it.
        clock: Waits between tries.
        ids: Names the write, jitters the waits.
        audit: Told when it is ended.

    Raises:
        BadId: The id may not be part of a path.
        NotFound: No agent has taken such a request.
        Refused: Another version is there, or it has ended.
        GaveUp, StoreError: It is not known to be ended.
    """
    seen: list[Status | None] = []

    def facts(status: Status | None) -> RequestFacts:
        seen.append(status)
        return RequestFacts(by_a_person=True, named_op=op, person=by)

    key, cell = status_key(check_id(request_id, "request id")), status_cell(store, request_id)
    answer = commit(REQUEST, cell, "abandon", op=ids.new(), facts=facts, clock=clock, ids=ids, key=key, audit=audit)
    if isinstance(answer, Committed) and answer.record is not None:
        return answer.record
    raise _not_abandoned(
        request_id, seen[-1] if seen else None, answer.words if isinstance(answer, Refusal) else "it was swept"
    )


def _not_abandoned(request_id: str, status: Status | None, why: str) -> NotFound | Refused:
    """Why a request was not abandoned."""
    if status is None:
        return NotFound(
            f"No agent has taken a request {request_id}.",
            fix="`fdagent queue ENV` lists them; one that nobody has taken is ended by `fdagent request ENV --cancel ID`.",
        )
    if status.state in FINAL:
        return Refused(
            f"Request {request_id} was not abandoned: it has ended {status.state}.",
            fix="A final status never changes; ask anew with `fdagent request ENV`.",
        )
    return Refused(
        f"Request {request_id} was not abandoned: {why}.",
        fix=f"Look again with `fdagent why {request_id}`, and name the op it shows now.",
    )


def status_of(store: Store, request_id: str) -> Status | None:
    """A request's status; None when it has none."""
    return status_cell(store, request_id).read()[0]
