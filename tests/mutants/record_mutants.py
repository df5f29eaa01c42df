"""Wrong versions of the loop, the cells, the leases, the jobs and the requests."""

from .mutant import Mutant

LEASES, LEASE, PLACE = "fdagent.work.leases", "models.lease", "models.place"
COMMIT, CELL, HOLDING, SIGHTINGS = (
    "fdagent.commit",
    "fdagent.stores.cell",
    "fdagent.work.holding",
    "fdagent.stores.sightings",
)
QUEUE = "fdagent.queue.jobs"
TWO, JOBS = ("lease-slow", "lease"), ("job@40",)

MUTANTS = (
    Mutant(
        "the belief is counted from the answer, not from the asking",
        LEASES,
        "        self.belief.confirmed(started)",
        "        self.belief.confirmed(self.clock.elapsed())",
        TWO,
        trace="11",
    ),
    Mutant(
        "the belief is kept until the release is answered",
        LEASES,
        '        self.belief.end()\n        self._commit("release", self.ids.new())',
        '        self._commit("release", self.ids.new())\n        self.belief.end()',
        ("lease-release",),
    ),
    Mutant(
        "a lease lapses after half its span",
        LEASE,
        "    return span is not None and unchanged_seconds is not None and unchanged_seconds >= span",
        "    return span is not None and unchanged_seconds is not None and unchanged_seconds >= span / 2",
        TWO,
        trace="11",
    ),
    Mutant(
        "a lease lapses unwatched",
        LEASE,
        "    return span is not None and unchanged_seconds is not None and unchanged_seconds >= span",
        "    return span is not None",
        TWO,
    ),
    Mutant(
        "a process of another place is called gone",
        PLACE,
        "    if not place or named.boot != place or named.pid is None or named.process_started_at is None:",
        "    if not place or named.pid is None or named.process_started_at is None:",
        TWO,
        trace="14",
    ),
    Mutant(
        "facts are gathered once and judged again after a conflict",
        COMMIT,
        "    task = _Change(chart, cell, event, op, facts, clock, key)",
        "    kept = {}\n"
        '    task = _Change(chart, cell, event, op, lambda record: kept.setdefault("", facts(record)), clock, key)',
        TWO,
        trace="16",
    ),
    Mutant(
        "a write names whatever version is there",
        CELL,
        "Absent() if how is Write.CREATE else Match(tag))",
        "Absent() if how is Write.CREATE"
        " else Match(tag if (found := self._store.read(self._key)) is None else found.etag))",
        TWO,
    ),
    Mutant(
        "a create overwrites",
        CELL,
        "Absent() if how is Write.CREATE else Match(tag))",
        "Match(found.etag) if (found := self._store.read(self._key)) is not None and how is Write.CREATE"
        " else Absent() if how is Write.CREATE else Match(tag))",
        TWO,
    ),
    Mutant(
        "a belief outlives its span",
        HOLDING,
        "self._from + self.span - MARGIN_SECONDS",
        "self._from + 2 * self.span - MARGIN_SECONDS",
        TWO,
    ),
    Mutant(
        "a version that was met once is taken for watched since the start",
        SIGHTINGS,
        "            met = self._met[key] = _Met(version, now, now)",
        "            met = self._met[key] = _Met(version, 0.0, now)",
        TWO,
    ),
    Mutant(
        "a running job is taken back while its worker lives",
        QUEUE,
        "        process_gone=here and processes.started_at(job.pid) != job.process_started_at,",
        "        process_gone=here,",
        JOBS,
        trace="9c",
    ),
    Mutant(
        "a running job lapses after half its lease",
        QUEUE,
        "        lapsed=unchanged is not None and unchanged >= job.lease_seconds,",
        "        lapsed=unchanged is not None and unchanged >= job.lease_seconds / 2,",
        JOBS,
    ),
)
