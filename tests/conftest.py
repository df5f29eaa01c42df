"""What every test folder shares."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser):
    parser.addoption("--exhaustive", action="store_true", help="Also what takes many minutes: every day in every zone.")
