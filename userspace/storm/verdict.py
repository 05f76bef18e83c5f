# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the storm shows, in sentences computed from the numbers."""

from text import number, seconds


def _ratio(a, b):
    return a / b if a is not None and b else None


BASE_ROWS = {"fixed", "exponential", "jitter"}
HOST_ROWS = {"budget-own", "budget-host", "breaker-own", "breaker-host", "paced-host"}


def compare(rows):
    """The rows by name and the numbers that sentences and checks are about, or None if one is missing."""
    by_name = {row.name: row for row in rows}
    if not BASE_ROWS <= by_name.keys():
        return None
    fixed, exponential, jitter = by_name["fixed"], by_name["exponential"], by_name["jitter"]
    return {
        "height": _ratio(exponential.median("after"), fixed.median("after")),
        "slower": _ratio(exponential.median("all_served_ns"), fixed.median("all_served_ns")),
        "load": _ratio(exponential.median("requests"), fixed.median("requests")),
        "lowered": _ratio(jitter.median("after"), exponential.median("after")),
        "fewest": jitter.median("requests") < min(fixed.median("requests"), exponential.median("requests")),
        "first_tallest": jitter.median("first") >= max(jitter.median("outage"), jitter.median("after")),
        **by_name,
    }


def _near(value, low, high):
    return value is not None and low <= value <= high


def _percent(ratio):
    return "no share" if ratio is None else f"{ratio:.0%}"


def _times(ratio):
    return "no ratio" if ratio is None else f"{ratio:.1f} times"


def _amplified(c, name):
    return f"{c[name].median('amplification'):.1f}"


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

HOST_EXPECTATIONS = (
    ("with budgets per process 2.3 requests an operation",
     lambda c: _amplified(c, "budget-own"), lambda c: _near(c["budget-own"].median("amplification"), 2.07, 2.53)),
    ("with one for the host 1.2",
     lambda c: _amplified(c, "budget-host"), lambda c: _near(c["budget-host"].median("amplification"), 1.08, 1.32)),
    ("which gives operations up", lambda c: number(c["budget-host"].median("gave_up")),
     lambda c: c["budget-host"].median("gave_up") > 0),
    ("with breaker and pacing at most 4 in a bin after the outage",
     lambda c: number(c["paced-host"].median("after")), lambda c: c["paced-host"].median("after") <= 4),
    ("with them everyone served in about 6 s",
     lambda c: seconds(c["paced-host"].median("all_served_ns")),
     lambda c: _near(c["paced-host"].median("all_served_ns"), 5e9, 7e9)),
    ("with them 65 requests", lambda c: number(c["paced-host"].median("requests")),
     lambda c: _near(c["paced-host"].median("requests"), 62, 68)),
)


def _agreement(c):
    expected = EXPECTATIONS + (HOST_EXPECTATIONS if HOST_ROWS <= c.keys() else ())
    missed = [f"{text} (here {says(c)})" for text, says, agrees in expected if not agrees(c)]
    if not missed:
        return f"All {len(expected)} expectations of a simple model hold."
    return (f"Of {len(expected)} expectations of a simple model {len(expected) - len(missed)} hold; it also "
            f"said, but the run does not show: {'; '.join(missed)}.")


def _base_sentences(c):
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
    ]


def _budget_sentence(c):
    own, host = c["budget-own"], c["budget-host"]
    return (
        f"A 10 % budget in each process lets the host send {_amplified(c, 'budget-own')} requests an operation in the "
        f"10 s after the reset, where jitter alone sends {_amplified(c, 'jitter')}, and gives up "
        f"{number(own.median('gave_up'))} operations; one budget for the host holds it at "
        f"{_amplified(c, 'budget-host')} and gives up {number(host.median('gave_up'))}, so that it takes "
        f"{seconds(host.median('all_served_ns'))} until every client has had a success.")


def _breaker_sentence(c):
    own, host, paced = c["breaker-own"], c["breaker-host"], c["paced-host"]
    higher = "more" if host.median("after") > c["jitter"].median("after") else "no more"
    return (
        f"Breakers in each process send {number(own.median('probes'))} probes and up to "
        f"{number(own.median('outage'))} requests in a bin of the outage; one for the host "
        f"{number(host.median('probes'))} and {number(host.median('outage'))}. But when that one closes, up to "
        f"{number(host.median('after'))} come in one bin, {higher} than with jitter alone. With pacing at 90 % of the "
        f"capacity it is {number(paced.median('after'))}: {number(paced.median('over'))} bins are over the line, and "
        f"everyone is served within {seconds(paced.median('all_served_ns'))} with "
        f"{number(paced.median('requests'))} requests.")


def sentences(rows):
    c = compare(rows)
    if c is None:
        return ["Only some of the policies ran, so there is nothing to compare."]
    host = [_budget_sentence(c), _breaker_sentence(c)] if HOST_ROWS <= c.keys() else []
    return [*_base_sentences(c), *host, _agreement(c)]
