# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Why a policy would be refused, in words: the module says no more than EINVAL."""

from . import abi


def backoff_rules(get):
    """Of the delays: (broken, setting, why)."""
    cap, base, floor, throttled = get("cap_ns"), get("base_ns"), get("floor_ns"), get("base_throttled_ns")
    table, strategy, jitter = get("table_ns") or (), get("strategy"), get("jitter")
    is_table, grows = strategy == abi.STRATEGIES["table"], strategy == abi.STRATEGIES["exponential"]
    slotted = strategy == abi.STRATEGIES["slotted"]
    draws = slotted or strategy == abi.STRATEGIES["decorrelated"]
    slides = jitter in (abi.JITTERS["proportional"], abi.JITTERS["additive"])
    yield base > cap, "base", "above the cap"
    yield throttled > cap, "base_throttled", "above the cap"
    yield floor > cap, "floor", "above the cap"
    yield is_table and not table, "strategy", "table needs the setting table"
    yield not is_table and table, "table", "only for strategy table"
    yield is_table and base, "base", "strategy table has none"
    yield is_table and throttled, "base_throttled", "strategy table has none"
    yield list(table) != sorted(table), "table", "a delay is shorter than the one before"
    yield is_table and table and table[0] > cap, "cap", "below the first delay of the table"
    yield grows and get("multiplier_ppm") < abi.PPM, "multiplier", "below 1"
    yield not grows and get("multiplier_ppm"), "multiplier", "only for strategy exponential"
    yield draws and jitter, "jitter", "decorrelated and slotted draw by themselves"
    yield not slides and get("jitter_ppm"), "jitter_ratio", "only for proportional and additive"
    yield (jitter == abi.JITTERS["proportional"] and get("jitter_ppm") > abi.PPM, "jitter_ratio",
           "above 100 %")
    yield slotted and not base, "base", "strategy slotted needs one"
    for each in (base, throttled):
        yield slotted and each and -(-floor // each) > cap // each, "floor", "no slot lies between it and the cap"


def budget_rules(get):
    """Of the budget."""
    def part(name):
        return get(f"budget.{name}")
    capacity = part("capacity_utok")
    yield (not capacity and any(part(name[7:]) for name in abi.POLICY.names if name.startswith("budget.")),
           "budget.capacity", "0, but other settings of the budget are not")
    yield part("initial_utok") > capacity, "budget.initial", "above the capacity"
    yield part("reserve_cap_utok") > capacity, "budget.reserve_cap", "above the capacity"
    yield 0 < part("window_ns") < 10, "budget.window", "below 10ns"


def breaker_rules(get):
    """Of the breaker."""
    def part(name):
        return get(f"breaker.{name}")
    on, rates = part("probes"), part("ratio_ppm") or part("slow_ppm")
    window, calls, needed = part("window_ns"), part("window_calls"), part("min_calls")
    windowed = rates or part("min_reporters") > 1
    yield (not on and any(part(name[8:]) for name in abi.POLICY.names if name.startswith("breaker.")),
           "breaker", "it needs consecutive, ratio or slow_ratio, or probes")
    yield on and not part("open_ns"), "breaker.open", "a breaker needs to know for how long"
    yield part("open_cap_ns") < part("open_ns"), "breaker.open_cap", "below breaker.open"
    yield on and not part("probe_timeout_ns"), "breaker.probe_timeout", "0 would lose every probe"
    yield window and calls, "breaker.window_calls", "not besides breaker.window"
    yield (windowed and not window and not calls, "breaker.window",
           "ratio, slow_ratio and min_reporters need it, or window_calls")
    yield (not windowed and (window or calls), "breaker.window" if window else "breaker.window_calls",
           "only with ratio, slow_ratio or min_reporters")
    for name, most in (("ratio", abi.PPM), ("slow", abi.PPM), ("half_open", abi.PPM), ("open_jitter", abi.PPM // 2)):
        key = {"slow": "slow_ratio", "half_open": "half_open_ratio"}.get(name, name)
        yield part(f"{name}_ppm") > most, f"breaker.{key}", f"above {most * 100 // abi.PPM} %"
    yield 0 < part("open_growth_ppm") < abi.PPM, "breaker.open_growth", "below 1"
    yield part("slow_ns") and not part("slow_ppm"), "breaker.slow", "needs breaker.slow_ratio"
    yield 0 < calls < 10 or calls > 655350, "breaker.window_calls", "neither 0 nor from 10 to 655350"
    yield 0 < window < 10, "breaker.window", "below 10ns"
    yield (needed > (calls // 10 * 10 if calls else 32768 if window else 0), "breaker.min_calls",
           "more than the window holds")


def other_rules(get):
    """Between the parts."""
    yield get("flags") & abi.WAIT_OPEN and not get("breaker.probes"), "breaker.wait_open", "needs a breaker"
    yield get("flags") & abi.PACE_ALL and not get("pacing.pace_ns"), "pacing.all", "needs pacing.every"
    yield get("pacing.horizon_ns") and not get("pacing.pace_ns"), "pacing.horizon", "needs pacing.every"
    for key in ("mode", "uid", "gid"):
        yield get(key) and not get("open_flags") & abi.OPEN_GLOBAL, key, "only for a host-wide policy"


def problem(fields):
    """The setting that is wrong and why, or None."""
    def get(name):
        return fields.get(name, 0)
    for rules in (backoff_rules, budget_rules, breaker_rules, other_rules):
        for broken, key, why in rules(get):
            if broken:
                return key, why
    return None
