"""The chart of an agent's record: one start of an agent at a time under one name.

Whether an agent lives is judged by its readers from what they see, and stored nowhere. An announcement over a record
that still says running waits for two of its beats, unless its process is known to be gone: unchanged means that nobody
beats, a beat means that another agent of this name is alive. A start that finds a version it did not write was
replaced: it takes no more work for this environment, and says so.
"""

from machines.chart import Chart, Row
from models import agent as a
from models.agent import AgentFacts, AgentRecord, AgentState
from models.person import by_a_person
from models.step import ABSENT

RUNNING, STOPPING, STOPPED = AgentState.RUNNING, AgentState.STOPPING, AgentState.STOPPED
OURS = (a.mine, a.unreplaced)

AGENT: Chart[AgentRecord, AgentFacts] = Chart(
    "agent",
    states=AgentState,
    rows=[
        Row("announce", (ABSENT, STOPPED), RUNNING, a.announce),
        Row("announce", (RUNNING, STOPPING), RUNNING, a.announce, (a.name_free,)),
        Row("beat", (RUNNING, STOPPING), None, a.beat, OURS),
        Row("drain", RUNNING, STOPPING, a.drain, OURS),
        Row("stop", (RUNNING, STOPPING), STOPPED, a.stop, OURS),
        Row("forget", STOPPED, ABSENT, a.forget, (by_a_person, a.unneeded)),
        Row("forget", (RUNNING, STOPPING), ABSENT, a.forget, (a.lost, by_a_person, a.unneeded)),
    ],
)
