"""What every test folder shares."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


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
