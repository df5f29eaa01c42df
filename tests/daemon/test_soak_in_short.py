"""A minute of the soak; `make soak` takes ten."""

import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.long]

MINUTES = 1.0
SEED = 20270115


def test_an_agent_under_faults_comes_to_rest_with_everything_right(tmp_path):
    sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))
    import daemon_soak

    done = daemon_soak.run(MINUTES, SEED, tmp_path)
    assert sum(done.values()) >= 5, f"seed {SEED}: hardly anything happened: {done}"
