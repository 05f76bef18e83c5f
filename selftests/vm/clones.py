# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What two clones of a machine have to agree on, and what not. See selftests/kretry/clone.c."""

GO, STOP_ELAPSED = 1, 20
# How late a clock that counts instructions may find an op, and how near two times are the same.
LATE_NS = 5_000_000
SAME_NS = 1_000_000
OPS = DRAWS = 32
# With these a clone that is told puts off what waits; LIMITED has no room for that.
PUT_OFF = ("full", "equal", "proportional", "boottime", "wait")
LIMITED, DUE = "limited", "due"


class Op:
    """One that waited when the machine was saved: in ns when it was due, by what delay, when it came."""

    def __init__(self, kind, deadline, delay, woke, verdict):
        self.kind, self.deadline, self.delay = kind, int(deadline), int(delay)
        self.woke, self.verdict = int(woke), int(verdict)

    def late(self):
        return self.woke - self.deadline


class Clone:
    """What one clone has told."""

    def __init__(self, lines):
        self.ops, self.draws, self.redrawn = {}, [], {}
        self.traced = self.went_on = None
        for line in lines:
            self.take(*line.split())

    def take(self, word="", *rest):
        if word == "op":
            self.ops[rest[0]] = Op(*rest[1:])
        elif word == "draw":
            self.draws.append(int(rest[0]))
        elif word == "stat":
            self.redrawn[rest[0]] = int(rest[1])
        elif word == "traced":
            self.traced = int(rest[0])
        elif word == "went-on":
            self.went_on = int(rest[0])

    def of(self, *kinds):
        return [op for op in self.ops.values() if op.kind in kinds]

    def kinds(self):
        """Waits are not there on every kernel."""
        return [kind for kind in PUT_OFF if self.of(kind)]


def some(found):
    """A list of faults as one, or None."""
    return f"{found[0]}{f' and {len(found) - 1} more' if len(found) > 1 else ''}" if found else None


def complete(clone, kinds):
    faults = [f"{len(clone.of(kind))} ops {kind}" for kind in kinds if len(clone.of(kind)) != OPS]
    faults += [f"op {number} never came" for number, op in clone.ops.items() if not op.woke]
    if len(clone.draws) != DRAWS or clone.went_on is None:
        faults.append(f"{len(clone.draws)} draws")
    return some(faults)


def wrong(clone, kinds, verdict, low, high):
    """Ops that came as something else, or later than their deadline by another amount than they may."""
    faults = []
    for op in clone.of(*kinds):
        if op.verdict != verdict:
            faults.append(f"{op.kind}: verdict {op.verdict}")
        elif not low(op) <= op.woke <= high(op) + LATE_NS:
            faults.append(f"{op.kind}: {op.late() / 1e9} s after its deadline, its delay is {op.delay / 1e9}")
    return some(faults)


def on_time(clone, kinds):
    return wrong(clone, kinds, GO, lambda op: op.deadline, lambda op: op.deadline)


def put_off(clone):
    return wrong(clone, PUT_OFF, GO, lambda op: op.deadline, lambda op: op.deadline + op.delay)


def at_once(clone, kind, verdict):
    return wrong(clone, [kind], verdict, lambda op: clone.went_on, lambda op: clone.went_on)


def quarters(clone):
    """By what part of its delay each op is put off: every quarter of it has to be there."""
    parts = {min(4 * op.late() // op.delay, 3) for op in clone.of(*PUT_OFF)}
    return some([f"none put off by {n} to {n + 1} quarters of its delay" for n in range(4) if n not in parts])


def counts(clone, kinds):
    wanted = {kind: OPS if kind in kinds else 0 for kind in clone.redrawn}
    if clone.redrawn != wanted:
        return f"redrawn: {clone.redrawn}"
    return None if clone.traced == sum(wanted.values()) else f"{clone.traced} in the trace"


def same_times(a, b, kinds):
    return sum(abs(op.woke - b.ops[number].woke) <= SAME_NS for number, op in a.ops.items() if op.kind in kinds)


def apart(a, b, kinds):
    """By chance one of all these ops may come at the same time in both, hardly two."""
    same = same_times(a, b, kinds)
    return f"{same} ops came at the same time in both" if same > 1 else None


def in_step(a, b, kinds):
    apart_now = len(a.of(*kinds)) - same_times(a, b, kinds)
    return f"{apart_now} ops came at different times" if apart_now else None


def same_draws(a, b):
    return sum(x == y for x, y in zip(a.draws, b.draws))


def judge(clones):
    """Results: name and what is wrong, None for nothing."""
    a, b, c, d = (clones[name] for name in ("told-1", "told-2", "untold-1", "untold-2"))
    kinds = [*a.kinds(), LIMITED]
    incomplete = some([x for x in (complete(clone, [DUE, *kinds]) for clone in (a, b, c, d)) if x])
    yield "every_op_comes_back_once", incomplete
    if incomplete:
        return
    yield "told_clones_wake_at_different_times", apart(a, b, PUT_OFF)
    yield "told_clones_draw_different_numbers", f"{same_draws(a, b)} are the same" if same_draws(a, b) else None
    for name, x in (("told_1", a), ("told_2", b)):
        yield f"{name}_puts_off_by_at_most_the_own_delay", put_off(x)
        yield f"{name}_puts_off_by_all_of_the_own_delay", quarters(x)
        yield f"{name}_stops_what_passes_its_limit", at_once(x, LIMITED, STOP_ELAPSED)
        yield f"{name}_leaves_what_was_due", at_once(x, DUE, GO)
        yield f"{name}_counts_what_it_puts_off", counts(x, kinds)
    yield "untold_clones_wake_at_the_same_times", in_step(c, d, kinds)
    yield "untold_clones_draw_the_same_numbers", "they differ" if same_draws(c, d) < DRAWS else None
    for name, x in (("untold_1", c), ("untold_2", d)):
        yield f"{name}_wakes_at_its_deadlines", on_time(x, kinds) or at_once(x, DUE, GO)
        yield f"{name}_counts_nothing", counts(x, [])
