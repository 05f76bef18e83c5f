# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the users of one key share: budget, breaker, pacing and cooling, from the rules.

Deposits and results are kept as they came, each with the number of its slice since the clock began;
nothing is kept in rings or counters.
"""

import model
from model import NS_MAX, PPM

CLOSED, OPEN, HALF_OPEN = range(3)
AUTOMATIC, FORCED_OPEN, FORCED_CLOSED, METRICS_ONLY = range(4)
SUCCESS, FAILURE = 1, 2
STOP_BUDGET, STOP_OPEN, STOP_COOLING, STOP_PACED = range(21, 25)
READMIT, PROBE = 0x100, 0x800
NS_PER_S = 10**9


class Budget:
    """A reserve that refills, and deposits that lapse ten slices later."""

    def __init__(self, rules, now):
        self.rules, self.since = rules, now
        self.reserve, self.deposits, self.reserve_took = rules.initial, {}, 0

    def balance(self):
        return self.reserve + sum(self.deposits.values())

    def slice(self, now):
        return now // (self.rules.window_ns // 10)

    def ages(self, now):
        """Each deposit times the slices it has left, in 64 bits."""
        return sum((at + 10 - self.slice(now)) * x for at, x in self.deposits.items()) % (1 << 64)

    def refill(self, now):
        """Only whole nanoseconds that made whole micro-tokens are used up."""
        r = self.rules
        room = r.reserve_cap - self.reserve
        tokens = r.refill * (now - self.since) // NS_PER_S
        if r.refill == 0 or room <= 0 or tokens >= room:
            self.reserve += max(room, 0) if r.refill else 0
            self.since = now
        elif tokens:
            self.reserve += tokens
            self.since += -(-tokens * NS_PER_S // r.refill)

    def advance(self, now):
        r = self.rules
        if r.window_ns:
            oldest = self.slice(now) - 9
            self.deposits = {at: x for at, x in self.deposits.items() if at >= oldest}
        self.refill(now)
        self.reserve -= min(self.reserve, max(0, self.balance() - r.capacity))

    def deposit(self, amount, now):
        amount = min(amount, self.rules.capacity - self.balance())
        if self.rules.window_ns:
            at = self.slice(now)
            self.deposits[at] = self.deposits.get(at, 0) + amount
        else:
            self.reserve += amount
        return amount

    def take(self, amount):
        left = taken = min(amount, self.balance())
        for at in sorted(self.deposits):
            part = min(left, self.deposits[at])
            self.deposits[at] -= part
            left -= part
        self.reserve, self.reserve_took = self.reserve - left, left
        return taken

    def cost(self, throttled, unknown):
        r = self.rules
        return r.cost_throttled if throttled else r.cost_unknown if unknown else r.cost_transient

    def admits(self, cost):
        above = self.rules.admit_above
        return self.balance() >= cost and (above == 0 or self.balance() > above)


class Breaker:
    """generation is None after a change of state, until the next step stamps a fresh one.

    born is the order in which generations were given out.
    """

    def __init__(self, rules):
        self.rules, self.mode, self.growth, self.born = rules, AUTOMATIC, 0, {0: -1}
        self.enter(CLOSED)
        self.closed_at = None
        self.forget()

    def enter(self, state):
        self.state, self.generation = state, None
        self.out = self.ok = self.failed = self.lost = 0

    def forget(self):
        self.results, self.counted, self.streak = [], 0, 0

    def enforced(self):
        return self.mode == AUTOMATIC and not self.rules.flags & 2

    def refuses_all(self):
        return self.mode == FORCED_OPEN or (self.state == OPEN and self.enforced())

    def probing(self):
        return self.state == HALF_OPEN and self.enforced()

    def ramping(self, now):
        return (
            self.state == CLOSED
            and self.closed_at is not None
            and now - self.closed_at < self.rules.ramp_ns
        )

    def slice(self, now):
        r = self.rules
        return now // (r.window_ns // 10) if r.window_ns else 0

    def lapse(self, newest):
        self.results = [x for x in self.results if x[0] > newest - 10]

    def advance(self, now):
        if self.state == OPEN and now >= self.half_open_at:
            self.enter(HALF_OPEN)
        if self.rules.window_ns:
            self.lapse(self.slice(now))

    def open(self, now, rnd):
        r, time = self.rules, self.rules.open_ns
        for _ in range(self.growth if r.open_growth_ppm else 0):
            time = min(time * r.open_growth_ppm // PPM, r.open_cap_ns)
        width = time * r.open_jitter_ppm // PPM
        above = max(0, time + width - r.open_cap_ns)
        low = max(0, time - above)
        self.half_open_at = min(now + model.uniform(low, time + width - above, rnd), NS_MAX)
        self.growth = min(self.growth + 1, 255)
        self.enter(OPEN)
        self.forget()

    def close(self, now):
        self.growth, self.closed_at = 0, now
        self.enter(CLOSED)
        self.forget()

    def totals(self):
        if not (self.rules.window_ns or self.rules.window_calls):
            return 0, 0, 0
        return len(self.results), sum(x[1] for x in self.results), sum(x[2] for x in self.results)

    def trips(self):
        r = self.rules
        calls, failures, slow = self.totals()
        enough = calls >= max(r.min_calls, 1)
        return (
            (r.consecutive and self.streak >= r.consecutive)
            or (enough and r.ratio_ppm and failures * PPM >= calls * r.ratio_ppm)
            or (enough and r.slow_ppm and slow * PPM >= calls * r.slow_ppm)
        )

    def agreed(self):
        seen = {x[3] for x in self.results}
        bad = {x[3] for x in self.results if x[1] or x[2]}
        return len(bad) >= min(max(self.rules.min_reporters, 1), len(seen))

    def count(self, now, who, failure, slow):
        at = self.slice(now)
        if self.rules.window_calls:
            at = self.counted // (self.rules.window_calls // 10)
            self.counted += 1
            self.lapse(at)
        self.results.append((at, failure, slow, who))
        self.streak = min(self.streak + 1, 65535) if failure else 0

    def judge(self, now, rnd, failure):
        r = self.rules
        self.failed += failure
        self.ok += not failure
        results = self.ok + self.failed
        if r.half_open_ppm:
            if results < r.probes:
                return
            failure = self.failed * PPM >= results * r.half_open_ppm
        elif not failure and self.ok < max(r.successes_to_close, 1):
            return
        if failure:
            self.open(now, rnd)
        else:
            self.close(now)

    def record(self, now, rnd, who, event, generation, took, probe):
        r = self.rules
        counts_as = {model.OK: SUCCESS, model.PERMANENT: SUCCESS}.get(event, FAILURE)
        if event == model.THROTTLED:
            counts_as = r.throttled_half_open if self.state == HALF_OPEN else r.throttled
        if counts_as == 0 or self.mode in (FORCED_OPEN, FORCED_CLOSED):
            return
        failure, slow = counts_as == FAILURE, bool(r.slow_ppm) and took > r.slow_ns
        since = self.born[generation] >= self.born[self.generation]
        current = generation == self.generation or (since and not self.enforced())
        if self.state == HALF_OPEN and (probe or current):
            self.judge(now, rnd, failure or slow)
        elif self.state == CLOSED and since:
            self.count(now, who, failure, slow)
            if self.trips() and self.agreed():
                self.open(now, rnd)

    def admits(self, now, rnd):
        r = self.rules
        if self.refuses_all():
            return False
        if self.probing():
            return self.out + (self.ok + self.failed if r.half_open_ppm else 0) < r.probes
        if not (self.ramping(now) and self.enforced()):
            return True
        mixed = rnd * 0x9E3779B97F4A7C15 % (1 << 64)
        return mixed * r.ramp_ns >> 64 < now - self.closed_at

    def returned(self):
        self.out -= 1
        self.lost = 0

    def is_lost(self, now, rnd):
        self.out -= 1
        self.lost += 1
        if self.lost >= self.rules.probes:
            self.lost = 0
            self.judge(now, rnd, True)

    def is_new(self, now):
        idle = self.state == CLOSED and self.streak == self.growth == self.totals()[0] == 0
        return idle and not self.ramping(now)


class Key:
    def __init__(self, policy, now):
        self.policy = policy
        self.budget = Budget(policy.budget, now) if policy.budget.capacity else None
        self.breaker = Breaker(policy.breaker)
        self.has_breaker = policy.breaker.probes > 0
        self.touched, self.cooling, self.pace_next = now, 0, 0

    def advance(self, now):
        if now > self.touched:
            if self.has_breaker:
                self.breaker.advance(now)
            if self.budget:
                self.budget.advance(now)
            self.touched = now

    def is_new(self):
        now = self.touched
        full = not self.budget or self.budget.balance() >= self.policy.budget.initial
        return self.breaker.is_new(now) and max(self.cooling, self.pace_next) <= now and full

    # -------- one step --------

    def deposit_request(self, op, now):
        """Once, when the operation is admitted for the first time."""
        if self.budget and (op.start_ns == 0 or op.generation == 0):
            self.budget.deposit(self.policy.budget.deposit_request, now)

    def own_delay(self, op, step):
        return model.delay(self.policy.backoff, op, step.rnd, step.ceiling)

    def refuse_open(self, op, step):
        p, breaker, start = self.policy, self.breaker, op.start_ns or step.now
        begins = breaker.half_open_at if breaker.state == OPEN else 0
        deadline = min(max(step.now, begins) + self.own_delay(op, step), NS_MAX)
        if not (p.flags & model.WAIT_OPEN and op.attempt):
            return op._replace(verdict=STOP_OPEN, deadline_ns=deadline)
        if model.too_late(p, start, deadline):
            return op._replace(verdict=model.STOP_ELAPSED, deadline_ns=0)
        op = op._replace(verdict=model.RETRY, start_ns=start, deadline_ns=deadline)
        return op._replace(flags=op.flags | READMIT)

    def begin(self, op, step):
        """What it answers, and whether that took a probe."""
        p, breaker, now = self.policy, self.breaker, step.now
        paced = p.pacing.pace_ns and (op.attempt or p.flags & model.PACE_ALL)
        slot = max(now, self.pace_next) if paced else now
        if self.cooling > now:
            return op._replace(verdict=STOP_COOLING, deadline_ns=self.cooling), False
        if self.has_breaker and not breaker.admits(now, step.rnd):
            return self.refuse_open(op, step), False
        if slot - now > p.pacing.horizon_ns:
            return op._replace(verdict=STOP_PACED, deadline_ns=slot), False
        if paced:
            self.pace_next = min(slot + p.pacing.pace_ns, NS_MAX)
        leased = self.has_breaker and breaker.probing()
        breaker.out += leased
        self.deposit_request(op, now)
        op = op._replace(
            verdict=model.GO,
            flags=op.flags | (PROBE if leased else 0),
            start_ns=op.start_ns or now,
            deadline_ns=slot,
            generation=breaker.generation,
        )
        return op, leased

    def imply_begin(self, op, now):
        breaker, generation = self.breaker, 0
        asked = breaker.mode == FORCED_OPEN or (breaker.state != CLOSED and breaker.enforced())
        if not (self.has_breaker and asked):
            self.deposit_request(op, now)
            generation = breaker.generation
        return op._replace(start_ns=now, deadline_ns=now, generation=generation)

    def succeed(self, op, now, kept):
        """What comes back of the last charge."""
        rules, back = self.policy.budget, 0
        if op.attempt and rules.flags & 1 and not kept:
            throttled, unknown = op.flags & model.AFTER_THROTTLED, op.flags & model.AFTER_UNKNOWN
            back = self.budget.deposit(self.budget.cost(throttled, unknown), now)
        again = rules.deposit_retry_success if op.attempt else rules.deposit_first_success
        self.budget.deposit(again, now)
        return back

    def cool(self, op, now):
        p = self.policy
        refused = op.flags & model.NO_RETRY or (
            p.hint_limit_ns and op.hint_ns > p.hint_limit_ns and not p.flags & model.HINT_CLAMP
        )
        if p.flags & model.HINT_SHARED and op.flags & model.HINT and not refused:
            hint = min(op.hint_ns, p.hint_limit_ns or NS_MAX, NS_MAX)
            self.cooling = max(self.cooling, min(now + hint, NS_MAX))

    def report(self, op, step, probe):
        if self.has_breaker:
            took = max(0, step.now - op.deadline_ns)
            self.breaker.record(
                step.now, step.rnd, step.reporter, op.event, op.generation, took, probe
            )
        if op.event in (model.TRANSIENT, model.THROTTLED, model.UNKNOWN):
            if self.budget:
                self.budget.take(self.policy.budget.drain)
            self.cool(op, step.now)

    def retry_at(self, op, step):
        """The delay, and the deadline: after an open breaker and a cooling, never with them."""
        p, now = self.policy, step.now
        own = wait = self.own_delay(op, step)
        begins, adds = now, own
        if op.flags & model.HINT:
            adds = wait = model.hinted(p, op, own, step.rnd, step.ceiling)
        if self.cooling > (now + wait if op.flags & model.HINT else now):
            begins, adds = self.cooling, own
        if self.breaker.state == OPEN and self.breaker.refuses_all():
            begins = max(begins, self.breaker.half_open_at)
        return wait, min(begins + adds, NS_MAX)

    def fail(self, op, step):
        """The verdict, and what it charges."""
        p, budget = self.policy, self.budget
        stopped = op._replace(deadline_ns=0)
        reason = model.refusal(p, op)
        if reason:
            return stopped._replace(verdict=reason), 0
        wait, deadline = self.retry_at(op, step)
        is_open = self.has_breaker and self.breaker.refuses_all()
        if is_open and not p.flags & model.WAIT_OPEN:
            return stopped._replace(verdict=STOP_OPEN, deadline_ns=deadline), 0
        if model.too_late(p, op.start_ns, deadline):
            return stopped._replace(verdict=model.STOP_ELAPSED), 0
        cost = budget.cost(op.event == model.THROTTLED, op.event == model.UNKNOWN) if budget else 0
        if budget and not budget.admits(cost):
            return stopped._replace(verdict=STOP_BUDGET), 0
        if budget:
            budget.take(cost)
        readmit = READMIT if self.has_breaker or p.pacing.pace_ns else 0
        op = model.granted(p, op, op.start_ns, op.flags, wait, deadline)
        return op._replace(flags=op.flags | readmit), cost

    def apply(self, op, step, probe):
        """The op afterwards, micro-tokens charged and returned, and whether it took a probe."""
        charged = back = leased = 0
        kept = model.keeps_backoff(self.policy, op, step.now)
        op = op._replace(start_ns=min(op.start_ns, step.now), flags=op.flags & 0xFF)
        if op.event == model.BEGIN:
            op, leased = self.begin(op, step)
        elif op.event == model.CANCELLED:
            op = model.finished(op, op.flags & model.KEPT)
        else:
            if op.start_ns == 0:
                op = self.imply_begin(op, step.now)
            if op.event == model.OK and self.budget:
                back = self.succeed(op, step.now, kept)
            self.report(op, step, probe)
            if op.event != model.OK:
                op, charged = self.fail(op, step)
            elif kept:
                op = op._replace(verdict=model.DONE)
            else:
                op = model.finished(op, op.flags & model.KEPT)
        kernels = op.flags & (READMIT | PROBE | model.CLAMPED)
        op = op._replace(event=0, hint_ns=0, flags=op.flags & model.KEPT | kernels)
        return op, charged, back, leased
