"""`run` with a `max_job_hours` that agent.toml would refuse: `short_hours.py run CONFIG HOURS`."""

import signal
import sys
from dataclasses import replace
from pathlib import Path

from fdagent.config.load import load_settings
from fdagent.daemon.home import taken
from fdagent.daemon.main import build
from fdagent.system import SystemClock


def main(config: Path, hours: float) -> None:
    settings = load_settings(config, host="here")
    short = replace(settings, agent=replace(settings.agent, max_job_hours=hours))
    with taken(settings.agent.home, SystemClock()):
        daemon = build(short, settings.agent.home, "here", sys.stdout)
        signal.signal(signal.SIGTERM, lambda _number, _frame: daemon.stop())
        daemon.run()


if __name__ == "__main__":
    main(Path(sys.argv[2]), float(sys.argv[3]))
