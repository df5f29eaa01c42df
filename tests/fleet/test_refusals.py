"""What the status of a rejected request says: which of its wishes no agent serves, and who says so."""

from dataclasses import replace

import pytest
from fleet_kit import ALL


def rejected(fleet) -> str:
    status = fleet.status("r1")
    assert status.state == "rejected"
    return status.reason


@pytest.mark.parametrize("entity", ["silver.order", "nowhere.*", "../x"])
def test_a_misspelt_entity_is_named(fleet, a, entity):
    fleet.post("r1", entities=(entity, "silver.orders"))
    a.tick()
    assert rejected(fleet).startswith(
        f"The promoted version has not all that it names. No entity of this project is named or matched by `{entity}`."
    )


def test_a_misspelt_entity_gets_the_one_that_may_be_meant(fleet, a):
    fleet.post("r1", entities=("silver.order",))
    a.tick()
    assert rejected(fleet).endswith("Did you mean `silver.orders`?")


def test_a_backfill_that_nobody_allows_is_named(fleet):
    fleet.agent("etl-01", replace(ALL, allow_backfill=False)).tick()
    fleet.post("r1", backfill="full")
    fleet.agents["etl-01"].tick()
    assert rejected(fleet) == (
        "No agent can serve it. etl-01, which looked last: it allows no backfill ([pipeline] allow_backfill)."
    )


def test_entities_outside_an_allowlist_are_named_beside_what_else_keeps_it_from_serving(fleet):
    fleet.agent("etl-01", replace(ALL, entities=("bronze.*",), allow_backfill=False)).tick()
    fleet.post("r1", backfill="full")
    fleet.agents["etl-01"].tick()
    reason = rejected(fleet)
    assert "it allows no backfill ([pipeline] allow_backfill), and it does not serve " in reason
    assert "silver.orders" in reason
    assert "bronze" not in reason
    assert reason.endswith("([pipeline] entities).")


def test_a_cancelled_request_says_nothing_of_what_it_misspelt(fleet, a):
    fleet.post("r1", entities=("silver.gone",))
    fleet.wish("r1")
    a.tick()
    assert (fleet.state("r1"), fleet.status("r1").reason) == ("cancelled", "It was cancelled.")
