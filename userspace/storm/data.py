# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The raw data of the storm, and what is computed from it. Times are ns from T0, the reset."""

import csv
import statistics
from dataclasses import dataclass, field

VERSION = 3
UTOK = 10**6


class BadData(ValueError):
    """The raw data cannot be used."""


@dataclass
class Setup:
    clients: int
    capacity: int
    bin_ns: int
    outage_ns: int
    service_ns: int

    @property
    def outage_bins(self):
        return -(-self.outage_ns // self.bin_ns)


@dataclass
class Limits:
    """Of a run's policy, what is needed to say what it must never allow. 0 where it has no such part."""
    host_wide: int
    capacity_utok: int
    deposit_utok: int
    refill_utok_per_s: int
    open_ns: int
    pace_ns: int


@dataclass
class Request:
    """One attempt: what the client knows of it, and what the server knows if it got there."""
    client: int
    call: int
    attempt: int
    start_ns: int | None = None
    deadline_ns: int | None = None
    delay_ns: int = 0
    end_ns: int | None = None
    answer: str = ""
    probe: int = 0
    begun: int = 0
    arrival_ns: int | None = None
    server_answer: str = ""

    @property
    def time_ns(self):
        """Arrival at the server; of a connection it refused, the moment it was tried."""
        return self.start_ns if self.arrival_ns is None else self.arrival_ns

    @property
    def served(self):
        return "served" in (self.answer, self.server_answer)


@dataclass
class Run:
    setup: Setup
    row: str
    method: str
    seed: int
    label: str
    backend: str
    reset_ns: int
    up_ns: int
    window_ns: int
    limits: Limits
    lines: int = 0
    complete: bool = False
    requests: dict = field(default_factory=dict)
    stops: list = field(default_factory=list)
    methods: dict = field(default_factory=dict)

    def request(self, client, call, attempt):
        key = (client, call, attempt)
        if key not in self.requests:
            self.requests[key] = Request(*key)
        return self.requests[key]

    @property
    def name(self):
        return f"{self.row}, seed {self.seed}, {self.method}"

    @property
    def is_plain(self):
        """A retry starts when its delay has passed, and nothing else makes it wait."""
        return not self.limits.open_ns and not self.limits.pace_ns

    def retries(self):
        """Pairs of an attempt and the retry that followed, both known to the client."""
        for (client, call, attempt), r in self.requests.items():
            before = self.requests.get((client, call, attempt - 1))
            if before and r.start_ns is not None and before.end_ns is not None:
                yield before, r

    def after_t0(self):
        """Every request from T0 to the end of the window, in order."""
        found = [r for r in self.requests.values() if 0 <= r.time_ns < self.window_ns]
        return sorted(found, key=lambda r: (r.time_ns, r.client))

    def attempts(self):
        """What the clients did, from the start of the run on, in order."""
        found = [r for r in self.requests.values() if r.start_ns is not None]
        return sorted(found, key=lambda r: (r.start_ns, r.attempt, r.client))

    def probes(self):
        return [r for r in self.attempts() if r.probe]

    def bins(self, served=None):
        counts = [0] * (self.window_ns // self.setup.bin_ns)
        for r in self.after_t0():
            if served is None or r.served == served:
                counts[min(r.time_ns // self.setup.bin_ns, len(counts) - 1)] += 1
        return counts


def _take(run, kind, fields):
    if kind == "end":
        if int(fields[0]) != run.lines:
            raise BadData(f"run {run.name}: {fields[0]} lines were written, {run.lines} are here")
        run.complete = True
        return
    run.lines += 1
    if kind == "method":
        run.methods[int(fields[0])] = fields[1]
        return
    numbers = [int(text) for text in fields[:3]]
    if kind == "client":
        r = run.request(*numbers)
        r.start_ns, r.deadline_ns, r.delay_ns, r.end_ns = (int(text) for text in fields[3:7])
        r.answer, r.probe, r.begun = fields[7], int(fields[8]), int(fields[9])
    elif kind == "server":
        r = run.request(*numbers)
        r.arrival_ns, r.server_answer = int(fields[3]), fields[4]
    elif kind == "stop":
        run.stops.append((*numbers, fields[3]))
    else:
        raise BadData(f"'{kind}' is not a kind of line")


def _feed(state, fields):
    kind = fields[0]
    if kind == "storm":
        if int(fields[1]) != VERSION:
            raise BadData(f"this is version {fields[1]} of the raw data, not {VERSION}")
        state["setup"] = Setup(*(int(text) for text in fields[2:]))
    elif kind == "lacks":
        state["lacking"][fields[1]] = fields[2]
    elif kind == "run":
        numbers = [int(text) for text in fields[6:]]
        state["run"] = Run(state["setup"], *fields[1:3], int(fields[3]), *fields[4:6], *numbers[:3],
                           Limits(*numbers[3:]))
        state["runs"].append(state["run"])
    elif kind == "done":
        state["done"] = int(fields[1])
    else:
        _take(state["run"], kind, fields[1:])


def read(path):
    """Returns all there is to be shown and judged."""
    state = {"runs": [], "lacking": {}}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                _feed(state, line.rstrip("\r\n").split(";"))
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise BadData(f"{path}:{number}: {error}") from error
    runs = state["runs"]
    if not runs or state.get("done") != len(runs) or not all(run.complete for run in runs):
        raise BadData(f"{path}: the data ends too early: run the storm again")
    return Storm(runs, state["lacking"])


# Over this long after the reset requests are compared with the operations they were for.
AMPLIFIED_NS = 10 * 10**9


@dataclass
class Metrics:
    """What one run shows. The names are those of the columns."""
    first: int          # most requests in a bin: the first one,
    outage: int         # the rest of the outage,
    after: int          # and after it
    over: int           # bins over the capacity
    requests: int       # of each client from its reset call to its first success
    gave_up: int
    probes: int
    amplification: float
    all_served_ns: int | None


def _until_success(run, client):
    """The client's requests from the one that was reset on, and the end of its first success."""
    own = sorted((r for r in run.requests.values() if r.client == client), key=lambda r: r.time_ns)
    taken = [r for r in own if r.answer == "reset"]
    for r in own:
        if not 0 <= r.time_ns < run.window_ns:
            continue
        taken.append(r)
        if r.answer == "served":
            return taken, r.end_ns
    return taken, None


def _amplification(run):
    """Requests an operation, from the calls that were reset on."""
    found = [r for r in run.attempts() if r.answer == "reset" or 0 <= r.start_ns < AMPLIFIED_NS]
    return len(found) / max(1, len({(r.client, r.call) for r in found}))


def measure(run):
    bins, outage = run.bins(), run.setup.outage_bins
    clients = [_until_success(run, client) for client in range(run.setup.clients)]
    ends = [end for _, end in clients]
    return Metrics(
        first=bins[0],
        outage=max(bins[1:outage]),
        after=max(bins[outage:]),
        over=sum(count > run.setup.capacity for count in bins),
        requests=sum(len(taken) for taken, _ in clients),
        gave_up=sum(1 for stop in run.stops if 0 <= stop[2] < run.window_ns),
        probes=sum(r.probe for r in run.after_t0()),
        amplification=_amplification(run),
        all_served_ns=None if None in ends else max(ends),
    )


@dataclass
class Row:
    name: str
    label: str
    runs: list
    metrics: list

    @property
    def limits(self):
        return self.runs[0].limits

    @property
    def title(self):
        """The label, where it does not stand below the row that it adds to."""
        return "full jitter " + self.label if self.label.startswith("+") else self.label

    def values(self, name):
        return [getattr(m, name) for m in self.metrics]

    def median(self, name):
        """None where it falls on a run that has no value, as one in which not all were served."""
        values = sorted(self.values(name), key=lambda v: (v is None, v or 0))
        middle = values[(len(values) - 1) // 2:len(values) // 2 + 1]
        return None if None in middle else statistics.mean(middle)

    def typical(self):
        """The run nearest to the medians: the one to draw."""
        def distance(pair):
            run, m = pair
            time, wanted = m.all_served_ns, self.median("all_served_ns")
            late = abs(time - wanted) if None not in (time, wanted) else run.window_ns
            return abs(m.after - self.median("after")), abs(m.first - self.median("first")), late, run.seed
        return min(zip(self.runs, self.metrics), key=distance)


class Storm:
    """The rows by the method of waiting, each with its runs in the order of the seeds."""

    def __init__(self, runs, lacking):
        self.runs = runs
        self.lacking = lacking      # methods that are not offered, and why
        found = {}
        for run in runs:
            found.setdefault(run.method, {}).setdefault(run.row, []).append(run)
        self.by_method = {method: [Row(name, own[0].label, own, [measure(run) for run in own])
                                   for name, own in rows.items()] for method, rows in found.items()}

    @property
    def rows(self):
        """By the method that came first."""
        return next(iter(self.by_method.values()))


def write_csv(runs, path):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["strategy", "method", "seed", "client", "call", "attempt", "delay_ns", "deadline_ns",
                         "start_ns", "arrival_ns", "end_ns", "server_answer", "client_answer", "probe"])
        for run in runs:
            for r in sorted(run.requests.values(), key=lambda r: (r.time_ns, r.client)):
                writer.writerow([run.row, run.method, run.seed, r.client, r.call, r.attempt, r.delay_ns, r.deadline_ns,
                                 r.start_ns, r.arrival_ns, r.end_ns, r.server_answer, r.answer, r.probe])
