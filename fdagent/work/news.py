"""What a daemon tells its workers again whenever it changes: whom they work for, and who is not coming back.

Guarantees: one line of JSON, which holds no secret. What it says of a lost agent names the version of that agent's
record that was watched, so that a worker that looks again knows whether it still is as it was said.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class News:
    """The environments whose jobs are run now, and the agents that are lost."""

    envs: tuple[str, ...] = ()
    lost: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Environment -> agent -> etag of its record, seen unchanged for its whole span and grace."""

    def to_line(self) -> str:
        """As one line of a worker's stdin."""
        return json.dumps({"envs": self.envs, "lost": self.lost}) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Self:
        """From one line of stdin.

        Raises:
            ValueError: It is something else.
        """
        values = json.loads(line)
        try:
            return cls(tuple(values["envs"]), dict(values["lost"]))
        except (KeyError, TypeError) as err:
            raise ValueError("The line is no news.") from err
