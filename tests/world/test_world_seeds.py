"""Long runs by a seed, runs that hypothesis shrinks, and replays."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mutants.landing_mutants import MUTANTS
from tests.mutants.mutant import applied, differences
from tests.soak.__main__ import main
from tests.world.drive import Walk, replay
from tests.world.explore import explore
from tests.world.process import Violation
from tests.world.replay import parse
from tests.world.scopes import SCOPES
from tests.world.seeds import SEEDED, WALKED, run, wider

SEEDS = 15
REACHED = {
    "adopt",
    "already done",
    "cancel",
    "delete lost, then recognised",
    "expire",
    "give_up",
    "hand_back",
    "handed over",
    "landed",
    "lease by dead process",
    "lease taken from another",
    "lost, then recognised",
    "recovered as queued",
    "refused",
    "stood down",
    "sweep",
    "take_over",
    "wait",
}
"""What some run of the default seeds must have seen (P12); a requeue needs three holds: the simulated fleet has it."""
PRODUCTION = (
    "fdagent.attempt",
    "fdagent.daemon.duties",
    "fdagent.commit",
    "fdagent.engine.landing",
    "fdagent.fleet.folder",
    "fdagent.fleet.look",
    "fdagent.fleet.mailbox",
    "fdagent.fleet.presence",
    "fdagent.fleet.slots",
    "fdagent.fleet.sweep",
    "fdagent.queue.cell",
    "fdagent.queue.jobs",
    "fdagent.stores.cell",
    "fdagent.stores.sightings",
    "fdagent.stores.watched",
    "fdagent.work.holding",
    "fdagent.work.leases",
    "fdagent.work.requesthold",
    "fdagent.work.runner",
    "fdagent.work.tablehold",
    "fdagent.work.worker",
    "machines.agent",
    "machines.incident",
    "machines.job",
    "machines.lease",
    "machines.ledger",
    "machines.request",
    "machines.slot",
    "models.job",
    "models.lease",
    "models.liveness",
    "models.request",
    "models.status",
)


@pytest.fixture(scope="module")
def seen_in():
    """What the runs of each scope have seen."""
    return {}


@pytest.mark.parametrize("name", SEEDED)
def test_a_long_run_breaks_nothing(name, seen_in, record_property):
    seen_in[name] = set().union(*(run(name, seed) for seed in range(SEEDS)))
    record_property("figure", f"seeded {name}: {SEEDS} seeds, seen: {', '.join(sorted(seen_in[name]))}")
    assert seen_in[name]


def test_the_things_that_must_happen_sometimes_do(seen_in):
    if len(seen_in) < len(SEEDED):
        pytest.skip("only some of the scopes were walked")
    assert REACHED - set().union(*seen_in.values()) == set()


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(list(WALKED)), st.data())
def test_no_walk_that_hypothesis_finds_breaks_it(name, data):
    with Walk(wider(WALKED[name])) as walk:
        for _ in range(60):
            choices = walk.state.choices()
            if not choices:
                walk.rest()
                return
            walk.take(data.draw(st.sampled_from(choices)))


def test_a_violation_prints_the_line_that_brings_it_back(capsys):
    mutant = MUTANTS[0]
    with applied(mutant):
        with pytest.raises(Violation) as found:
            explore(SCOPES["merge-keys"])
        line = str(found.value).splitlines()[-1]
        name, words = parse(line)
        with pytest.raises(Violation):
            replay(SCOPES[name], words)
        assert main(["--replay", line]) == 1
    assert str(found.value).splitlines()[0] in capsys.readouterr().out
    replay(SCOPES[name], words)


def test_the_world_drives_production_modules_as_their_files_say():
    assert [name for name in PRODUCTION if name not in sys.modules] == []
    assert {name: found for name in PRODUCTION if (found := differences(name))} == {}
