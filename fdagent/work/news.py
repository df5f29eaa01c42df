"""What a daemon tells its workers again whenever it changes: whom they work for, and which leases are left alone.

Guarantees: one line of JSON, which holds no secret. What it says of a lease names the version that was watched, so that
a worker takes none that was renewed since, however old the news is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class News:
    """The environments whose jobs are run now, and the leases that nobody is behind."""

    envs: tuple[str, ...] = ()
    left: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Environment -> table -> op of its lease, which is left alone."""

    def to_line(self) -> str:
        """As one line of a worker's stdin."""
        return json.dumps({"envs": self.envs, "left": self.left}) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Self:
        """From one line of stdin.

        Raises:
            ValueError: It is something else.
        """
        values = json.loads(line)
        try:
            left = {env: dict(ops) for env, ops in values["left"].items()}
            return cls(tuple(values["envs"]), left)
        except (AttributeError, KeyError, TypeError) as err:
            raise ValueError("The line is no news.") from err
