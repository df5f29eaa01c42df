"""Every state of each of the mailbox's scopes: claim, takeover, cancel, expire, retry, give up, finish, sweep."""

import pytest

from tests.world.explore import explore
from tests.world.scopes import SCOPES

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", [name for name in SCOPES if name.startswith("request")])
def test_no_schedule_of_the_mailbox_breaks_it(name, record_property):
    assert SCOPES[name].sometimes, "nothing may pass because nothing happened"
    record_property("figure", f"exhaustive {explore(SCOPES[name])}")
