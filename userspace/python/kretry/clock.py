# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Time on a policy's clock."""

import time

from . import abi

# time.sleep() stands still in a suspend: so long CLOCK_BOOTTIME may be ahead of it.
BOOTTIME_STEP = 10**9


def now(clockid):
    """In nanoseconds."""
    return time.clock_gettime_ns(clockid)


def ahead(clockid, deadline_ns):
    """Seconds to sleep before looking again; 0 where the deadline has come."""
    left = max(deadline_ns - now(clockid), 0)
    if clockid == abi.CLOCK_BOOTTIME:
        left = min(left, BOOTTIME_STEP)
    return left / 10**9


def sleep_until(clockid, deadline_ns):
    """Never less."""
    while left := ahead(clockid, deadline_ns):
        time.sleep(left)
