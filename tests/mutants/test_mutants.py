"""Small wrong versions of production code: some driver of the world must catch each."""

import pytest

from fdagent.engine import landing
from tests.mutants.daemon_mutants import MUTANTS as DAEMONS
from tests.mutants.driving import caught_by
from tests.mutants.landing_mutants import MUTANTS as LANDING
from tests.mutants.mutant import applied, differences
from tests.mutants.record_mutants import MUTANTS as RECORDS
from tests.mutants.request_mutants import MUTANTS as REQUESTS
from tests.world.test_world_traces import ELSEWHERE, NUMBERS

MUTANTS = (*LANDING, *RECORDS, *REQUESTS, *DAEMONS)
MODULES = sorted({mutant.module for mutant in MUTANTS})


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_version_is_caught(mutant, record_property):
    driver = caught_by(mutant)
    record_property("figure", f"mutant caught: {mutant.name}: {driver or 'BY NONE'}")
    assert driver


def test_the_repair_of_every_known_schedule_is_taken_out_once():
    assert set(NUMBERS) - ELSEWHERE.keys() == {mutant.trace for mutant in MUTANTS if mutant.trace}


def test_there_are_at_least_twenty():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20


@pytest.mark.parametrize("module", MODULES)
def test_the_right_version_is_what_its_file_says(module):
    assert differences(module) == []


def test_a_wrong_version_is_taken_out_again_even_after_an_error():
    with pytest.raises(RuntimeError), applied(LANDING[0]):
        assert differences(landing.__name__)
        raise RuntimeError
    assert differences(landing.__name__) == []
