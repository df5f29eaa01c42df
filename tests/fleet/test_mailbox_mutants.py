"""Small wrong versions of the mailbox, each of which a test of this folder must catch; which one is printed."""

import inspect

import pytest
import test_poll_files as files
import test_poll_holders as holders
import test_polls as polls
import test_posting as posting
import test_reconcile as reconcile
from fleet_kit import Fleet
from mutants.mutant import Mutant, applied

MAILBOX, LOOK, FOLDER, SWEEP = (f"fdagent.fleet.{name}" for name in ("mailbox", "look", "folder", "sweep"))
HOLD, SLOTS, WORKER = "fdagent.work.requesthold", "fdagent.fleet.slots", "fdagent.work.worker"


MUTANTS = [
    (
        Mutant(
            "the deadline is asked before a cancel file",
            MAILBOX,
            "for event in POLL[:-1]:",
            "for event in (*POLL[1:-1], POLL[0]):",
            (),
        ),
        (polls.test_a_cancel_file_comes_before_the_deadline_and_before_a_claim, {}),
    ),
    (
        Mutant("a worker does not stand down", HOLD, "        if not self._mine(status):\n", "        if False:\n", ()),
        (holders.test_a_worker_stands_down_at_its_next_read_or_write_of_the_status, {"how": "taken over"}),
    ),
    (
        Mutant(
            "a worker of an older start goes on",
            HOLD,
            "and (status.agent, status.instance) == (self.agent, self.instance)",
            "and status.agent == self.agent",
            (),
        ),
        (posting.test_a_worker_of_an_older_start_stands_down_once_the_new_one_holds_the_request, {}),
    ),
    (
        Mutant(
            "the version that was read is not what is replaced",
            "fdagent.stores.cell",
            "Absent() if how is Write.CREATE else Match(tag)",
            "Absent() if how is Write.CREATE else Match(self._store.read(self._key).etag)",
            (),
        ),
        (
            reconcile.test_a_status_is_not_made_to_wait_once_the_next_attempt_has_begun,
            {"moment": ("read", "cancel/r1.json")},
        ),
    ),
    (
        Mutant(
            "deadlines are read by one's own clock",
            LOOK,
            "return None if offset is None else self.clock.wall() + offset",
            "return self.clock.wall()",
            (),
        ),
        (polls.test_deadlines_are_read_by_the_stores_clock, {"off": 7200}),
    ),
    (
        Mutant(
            "slots are due by one's own clock",
            SLOTS,
            "slot_at(schedule, self.clock.wall() + offset)",
            "slot_at(schedule, self.clock.wall())",
            (),
        ),
        (posting.test_an_agent_whose_clock_is_off_posts_no_slot_early_or_late, {"off": 3600.0}),
    ),
    (
        Mutant(
            "what the look showed is believed at the write",
            MAILBOX,
            "self._job(request_id), serving, fresh=True)",
            "self._job(request_id), serving, fresh=False)",
            (),
        ),
        (holders.test_a_takeover_is_judged_on_a_record_read_right_before_it, {}),
    ),
    (
        Mutant(
            "a request is claimed though its file is gone",
            LOOK,
            "return None if blob is None else known",
            "return known",
            (),
        ),
        (posting.test_a_request_that_was_removed_since_the_look_is_not_claimed, {}),
    ),
    (
        Mutant(
            "the request file is swept after its cancel file",
            SWEEP,
            "        self._delete(SLOT, StoreCell(self.store, key, _any_request, dump), key, lambda _: facts)\n"
            "        self._wish(request_id, status, deadline)\n",
            "        self._wish(request_id, status, deadline)\n"
            "        self._delete(SLOT, StoreCell(self.store, key, _any_request, dump), key, lambda _: facts)\n",
            (),
        ),
        (files.test_what_ended_long_ago_is_swept_request_first_then_wish_then_status, {}),
    ),
    (
        Mutant(
            "what changed is forgotten when a look fails",
            FOLDER,
            "        entries = self.store.list(self.prefix)\n",
            "        entries = self.store.list(self.prefix)\n        self._changed.clear()\n",
            (),
        ),
        (
            polls.test_nothing_is_claimed_while_the_store_is_away_and_nothing_is_forgotten_once_it_is_back,
            {"folder": "status/"},
        ),
    ),
    (
        Mutant(
            "a job that was handed over is not queued again",
            MAILBOX,
            "            elif kept.state is JobState.CANCELLED:\n",
            "            elif kept.state is JobState.DEAD:\n",
            (),
        ),
        (reconcile.test_a_request_goes_to_another_agent_and_comes_back, {}),
    ),
    (
        Mutant(
            "what it offers it takes back at once",
            MAILBOX,
            'when_free=serving.pipeline.claim == "when_free" or (record is not None and self._is_mine(record))',
            'when_free=serving.pipeline.claim == "when_free"',
            (),
        ),
        (holders.test_a_retry_that_finds_no_worker_is_offered, {"claim": "always"}),
    ),
    (
        Mutant(
            "one request without an answer ends the poll",
            MAILBOX,
            "if self._troubles >= MOST_TROUBLES:",
            "if self._troubles:",
            (),
        ),
        (polls.test_one_request_that_the_store_has_no_answer_for_hides_no_other, {}),
    ),
    (
        Mutant(
            "a request that went away and came back is failed by the old stop",
            WORKER,
            'not isinstance(ended, Refusal) and ended.reason != "handed_over"',
            "not isinstance(ended, Refusal)",
            (),
        ),
        (reconcile.test_a_stop_because_it_went_away_does_not_fail_what_has_come_back, {}),
    ),
    (
        Mutant(
            "an agent whose record is unreadable counts as nobody",
            LOOK,
            "return not unreadable and all(",
            "return all(",
            (),
        ),
        (holders.test_nothing_is_rejected_while_an_agents_record_cannot_be_read, {}),
    ),
    (
        Mutant(
            "requests are taken by a start that does not hold the name",
            MAILBOX,
            "and not self.stopping() and self.holds_name()",
            "and not self.stopping()",
            (),
        ),
        (holders.test_an_agent_whose_record_names_another_start_takes_nothing, {}),
    ),
]


def play(test, given):
    """Run a test of this folder with fresh agents."""
    fleet, made = Fleet(), {}
    for name in inspect.signature(test).parameters:
        if name in ("a", "b"):
            made[name] = fleet.agent({"a": "etl-01", "b": "etl-02"}[name])
            made[name].tick()
        elif name == "fleet":
            made[name] = fleet
    test(**made, **given)


@pytest.mark.parametrize("row", MUTANTS, ids=lambda row: row[0].name)
def test_a_wrong_version_is_caught(row):
    mutant, *drivers = row
    for test, given in drivers:
        play(test, given)
        with applied(mutant):
            try:
                play(test, given)
            except (Exception, pytest.fail.Exception) as err:
                print(f"{mutant.name}: caught by {test.__name__}: {str(err).splitlines()[0]}")
            else:
                pytest.fail(f"{mutant.name}: not caught by {test.__name__}")
