# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""kretry: retry policies, verdicts and deadlines of /dev/kretry, which all processes of a host share.

    @kretry.retry(base="1s", max_retries=4)
    def fetch(): ...

    with kretry.Kretry() as k:
        policy = k.create("shop", budget={"capacity": 10}, breaker={"consecutive": 3, "open": "5s"})
        for attempt in policy.attempts("https://shop.example:443", idempotent=True):
            with attempt:
                fetch()

asyncio has "async for attempt in policy.aio_attempts()". An Operation does the same step by step. Durations
have a unit ("250ms") or are a datetime.timedelta. Calls that fail raise OSError, settings that are wrong
ValueError, with a text that says what is wrong.
"""

from .abi import Event, Verdict
from .classes import Failure, class_errno, class_exit, class_grpc, class_http, classify
from .decorator import retry
from .device import DEVICE, Kretry, Policy
from .errors import NoModule, Stopped
from .hints import parse_retry_after
from .keys import key
from .operation import Operation

__version__ = "1.0.0"
__all__ = ["DEVICE", "Event", "Failure", "Kretry", "NoModule", "Operation", "Policy", "Stopped", "Verdict",
           "class_errno", "class_exit", "class_grpc", "class_http", "classify", "key", "parse_retry_after", "retry"]
