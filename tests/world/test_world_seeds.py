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
from tests.world.seeds import SEEDED, run, wider

SEEDS = 12
REACHED = {
    "already done",
    "landed",
    "refused",
    "lease by dead process",
    "lease taken from another",
    "recovered as queued",
}
"""What some run of the default seeds must have seen (P12)."""
PRODUCTION = (
    "fdagent.attempt",
    "fdagent.commit",
    "fdagent.engine.landing",
    "fdagent.queue.jobs",
    "fdagent.queue.cell",
    "fdagent.stores.cell",
    "fdagent.stores.sightings",
    "fdagent.work.holding",
    "fdagent.work.leases",
    "machines.job",
    "machines.lease",
    "machines.request",
    "models.job",
    "models.lease",
    "models.status",
)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_long_run_breaks_nothing(seed, record_property):
    seen = set().union(*(run(name, seed) for name in SEEDED))
    record_property("figure", f"seed {seed}: {len(SEEDED)} scopes")
    record_property("seen", ", ".join(sorted(seen)))
    assert "landed" in seen


def test_the_things_that_must_happen_sometimes_do():
    seen: set[str] = set()
    for seed in range(40):
        for name in ("append", "merge", "lease", "lease-workers", "job"):
            seen |= run(name, seed)
        if seen >= REACHED:
            return
    assert seen >= REACHED


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["append", "merge", "append-keys", "merge-keys", "lease"]), st.data())
def test_no_walk_that_hypothesis_finds_breaks_it(name, data):
    with Walk(wider(SCOPES[name])) as walk:
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
