# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Small made-up runs of the storm whose numbers are known, and ways to spoil them."""

import heapq

MS = 10**6
CLIENTS, BIN, OUTAGE, WINDOW = 8, 250 * MS, 500 * MS, 40000 * MS


def fixed(_client, _attempt):
    return 1000 * MS


def exponential(_client, attempt):
    return min(250 * MS * 2**attempt, 4000 * MS)


def spread(client, attempt):
    return exponential(client, attempt) * (client + 1) // CLIENTS


def paced(client, _attempt):
    """One after the other, and all when the outage is over."""
    return OUTAGE + client * BIN + MS


# Of each run what its policy says: host_wide, capacity, deposit and refill in tokens, open_ns, pace_ns.
NOTHING = (0, 0, 0, 0, 0, 0)
TOKEN = 10**6


METHODS = ("wait", "timeout", "queue")
# Each line has row and method in its second and third field; in a file only a run's first line has them.
OF_A_RUN = {"method", "client", "server", "end"}


def client_line(name, method, client, attempt, start, end, delay, answer, probe=0):
    begun = 1 if method == "timeout" else attempt + 1
    return f"client;{name};{method};{client};1;{attempt};{start};{start};{delay};{end};{answer};{probe};{begun}"


def one_run(name, delay, limits=NOTHING, probes=(), method="wait"):
    """One call of each client; one request is served in each bin once the outage is over."""
    lines, served = [f"method;{name};{method};{client};{method}" for client in range(CLIENTS)], set()
    due = [(delay(client, 0), client, 1, 5) for client in range(CLIENTS)]
    for client in range(CLIENTS):
        start = -client * max(1, limits[5]) - 9
        lines += [client_line(name, method, client, 0, start, 5, 0, "reset"),
                  f"server;{name};{method};{client};1;0;{start + 1};held"]
    heapq.heapify(due)
    while due:
        now, client, attempt, before = heapq.heappop(due)
        answer = "refused" if now < OUTAGE else "throttled" if now // BIN in served else "served"
        end, probe = now + 20 * MS, int((client, attempt) in probes)
        lines.append(client_line(name, method, client, attempt, now, end, now - before, answer, probe))
        if answer != "refused":
            lines.append(f"server;{name};{method};{client};1;{attempt};{now};{answer}")
        if answer == "served":
            served.add(now // BIN)
        else:
            heapq.heappush(due, (now + delay(client, attempt), client, attempt + 1, end))
    words = ";".join(str(value) for value in limits)
    head = f"run;{name};{method};1;the {name} one;module;10;{OUTAGE + 10};{WINDOW};{words}"
    return [head, *lines, f"end;{name};{method};{len(lines)}"]


def by_method(method):
    lines = []
    for name, delay in (("fixed", fixed), ("exponential", exponential), ("jitter", spread)):
        lines += one_run(name, delay, method=method)
    # Eight operations bring 0.8 tokens to the 8: enough for one retry of each, and no more.
    lines += one_run("budget-own", spread, (0, 8 * TOKEN, TOKEN // 10, 0, 0, 0), method=method)
    lines += one_run("budget-host", paced, (1, 8 * TOKEN, TOKEN // 10, 0, 0, 0), method=method)
    lines += one_run("breaker-own", spread, (0, 0, 0, 0, 500 * MS, 0), [(c, 1) for c in range(CLIENTS)], method)
    # Client 7's first retry ends at 0.27 s, its second begins at 0.75 s.
    lines += one_run("breaker-host", spread, (1, 0, 0, 0, 480 * MS, 0), [(7, 1), (7, 2)], method)
    lines += one_run("paced-host", paced, (1, 0, 0, 0, 500 * MS, BIN), [(0, 1)], method)
    return lines


def good():
    lines = [line for method in METHODS for line in by_method(method)]
    return [f"storm;3;{CLIENTS};1;{BIN};{OUTAGE};{20 * MS}", *lines, "done;24"]


def in_file(line):
    fields = line.split(";")
    return ";".join(fields[:1] + fields[3:]) if fields[0] in OF_A_RUN else line


def half_spread(client, attempt):
    return exponential(client, attempt) // 2 + spread(client, attempt) // 2


def changed(pick, change):
    """The good data with its first line that @pick likes changed."""
    lines = good()
    index = next(i for i, line in enumerate(lines) if pick(line.split(";")))
    fields = lines[index].split(";")
    change(fields)
    lines[index] = ";".join(fields)
    return lines


def field(index, value):
    return lambda fields: fields.__setitem__(index, value)


def renamed(kept, as_name):
    """The row @kept in the place of @as_name."""
    lines = [line for line in good() if f";{as_name};" not in line]
    copies = [line.replace(f";{kept};", f";{as_name};") for line in lines if f";{kept};" in line]
    return [*lines[:-1], *copies, lines[-1]]


def changed_run(name, index, value):
    return changed(lambda f: f[0] == "run" and f[1] == name, field(index, value))


def changed_probe(name, client, attempt, value):
    return changed(lambda f: f[:2] == ["client", name] and f[3:6] == [str(client), "1", str(attempt)],
                   field(11, str(value)))


def of_method(method):
    return [line for line in good() if line.split(";")[2:3] == [method]]


def with_method(method, lines, done=24):
    """The good data with @lines instead of its runs by @method, which come last."""
    others = [line for line in good()[:-1] if line.split(";")[2:3] != [method]]
    return [*others, *lines, f"done;{done}"]


def edited(method, pick, change):
    """Runs by @method with all lines that @pick likes changed."""
    found = [line.split(";") for line in of_method(method)]
    for fields in found:
        if pick(fields):
            change(fields)
    return with_method(method, [";".join(fields) for fields in found])


def recounted(lines):
    """With as many lines in each run as it says."""
    count, result = 0, []
    for line in lines:
        count = 0 if line.startswith("run;") else count + 1
        result.append(f"{line.rsplit(';', 1)[0]};{count - 1}" if line.startswith("end;") else line)
    return result


def as_row(lines, kept, name):
    """The runs of row @kept in the place of row @name."""
    others = [line for line in lines if line.split(";")[1] != name]
    return others + [line.replace(f";{kept};", f";{name};") for line in lines if line.split(";")[1] == kept]
