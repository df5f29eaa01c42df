"""The chart of a release: which version of the metadata project an environment runs.

Only a person promotes, and only over the release they were shown: whoever promoted a moment later is refused and shown
the difference again. Agents run an environment only when the release names the version they have.
"""

from machines.chart import Chart, Row
from models import release as r
from models.person import by_a_person
from models.release import Release, ReleaseFacts, ReleaseState
from models.step import ABSENT

PROMOTED = ReleaseState.PROMOTED

RELEASE: Chart[Release, ReleaseFacts] = Chart(
    "release",
    states=ReleaseState,
    rows=[Row("promote", (ABSENT, PROMOTED), PROMOTED, r.promote, (by_a_person, r.as_shown))],
)
