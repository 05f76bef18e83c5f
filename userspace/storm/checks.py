# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The checks of the storm's data: each can fail."""

import methods
from data import UTOK
from verdict import HOST_ROWS, compare

# What is still under way when a run ends is not all in its records.
UNFINISHED_NS = 10**9
SERVER_LATE_NS = 20 * 10**6
# How long after its slot a client starts: much less than the spacing.
PACED_LATE_NS = 10 * 10**6


# -------- the data tell one story --------

def _over_served(run):
    setup, counts = run.setup, {}
    for r in run.requests.values():
        if r.server_answer == "served":
            counts[r.arrival_ns // setup.bin_ns] = counts.get(r.arrival_ns // setup.bin_ns, 0) + 1
    return [f"{run.name}: {count} served in the bin at {bin_ * setup.bin_ns / 1e9:g} s"
            for bin_, count in counts.items() if count > setup.capacity]


def _early(run):
    """Deadline and delay are told by the policy; the report that the delay began with came after the end."""
    deadlines = [(r, r.deadline_ns) for r in run.attempts()]
    delays = [(r, before.end_ns + r.delay_ns) for before, r in run.retries()]
    return [f"{run.name}: client {r.client} started {due - r.start_ns} ns early"
            for r, due in deadlines + delays if r.start_ns < due]


def _early_at_server(run):
    return [f"{run.name}: client {r.client}, call {r.call}, attempt {r.attempt} arrived at {r.arrival_ns} ns"
            for r in run.requests.values() if None not in (r.arrival_ns, r.deadline_ns) and
            r.arrival_ns < r.deadline_ns]


def _disagree(run):
    """Client and server tell the same story, but for what was under way when the run ended."""
    same = {("served", "served"), ("throttled", "throttled"), ("held", "reset"), ("", "refused")}
    last = run.window_ns - UNFINISHED_NS
    return [f"{run.name}: client {r.client}, call {r.call}, attempt {r.attempt}: "
            f"the server says '{r.server_answer}', the client '{r.answer}'"
            for r in run.requests.values()
            if r.time_ns < last and (r.server_answer, r.answer) not in same]


def _not_reset(run):
    count = sum(r.answer == "reset" for r in run.requests.values())
    return [] if count == run.setup.clients else [f"{run.name}: {count} calls were reset"]


def _late_server(run):
    late = max(run.reset_ns, run.up_ns - run.setup.outage_ns)
    return [] if 0 <= late < SERVER_LATE_NS else [
        f"{run.name}: reset at {run.reset_ns} ns, up at {run.up_ns} ns"]


def _unserved(rows):
    return [f"{run.name}: not every client succeeded within {run.window_ns / 1e9:g} s"
            for row in rows for run, m in zip(row.runs, row.metrics) if m.all_served_ns is None]


# -------- what the host shares --------

def _over_budget(run):
    """
    At each retry, all retries of the host since the run began, against its operations' deposits, the
    minimum rate and a bucket that was full at the start: by how much they are over, at the first.
    """
    limits, attempts = run.limits, run.attempts()
    begun = retries = 0
    for r in attempts:
        if r.start_ns >= run.window_ns - UNFINISHED_NS:
            break
        begun, retries = begun + (not r.attempt), retries + bool(r.attempt)
        refilled = limits.refill_utok_per_s * (r.start_ns - attempts[0].start_ns) // 10**9
        allowed = limits.capacity_utok + limits.deposit_utok * begun + refilled
        if retries * UTOK > allowed:
            return [f"{run.name}: {retries} retries at {r.start_ns / 1e9:.3f} s, {allowed / UTOK:.1f} allowed"]
    return []


def _probes_at_once(run):
    probes = run.probes()
    return [f"{run.name}: two probes at {b.start_ns / 1e9:.3f} s" for a, b in zip(probes, probes[1:])
            if b.start_ns < a.end_ns]


def _probes_without_period(run):
    """A probe's result ends its half-open period, so the next one comes an open time later."""
    probes = run.probes()
    if not probes:
        return [f"{run.name}: no probe at all"]
    return [f"{run.name}: probes at {a.start_ns / 1e9:.3f} s and {b.start_ns / 1e9:.3f} s"
            for a, b in zip(probes, probes[1:]) if b.start_ns < a.end_ns + run.limits.open_ns]


def _bins_over(run):
    setup, bins = run.setup, run.bins()
    return [f"{run.name}: {count} requests in the bin at {i * setup.bin_ns / 1e9:g} s"
            for i, count in enumerate(bins) if i >= setup.outage_bins and count > setup.capacity + 1]


def _too_close(run):
    """
    Slots are the spacing apart, and an attempt may start late, but not before its slot: so none comes
    much sooner after any one before it than there are slots from that one to it.
    """
    pace, latest = run.limits.pace_ns, None
    for index, r in enumerate(run.attempts()):
        slot = r.start_ns - index * pace
        if latest is not None and slot < latest - PACED_LATE_NS:
            return [f"{run.name}: client {r.client} started {latest - slot} ns too soon at {r.start_ns / 1e9:.3f} s"]
        latest = slot if latest is None else max(latest, slot)
    return []


def _each(find, runs):
    return [text for run in runs for text in find(run)]


def _none_holds(find, runs):
    """Wrong where @find finds nothing wrong: what each process keeps to, the host does not."""
    return [f"{run.name}: the host keeps to it all the same" for run in runs if not find(run)]


def _shared_checks(runs):
    """Of the policies that ran. Where the module did not decide, what is host-wide fails."""
    def are(part, host_wide):
        return [run for run in runs if getattr(run.limits, part) and run.limits.host_wide == host_wide]

    found = (("budget_host_wide_bounds_all_retries", _each, _over_budget, are("capacity_utok", 1)),
             ("budget_per_process_exceeds_that_bound", _none_holds, _over_budget, are("capacity_utok", 0)),
             ("breaker_host_wide_one_probe_at_a_time", _each, _probes_at_once, are("open_ns", 1)),
             ("breaker_host_wide_one_probe_per_half_open", _each, _probes_without_period, are("open_ns", 1)),
             ("breaker_per_process_exceeds_that", _none_holds, _probes_without_period, are("open_ns", 0)),
             ("pacing_attempts_one_spacing_apart", _each, _too_close, are("pace_ns", 1)),
             ("pacing_bins_after_outage_at_most_one_over", _each, _bins_over, are("pace_ns", 1)))
    yield from ((f"storm.{name}", judge(find, some)) for name, judge, find, some in found if some)


# -------- all of them --------

def _missing(rows):
    missing = HOST_ROWS - {row.name for row in rows}
    return [f"these are missing: {', '.join(sorted(missing))}"] if missing else []


def checks(storm):
    """Pairs of a name and what is wrong, an empty list if nothing is."""
    rows, runs, c = storm.rows, storm.runs, compare(storm.rows)
    each = (("storm.outage_held_calls_reset_together", _not_reset), ("storm.outage_times_as_stated", _late_server),
            ("storm.server_capacity_never_exceeded", _over_served), ("storm.attempts_never_before_deadline", _early),
            ("storm.attempts_reach_server_after_deadline", _early_at_server),
            ("storm.records_client_and_server_agree", _disagree))
    yield from ((name, _each(find, runs)) for name, find in each)
    yield "storm.recovery_every_client_served", _each(_unserved, storm.by_method.values())
    yield from _shared_checks(runs)
    yield from methods.checks(storm)
    if c is None or _missing(rows):
        yield "storm.rows_all_present", _missing(rows) or ["fixed, exponential and jitter are to be compared"]
        return

    def bound(name, holds, text):
        return name, [] if holds else [text]

    yield bound("storm.exponential_peak_as_high_as_fixed", (c["height"] or 0) >= 0.75, f"height {c['height']} of 1")
    yield bound("storm.exponential_recovery_clearly_longer", (c["slower"] or 0) >= 2, f"{c['slower']} times as long")
    yield bound("storm.jitter_peak_at_most_half_of_exponential", (c["lowered"] or 9) <= 0.5, f"{c['lowered']} of it")
    yield bound("storm.jitter_fewest_requests", c["fewest"], "another policy sent as few or fewer")


def ktap(storm):
    """The lines, and whether all passed."""
    results = list(checks(storm))
    lines = ["KTAP version 1", f"1..{len(results)}"]
    for index, (name, wrong) in enumerate(results, 1):
        lines += [f"# {text}" for text in wrong[:5]]
        lines.append(f"{'not ok' if wrong else 'ok'} {index} {name}")
    return lines, not any(wrong for _, wrong in results)
