# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the storm shows, in sentences computed from the numbers, and the checks that can fail."""

from text import number, seconds


def _ratio(a, b):
    return a / b if a is not None and b else None


def compare(rows):
    """The numbers that the sentences and the checks are about, or None where a row is missing."""
    by_name = {row.name: row for row in rows}
    if not {"fixed", "exponential", "jitter"} <= by_name.keys():
        return None
    fixed, exponential, jitter = by_name["fixed"], by_name["exponential"], by_name["jitter"]
    return {
        "height": _ratio(exponential.median("after"), fixed.median("after")),
        "slower": _ratio(exponential.median("all_served_ns"), fixed.median("all_served_ns")),
        "load": _ratio(exponential.median("requests"), fixed.median("requests")),
        "lowered": _ratio(jitter.median("after"), exponential.median("after")),
        "fewest": jitter.median("requests") < min(fixed.median("requests"), exponential.median("requests")),
        "first_tallest": jitter.median("first") >= max(jitter.median("outage"), jitter.median("after")),
        "fixed": fixed, "exponential": exponential, "jitter": jitter,
    }


def _near(value, low, high):
    return value is not None and low <= value <= high


def _percent(ratio):
    return "no share" if ratio is None else f"{ratio:.0%}"


def _times(ratio):
    return "no ratio" if ratio is None else f"{ratio:.1f} times"


# What a simple model said before there was a run, what the run says, and whether they agree.
EXPECTATIONS = (
    ("exponential's peak after the outage as high as fixed's",
     lambda c: _percent(c["height"]), lambda c: _near(c["height"], 0.9, 1.1)),
    ("everyone served three times as late as with fixed",
     lambda c: _times(c["slower"]), lambda c: _near(c["slower"], 2.5, 3.5)),
    ("as many requests as with fixed", lambda c: _percent(c["load"]), lambda c: _near(c["load"], 0.9, 1.1)),
    ("full jitter's peak after the outage a third of exponential's",
     lambda c: _percent(c["lowered"]), lambda c: _near(c["lowered"], 0.28, 0.39)),
    ("full jitter with the fewest requests", lambda c: number(c["jitter"].median("requests")), lambda c: c["fewest"]),
    ("full jitter's first bin its tallest",
     lambda c: f"{number(c['jitter'].median('first'))} in it, {number(c['jitter'].median('outage'))} in a later one",
     lambda c: c["first_tallest"]),
)


def _agreement(c):
    missed = [f"{text} (here {says(c)})" for text, says, agrees in EXPECTATIONS if not agrees(c)]
    if not missed:
        return f"All {len(EXPECTATIONS)} expectations of a simple model hold."
    return (f"Of {len(EXPECTATIONS)} expectations of a simple model {len(EXPECTATIONS) - len(missed)} hold; it also "
            f"said, but the run does not show: {'; '.join(missed)}.")


def sentences(rows):
    c = compare(rows)
    if c is None:
        return ["Only some of the policies ran, so there is nothing to compare."]
    fixed, exponential, jitter = c["fixed"], c["exponential"], c["jitter"]
    heights = [number(row.median("after")) for row in (exponential, fixed, jitter)]
    times = [seconds(row.median("all_served_ns")) for row in (exponential, fixed, jitter)]
    loads = [number(row.median("requests")) for row in (exponential, fixed, jitter)]
    first, outage = number(jitter.median("first")), number(jitter.median("outage"))
    return [
        f"After the outage exponential backoff without jitter still sends up to {heights[0]} requests in one bin, "
        f"fixed backoff {heights[1]}; it takes {times[0]} instead of {times[1]} until everyone is served "
        f"({_times(c['slower'])}), with {loads[0]} requests instead of {loads[1]}.",
        f"Full jitter sends up to {heights[2]} in one bin after the outage ({_percent(c['lowered'])} of "
        f"exponential's), after {first} in the first bin and up to {outage} in the rest of the outage, and serves "
        f"everyone within {times[2]} with {loads[2]} requests, {'the fewest' if c['fewest'] else 'not the fewest'} "
        "of the three.",
        _agreement(c),
    ]


