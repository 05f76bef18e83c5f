# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A program that knows of its peer in C nothing at all: they have the policy's name and settings in common.

peer.py spend URL             retries after failures until the budget is exhausted; prints how many
peer.py fail URL COUNT        COUNT failed attempts; prints the verdict of each
peer.py begin URL             asks to start an attempt; prints the verdict, and "probe" if it is one
peer.py probe-ok URL          the same, and if it is admitted reports success
peer.py hold URL              the same, prints, and waits with the attempt under way until killed
peer.py state URL             prints the state of the breaker and the whole tokens that are left
"""

import signal
import sys

import kretry

TOKEN = 10**6
# Fixed 100 ms, 10 tokens of which a retry costs one, open after 3 failures for 5 s.
SETTINGS = {"strategy": "fixed", "base": "100ms", "cap": "10s", "jitter": "none", "max_retries": "unlimited",
            "hint_limit": 0, "linger": "1m", "budget": {"capacity": 10},
            "breaker": {"consecutive": 3, "open": "5s", "probe_timeout": "10s"}}


class Caller:
    def __init__(self, url):
        self.policy = kretry.Kretry(module=True).create("peers", **SETTINGS)
        self.url = url

    def new_op(self):
        return self.policy.operation(self.url)


def spend(caller):
    count = 0
    while caller.new_op().failed() == kretry.Verdict.RETRY:
        count += 1
    print(count)


def fail(caller, count):
    verdicts = []
    for _ in range(int(count)):
        op = caller.new_op()
        op.begin()
        verdicts.append(op.failed())
    print(*verdicts)


def begin(caller):
    op = caller.new_op()
    print(op.begin(), *["probe"] * op.is_probe, flush=True)
    return op


def probe_ok(caller):
    op = begin(caller)
    if op.verdict == kretry.Verdict.GO:
        op.ok()


def hold(caller):
    begin(caller)
    signal.pause()


def state(caller):
    key = caller.policy.stat(caller.url)
    print(key["state"], key["balance_utok"] // TOKEN)


ACTIONS = {"spend": spend, "fail": fail, "begin": begin, "probe-ok": probe_ok, "hold": hold,
           "state": state}


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ACTIONS:
        print(f"peer.py: one of {', '.join(ACTIONS)} and a URL, please", file=sys.stderr)
        return 2
    ACTIONS[arguments[0]](Caller(arguments[1]), *arguments[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
