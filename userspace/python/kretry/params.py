# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Parameters of a policy from keyword arguments, with the names and defaults of policy files."""

import difflib

from . import abi, units
from .rules import problem

DURATION, TOKENS, RATIO, FACTOR, COUNT = units.duration, units.tokens, units.ratio, units.factor, units.count
PARTS = ("budget", "breaker", "pacing")


class Flag:
    """One bit of a field."""

    def __init__(self, bit):
        self.bit = bit


def choice(names):
    """One of these names."""
    def parse(value):
        if value not in names:
            raise ValueError(f"{value!r}: one of {', '.join(names)}")
        return names[value]
    return parse


# Of each setting the field of struct kretry_policy and how its value is read.
SETTINGS = {
    "max_retries": ("max_retries", units.limit),
    "max_elapsed": ("max_elapsed_ns", DURATION),
    "reset_after": ("reset_after_ns", DURATION),
    "slack": ("slack_ns", DURATION),
    "clock": ("clockid", choice({"monotonic": abi.CLOCK_MONOTONIC, "boottime": abi.CLOCK_BOOTTIME})),
    "linger": ("linger_ns", DURATION),
    "strategy": ("strategy", choice(abi.STRATEGIES)),
    "base": ("base_ns", DURATION),
    "base_throttled": ("base_throttled_ns", DURATION),
    "cap": ("cap_ns", DURATION),
    "floor": ("floor_ns", DURATION),
    "multiplier": ("multiplier_ppm", FACTOR),
    "table": ("table_ns", units.table),
    "jitter": ("jitter", choice(abi.JITTERS)),
    "jitter_ratio": ("jitter_ppm", RATIO),
    "hint_limit": ("hint_limit_ns", DURATION),
    "hint_over_own": ("hint_over_own_ns", DURATION),
    "hint_clamp": ("flags", Flag(abi.HINT_CLAMP)),
    "hint_max": ("flags", Flag(abi.HINT_MAX)),
    "hint_exact": ("flags", Flag(abi.HINT_EXACT)),
    "hint_shared": ("flags", Flag(abi.HINT_SHARED)),
    "assume_idempotent": ("flags", Flag(abi.ASSUME_IDEMPOTENT)),
    "budget.capacity": ("budget.capacity_utok", TOKENS),
    "budget.initial": ("budget.initial_utok", TOKENS),
    "budget.reserve_cap": ("budget.reserve_cap_utok", TOKENS),
    "budget.refill_per_s": ("budget.refill_utok_per_s", TOKENS),
    "budget.deposit_request": ("budget.deposit_request_utok", TOKENS),
    "budget.deposit_first_success": ("budget.deposit_first_success_utok", TOKENS),
    "budget.deposit_retry_success": ("budget.deposit_retry_success_utok", TOKENS),
    "budget.drain_per_failure": ("budget.drain_per_failure_utok", TOKENS),
    "budget.cost_transient": ("budget.cost_transient_utok", TOKENS),
    "budget.cost_throttled": ("budget.cost_throttled_utok", TOKENS),
    "budget.cost_unknown": ("budget.cost_unknown_utok", TOKENS),
    "budget.admit_above": ("budget.admit_above_utok", TOKENS),
    "budget.window": ("budget.window_ns", DURATION),
    "budget.refund_last": ("budget.flags", Flag(0x1)),
    "breaker.consecutive": ("breaker.consecutive", lambda value: COUNT(value, 65535)),
    "breaker.ratio": ("breaker.ratio_ppm", RATIO),
    "breaker.slow_ratio": ("breaker.slow_ppm", RATIO),
    "breaker.slow": ("breaker.slow_ns", DURATION),
    "breaker.min_calls": ("breaker.min_calls", COUNT),
    "breaker.window": ("breaker.window_ns", DURATION),
    "breaker.window_calls": ("breaker.window_calls", COUNT),
    "breaker.min_reporters": ("breaker.min_reporters", lambda value: COUNT(value, 8)),
    "breaker.reporters_uid": ("breaker.flags", Flag(0x1)),
    "breaker.throttled": ("breaker.throttled", choice(abi.THROTTLED_AS)),
    "breaker.throttled_half_open": ("breaker.throttled_half_open", choice(abi.THROTTLED_AS)),
    "breaker.open": ("breaker.open_ns", DURATION),
    "breaker.open_cap": ("breaker.open_cap_ns", DURATION),
    "breaker.open_growth": ("breaker.open_growth_ppm", FACTOR),
    "breaker.open_jitter": ("breaker.open_jitter_ppm", RATIO),
    "breaker.probes": ("breaker.probes", lambda value: COUNT(value, 255)),
    "breaker.probe_timeout": ("breaker.probe_timeout_ns", DURATION),
    "breaker.successes_to_close": ("breaker.successes_to_close", lambda value: COUNT(value, 255)),
    "breaker.half_open_ratio": ("breaker.half_open_ppm", RATIO),
    "breaker.ramp": ("breaker.ramp_ns", DURATION),
    "breaker.metrics_only": ("breaker.flags", Flag(0x2)),
    "breaker.wait_open": ("flags", Flag(abi.WAIT_OPEN)),
    "pacing.every": ("pacing.pace_ns", DURATION),
    "pacing.horizon": ("pacing.horizon_ns", DURATION),
    "pacing.all": ("flags", Flag(abi.PACE_ALL)),
    "host_wide": ("open_flags", Flag(abi.OPEN_GLOBAL)),
    "uid": ("uid", COUNT),
    "gid": ("gid", COUNT),
    "mode": ("mode", units.mode),
}
SHARED_COSTS = ("budget.cost_transient", "budget.cost_throttled", "budget.cost_unknown")


