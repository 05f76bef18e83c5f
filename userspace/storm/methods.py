# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The ways to wait for a deadline side by side, and whether what they lead to is the same."""

import bisect
import math
import statistics
import textwrap
from collections import Counter
from dataclasses import dataclass
from typing import Callable

from text import number, seconds, width

METHODS = ("timeout", "queue", "wait")
# Of these two the kernel admits each attempt, and does so as BEGIN would.
ADMITTED = {"queue", "wait"}
# Without jitter who comes when does not depend on a draw, only on who was served before.
WAVES = ("fixed", "exponential")
# Others that may come with a wave.
WAVE_MORE = 2
SPREADS = 2
LATE_NS = 100 * 10**6
# A difference of two samples of one distribution that is exceeded once in 10000 times.
KS_LIMIT = math.sqrt(-math.log(1e-4 / 2) / 2)


@dataclass
class Column:
    head: str
    of: Callable        # metrics to value
    write: Callable     # value to text
    least: float        # a difference that says nothing


COLUMNS = (
    Column("outage", lambda m: max(m.first, m.outage), number, 1),
    Column("after", lambda m: m.after, number, 1),
    Column("over", lambda m: m.over, number, 1),
    Column("requests", lambda m: m.requests, number, 1),
    Column("gave up", lambda m: m.gave_up, number, 1),
    Column("everyone served", lambda m: m.all_served_ns, seconds, 250 * 10**6),
)


def _values(row, column):
    """In which not all were served is as if they were at the end."""
    values = [column.of(m) for m in row.metrics]
    return [run.window_ns if value is None else value for run, value in zip(row.runs, values)]


def _by_row(storm):
    """For each row its name and its runs by each method that there are runs by."""
    present = [method for method in METHODS if method in storm.by_method]
    found = {method: {row.name: row for row in storm.by_method[method]} for method in present}
    return [(row.name, {method: found[method][row.name] for method in present if row.name in found[method]})
            for row in storm.rows]


# -------- shown --------

def _cell(by_method, column):
    texts = [column.write(statistics.median(_values(row, column))) for row in by_method.values()]
    if len(set(texts)) == 1:
        return texts[0]
    unit = " s" if column.write is seconds else ""
    return "/".join(text.removesuffix(unit) for text in texts) + unit


def _lateness(run):
    """Of each retry how long after its delay it began: of plain runs, in which it waits for nothing else."""
    return [(r, r.start_ns - before.end_ns - r.delay_ns) for before, r in run.retries()]


def _late_by(storm, method):
    """Median and most, or nothing."""
    late = [ns for run in storm.runs if run.method == method and run.is_plain for _, ns in _lateness(run)]
    return [f"{method} {statistics.median(late) / 1e3:.0f} and {max(late) / 1e3:.0f} µs"] if late else []


def _foot(storm, methods):
    runs = ", ".join(f"{len(storm.by_method[method][0].runs)} runs by {method}" for method in methods)
    yield (f"Medians of {runs}; where they are the same, once. Outage, after: most requests in a bin. The timeout is "
           "the program's own on the ring; queue and wait are the kernel's, which admits each attempt when its time "
           "has come; the verdict of a wait is its completion.")
    late = [text for method in methods for text in _late_by(storm, method)]
    if late:
        yield f"From the end of a delay to the attempt, where nothing else is waited for, median and most: {', '.join(late)}."
    for method, reason in storm.lacking.items():
        yield f"Not by {method}: {reason}."


def table(storm, style):
    methods = [method for method in METHODS if method in storm.by_method]
    if len(methods) < 2:
        return []
    lines = [("/".join(methods), *(column.head for column in COLUMNS))]
    lines += [(name, *(_cell(by_method, column) for column in COLUMNS)) for name, by_method in _by_row(storm)]
    widths = [max(map(len, cells)) for cells in zip(*lines)]
    drawn = ["  ".join([line[0].ljust(widths[0]), *(text.rjust(w) for text, w in zip(line[1:], widths[1:]))])
             for line in lines]
    foot = [style.dim(line) for text in _foot(storm, methods) for line in textwrap.wrap(text, width())]
    return [style.bold(drawn[0]), *drawn[1:], *foot, ""]


# -------- judged --------

