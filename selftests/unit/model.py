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

IDEMPOTENT, HINT, NO_RETRY, QUEUE = 1, 2, 4, 8
CLAMPED = 0x400
ASSUME_IDEMPOTENT, HINT_CLAMP, HINT_MAX, HINT_EXACT = 1, 2, 4, 8
POLICY_FLAGS, POLICY_NOT_BUILT = 0x7F, 0x70

FIXED, LINEAR, EXPONENTIAL, DECORRELATED, SLOTTED, TABLE = range(1, 7)
NONE, FULL, EQUAL, PROPORTIONAL, ADDITIVE = range(5)

Policy = namedtuple(
    "Policy",
    "size id flags open_flags clockid max_retries uid gid mode reserved linger_ns name"
    " max_elapsed_ns reset_after_ns slack_ns hint_limit_ns hint_over_own_ns backoff rest",
)
Backoff = namedtuple(
    "Backoff",
    "strategy jitter table_len reserved multiplier_ppm jitter_ppm reserved2"
    " base_ns base_throttled_ns cap_ns floor_ns table_ns",
)
Op = namedtuple(
    "Op",
    "policy event verdict flags key user_data hint_ns attempt generation"
    " start_ns delay_ns deadline_ns",
)

TOP = 17  # fields before the backoff
PLAIN = 11  # fields of the backoff before its table
BUDGET_FLAGS, BUDGET_RESERVED, BREAKER_RESERVED, BREAKER_FLAGS = 15, 16, 30, 31  # in rest


def policy(fields, rest):
    """From the fields of struct kretry_policy in order; rest is what follows the backoff."""
    backoff = Backoff(*fields[TOP : TOP + PLAIN], fields[TOP + PLAIN :])
    return Policy(*fields[:TOP], backoff, rest)


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
    return bool(name) or not (p.uid or p.gid or p.mode or p.linger_ns or p.open_flags & 1)


def check(p):
    """Of the parts that are not built only flags and reserved fields are looked at."""
    durations = p.max_elapsed_ns, p.reset_after_ns, p.slack_ns, p.hint_limit_ns, p.hint_over_own_ns
    rest = p.rest
    valid = (
        p.flags <= POLICY_FLAGS
        and p.clockid in (1, 7)
        and p.reserved == 0
        and max(durations) <= NS_MAX
        and naming_is_valid(p)
        and backoff_is_valid(p.backoff)
        and rest[BUDGET_FLAGS] <= 1
        and rest[BUDGET_RESERVED] == rest[BREAKER_RESERVED] == 0
        and rest[BREAKER_FLAGS] <= 3
    )
    if not valid:
        return -EINVAL
    unbuilt = any(rest) or p.name[0] or p.open_flags or p.flags & POLICY_NOT_BUILT
    return -EOPNOTSUPP if unbuilt else 0


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
        or op.flags & 0xF0
        or (op.flags & (HINT | NO_RETRY) and not failure)
        or (op.hint_ns and not op.flags & HINT)
    )
    if invalid:
        return -EINVAL
    return -EOPNOTSUPP if op.flags & QUEUE else 0


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
    if p.max_elapsed_ns and deadline > min(start + p.max_elapsed_ns, NS_MAX):
        return stopped._replace(verdict=STOP_ELAPSED)
    sooner = op.flags & HINT and wait < min(op.hint_ns, NS_MAX)
    return op._replace(
        verdict=RETRY,
        flags=flags | (CLAMPED if sooner else 0),
        attempt=min(op.attempt + 1, U32_MAX),
        start_ns=start,
        delay_ns=wait,
        deadline_ns=deadline,
    )


def decide(p, op, answer):
    """What kretry_decide() returns, and what it makes of the op."""
    error = op_error(op)
    if error:
        return error, op
    flags = op.flags & IDEMPOTENT
    start = min(op.start_ns or answer.now, answer.now)
    if op.event == BEGIN:
        op = op._replace(verdict=GO, start_ns=start, deadline_ns=answer.now, generation=1)
    elif op.event in (OK, CANCELLED):
        soon = op.start_ns and p.reset_after_ns and answer.now - op.deadline_ns < p.reset_after_ns
        if op.event == CANCELLED or not soon:
            op = op._replace(attempt=0, start_ns=0, delay_ns=0, deadline_ns=0)
        op = op._replace(verdict=DONE)
    else:
        op = failed(p, op, answer, start, flags)
        flags = op.flags
    return 0, op._replace(event=0, hint_ns=0, flags=flags)
