# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the benchmark says about operations that wait: while many do, how much memory they take, and how
late they are woken."""

import csv
import statistics

KINDS = ("queue", "queue_shuffled", "timeout", "timerfd")
COUNTS = (1000, 100000, 1000000)
CHARGED = "+memcg"
# By the operation while 1,000 wait. From there to 1,000,000 none of the queue's may grow to more than twice.
TARGETS = {"queue.arm": 1000}
GROWTH_TARGET = 2
BYTES_TARGET = 128
# README has those marked so.
ROWS = (
    ("queue.arm", "retry decided and queued: STEP_BATCH of 64", True),
    ("queue_shuffled.arm", "the same, user_data in no order", True),
    ("timeout.arm", "IORING_OP_TIMEOUT armed, 64 at once, none decided", True),
    ("timerfd.arm", "timerfd created and armed, none decided", True),
    ("queue.fill", "retry decided and queued, memory still to be found", False),
    ("timeout.fill", "IORING_OP_TIMEOUT armed, memory still to be found", False),
    ("timerfd.fill", "timerfd created and armed, memory still to be found", False),
    ("queue.expire_read", "queued retry expired, admitted and read, 64 at once", True),
    ("queue_shuffled.expire_read", "the same, user_data in no order", False),
    ("timeout.expire_read", "IORING_OP_TIMEOUT expired and reaped", True),
    ("timerfd.expire_read", "timerfd expired and read", True),
    ("queue.trip", "WAIT: decided, waited for, admitted and completed", True),
    ("timeout.trip", "STEP, then IORING_OP_TIMEOUT until completed", True),
    ("queue.cancel", "CANCEL by ioctl(2), of the oldest", True),
    ("queue_shuffled.cancel", "the same, user_data in no order", False),
    ("timeout.cancel", "IORING_OP_TIMEOUT_REMOVE by itself, of the oldest", True),
    ("timerfd.cancel", "timerfd closed", False),
    ("queue.cancel_batch", "CANCEL by io_uring, 64 at once, of the oldest", False),
    ("timeout.cancel_batch", "IORING_OP_TIMEOUT_REMOVE, 64 at once, of the oldest", False),
    ("queue.cancel_middle", "CANCEL by io_uring, 64 at once, of others", True),
    ("timeout.cancel_middle", "IORING_OP_TIMEOUT_REMOVE, 64 at once, of others", True),
)
MEMORY = (
    ("queue", "a queued retry"),
    ("timeout", "an IORING_OP_TIMEOUT"),
    ("timerfd", "a timerfd"),
)
LATE = (
    ("late.timerfd", "timerfd, by epoll and read"),
    ("late.queue", "queue, by epoll and read"),
    ("late.wait", "WAIT"),
    ("late.timeout", "IORING_OP_TIMEOUT"),
)


def take(per_op):
    """Takes what is of this out of the results: by name, what one operation took in each sample."""
    return {name: per_op.pop(name) for name in list(per_op) if name.split(".")[0] in KINDS}


def median(waiting, name, count, charged=""):
    samples = waiting.get(f"{name}@{count}{charged}")
    return statistics.median(samples) if samples else None


def bytes_of(waiting, kind):
    """Of its slabs, those for the accounting included: outside of a memory cgroup and in one; what that is charged."""
    names = (f"{kind}.slab", f"{kind}.slab{CHARGED}", f"{kind}.charged{CHARGED}")
    return [round(waiting[name][0]) for name in names]


def said(value, target):
    return f"{'met' if value <= target else 'MISSED'}, at most {target:,}"


def verdicts(name, first, growth):
    if not name.startswith("queue") or name.endswith(".fill"):
        return ""
    words = [said(first, TARGETS[name])] if name in TARGETS else []
    if growth > GROWTH_TARGET:
        words.append(f"growth MISSED, at most {GROWTH_TARGET}")
    return "; ".join(words)


def make_rows(waiting):
    for name, text, in_readme in ROWS:
        medians = [median(waiting, name, count) for count in COUNTS]
        if None in medians:
            raise ValueError(f"the benchmark and the report disagree about {name}")
        growth = medians[-1] / medians[0]
        yield {"name": name, "text": text, "readme": in_readme, "medians": medians, "growth": growth,
               "charged": median(waiting, name, COUNTS[0], CHARGED),
               "target": verdicts(name, medians[0], growth)}


def missed(waiting):
    return max(bytes_of(waiting, "queue")[:2]) > BYTES_TARGET or any("MISSED" in r["target"]
                                                                     for r in make_rows(waiting))


def number(value):
    return "" if value is None else f"{value:,.0f}"


def print_table(waiting):
    rows = list(make_rows(waiting))
    width = max(len(r["text"]) for r in rows)
    print("Instructions of one operation while so many wait; the last column: in a memory cgroup, while 1,000 wait")
    print(f"  {'':{width}} " + " ".join(f"{count:>10,}" for count in COUNTS) + f" {'growth':>8} {'cgroup':>7}")
    for r in rows:
        print(f"  {r['text']:{width}} " + " ".join(f"{number(m):>10}" for m in r["medians"])
              + f" {r['growth']:>8,.2f} {number(r['charged']):>7}  {r['target']}".rstrip())
    for kind, text in MEMORY:
        plain, in_group, charged = bytes_of(waiting, kind)
        verdict = f"  {said(max(plain, in_group), BYTES_TARGET)}" if kind == "queue" else ""
        print(f"Memory of {text}: {plain} bytes, in a memory cgroup {in_group}, charged to it {charged}{verdict}")


def print_markdown(waiting):
    print("\n| while so many wait | " + " | ".join(f"{count:,}" for count in COUNTS) + " |")
    print("|---|" + "--:|" * len(COUNTS))
    for r in make_rows(waiting):
        if r["readme"]:
            print(f"| {r['text']} | " + " | ".join(number(m) for m in r["medians"]) + " |")
    print()
    for kind, text in MEMORY:
        print(f"{text[0].upper()}{text[1:]} takes {max(bytes_of(waiting, kind)[:2])} bytes.")


def write_csv(path, waiting):
    with open(path, "w", encoding="ascii", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["operation", "waiting", "memory_cgroup", "instructions", "bytes"])
        for name, samples in waiting.items():
            plain = name.removesuffix(CHARGED)
            operation, _, count = plain.partition("@")
            value = f"{statistics.median(samples):.1f}"
            out.writerow([operation, count, int(plain != name), *([value, ""] if count else ["", value])])


def print_late(calls):
    """The lateness in @calls, which is real time: told, not judged."""
    print("Woken so long after the deadline, in real time on two CPUs (p50, p99, most):")
    for name, text in LATE:
        hundredths = statistics.quantiles(calls[name], n=100)
        p50, p99, most = (us / 1000 for us in (hundredths[49], hundredths[98], max(calls[name])))
        print(f"  {text:27} {p50:>8,.0f} µs {p99:>8,.0f} µs {most:>8,.0f} µs")
