"""Who may do what to a request, and when: the guards of its status.

Guarantees: every guard says no to what is not known: a missing deadline, a store that can't be listed, an agent
without a record. What only its holder may do names the very start of the agent (`mine`); what others may do to a
request that is held needs its agent to be gone (`models.liveness.is_gone`), or 60 seconds in which the holder should
have done it itself.
"""

from models.slot import long_ago
from models.status import RequestFacts, RequestStep, Status, is_mine
from models.step import Guard, guard
from models.times import ahead, reached

PATIENCE_SECONDS = 60.0
"""How long others leave a judgement to the holder, and how long an unreadable file may be half-written."""


RequestGuard = Guard[Status, RequestFacts]


def _is_gone(step: RequestStep) -> bool:
    """An agent never finds its own start gone, whatever became of its record."""
    return step.facts.holder_gone and not is_mine(step)


def _deadline(step: RequestStep) -> float | None:
    if step.record is not None and step.record.deadline is not None:
        return step.record.deadline
    return step.facts.deadline


@guard("a cancel file is there", "no cancel file is there, or it could not be looked up")
def cancel_wished(step: RequestStep) -> bool:
    """Somebody wants it cancelled."""
    return step.facts.cancel_file is True


@guard("no cancel file is there", "a cancel file is there, or it could not be looked up")
def no_cancel_file(step: RequestStep) -> bool:
    """Known not to be there."""
    return step.facts.cancel_file is False


@guard(
    "it is ours to cancel: this agent holds it, its agent is gone, or the wish is a minute old",
    "its agent may still cancel it itself: the wish is less than a minute old",
)
def cancel_falls_to_us(step: RequestStep) -> bool:
    """The holder first, others when it can't or doesn't."""
    return is_mine(step) or _is_gone(step) or step.facts.cancel_seen_seconds >= PATIENCE_SECONDS


@guard("its agent is gone", "its agent is not known to be gone")
def holder_gone(step: RequestStep) -> bool:
    """Lost, stopped for a minute, replaced by another start, or serving this mailbox no more."""
    return _is_gone(step)


@guard("its deadline is ahead", "its deadline has passed, or is not known")
def before_deadline(step: RequestStep) -> bool:
    """By the store's clock."""
    return ahead(_deadline(step), step.facts.store_now)


@guard("its deadline has passed", "its deadline is ahead, or is not known")
def past_deadline(step: RequestStep) -> bool:
    """By the store's clock."""
    return reached(_deadline(step), step.facts.store_now)


@guard("its deadline has passed, or its request file is gone", "its deadline is ahead and its request file is there")
def over(step: RequestStep) -> bool:
    """Nothing can come of it any more."""
    return reached(_deadline(step), step.facts.store_now) or step.facts.request_file is False


@guard(
    "it is ours to expire: this agent holds it, its agent is gone, it is offered, or it is a minute overdue",
    "its agent may still expire it itself: it is less than a minute overdue",
)
def expiry_falls_to_us(step: RequestStep) -> bool:
    """The holder first, others when it can't or doesn't."""
    deadline = _deadline(step)
    overdue = deadline is not None and reached(deadline + PATIENCE_SECONDS, step.facts.store_now)
    return is_mine(step) or _is_gone(step) or step.was.is_offered or overdue


def _is_older_self(step: RequestStep) -> bool:
    was, facts = step.was, step.facts
    return bool(facts.agent and facts.instance) and was.agent == facts.agent and was.instance != facts.instance


@guard(
    "its agent is gone, or it is an earlier start of this agent, which holds the name now",
    "its agent is not known to be gone, nor is it an earlier start of this one",
)
def left_behind(step: RequestStep) -> bool:
    """Whoever holds it won't go on with it."""
    return _is_gone(step) or (_is_older_self(step) and step.facts.holds_name)


def _attempts_used(step: RequestStep) -> bool:
    most = step.facts.max_attempts
    return most is not None and len(step.was.holds) >= most


@guard(
    "it was held as often as it may be, or its request file is gone",
    "it may be held again, and its request file is there",
)
def no_way_on(step: RequestStep) -> bool:
    """No agent may hold it again."""
    return _attempts_used(step) or step.facts.request_file is False


@guard("its request file is readable", "its request file is not readable")
def readable(step: RequestStep) -> bool:
    """It is there, whole, and says what it should."""
    return step.facts.readable


