#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""An independent model of policies, delays, limits, hints and verdicts, in exact integers.

    oracle.py policies|ops VECTORS COUNT [SEED]

runs VECTORS (see vectors.c) and judges every record it prints. COUNT is in policies, or in pairs
of a policy and an operation. Without SEED a fresh one is drawn; it is printed either way.
"""

import os
import struct
import subprocess
import sys
from collections import namedtuple

import model

OPS = 4
POLICY = "10I Q 64s 5Q 4B 3I 4Q 64Q"
REST = "13Q 4I 10I 4B I 6Q 2Q"
ANSWER = "5Q q " + "IBBHQQQIIQQQ " * 2
POLICY_FIELDS = 10 + 1 + 1 + 5 + 4 + 3 + 4 + 64
ANSWER_FIELDS = 6 + 2 * 12
BATCH = 4096
SHOWN = 20

Answer = namedtuple("Answer", "now rnd ceiling ceiling_next delay ret")


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
    policy = model.policy(fields[:POLICY_FIELDS], ())
    wrong = []
    for i in range(OPS):
        first = POLICY_FIELDS + i * ANSWER_FIELDS
        wrong += judge_answer(policy, fields[first : first + ANSWER_FIELDS])
    return wrong


def run(kind, vectors, count, seed):
    if kind == "policies":
        layout, judge = f"<{POLICY} {REST} q", judge_policy
    else:
        skipped = struct.calcsize(f"<{REST}")
        layout, judge = f"<{POLICY} {skipped}x {ANSWER * OPS}", judge_ops
        count = -(-count // OPS)
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
    unit = seen * (OPS if kind == "ops" else 1)
    print(f"{unit} {kind} judged, {bad} wrong, seed {seed}")
    return 1 if bad else 0


def main(arguments):
    if len(arguments) not in (3, 4) or arguments[0] not in ("policies", "ops"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    seed = int(arguments[3], 0) if len(arguments) == 4 else int.from_bytes(os.urandom(7))
    return run(arguments[0], arguments[1], int(arguments[2]), seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
