"""Why a job or a request is where it is, in words for people: what records hold of it is for programs.

Guarantees: of what was cancelled, expired or rejected that is said, and not what its last attempt met before: that may
promise another one.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.job import Job

REASONS = {
    "cancelled": "Somebody asked that it is cancelled.",
    "expired": "Its deadline passed.",
    "handed_over": "Its request is no longer this agent's: another runs it, or it has ended.",
}
"""`models.job.CANCEL_REASONS` in words."""
NOT_BY_AN_ATTEMPT = ("cancelled", "expired", "rejected")


def reason(text: str) -> str:
    """A job's reason, or why it is asked to stop, in words."""
    return REASONS.get(text, text)


def why_job(job: "Job") -> str:
    """Why a job ended or waits, or nothing."""
    return why(job.state, job.error, reason(job.reason))


def why(state: str, error: str | None, reason: str | None) -> str:
    """The one of two texts that says why something is in a state."""
    ended = reason or error if state in NOT_BY_AN_ATTEMPT else error or reason
    return ended or ""