def _other_method(run):
    said = [run.methods.get(client, "nothing") for client in range(run.setup.clients)]
    return [f"{run.name}: client {client} says {method}" for client, method in enumerate(said) if method != run.method]


def _admitted(run):
    """With a policy of its own a client's attempts are all that the policy has admitted."""
    wrong, begun = [], {}
    for r in run.attempts():
        begun[r.client] = begun.get(r.client, 0) + (run.method in ADMITTED or not r.attempt)
        if r.begun != begun[r.client]:
            wrong.append(f"{run.name}: client {r.client}, call {r.call}, attempt {r.attempt}: "
                         f"{r.begun} admitted, not {begun[r.client]}")
    return wrong


def _late(run):
    return [f"{run.name}: client {r.client} started {late / 1e6:.1f} ms late" for r, late in _lateness(run)
            if late > LATE_NS]


def _scattered(run):
    """Without jitter those whose call had come as far when it was reset come back in one bin."""
    delays = Counter(r.delay_ns for before, r in run.retries() if before.answer == "reset")
    delay, clients = delays.most_common(1)[0]
    come = run.bins()[(run.reset_ns + delay) // run.setup.bin_ns]
    return [] if clients <= come <= clients + WAVE_MORE else [
        f"{run.name}: {clients} clients wait for {delay / 1e9:g} s, and {come} requests come then"]


def _missing(storm):
    """What is not there, and is not said to be lacking."""
    wanted = {row.name for row in storm.rows}
    return [f"{name} is missing by {method}" for method in METHODS if method not in storm.lacking
            for name in sorted(wanted - {row.name for row in storm.by_method.get(method, [])})]


def _apart(name, by_method):
    """Medians further apart than repeats of one method are, twice."""
    for column in COLUMNS:
        values = {method: _values(row, column) for method, row in by_method.items()}
        medians = {method: statistics.median(own) for method, own in values.items()}
        allowed = max(column.least, SPREADS * max(max(own) - min(own) for own in values.values()))
        if max(medians.values()) - min(medians.values()) > allowed:
            texts = ", ".join(f"{column.write(value)} by {method}" for method, value in medians.items())
            yield f"{name}, {column.head}: {texts}; {column.write(allowed)} apart would do"


def _distance(a, b):
    """Of Kolmogorov and Smirnov, in units in which its distribution does not depend on how many there are."""
    a, b = sorted(a), sorted(b)
    most = max(abs(bisect.bisect_right(a, x) / len(a) - bisect.bisect_right(b, x) / len(b)) for x in a + b)
    return most * math.sqrt(len(a) * len(b) / (len(a) + len(b)))


def _draws(row):
    """The delays of first retries: all drawn from one range, the policy's first."""
    return [r.delay_ns for run in row.runs for r in run.attempts() if r.attempt == 1]


def _unlike(name, by_method):
    first, *others = by_method.values()
    for row in others:
        distance = _distance(_draws(first), _draws(row))
        if distance > KS_LIMIT:
            yield (f"{name}: delays by {row.runs[0].method} are distributed otherwise than by "
                   f"{first.runs[0].method}, {distance:.2f} of at most {KS_LIMIT:.2f}")


def _all(find, some):
    return [text for name, by_method in some for text in find(name, by_method)]


def checks(storm):
    """Pairs of a name and what is wrong, as all checks are."""
    plain = [run for run in storm.runs if run.is_plain]
    for name, find, runs in (("every_client_as_asked", _other_method, storm.runs),
                             ("admits_as_told", _admitted, [run for run in plain if not run.limits.host_wide]),
                             ("retries_soon_after_their_delay", _late, plain),
                             ("waves_whole_without_jitter", _scattered, [r for r in plain if r.row in WAVES])):
        yield f"storm.method_{name}", [text for run in runs for text in find(run)]
    missing = _missing(storm)
    yield "storm.methods_all_present", missing
    if missing or len(storm.by_method) < 2:
        return
    rows = _by_row(storm)
    drawn = [(name, by_method) for name, by_method in rows
             if name not in WAVES and by_method[storm.runs[0].method].runs[0].is_plain]
    yield "storm.methods_medians_within_spread", _all(_apart, rows)
    yield "storm.methods_delays_drawn_alike", _all(_unlike, drawn)
