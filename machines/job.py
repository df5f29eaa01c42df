"""The chart of a job in an agent's own queue.

A claim counts an attempt and names the job by its op; only that claim renews and finishes it. What its worker leaves
unfinished is recovered once its process is known to be gone or the row was seen unchanged for its whole lease, so a
worker that wakes up late finds another op and changes nothing. `failed` means that trying again would fail the same
way, `dead` that every attempt is used. A job whose request went to another agent is cancelled as handed over, and
queued again should the request come back.
"""

from machines.chart import Chart, Row
from models import job as j
from models.job import FINAL, Job, JobFacts, JobState
from models.step import ABSENT

QUEUED, RUNNING = JobState.QUEUED, JobState.RUNNING
FAILED, DEAD, CANCELLED = JobState.FAILED, JobState.DEAD, JobState.CANCELLED

JOB: Chart[Job, JobFacts] = Chart(
    "job",
    states=JobState,
    final=frozenset(FINAL),
    rows=[
        Row("enqueue", ABSENT, QUEUED, j.enqueue, (j.key_free,)),
        Row("claim", QUEUED, RUNNING, j.claim, (j.due, j.worker_free)),
        Row("renew", RUNNING, RUNNING, j.renew, (j.mine, j.believed)),
        Row("succeed", RUNNING, JobState.SUCCEEDED, j.succeed, (j.mine,)),
        Row("fail", RUNNING, FAILED, j.fail, (j.mine,)),
        Row("retry", RUNNING, QUEUED, j.retry, (j.mine, j.retryable, j.attempts_left, ~j.stop_asked)),
        Row("bury", RUNNING, DEAD, j.bury, (j.mine, j.retryable, ~j.attempts_left)),
        Row("recover", RUNNING, QUEUED, j.requeue_left, (j.left_alone, j.attempts_left, ~j.stop_asked)),
        Row("recover", RUNNING, DEAD, j.bury_left, (j.left_alone, ~j.attempts_left, ~j.stop_asked)),
        Row("recover", RUNNING, CANCELLED, j.cancel_left, (j.left_alone, j.stop_asked)),
        Row("ask_to_stop", RUNNING, RUNNING, j.ask_to_stop, (j.has_reason,)),
        Row("cancel", QUEUED, CANCELLED, j.cancel, (j.has_reason,)),
        Row("cancel", RUNNING, CANCELLED, j.cancel, (j.mine, j.has_reason)),
        Row("requeue", CANCELLED, QUEUED, j.requeue, (j.handed_over, j.status_names_us, j.key_free)),
        Row("revive", (FAILED, DEAD, CANCELLED), QUEUED, j.revive, (j.by_a_person, j.key_free, ~j.status_final)),
        Row("prune", tuple(sorted(FINAL)), ABSENT, j.prune, (j.kept_long_enough,)),
    ],
)