def flatten(settings):
    """budget={"capacity": 10} is budget.capacity=10, and global is a word of Python's own."""
    flat = {}
    for key, value in settings.items():
        key = "host_wide" if key == "global" else key
        if key in PARTS:
            if not hasattr(value, "items"):
                raise ValueError(f"{key}: give its settings: {key}=dict(...)")
            flat.update({f"{key}.{inner}": inner_value for inner, inner_value in value.items()})
        else:
            flat[key] = value
    cost = flat.pop("budget.cost", None)
    return flat if cost is None else dict.fromkeys(SHARED_COSTS, cost) | flat


def near(key):
    """What a misspelt key may have meant."""
    found = difflib.get_close_matches(key, SETTINGS, 1)
    return f": did you mean {found[0]}?" if found else ": see README.md, \"Settings\""


class Draft:
    """The fields of a policy in the making, and which settings were given."""

    def __init__(self, settings):
        self.fields = {"clockid": abi.CLOCK_MONOTONIC, "max_retries": 4, "hint_limit_ns": 60 * 10**9,
                       "strategy": abi.STRATEGIES["exponential"], "jitter": abi.JITTERS["full"],
                       "multiplier_ppm": 2 * abi.PPM, "base_ns": 10**8, "cap_ns": 20 * 10**9}
        self.given = set()
        for key, value in flatten(settings).items():
            self.set(key, value)

    def set(self, key, value):
        """One setting, as it was given."""
        if key not in SETTINGS:
            raise ValueError(f"{key}: no such setting{near(key)}")
        field, parse = SETTINGS[key]
        try:
            if isinstance(parse, Flag):
                bits = self.get(field) & ~parse.bit
                self.fields[field] = bits | (parse.bit if units.flag(value) else 0)
            else:
                self.fields[field] = parse(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{key}: {error}") from None
        self.given.add(key)

    def get(self, field):
        """Its value so far."""
        return self.fields.get(field, 0)

    def default(self, key, value):
        """Where it was not given."""
        field = SETTINGS[key][0]
        if key not in self.given and not self.get(field):
            self.fields[field] = value

    def clear(self, key):
        """What belongs to another strategy, unless it was given: then it is told."""
        if key not in self.given:
            self.fields[SETTINGS[key][0]] = 0

    # -------- what follows from what was given --------

    def settle_backoff(self):
        """The strategy and what it has no use for."""
        table = self.get("table_ns")
        if table and "strategy" not in self.given:
            self.fields["strategy"] = abi.STRATEGIES["table"]
        strategy, jitter = self.fields["strategy"], self.fields["jitter"]
        if strategy == abi.STRATEGIES["exponential"]:
            self.default("multiplier", 2 * abi.PPM)
        else:
            self.clear("multiplier")
        if strategy == abi.STRATEGIES["table"]:
            self.clear("base")
            self.clear("base_throttled")
            if "cap" not in self.given and table:
                self.fields["cap_ns"] = table[-1]
        if strategy in (abi.STRATEGIES["decorrelated"], abi.STRATEGIES["slotted"]):
            self.clear("jitter")
        if jitter not in (abi.JITTERS["proportional"], abi.JITTERS["additive"]):
            self.clear("jitter_ratio")
        if self.get("base_ns") > self.get("cap_ns") and "cap" not in self.given:
            self.fields["cap_ns"] = self.fields["base_ns"]
        if self.get("base_ns") > self.get("cap_ns") and "base" not in self.given:
            self.fields["base_ns"] = self.fields["cap_ns"]
        self.fields["table_len"] = len(table or ())

    def settle_budget(self):
        """What a bucket that has a size has besides."""
        if not self.get("budget.capacity_utok"):
            return
        self.default("budget.initial", self.fields["budget.capacity_utok"])
        if self.get("budget.refill_utok_per_s"):
            self.default("budget.reserve_cap", self.fields["budget.initial_utok"])
        if not self.get("budget.drain_per_failure_utok"):
            for key in SHARED_COSTS:
                self.default(key, abi.UTOK)

    def settle_breaker(self):
        """What a breaker that has a rule has besides, and the rest."""
        if any(self.get(f"breaker.{rule}") for rule in ("consecutive", "ratio_ppm", "slow_ppm")):
            self.default("breaker.probes", 1)
            self.default("breaker.probe_timeout", 60 * 10**9)
            self.default("breaker.open_cap", self.get("breaker.open_ns"))
        if self.get("pacing.pace_ns"):
            self.default("pacing.horizon", 60 * 10**9)
        if self.get("open_flags") & abi.OPEN_GLOBAL:
            self.default("mode", 0o666)


def parse_name(name):
    """A name as the ABI has it."""
    data = name.encode() if isinstance(name, str) else bytes(name)
    if not 0 < len(data) < abi.NAME_MAX or 0 in data:
        raise ValueError(f"{name!r}: a name has 1 to {abi.NAME_MAX - 1} bytes, none of them 0")
    return data


def parameters(settings, name=None):
    """The fields of struct kretry_policy; ValueError says what is wrong with the settings."""
    draft = Draft(settings)
    draft.settle_backoff()
    draft.settle_budget()
    draft.settle_breaker()
    if name is not None:
        draft.fields["name"] = parse_name(name)
    elif draft.get("linger_ns") or draft.get("open_flags"):
        key = "linger" if draft.get("linger_ns") else "host_wide"
        raise ValueError(f"{key}: only for a policy with a name: use create(name, ...)")
    found = problem(draft.fields)
    if found:
        raise ValueError(f"{found[0]}: {found[1]}")
    return draft.fields
