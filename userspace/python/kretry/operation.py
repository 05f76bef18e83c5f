# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""One operation: its attempts, step by step or as a loop."""

import contextlib

from . import abi, clock, units
from .abi import Event, Verdict
from .classes import failure_of
from .errors import REASONS, Stopped
from .keys import parse_key


class Operation:
    """One thing to be done, and all there is to know about it while it is not queued.

    begin() before an attempt, then ok(), failed() or cancelled(); each gives a Verdict. admit() does what is
    to be done between two attempts. It is over when a verdict is DONE or a stop, and can then be used again.
    """

    def __init__(self, policy, key=0, idempotent=False):
        self.policy = policy
        self.fields = dict.fromkeys(abi.OP.names, 0)
        self.fields.update(policy=policy.id, key=parse_key(key), flags=abi.OP_IDEMPOTENT if idempotent else 0)

    def __repr__(self):
        return f"<kretry.Operation {self.verdict}, {self.attempt} retries>"

    @property
    def verdict(self):
        """The last one."""
        return Verdict(self.fields["verdict"])

    @property
    def attempt(self):
        """Retries granted so far: 0 during the first attempt."""
        return self.fields["attempt"]

    @property
    def delay_ns(self):
        """Of the last RETRY."""
        return self.fields["delay_ns"]

    @property
    def deadline_ns(self):
        """When the attempt may start, on the policy's clock; 0 where the verdict has none."""
        return self.fields["deadline_ns"]

    @property
    def is_probe(self):
        """Whether this attempt tries if a dependency has come back. Others wait for what it reports."""
        return bool(self.fields["flags"] & abi.OP_PROBE)

    def report(self, event, flags=0, hint_ns=0):
        """An event of the ABI; a call that fails changes nothing."""
        fields = dict(self.fields, event=int(event), hint_ns=min(hint_ns, abi.NS_MAX))
        fields["flags"] = fields["flags"] & abi.OP_IN_MASK & ~abi.OP_QUEUE | flags
        self.policy.step(fields)
        self.fields = fields
        return self.verdict

    def begin(self):
        """Ask to start an attempt: GO, at deadline_ns, or a stop."""
        return self.report(Event.BEGIN)

    def ok(self):
        """It succeeded: DONE."""
        return self.report(Event.OK)

    def cancelled(self):
        """Given up, for reasons of the caller's: DONE, and counted as nothing."""
        return self.report(Event.CANCELLED)

    def failed(self, event="transient", *, hint=None, no_retry=False):
        """It failed: RETRY, at deadline_ns, or a stop. event is "transient", "throttled", "unknown" or
        "permanent"; hint what the server asked to wait ("5s"), no_retry that it said not to come back."""
        failure = failure_of(event)
        hint_ns = failure.hint_ns if hint is None else units.duration(hint)
        return self.report(failure.event, *self.said(hint_ns, no_retry or failure.no_retry))

    @staticmethod
    def said(hint_ns, no_retry):
        """Flags and hint of a report."""
        flags = abi.OP_NO_RETRY if no_retry else 0
        return (flags, 0) if hint_ns is None else (flags | abi.OP_HINT, hint_ns)

    def waits_to_begin(self):
        """Whether BEGIN is to be sent when the deadline has come."""
        return self.verdict == Verdict.RETRY and self.fields["flags"] & abi.OP_READMIT

    def admit(self):
        """Sleep until the next attempt may start: GO or RETRY, now, or a stop."""
        if self.verdict != Verdict.RETRY:
            self.begin()
        while not self.verdict.is_stop:
            clock.sleep_until(self.policy.clock, self.deadline_ns)
            if not self.waits_to_begin():
                break
            self.begin()
        return self.verdict


class Attempt:
    """One attempt of a loop: a context manager, which reports what becomes of its block."""

    def __init__(self, series):
        self.series = series
        self.number = series.operation.attempt + 1

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _traceback):
        return self.series.finished(error)


class Series:
    """The attempts of one operation, as a loop makes them."""

    def __init__(self, operation, classify):
        self.operation = operation
        self.classify = classify
        self.last = None
        self.under_way = self.over = False

    def __del__(self):
        if self.under_way:
            self.finished(GeneratorExit())

    @property
    def verdict(self):
        """The last one; after the loop it says how that ended."""
        return self.operation.verdict

    def ready(self):
        """Whether there is another attempt to be asked for."""
        if self.under_way:
            raise RuntimeError("the attempt was not made: write \"with attempt:\" around it")
        return not self.over

    def admitted(self, verdict):
        """What admission came to: the next attempt or, of a stop, the exception."""
        if not verdict.is_stop:
            self.under_way = True
            return Attempt(self)
        error, self.last, self.over = self.last, None, True
        if error is None:
            raise Stopped(verdict, self.operation.deadline_ns)
        raise self.noted(error, verdict)

    def noted(self, error, verdict):
        """The exception of the last attempt, with the reason for which there is no other."""
        count = self.operation.attempt + 1
        error.add_note(f"kretry: {verdict} after {count} attempt{'s' * (count > 1)}: {REASONS[verdict]}")
        return error

    def finished(self, error):
        """Report the attempt. True: its exception is dealt with, there will be another."""
        self.under_way, self.over, self.last = False, True, None
        if error is None:
            # What has succeeded does not fail for want of a report.
            with contextlib.suppress(OSError):
                self.operation.ok()
            return False
        verdict = self.judged(error)
        if verdict is None:
            return False
        if verdict.is_stop:
            self.noted(error, verdict)
            return False
        self.over, self.last = False, error
        return True

    def judged(self, error):
        """The verdict on a failure; None for what is none, or where nobody answers: then there is no retry."""
        failure = None
        try:
            if isinstance(error, Exception):
                failure = self.classify(error)
                failure = failure if failure is None else failure_of(failure)
        finally:
            if failure is None:
                with contextlib.suppress(OSError):
                    self.operation.cancelled()
        if failure is None:
            return None
        try:
            return self.failed(failure)
        except OSError as trouble:
            error.add_note(f"kretry: no verdict: {trouble}")
            return None

    def failed(self, failure):
        """Report it."""
        return self.operation.report(failure.event, *self.operation.said(failure.hint_ns, failure.no_retry))


class Attempts(Series):
    """An iterator of attempts that sleeps between them."""

    def __iter__(self):
        return self

    def __next__(self):
        if not self.ready():
            raise StopIteration
        return self.admitted(self.operation.admit())


def attempts(policy, key, idempotent, classify):
    """The loop of a new operation."""
    return Attempts(Operation(policy, key, idempotent), classify)


def aio_attempts(policy, key, idempotent, classify):
    """The same for asyncio, which is loaded only where it is used."""
    from .aio import AioAttempts, AioOperation  # pylint: disable=import-outside-toplevel
    return AioAttempts(AioOperation(policy, key, idempotent), classify)
