"""Every state of each named scope but the mailbox's: two agents, one fault."""

from dataclasses import replace

import pytest

from tests.world.explore import explore
from tests.world.process import Violation
from tests.world.scopes import SCOPES

LONG = {"job", "job-stop", "ledger", "ledger-two", "agent-clone"}
"""The scopes that take more than two seconds each."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if name in LONG else [])
        for name in SCOPES
        if not name.startswith("request")
    ],
)
def test_no_schedule_of_the_scope_breaks_it(name, record_property):
    assert SCOPES[name].sometimes, "nothing may pass because nothing happened"
    record_property("figure", f"exhaustive {explore(SCOPES[name])}")


def test_a_search_that_meets_its_limit_fails():
    with pytest.raises(Violation, match="not everything was seen"):
        explore(SCOPES["merge-keys"], most=100)


def test_a_search_that_never_meets_what_it_must_fails():
    with pytest.raises(Violation, match="never seen"):
        explore(replace(SCOPES["lease-slow"], sometimes=frozenset({"lease by dead process"})))