@guard("its request file has been unreadable for a minute", "its request file has not been unreadable for a minute")
def unreadable_long(step: RequestStep) -> bool:
    """Nobody is still writing it."""
    return not step.facts.readable and step.facts.unreadable_seconds >= PATIENCE_SECONDS


@guard("it names an entity that the promoted version doesn't have", "the promoted version has the entities it names")
def entities_unknown(step: RequestStep) -> bool:
    """No agent could run it."""
    return step.facts.unknown_entities


@guard("no agent that lives may ever serve it", "an agent that lives may serve it")
def nobody_may_serve(step: RequestStep) -> bool:
    """By the settings in the agents' records; a version that differs passes by itself."""
    return step.facts.nobody_may_serve


@guard(
    "this agent may serve it",
    "this agent may not serve it: it stops, lost its name, or its environment, entities, backfill or version differ",
)
def may_serve(step: RequestStep) -> bool:
    """What it may not serve it leaves to those that may."""
    return step.facts.may_serve


@guard(
    "this agent takes over, or takes back what it offered itself",
    "taking over is switched off here",
)
def may_take_over(step: RequestStep) -> bool:
    """`pipeline.take_over`; not needed for one's own."""
    return step.facts.take_over or (step.was.is_offered and is_mine(step))


@guard("its agent is gone, or offers it", "its agent is not known to be gone, and does not offer it")
def up_for_taking(step: RequestStep) -> bool:
    """A live agent's request is never moved against its will."""
    return _is_gone(step) or step.was.is_offered


@guard("its request file is there", "its request file is gone, or could not be looked up")
def request_there(step: RequestStep) -> bool:
    """A status without one is a late write of something that was swept."""
    return step.facts.request_file is True


@guard("its request file is gone", "its request file is still there, or could not be looked up")
def request_gone(step: RequestStep) -> bool:
    """Swept before the status, so that it can't be claimed again."""
    return step.facts.request_file is False


@guard("it may be held once more", "it was held as often as it may be")
def attempts_left(step: RequestStep) -> bool:
    """Holds are counted over all agents."""
    most = step.facts.max_attempts
    return most is not None and len(step.was.holds) < most


@guard("a worker is free here, or need not be", "no worker is free here")
def room(step: RequestStep) -> bool:
    """With `when_free` an agent takes only what it can start."""
    return step.facts.worker_free or not step.facts.when_free


@guard("an earlier start of this agent holds it", "no earlier start of this agent holds it")
def older_self(step: RequestStep) -> bool:
    """This agent's name, another instance or none."""
    return _is_older_self(step)


@guard("this start holds the agent's name", "another start holds the agent's name")
def holds_name(step: RequestStep) -> bool:
    """The agent record names this instance."""
    return step.facts.holds_name


@guard("this start of the agent holds it", "this start of the agent does not hold it")
def mine(step: RequestStep) -> bool:
    """The status names this agent and this instance."""
    return is_mine(step)


@guard("this agent's queue has no job of it", "this agent's queue has a job of it, or could not be looked up")
def no_job_here(step: RequestStep) -> bool:
    """A write of ours landed late, or the queue was lost."""
    return step.facts.has_job is False


@guard("it is offered", "it is not offered")
def offered(step: RequestStep) -> bool:
    """Its holder lets any agent take it."""
    return step.was.is_offered


@guard("its attempt is over and is to be tried again", "no attempt is over that is to be tried again")
def to_be_tried_again(step: RequestStep) -> bool:
    """Its job went back into the queue."""
    return step.facts.to_be_tried_again


@guard("it can't run here soon", "it can run here soon")
def cannot_run_soon(step: RequestStep) -> bool:
    """See `RequestFacts.cannot_run_soon`."""
    return step.facts.cannot_run_soon


@guard("no worker is on it", "a worker is on it")
def no_worker_on_it(step: RequestStep) -> bool:
    """What runs is never handed back."""
    return not step.facts.worker_on_it


@guard("it ended longer ago than it is kept", "it is kept for a while after it ended")
def kept_long_enough(step: RequestStep) -> bool:
    """The retention has passed, counted from the finish, by the store's clock."""
    facts = step.facts
    return long_ago(step.was.finished_at, facts.store_now, facts.retention_seconds)