def _all_runs(rows):
    return [run for row in rows for run in row.runs]


def _over_served(run):
    setup, counts = run.setup, {}
    for r in run.requests.values():
        if r.server_answer == "served":
            counts[r.arrival_ns // setup.bin_ns] = counts.get(r.arrival_ns // setup.bin_ns, 0) + 1
    return [f"{run.row}, seed {run.seed}: {count} served in the bin at {bin_ * setup.bin_ns / 1e9:g} s"
            for bin_, count in counts.items() if count > setup.capacity]


def _early(run):
    return [f"{run.row}, seed {run.seed}: client {r.client} started {r.deadline_ns - r.start_ns} ns early"
            for r in run.requests.values() if r.start_ns is not None and r.start_ns < r.deadline_ns]


def _disagree(run):
    """Client and server tell the same story, but for what was under way when the run ended."""
    same = {("served", "served"), ("throttled", "throttled"), ("held", "reset"), ("", "refused")}
    last = run.window_ns - 10**9
    return [f"{run.row}, seed {run.seed}: client {r.client}, call {r.call}, attempt {r.attempt}: "
            f"the server says '{r.server_answer}', the client '{r.answer}'"
            for r in run.requests.values()
            if r.time_ns < last and (r.server_answer, r.answer) not in same]


def _not_reset(run):
    count = sum(r.answer == "reset" for r in run.requests.values())
    return [] if count == run.setup.clients else [f"{run.row}, seed {run.seed}: {count} calls were reset"]


def _late_server(run):
    late = max(run.reset_ns, run.up_ns - run.setup.outage_ns)
    return [] if 0 <= late < 20 * 10**6 else [
        f"{run.row}, seed {run.seed}: reset at {run.reset_ns} ns, up at {run.up_ns} ns"]


def _unserved(rows):
    return [f"{row.name}, seed {run.seed}: not every client succeeded within {run.window_ns / 1e9:g} s"
            for row in rows for run, m in zip(row.runs, row.metrics) if m.all_served_ns is None]


def checks(rows):
    """Pairs of a name and what is wrong, an empty list if nothing is."""
    runs, c = _all_runs(rows), compare(rows)
    each = (("storm.outage_held_calls_reset_together", _not_reset), ("storm.outage_times_as_stated", _late_server),
            ("storm.server_capacity_never_exceeded", _over_served), ("storm.attempts_never_before_deadline", _early),
            ("storm.records_client_and_server_agree", _disagree))
    yield from ((name, [text for run in runs for text in find(run)]) for name, find in each)
    yield "storm.recovery_every_client_served", _unserved(rows)
    if c is None:
        yield "storm.rows_all_three_present", ["fixed, exponential and jitter are to be compared"]
        return

    def bound(name, holds, text):
        return name, [] if holds else [text]

    yield bound("storm.exponential_peak_as_high_as_fixed", (c["height"] or 0) >= 0.75, f"height {c['height']} of 1")
    yield bound("storm.exponential_recovery_clearly_longer", (c["slower"] or 0) >= 2, f"{c['slower']} times as long")
    yield bound("storm.jitter_peak_at_most_half_of_exponential", (c["lowered"] or 9) <= 0.5, f"{c['lowered']} of it")
    yield bound("storm.jitter_fewest_requests", c["fewest"], "another policy sent as few or fewer")


def ktap(rows):
    """The lines, and whether all passed."""
    results = list(checks(rows))
    lines = ["KTAP version 1", f"1..{len(results)}"]
    for index, (name, wrong) in enumerate(results, 1):
        lines += [f"# {text}" for text in wrong[:5]]
        lines.append(f"{'not ok' if wrong else 'ok'} {index} {name}")
    return lines, not any(wrong for _, wrong in results)
