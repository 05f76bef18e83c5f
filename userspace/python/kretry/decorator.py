# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""@retry: a function whose failures are retried as a policy says."""

import functools
import inspect
import os

from .classes import classify as default_classify
from .device import Policy, default
from .params import parameters, parse_name


class Source:
    """Where a decorator has its policy from. One that is named or described is opened at the first call, and
    anew in a child of fork()."""

    def __init__(self, policy, settings):
        if policy is not None and settings:
            raise ValueError("a policy or settings of one, not both")
        if policy is not None and not isinstance(policy, (Policy, str)):
            raise ValueError(f"{policy!r}: neither a policy nor the name of one: write @retry(...) with what it is")
        self.policy = policy if isinstance(policy, Policy) else None
        self.name = policy if isinstance(policy, str) else None
        self.fields = None if policy is not None else parameters(settings)
        self.pid = None
        if self.name is not None:
            parse_name(self.name)

    def get(self):
        """The policy, in this process."""
        if self.policy is None or self.pid not in (None, os.getpid()):
            kretry = default()
            self.policy = kretry.open(self.name) if self.name is not None else kretry.register(self.fields)
            self.pid = os.getpid()
        return self.policy


def retry(policy=None, *, key=0, idempotent=False, classify=default_classify, **settings):
    """Retry a function, or a coroutine function, as a policy says: a Policy, the name of one, or settings.

        @retry(base="1s", max_retries=4)
        def fetch(): ...

    It returns what the function returns or raises what that raised last, with a note of why it was not called
    again, or Stopped where it was not called at all. classify(exception) says what counts as a failure.
    """
    source = Source(policy, settings)

    def decorate(function):
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def call(*args, **kwargs):
                async for attempt in source.get().aio_attempts(key, idempotent=idempotent, classify=classify):
                    with attempt:
                        return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def call(*args, **kwargs):
                for attempt in source.get().attempts(key, idempotent=idempotent, classify=classify):
                    with attempt:
                        return function(*args, **kwargs)
        return call

    return decorate
