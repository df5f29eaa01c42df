"""Every state of each named scope: two agents, one fault."""

import pytest

from tests.world.explore import explore
from tests.world.process import Violation
from tests.world.scopes import SCOPES

IN_CI = (
    "append",
    "merge",
    "append-keys",
    "merge-keys",
    "lease",
    "lease-workers",
    "lease-release",
    "agent",
    "agent-restart",
    "ledger",
)
"""The others have more states than a minute's worth: `make soak` searches them too."""
SOMETIMES = {
    "append": {"landed", "already done", "already done, author unknown"},
    "merge": {"landed", "already done", "already done, author unknown"},
    "append-keys": {"landed", "already done"},
    "merge-keys": {"landed", "already done"},
    "lease": {"refused", "lease taken from another", "lease by dead process"},
    "lease-workers": {"refused", "lease taken from another", "lease by dead process"},
    "lease-release": {"refused"},
    "agent": {"present", "waiting", "replaced"},
    "agent-restart": {"present", "waiting", "replaced"},
    "ledger": set(),
}


@pytest.mark.parametrize("name", IN_CI)
def test_no_schedule_of_the_scope_breaks_it(name, record_property):
    report = explore(SCOPES[name])
    record_property("figure", f"exhaustive {report}")
    assert SOMETIMES[name] <= report.seen, "nothing may pass because it never happened"


def test_a_search_that_meets_its_limit_fails():
    with pytest.raises(Violation, match="not everything was seen"):
        explore(SCOPES["merge-keys"], most=100)
