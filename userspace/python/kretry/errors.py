# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What can be raised besides OSError and ValueError."""

from .abi import Verdict

REASONS = {
    Verdict.STOP_PERMANENT: "it would fail again",
    Verdict.STOP_UNSAFE: "the work may have been done, and is not said to be idempotent",
    Verdict.STOP_LIMIT: "no attempts are left",
    Verdict.STOP_HINT: "the server asks for a longer wait than hint_limit, or not to come back",
    Verdict.STOP_ELAPSED: "the next attempt would start later than max_elapsed allows",
    Verdict.STOP_BUDGET: "the retry budget is exhausted",
    Verdict.STOP_OPEN: "the circuit breaker is open",
    Verdict.STOP_COOLING: "the server has asked everyone to wait",
    Verdict.STOP_PACED: "the next free slot is beyond the pacing horizon",
}


class Stopped(Exception):
    """An operation was refused before its first attempt, so that there is no other exception to raise.

    verdict says why; deadline_ns is when to ask again, on the policy's clock, 0 where that is unknown.
    """

    def __init__(self, verdict, deadline_ns=0):
        super().__init__(verdict, deadline_ns)
        self.verdict = Verdict(verdict)
        self.deadline_ns = deadline_ns

    @property
    def reason(self):
        """In words."""
        return REASONS[self.verdict]

    def __str__(self):
        return f"{self.verdict}: {self.reason}"


class NoModule(OSError):
    """What was asked for takes the kernel module, which cannot be used: the text says why, and what to do."""

    def __str__(self):
        return self.strerror
