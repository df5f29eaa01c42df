"""Wrong versions of the daemon's duties and of what a worker checks, looked for where whole agents run."""

from .mutant import Mutant

DUTIES, RUNNER, QUEUE = "fdagent.daemon.duties", "fdagent.work.runner", "fdagent.queue.jobs"
WHOLE = ("whole@80",)

MUTANTS = (
    Mutant(
        "a worker does not notice that its daemon is gone",
        RUNNER,
        "        if self.wishes.orphaned():\n            raise StoodDown",
        "        if False:\n            raise StoodDown",
        WHOLE,
        trace="9c",
    ),
    Mutant(
        "a worker commits without its job's claim",
        RUNNER,
        '        self.belief.check("The job\'s claim")\n',
        "",
        ("test_a_worker_whose_claim_has_ended_begins_no_change",),
    ),
    Mutant(
        "a worker commits without its table's lease",
        RUNNER,
        "        self.holds.check()\n",
        "",
        ("test_a_worker_whose_lease_has_ended_begins_no_change",),
    ),
    Mutant(
        "a worker commits for a request that is another's",
        RUNNER,
        "        if self.request is not None:\n            self.request.check()",
        "        if False:\n            self.request.check()",
        ("test_a_worker_goes_on_while_its_daemon_stands_still_and_hands_over_what_was_taken_from_it",),
    ),
    Mutant(
        "a job whose worker died is never taken back",
        DUTIES,
        "        for job in self.jobs.recover(self.sightings, self.processes, self._why):",
        "        for job in list[Job]():",
        WHOLE,
    ),
    Mutant(
        "a job is taken back whenever its worker is not this daemon's",
        QUEUE,
        "        process_gone=here and processes.started_at(job.pid) != job.process_started_at,",
        "        process_gone=here,",
        WHOLE,
        trace="9c",
    ),
)
