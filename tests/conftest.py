"""What every test folder shares."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# The same examples each time, so that a change is judged by its own lines; `--hypothesis-profile=default` draws new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption("--exhaustive", action="store_true", help="Also what takes many minutes: every day in every zone.")


def pytest_terminal_summary(terminalreporter):
    """Print what tests recorded as figures: states, seeds, mutants."""
    reports = [
        report for found in terminalreporter.stats.values() for report in found if hasattr(report, "user_properties")
    ]
    figures = sorted({str(value) for report in reports for name, value in report.user_properties if name == "figure"})
    if figures:
        terminalreporter.section("figures")
        for figure in figures:
            terminalreporter.write_line(figure)
