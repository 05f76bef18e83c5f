#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""An independent model of policies, delays, limits, hints and verdicts, in exact integers.

    oracle.py policies|ops|sequences VECTORS COUNT [SEED]

runs VECTORS (see vectors.c) and judges every record it prints. COUNT is in policies, in pairs of a
policy and an operation, or in events of one key after each other. Without SEED a fresh one is
drawn; it is printed either way.
"""

import os
import struct
import subprocess
import sys
from collections import namedtuple

import grants
import model
import shared

OPS, STEPS = 4, 100
POLICY = "10I Q 64s 5Q 4B 3I 4Q 64Q"
REST = "13Q 4I 10I 4B I 6Q 2Q"
ANSWER = "5Q q " + "IBBHQQQIIQQQ " * 2
POLICY_FIELDS = 10 + 1 + 1 + 5 + 4 + 3 + 4 + 64
ANSWER_FIELDS = 6 + 2 * 12
REST_FIELDS = 17 + 21 + 2
OP = "IBBHQQQIIQQQ"
STEP = f"5Q 5I 4x {OP} {OP} 6Q 5I 8B 4x"
OP_FIELDS = 12
SNAPSHOT_FIELDS = 19
FIRST_FIELDS = 10
STEP_FIELDS = FIRST_FIELDS + 2 * OP_FIELDS + SNAPSHOT_FIELDS
EVENT, LOST, MODE, UNDO = range(4)
BATCH = 256
SHOWN = 20

Answer = namedtuple("Answer", "now rnd ceiling ceiling_next delay ret")
Step = namedtuple("Step", "now rnd ceiling charged returned kind which reporter leased is_wait")
Snapshot = namedtuple(
    "Snapshot",
    "balance reserve ages cooling pace_next half_open generation calls failures slow streak"
    " state mode growth probes_out probes_ok probes_failed probes_lost is_new",
)


def shown(fields):
    """What a record says, without all that is zero."""
    parts = []
    for name, value in zip(fields._fields, fields):
        if hasattr(value, "_fields"):
            parts.append(shown(value))
        elif isinstance(value, tuple):
            kept = list(value)
            while kept and not kept[-1]:
                kept.pop()
            parts.append(f"{name}={kept}" if kept else "")
        elif value and value != bytes(64):
            parts.append(f"{name}={value}")
    return " ".join(part for part in parts if part)


def records(process, layout):
    size = struct.calcsize(layout)
    while chunk := process.stdout.read(size * BATCH):
        yield from struct.iter_unpack(layout, chunk)


def judge_policy(fields):
    policy = model.policy(fields[:POLICY_FIELDS], fields[POLICY_FIELDS:-1])
    want = model.check(policy)
    if want != fields[-1]:
        return [f"check gave {fields[-1]}, not {want}: {shown(policy)}"]
    return []


def judge_answer(policy, fields):
    answer = Answer(*fields[:6])
    before, after = model.Op(*fields[6:18]), model.Op(*fields[18:])
    wrong = []
    base = model.base(policy.backoff, before.event)
    low, high = model.ceiling(policy.backoff, base, before.attempt)
    if not low <= answer.ceiling <= high:
        wrong.append(f"ceiling {answer.ceiling} is not in [{low}, {high}]")
    if answer.ceiling > answer.ceiling_next:
        wrong.append(f"ceiling {answer.ceiling} falls to {answer.ceiling_next}")
    delay = model.delay(policy.backoff, before, answer.rnd, answer.ceiling)
    if delay != answer.delay:
        wrong.append(f"delay {answer.delay}, not {delay}")
    if not policy.backoff.floor_ns <= answer.delay <= policy.backoff.cap_ns:
        wrong.append(f"delay {answer.delay} is outside floor and cap")
    ret, op = model.decide(policy, before, answer)
    if ret != answer.ret:
        wrong.append(f"decide gave {answer.ret}, not {ret}")
    if op != after:
        wrong.append(f"op became {shown(after)}, not {shown(op)}")
    if not wrong:
        return wrong
    question = f"op {shown(before)} at {shown(answer)} with {shown(policy)}"
    return [f"{text}: {question}" for text in wrong]


def judge_ops(fields):
    policy = model.policy(fields[:POLICY_FIELDS])
    wrong = []
    for i in range(OPS):
        first = POLICY_FIELDS + i * ANSWER_FIELDS
        wrong += judge_answer(policy, fields[first : first + ANSWER_FIELDS])
    return wrong


class History:
    """One key as the model has it, and what the module does around its decisions."""

    def __init__(self, policy, start, counter):
        self.key = shared.Key(policy, start)
        self.counter = counter
        self.leases = {}
        self.grants = {}

    def fresh(self):
        """Never 0, though they come round."""
        born = self.key.breaker.born
        self.counter = self.counter % model.U32_MAX + 1
        born[self.counter] = len(born)
        return self.counter

    def take_lease(self, which):
        breaker, period = self.key.breaker, self.leases.pop(which, 0)
        return breaker.state == shared.HALF_OPEN and period == breaker.generation

    def event(self, step, op):
        probe, asked = self.take_lease(step.which), op
        if probe:
            self.key.breaker.returned()
        op, charged, returned, leased = self.key.apply(op, step, probe)
        step = step._replace(charged=charged, returned=returned, leased=int(leased))
        if leased:
            self.leases[step.which] = self.key.breaker.generation
            op = op._replace(generation=self.fresh())
        return self.hold(asked, op, step), step

    def hold(self, asked, op, step):
        """The op with the generation that it is told, which a wait knows beforehand."""
        waits = op.verdict == model.RETRY or (op.verdict == model.GO and op.deadline_ns > step.now)
        grant = self.grants.pop(step.which, None)
        if grant and asked.event == model.BEGIN and asked.start_ns:
            if waits or op.verdict != model.GO:
                self.grants[step.which] = grant
            return op._replace(generation=asked.generation) if grant.is_wait else op
        if waits:
            is_wait = step.is_wait and op.verdict == model.RETRY
            self.grants[step.which] = grants.Grant(self.key, asked, step.charged, is_wait)
            return op._replace(generation=self.fresh()) if is_wait else op
        return op

    def step(self, step, op):
        """The op and the step as they should be."""
        self.key.advance(step.now)
        breaker = self.key.breaker
        breaker.generation = breaker.generation or self.fresh()
        if step.kind == EVENT:
            return self.event(step, op)
        if step.kind == UNDO:
            op, back = self.grants[step.which].undone(self.key, op, step.now)
            return op, step._replace(returned=back)
        if step.kind == MODE:
            breaker.mode = step.which
        elif self.take_lease(step.which):
            breaker.is_lost(step.now, step.rnd)
        return op, step

    def snapshot(self):
        key, breaker, budget = self.key, self.key.breaker, self.key.budget
        is_open, tokens = breaker.state == shared.OPEN, (0, 0, 0)
        if budget:
            tokens = budget.balance(), budget.reserve, budget.ages(key.touched)
        return Snapshot(
            *tokens,
            key.cooling,
            key.pace_next,
            breaker.half_open_at if is_open else 0,
            breaker.generation or 0,
            *breaker.totals(),
            breaker.streak,
            breaker.state,
            breaker.mode,
            breaker.growth,
            breaker.out,
            breaker.ok,
            breaker.failed,
            breaker.lost,
            int(key.is_new()),
        )


def judge_step(history, fields):
    step, rest = Step(*fields[:FIRST_FIELDS]), fields[FIRST_FIELDS:]
    before, after = model.Op(*rest[:OP_FIELDS]), model.Op(*rest[OP_FIELDS : 2 * OP_FIELDS])
    seen = Snapshot(*rest[2 * OP_FIELDS :])
    op, want = history.step(step, before)
    wrong = grants.broken_bounds(history.key.policy.budget, seen)
    for name, is_so, should in (
        ("op", after, op),
        ("step", step, want),
        ("key", seen, history.snapshot()),
    ):
        if is_so != should:
            wrong.append(f"{name} became {shown(is_so)}, not {shown(should)}")
    return [f"{text}: op {shown(before)} at {shown(step)}" for text in wrong]


def judge_sequence(fields):
    """Up to its first step that went wrong."""
    first = POLICY_FIELDS + REST_FIELDS + 2
    policy = model.policy(fields[:POLICY_FIELDS], fields[POLICY_FIELDS : first - 2])
    history = History(policy, *fields[first - 2 : first])
    for i in range(STEPS):
        wrong = judge_step(history, fields[first + i * STEP_FIELDS : first + (i + 1) * STEP_FIELDS])
        if wrong:
            return [f"step {i}: {text} with {shown(policy)}" for text in wrong]
    return []


def run(kind, vectors, count, seed):
    per_record = 1
    if kind == "policies":
        layout, judge = f"<{POLICY} {REST} q", judge_policy
    elif kind == "sequences":
        layout, judge, per_record = f"<{POLICY} {REST} 2Q {STEP * STEPS}", judge_sequence, STEPS
    else:
        skipped = struct.calcsize(f"<{REST}")
        layout, judge, per_record = f"<{POLICY} {skipped}x {ANSWER * OPS}", judge_ops, OPS
    count = -(-count // per_record)
    bad = seen = 0
    command = [vectors, kind, str(seed), str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        for seen, fields in enumerate(records(process, layout), 1):
            wrong = judge(fields)
            bad += len(wrong)
            for text in wrong[: max(0, SHOWN - bad + len(wrong))]:
                print(f"seed {seed} record {seen}: {text}")
    if process.returncode or seen != count:
        print(f"seed {seed}: {' '.join(command)} stopped after {seen} of {count} records")
        return 1
    unit = "events" if kind == "sequences" else kind
    print(f"{seen * per_record} {unit} judged, {bad} wrong, seed {seed}")
    return 1 if bad else 0


def main(arguments):
    if len(arguments) not in (3, 4) or arguments[0] not in ("policies", "ops", "sequences"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    seed = int(arguments[3], 0) if len(arguments) == 4 else int.from_bytes(os.urandom(7))
    return run(arguments[0], arguments[1], int(arguments[2]), seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
