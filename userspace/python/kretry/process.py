# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The decision without the module: what a policy says that shares nothing with anybody.

Delays, limits and hints are the module's, to the nanosecond. Names, budgets, breakers, pacing and
hint_shared are promises to other processes, which one alone cannot keep: such policies are refused.
"""

import os

from . import abi
from .abi import Event, Verdict

U64 = 2**64
SLOT_DOUBLINGS = 10
# What a policy must not have, by field, and what to call it.
SHARED = {"name": "a name", "budget.capacity_utok": "a budget", "breaker.probes": "a breaker",
          "pacing.pace_ns": "pacing"}


def needs_module(fields):
    """What in the policy only the module can do, or None."""
    if fields.get("flags", 0) & abi.HINT_SHARED:
        return "hint_shared"
    return next((what for field, what in SHARED.items() if fields.get(field)), None)


def random_u64():
    """From the kernel at the time of the request: what a process keeps is copied by fork()."""
    return int.from_bytes(os.urandom(8), "little")


def uniform(low, high, rnd):
    """A number from low to high, both included."""
    return low + (rnd * (high - low + 1) >> 64)


# -------- the delay --------

def base_of(policy, event):
    """The first delay, after this failure."""
    if policy["strategy"] == abi.STRATEGIES["table"]:
        return policy["table_ns"][0]
    if event == Event.THROTTLED and policy.get("base_throttled_ns"):
        return policy["base_throttled_ns"]
    return policy.get("base_ns", 0)


def multiply(power, other):
    """Of numbers from 1.0 on: (mantissa with its top bit set, exponent), cut to 64 bits."""
    product, exponent = power[0] * other[0], power[1] + other[1]
    return (product >> 64, exponent + 1) if product >> 127 else (product >> 63, exponent)


def compound(base, ppm, n):
    """base * multiplier^n by squaring, until it is above everything."""
    if ppm == abi.PPM or not base or not n:
        return base
    exponent = (ppm // abi.PPM).bit_length() - 1
    factor = ((ppm << 64) // abi.PPM >> exponent + 1, exponent)
    power = (1 << 63, 0)
    for bit in f"{n:b}":
        power = multiply(power, power)
        if bit == "1":
            power = multiply(power, factor)
        if power[1] > 62:
            return abi.NS_MAX
    # The cuts have made it too small by less than 4n of its last bits.
    mantissa = min(power[0] + 4 * n, U64 - 1)
    return min(base * mantissa >> 63 - power[1], abi.NS_MAX)


def slots(policy, base, n):
    """The least and the most slots that SLOTTED may draw."""
    last = (1 << min(n + 1, SLOT_DOUBLINGS)) - 1
    low = -(-policy.get("floor_ns", 0) // base)
    return low, max(low, min(last, policy["cap_ns"] // base))


def ceiling(policy, base, n):
    """Saturated, capped, and nothing drawn yet."""
    strategy, cap = policy["strategy"], policy["cap_ns"]
    if strategy == abi.STRATEGIES["linear"]:
        value = base * (n + 1)
    elif strategy == abi.STRATEGIES["exponential"]:
        double = policy["multiplier_ppm"] == 2 * abi.PPM
        value = base << min(n, 63) if double else compound(base, policy["multiplier_ppm"], n)
    elif strategy == abi.STRATEGIES["decorrelated"]:
        value = cap
    elif strategy == abi.STRATEGIES["slotted"]:
        value = slots(policy, base, n)[1] * base
    elif strategy == abi.STRATEGIES["table"]:
        value = policy["table_ns"][min(n, policy["table_len"] - 1)]
    else:
        value = base
    return max(min(value, cap), policy.get("floor_ns", 0))


def window(policy, top):
    """The range that jitter draws from, moved rather than cut, so that nothing piles up at the cap."""
    jitter, floor = policy.get("jitter", 0), policy.get("floor_ns", 0)
    if jitter == abi.JITTERS["full"]:
        return floor, top
    low = high = top
    share = min(top * policy.get("jitter_ppm", 0) // abi.PPM, abi.NS_MAX)
    if jitter == abi.JITTERS["equal"]:
        low = top - top // 2
    elif jitter == abi.JITTERS["proportional"]:
        low, high = top - share, top + share
    elif jitter == abi.JITTERS["additive"]:
        high = top + share
    excess = max(high - policy["cap_ns"], 0)
    return max(low - excess, floor, min(top, 1)), high - excess


def delay_of(policy, event, op, rnd):
    """The own delay of the next retry."""
    base, n = base_of(policy, event), op["attempt"]
    if policy["strategy"] == abi.STRATEGIES["decorrelated"]:
        low = max(base, policy.get("floor_ns", 0))
        return uniform(low, max(low, min(3 * max(op["delay_ns"], base), policy["cap_ns"])), rnd)
    if policy["strategy"] == abi.STRATEGIES["slotted"]:
        return uniform(*slots(policy, base, n), rnd) * base
    return uniform(*window(policy, ceiling(policy, base, n)), rnd)


# -------- the server's word --------

def hint_refused(policy, op):
    """A "no", or a longer wait than the policy takes."""
    if op["flags"] & abi.OP_NO_RETRY:
        return True
    limit = policy.get("hint_limit_ns", 0)
    return bool(op["flags"] & abi.OP_HINT and limit and op["hint_ns"] > limit
                and not policy.get("flags", 0) & abi.HINT_CLAMP)


def draws(policy):
    """Whether the policy wants its callers apart."""
    return policy.get("jitter", 0) or policy["strategy"] in (abi.STRATEGIES["decorrelated"],
                                                              abi.STRATEGIES["slotted"])


def hinted(policy, event, op, own, rnd):
    """It goes before the own delay and over the cap, with a spread."""
    flags = policy.get("flags", 0)
    hint = min(op["hint_ns"], policy.get("hint_limit_ns", 0) or abi.NS_MAX, abi.NS_MAX)
    base, wait = base_of(policy, event), hint
    if not flags & abi.HINT_EXACT:
        if hint < base:
            wait = max(own, hint)
        elif draws(policy):
            spread = min(ceiling(policy, base, op["attempt"]), hint)
            wait = min(hint + uniform(0, spread, rnd), abi.NS_MAX)
    if flags & abi.HINT_MAX:
        wait = max(wait, own)
    if policy.get("hint_over_own_ns"):
        wait = min(wait, own + policy["hint_over_own_ns"])
    return wait


# -------- the verdict --------

def finish(op):
    """Over: ready for the next operation."""
    op.update(attempt=0, start_ns=0, delay_ns=0, deadline_ns=0, flags=op["flags"] & ~abi.OP_AFTER)
    return Verdict.DONE


def succeed(policy, op, now):
    """A connection that opens and dies at once keeps its backoff."""
    took = max(now - op["deadline_ns"], 0)
    if op["start_ns"] and took < policy.get("reset_after_ns", 0):
        return Verdict.DONE
    return finish(op)


def refusal(policy, event, op):
    """The reason for which there is no retry, before any delay is looked at."""
    idempotent = op["flags"] & abi.OP_IDEMPOTENT or policy.get("flags", 0) & abi.ASSUME_IDEMPOTENT
    most = policy["max_retries"]
    if event == Event.PERMANENT:
        return Verdict.STOP_PERMANENT
    if event == Event.UNKNOWN and not idempotent:
        return Verdict.STOP_UNSAFE
    if op["attempt"] >= most != abi.NO_LIMIT:
        return Verdict.STOP_LIMIT
    return Verdict.STOP_HINT if hint_refused(policy, op) else None


def fail(policy, event, op, now, rnd):
    """The first reason that there is, or a retry."""
    op["start_ns"] = op["start_ns"] or now
    op["deadline_ns"] = 0
    stop = refusal(policy, event, op)
    if stop:
        return stop
    delay = own = delay_of(policy, event, op, rnd)
    if op["flags"] & abi.OP_HINT:
        delay = hinted(policy, event, op, own, rnd)
    deadline, elapsed = min(now + delay, abi.NS_MAX), policy.get("max_elapsed_ns", 0)
    if elapsed and deadline > min(op["start_ns"] + elapsed, abi.NS_MAX):
        return Verdict.STOP_ELAPSED
    op["flags"] &= ~abi.OP_AFTER
    if op["flags"] & abi.OP_HINT and delay < min(op["hint_ns"], abi.NS_MAX):
        op["flags"] |= abi.OP_CLAMPED
    op.update(deadline_ns=deadline, delay_ns=delay, attempt=min(op["attempt"] + 1, 2**32 - 1))
    return Verdict.RETRY


def decide(policy, op, now, rnd=None):
    """What KRETRY_IOC_STEP does, for the fields of an op."""
    event = op["event"]
    rnd = random_u64() if rnd is None else rnd
    op["flags"] &= abi.OP_IN_MASK
    if event != Event.CANCELLED:
        op["start_ns"] = min(op["start_ns"], now)
    if event == Event.CANCELLED:
        verdict = finish(op)
    elif event == Event.BEGIN:
        op.update(generation=1, deadline_ns=now, start_ns=op["start_ns"] or now)
        verdict = Verdict.GO
    elif event == Event.OK:
        verdict = succeed(policy, op, now)
    else:
        verdict = fail(policy, event, op, now, rnd)
    op.update(verdict=verdict, event=0, hint_ns=0, flags=op["flags"] & ~(abi.OP_HINT | abi.OP_NO_RETRY))
