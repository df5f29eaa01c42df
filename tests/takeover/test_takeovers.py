"""Real agents over one project, their control files in a local folder and on Azurite: what comes of each trouble.

The cases of one run are played beside each other (`takeover_stage.py`); a test waits for its own. Each says in the
terminal summary what came of it and, beside its bound, how long it took.
"""

import azurite
import pytest
import takeover_cases as cases
from takeover_stage import Stage

pytestmark = [
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.parametrize("kind", ["local", pytest.param("azurite", marks=pytest.mark.azurite)]),
]
ONCE = "each effect once"


def plays(case):
    """The test is about this case."""

    def mark(test):
        test.case = case
        return test

    return mark


@pytest.fixture(scope="module")
def under_way(request, tmp_path_factory):
    """Every chosen case, begun."""
    chosen = [item for item in request.session.items if hasattr(getattr(item, "function", None), "case")]
    kinds = {item.callspec.params["kind"] for item in chosen}
    blobs = "azurite" in kinds and azurite.MAIN.is_file()
    stage = Stage(tmp_path_factory.mktemp("takeover"), blobs=blobs)
    try:
        begun = {}
        for number, item in enumerate(chosen):
            kind = item.callspec.params["kind"]
            if blobs or kind == "local":
                begun[item.nodeid] = stage.play(item.function.case, kind, f"g{number}")
        yield begun
    finally:
        stage.close()


@pytest.fixture
def told(request, kind, under_way, record_property):
    """What came of the test's case."""
    if kind == "azurite":
        azurite.need()
    line = under_way[request.node.nodeid].result()
    record_property("figure", line)
    return line


@plays(cases.poison)
def test_a_request_that_ends_each_of_three_agents_fails_and_names_them(told):
    assert "failed, holds" in told


@plays(cases.cut_off)
def test_an_agent_cut_off_for_two_spans_loses_its_request_and_serves_the_next(told):
    assert "served the next request" in told


@plays(cases.stopped_and_woken)
def test_an_agent_stopped_past_its_span_and_woken_stands_down(told):
    assert ONCE in told


@plays(cases.woken_with_a_commit_in_flight)
def test_a_commit_that_was_checked_before_the_agent_was_stopped_lands_once_and_nothing_after_it(told):
    assert "landed once" in told


@plays(cases.killed_mid_table)
def test_a_request_whose_agent_is_killed_in_the_middle_of_a_table_is_taken_over_within_the_bound(told):
    assert ONCE in told


@plays(cases.narrower_allowlist)
def test_an_agent_with_a_narrower_allowlist_takes_over_nothing_that_it_may_not_serve(told):
    assert "left the wider one alone" in told


@plays(cases.eight_and_one_slot)
def test_eight_agents_let_go_at_one_due_time_make_one_request_and_one_run(told):
    assert ONCE in told


@plays(cases.clean_stop)
def test_an_agent_that_is_stopped_in_order_offers_what_it_has_left(told):
    assert "exit 0" in told


@plays(cases.stopped_between_polls)
def test_what_the_last_worker_of_a_stopping_agent_gave_back_is_offered_before_the_goodbye(told):
    assert "offered before its goodbye" in told


@plays(cases.restarted_at_once)
def test_an_agent_restarted_at_once_after_a_kill_goes_on_with_its_own_request(told):
    assert "b took nothing" in told


@plays(cases.cancelled)
def test_a_request_cancelled_while_it_waits_never_runs_and_one_that_runs_is_finished(told):
    assert "never run" in told
