"""Wrong versions of the table's commit."""

from .mutant import Mutant

LANDING = "fdagent.engine.landing"
SCOPES = ("merge-keys", "merge", "append")

MUTANTS = (
    Mutant(
        "the transaction is not looked up before the first commit",
        LANDING,
        "        if not self.table.has_txn(version, self.app_id):\n            return None",
        "        if self.flying is None or not self.table.has_txn(version, self.app_id):\n            return None",
        SCOPES,
    ),
    Mutant(
        "the transaction is looked up in the history, not on the snapshot",
        LANDING,
        "        if not self.table.has_txn(version, self.app_id):\n            return None",
        "        if self.table.author(version, self.app_id) is None:\n            return None",
        SCOPES,
        trace="2",
    ),
    Mutant(
        "files are removed after an unclear commit",
        LANDING,
        "            if version.version < self.flying.wanted:\n                return self.flying",
        "            pass",
        SCOPES,
        trace="1",
    ),
    Mutant(
        "an answer is taken as proof that it landed",
        LANDING,
        "        self.table.commit(plan.base, plan.change, self.note(plan.attempt_id))",
        "        self.table.commit(plan.base, plan.change, self.note(plan.attempt_id))\n"
        "        return Done(Landed(plan.change, plan.attempt_id, plan.wanted))",
        SCOPES,
        trace="3",
    ),
    Mutant(
        "a merge is sent again on a newer version without computing it again",
        LANDING,
        "            if self.flying.change.append_only:\n                kept = self.keeps(version, self.flying.change)",
        "            if True:\n                kept = self.flying.change",
        SCOPES,
    ),
    Mutant(
        "an append is kept without looking at the marks again",
        LANDING,
        "                kept = self.keeps(version, self.flying.change)",
        "                kept = self.flying.change",
        ("append-keys",),
    ),
    Mutant(
        "files are removed though the log no longer says whose commit it was",
        LANDING,
        "        if author is None:\n            # It may be ours: its files stay.\n            return Done(AlreadyDone(None))",
        "        if author is None:\n            self._drop()\n            return Done(AlreadyDone(None))",
        SCOPES,
    ),
    Mutant(
        "files are removed when the effect is one's own",
        LANDING,
        "        if author.attempt_id == self.flying.attempt_id:",
        "        if author.attempt_id != self.flying.attempt_id:",
        SCOPES,
    ),
    Mutant(
        "an append is computed again after every lost race",
        LANDING,
        "            if self.flying.change.append_only:",
        "            if False:",
        ("test_12e_a_writer_that_commits_before_each_of_our_tries_does_not_starve_an_append",),
        trace="12e",
    ),
)
