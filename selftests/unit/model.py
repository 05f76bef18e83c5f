# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What kretry promises, written from its rules and not from its code.

Integers are exact. A multiplier's power that has too many digits to write out is held between two
bounds. Where the code may round, the model gives a range.
"""

from collections import namedtuple

NS_MAX = (1 << 63) - 1
PPM = 1_000_000
NO_LIMIT = U32_MAX = (1 << 32) - 1

EINVAL, EOPNOTSUPP = 22, 95

BEGIN, OK, CANCELLED, TRANSIENT, THROTTLED, UNKNOWN, PERMANENT = range(1, 8)
GO, RETRY, DONE = 1, 2, 3
STOP_PERMANENT, STOP_UNSAFE, STOP_LIMIT, STOP_HINT, STOP_ELAPSED = range(16, 21)

IDEMPOTENT, HINT, NO_RETRY, QUEUE, AFTER_THROTTLED, AFTER_UNKNOWN = 1, 2, 4, 8, 16, 32
LASTING = IDEMPOTENT | QUEUE
KEPT = LASTING | AFTER_THROTTLED | AFTER_UNKNOWN
CLAMPED = 0x400
ASSUME_IDEMPOTENT, HINT_CLAMP, HINT_MAX, HINT_EXACT = 1, 2, 4, 8
HINT_SHARED, WAIT_OPEN, PACE_ALL = 16, 32, 64
POLICY_FLAGS = 0x7F

FIXED, LINEAR, EXPONENTIAL, DECORRELATED, SLOTTED, TABLE = range(1, 7)
NONE, FULL, EQUAL, PROPORTIONAL, ADDITIVE = range(5)

Policy = namedtuple(
    "Policy",
    "size id flags open_flags clockid max_retries uid gid mode reserved linger_ns name"
    " max_elapsed_ns reset_after_ns slack_ns hint_limit_ns hint_over_own_ns"
    " backoff budget breaker pacing",
)
Backoff = namedtuple(
    "Backoff",
    "strategy jitter table_len reserved multiplier_ppm jitter_ppm reserved2"
    " base_ns base_throttled_ns cap_ns floor_ns table_ns",
)
Budget = namedtuple(
    "Budget",
    "capacity initial reserve_cap refill deposit_request deposit_first_success"
    " deposit_retry_success drain cost_transient cost_throttled cost_unknown admit_above window_ns"
    " max_retrying retrying_ppm flags reserved",
)
Breaker = namedtuple(
    "Breaker",
    "consecutive min_calls ratio_ppm slow_ppm half_open_ppm open_growth_ppm open_jitter_ppm"
    " window_calls probes successes_to_close min_reporters throttled throttled_half_open reserved"
    " flags open_ns open_cap_ns window_ns probe_timeout_ns slow_ns ramp_ns",
)
Pacing = namedtuple("Pacing", "pace_ns horizon_ns")
Op = namedtuple(
    "Op",
    "policy event verdict flags key user_data hint_ns attempt generation"
    " start_ns delay_ns deadline_ns",
)

TOP = 17  # fields before the backoff
PLAIN = 11  # fields of the backoff before its table
BUDGET, BREAKER = 17, 21  # fields of each


def policy(fields, rest=(0,) * (BUDGET + BREAKER + 2)):
    """From the fields of struct kretry_policy in order; rest is what follows the backoff."""
    backoff = Backoff(*fields[TOP : TOP + PLAIN], fields[TOP + PLAIN :])
    budget, breaker = Budget(*rest[:BUDGET]), Breaker(*rest[BUDGET : BUDGET + BREAKER])
    return Policy(*fields[:TOP], backoff, budget, breaker, Pacing(*rest[BUDGET + BREAKER :]))


# -------- what a policy may say --------


def table_is_valid(b):
    used, padding = b.table_ns[: b.table_len], b.table_ns[b.table_len :]
    if b.strategy != TABLE:
        return b.table_len == 0 and not any(padding)
    return (
        1 <= b.table_len <= 64
        and list(used) == sorted(used)
        and used[0] <= b.cap_ns
        and used[-1] <= NS_MAX
        and not any(padding)
        and b.base_ns == b.base_throttled_ns == 0
    )


def slots_are_valid(b):
    """At least one multiple of each base lies in the range from the floor to the cap."""
    bases = [b.base_ns, b.base_throttled_ns or b.base_ns]
    return all(base and -(-b.floor_ns // base) * base <= b.cap_ns for base in bases)


def backoff_is_valid(b):
    most_ppm = {PROPORTIONAL: PPM, ADDITIVE: U32_MAX}.get(b.jitter, 0)
    multiplier = range(PPM, U32_MAX + 1) if b.strategy == EXPONENTIAL else (0,)
    return (
        FIXED <= b.strategy <= TABLE
        and b.jitter <= ADDITIVE
        and not (b.strategy in (DECORRELATED, SLOTTED) and b.jitter != NONE)
        and b.multiplier_ppm in multiplier
        and b.jitter_ppm <= most_ppm
        and b.reserved == b.reserved2 == 0
        and b.cap_ns <= NS_MAX
        and max(b.base_ns, b.base_throttled_ns, b.floor_ns) <= b.cap_ns
        and table_is_valid(b)
        and (b.strategy != SLOTTED or slots_are_valid(b))
    )


def naming_is_valid(p):
    name, _, padding = p.name.partition(b"\0")
    if len(name) == 64 or padding.strip(b"\0") or p.open_flags > 3 or p.linger_ns > NS_MAX:
        return False
    if p.mode & ~0o666 or (not name and (p.linger_ns or p.open_flags & 1)):
        return False
    return bool(p.open_flags & 1) or not (p.uid or p.gid or p.mode)


def window_is_valid(ns):
    return ns == 0 or 10 <= ns <= NS_MAX


def budget_is_valid(b):
    if b.capacity == 0:
        return not any(b)
    return (
        max(b[:13]) <= NS_MAX
        and max(b.initial, b.reserve_cap) <= b.capacity
        and window_is_valid(b.window_ns)
        and b.retrying_ppm <= PPM
        and b.flags <= 1
        and b.reserved == 0
    )


def rules_are_valid(k):
    """What needs a window has one, which can hold the calls that the ratio rules need."""
    if not (k.ratio_ppm or k.slow_ppm or k.min_reporters > 1):
        return not (k.window_ns or k.window_calls or k.min_calls or k.slow_ns)
    if bool(k.window_ns) == bool(k.window_calls):
        return False
    holds = 1 << 15 if k.window_ns else k.window_calls // 10 * 10
    return (
        max(k.ratio_ppm, k.slow_ppm) <= PPM
        and window_is_valid(k.window_ns)
        and (k.window_calls == 0 or 10 <= k.window_calls <= 655350)
        and k.min_calls <= holds
        and k.slow_ns <= (NS_MAX if k.slow_ppm else 0)
    )


def breaker_is_valid(k):
    if k.probes == 0:
        return not any(k)
    return (
        rules_are_valid(k)
        and k.consecutive <= 65535
        and k.half_open_ppm <= PPM
        and (k.open_growth_ppm == 0 or k.open_growth_ppm >= PPM)
        and k.open_jitter_ppm <= PPM // 2
        and max(k.probes, k.successes_to_close) <= 255
        and k.min_reporters <= 8
        and max(k.throttled, k.throttled_half_open) <= 2
        and k.reserved == 0
        and k.flags <= 3
        and 0 < k.open_ns <= k.open_cap_ns <= NS_MAX
        and 0 < k.probe_timeout_ns <= NS_MAX
        and k.ramp_ns <= NS_MAX
    )


def sharing_is_valid(p):
    if p.flags & WAIT_OPEN and not p.breaker.probes:
        return False
    if p.pacing.pace_ns == 0 and (p.pacing.horizon_ns or p.flags & PACE_ALL):
        return False
    return max(p.pacing) <= NS_MAX and budget_is_valid(p.budget) and breaker_is_valid(p.breaker)


def check(p):
    durations = p.max_elapsed_ns, p.reset_after_ns, p.slack_ns, p.hint_limit_ns, p.hint_over_own_ns
    valid = (
        p.flags <= POLICY_FLAGS
        and p.clockid in (1, 7)
        and p.reserved == 0
        and max(durations) <= NS_MAX
        and naming_is_valid(p)
        and backoff_is_valid(p.backoff)
        and sharing_is_valid(p)
    )
    if not valid:
        return -EINVAL
    return -EOPNOTSUPP if p.budget.max_retrying or p.budget.retrying_ppm else 0


# -------- delays --------


def base(b, event):
    if b.strategy == TABLE:
        return b.table_ns[0]
    return b.base_throttled_ns if event == THROTTLED and b.base_throttled_ns else b.base_ns


def power_bounds(multiplier, n):
    """Integers low, high, shift with low <= (multiplier / PPM)^n * 2^shift <= high."""
    bits = 320
    low = high = 1 << bits
    factor_low = (multiplier << bits) // PPM
    factor_high = factor_low + 1
    for digit in bin(n)[2:]:
        low, high = low * low >> bits, (high * high >> bits) + 1
        if digit == "1":
            low, high = low * factor_low >> bits, (high * factor_high >> bits) + 1
    return low, high, bits


def exponential(first, multiplier, n):
    """The bounds of first * multiplier^n, rounded down.

    2.0 is exact. Else the power may be too large by n parts in 2^61, never too small.
    """
    above = multiplier - PPM
    if first == 0 or above == 0 or n == 0:
        return first, first
    # (1 + x)^(64 / x) >= 2^64 for x <= 1, and from x = 1 on 64 factors do.
    if n * min(above, PPM) >= 64 * PPM:
        return NS_MAX, NS_MAX
    if n <= 200:
        low = high = first * multiplier**n
        unit = PPM**n
    else:
        low, high, bits = power_bounds(multiplier, n)
        low, high, unit = first * low, first * high, 1 << bits
    slack = 0 if multiplier == 2 * PPM else n
    return low // unit, (high * ((1 << 61) + slack) >> 61) // unit


def slots(b, first, n):
    low = -(-b.floor_ns // first)
    return low, max(low, min(2 ** min(n + 1, 10) - 1, b.cap_ns // first))


def ceiling(b, first, n):
    """The bounds between which the ceiling is."""
    if b.strategy == SLOTTED:
        low = high = slots(b, first, n)[1] * first
    elif b.strategy == EXPONENTIAL:
        low, high = exponential(first, b.multiplier_ppm, n)
    else:
        low = high = {
            FIXED: first,
            LINEAR: first * (n + 1),
            DECORRELATED: NS_MAX,
            TABLE: b.table_ns[min(n, b.table_len - 1)],
        }[b.strategy]
    return tuple(max(min(x, b.cap_ns), b.floor_ns) for x in (low, high))


def uniform(low, high, rnd):
    return low + (rnd * (high - low + 1) >> 64)


def jitter_range(b, c):
    if b.jitter == NONE:
        return c, c
    if b.jitter == FULL:
        return b.floor_ns, c
    if b.jitter == EQUAL:
        return max(c - c // 2, b.floor_ns), c
    width = c * b.jitter_ppm // PPM
    slide = max(0, c + width - b.cap_ns)
    low = c - slide - (width if b.jitter == PROPORTIONAL else 0)
    return max(low, b.floor_ns, min(c, 1)), c + width - slide


def delay(b, op, rnd, c):
    first = base(b, op.event)
    if b.strategy == SLOTTED:
        return uniform(*slots(b, first, op.attempt), rnd) * first
    if b.strategy == DECORRELATED:
        high = min(b.cap_ns, 3 * max(op.delay_ns, first))
        return uniform(max(first, b.floor_ns), max(high, b.floor_ns), rnd)
    return uniform(*jitter_range(b, c), rnd)


def draws(b):
    return b.jitter != NONE or b.strategy in (DECORRELATED, SLOTTED)


def hinted(p, op, own, rnd, c):
    hint = min(op.hint_ns, NS_MAX, p.hint_limit_ns or NS_MAX)
    wait = hint
    if not p.flags & HINT_EXACT:
        if hint < base(p.backoff, op.event):
            wait = max(own, hint)
        elif draws(p.backoff):
            wait = hint + uniform(0, min(c, hint), rnd)
    if p.flags & HINT_MAX:
        wait = max(wait, own)
    if p.hint_over_own_ns:
        wait = min(wait, own + p.hint_over_own_ns)
    return min(wait, NS_MAX)


# -------- decisions --------


def op_error(op):
    failure = TRANSIENT <= op.event <= PERMANENT
    invalid = (
        not BEGIN <= op.event <= PERMANENT
        or op.flags & 0xC0
        or (op.flags & (HINT | NO_RETRY) and not failure)
        or (op.hint_ns and not op.flags & HINT)
    )
    return -EINVAL if invalid else 0


def refusal(p, op):
    """The first reason against a retry that does not depend on its delay."""
    idempotent = op.flags & IDEMPOTENT or p.flags & ASSUME_IDEMPOTENT
    limit = p.hint_limit_ns
    too_long = op.flags & HINT and limit and op.hint_ns > limit and not p.flags & HINT_CLAMP
    if op.event == PERMANENT:
        return STOP_PERMANENT
    if op.event == UNKNOWN and not idempotent:
        return STOP_UNSAFE
    if p.max_retries != NO_LIMIT and op.attempt >= p.max_retries:
        return STOP_LIMIT
    if op.flags & NO_RETRY or too_long:
        return STOP_HINT
    return 0


def failed(p, op, answer, start, flags):
    verdict = refusal(p, op)
    stopped = op._replace(verdict=verdict, flags=flags, start_ns=start, deadline_ns=0)
    if verdict:
        return stopped
    wait = delay(p.backoff, op, answer.rnd, answer.ceiling)
    if op.flags & HINT:
        wait = hinted(p, op, wait, answer.rnd, answer.ceiling)
    deadline = min(answer.now + wait, NS_MAX)
    if too_late(p, start, deadline):
        return stopped._replace(verdict=STOP_ELAPSED)
    return granted(p, op, start, flags, wait, deadline)


def too_late(p, start, deadline):
    return p.max_elapsed_ns and deadline > min(start + p.max_elapsed_ns, NS_MAX)


def granted(p, op, start, flags, wait, deadline):
    """What a refund would return is kept in the op."""
    after = {THROTTLED: AFTER_THROTTLED, UNKNOWN: AFTER_UNKNOWN}.get(op.event, 0)
    after *= p.budget.flags & 1
    sooner = op.flags & HINT and wait < min(op.hint_ns, NS_MAX)
    return op._replace(
        verdict=RETRY,
        flags=flags & LASTING | after | (CLAMPED if sooner else 0),
        attempt=min(op.attempt + 1, U32_MAX),
        start_ns=start,
        delay_ns=wait,
        deadline_ns=deadline,
    )


def finished(op, flags):
    flags &= LASTING
    return op._replace(verdict=DONE, flags=flags, attempt=0, start_ns=0, delay_ns=0, deadline_ns=0)


def keeps_backoff(p, op, now):
    return bool(op.start_ns) and max(0, now - op.deadline_ns) < p.reset_after_ns


def decide(p, op, answer):
    """What kretry_decide() returns, and what it makes of the op."""
    error = op_error(op)
    if error:
        return error, op
    flags = op.flags & KEPT
    start = min(op.start_ns or answer.now, answer.now)
    if op.event == BEGIN:
        op = op._replace(verdict=GO, flags=flags, start_ns=start)
        op = op._replace(deadline_ns=answer.now, generation=1)
    elif op.event == OK and keeps_backoff(p, op, answer.now):
        op = op._replace(verdict=DONE, flags=flags, start_ns=start)
    elif op.event in (OK, CANCELLED):
        op = finished(op, flags)
    else:
        op = failed(p, op, answer, start, flags)
    return 0, op._replace(event=0, hint_ns=0)
