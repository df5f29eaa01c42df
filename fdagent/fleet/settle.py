"""What becomes of a schedule's due times: pure, from how far it is and its entries to the next of both.

Guarantees
- A due time has at most one entry, and no entry is due later than now.
- Each due time between two marks is counted once: as an entry, or among the missed ones of the entry after it.
- The clock is believed as it is now. Set back, it lets nothing run again: what has an entry keeps it. What was counted as
  missed but is ahead again is taken out of that count, and is due when it comes.
- A schedule with another rule than before, or none before, is counted from now: what its times would have been is not.

Does not write, and does not know why a clock moved.
"""

from dataclasses import replace

from fdagent.fleet.due import NEVER, Times
from fdagent.queue.dues import Book, Entry, Outcome, Settled, Standing


def settled(was: Standing, rule: str, times: Times, book: Book, now: float) -> Settled | None:
    """What becomes of a schedule's due times up to now; None: nothing that is not known already.

    Args:
        was: How far it is.
        rule: What its times are counted by now.
        times: Its due times.
        book: Its entries.
        now: This machine's wall clock.
    """
    standing = was
    if standing.rule != rule:
        return Settled(replace(standing, rule=rule, mark=max(standing.floor, now)))
    if now < standing.mark:
        return _set_back(standing, times, book, now)
    entries = []
    paused = standing.paused_until
    if paused is not None and paused > standing.mark:
        standing, entry = _collapsed(standing, Outcome.PAUSED, times, book, (min(paused, now), now))
        entries += [] if entry is None else [entry]
    if paused is None or paused < now:
        standing, entry = _collapsed(standing, Outcome.RAN, times, book, (now, now))
        entries += [] if entry is None else [entry]
    return None if standing == was else Settled(standing, tuple(entries))


def _collapsed(
    standing: Standing, outcome: Outcome, times: Times, book: Book, moments: tuple[float, float]
) -> tuple[Standing, Entry | None]:
    """All due times up to a moment as one entry, that of the newest which has none yet."""
    until, now = moments
    newest = times.latest(standing.mark, until)
    if newest is None:
        return standing, None
    # Some may have an entry from a time when the clock was ahead.
    had = [entry.due for entry in book(standing.mark, newest)]
    due: float | None = newest
    for known in reversed(had):
        if due == known:
            due = times.latest(standing.mark, _before(known))
    moved = replace(standing, mark=newest)
    if due is None:
        return moved, None
    missed = times.count(standing.mark, due) - 1 - sum(known < due for known in had)
    return moved, Entry(standing.id, due, outcome, standing.mark, due, max(missed, 0), now)


def _set_back(standing: Standing, times: Times, book: Book, now: float) -> Settled | None:
    """The clock was set back behind the mark: what it has not reached now was not missed."""
    back = max(standing.floor, now)
    if back == standing.mark:
        return None
    corrected = []
    for entry in book(back, NEVER):
        if entry.until > back and entry.missed:
            passed = times.count(entry.since, back) - len(book(entry.since, back))
            corrected.append(replace(entry, until=back, missed=min(max(passed, 0), entry.missed)))
    return Settled(replace(standing, mark=back), corrected=tuple(corrected))


def _before(due: float) -> float:
    """A moment before a due time and after the one before it."""
    return due - 0.5
