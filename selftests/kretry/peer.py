# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A program that knows of kretry only what the header says, and of its peer in C nothing at all.

peer.py spend URL             retries after failures until the budget is exhausted; prints how many
peer.py fail URL COUNT        COUNT failed attempts; prints the verdict of each
peer.py begin URL             asks to start an attempt; prints the verdict, and "probe" if it is one
peer.py probe-ok URL          the same, and if it is admitted reports success
peer.py hold URL              the same, prints, and waits with the attempt under way until killed
peer.py state URL             prints the state of the breaker and the whole tokens that are left
"""

import fcntl
import hashlib
import os
import signal
import struct
import sys

VERDICTS = {1: "go", 2: "retry", 3: "done", 21: "stop-budget", 22: "stop-open"}
STATES = ("closed", "open", "half-open")
BEGIN, OK, TRANSIENT = 1, 2, 4
OP_PROBE = 0x0800
SCOPE_KEY = 1
SECOND = 10**9
TOKEN = 10**6

# The layouts of uapi/linux/kretry.h; "=" is without padding, which the header has none of.
OP = struct.Struct("=IBBHQQQIIQQQ")
BACKOFF = struct.Struct("=BBBBIIIQQQQ64Q")
BUDGET = struct.Struct("=13QIIII")
BREAKER = struct.Struct("=10IBBBBIQQQQQQ")
PACING = struct.Struct("=QQ")
POLICY_HEAD = struct.Struct("=10IQ64s5Q")
STAT = struct.Struct("=IIIIQ8QQQQ16Q7Q8I5Q")


def command(number):
    return 0xd9 << 8 | number


POLICY_CREATE, STEP, STAT_COMMAND = command(1), command(7), command(11)


def key_of(url):
    first = hashlib.sha256(url.lower().encode()).digest()[:8]
    return int.from_bytes(first, "little") or 1


def policy():
    """Fixed 100 ms, 10 tokens of which a retry costs one, open after 3 failures for 5 s."""
    size = POLICY_HEAD.size + BACKOFF.size + BUDGET.size + BREAKER.size + PACING.size
    head = POLICY_HEAD.pack(size, 0, 0, 0, 1, 0xffffffff, 0, 0, 0, 0, 60 * SECOND, b"peers",
                            0, 0, 0, 0, 0)
    backoff = BACKOFF.pack(1, 0, 0, 0, 0, 0, 0, SECOND // 10, 0, 10 * SECOND, 0, *[0] * 64)
    budget = BUDGET.pack(10 * TOKEN, 10 * TOKEN, 0, 0, 0, 0, 0, 0, TOKEN, TOKEN, TOKEN, 0, 0,
                         0, 0, 0, 0)
    breaker = BREAKER.pack(3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 5 * SECOND, 5 * SECOND,
                           0, 10 * SECOND, 0, 0)
    return bytearray(head + backoff + budget + breaker + PACING.pack(0, 0))


class Caller:
    def __init__(self, url):
        self.device = os.open("/dev/kretry", os.O_RDWR | os.O_CLOEXEC)
        self.key = key_of(url)
        argument = policy()
        fcntl.ioctl(self.device, POLICY_CREATE, argument)
        self.policy = struct.unpack_from("=I", argument, 4)[0]

    def new_op(self):
        return bytearray(OP.pack(self.policy, 0, 0, 0, self.key, *[0] * 7))

    def report(self, op, event):
        struct.pack_into("=B", op, 4, event)
        fcntl.ioctl(self.device, STEP, op)
        fields = OP.unpack(op)
        return VERDICTS[fields[2]], bool(fields[3] & OP_PROBE)

    def state(self):
        argument = bytearray(STAT.pack(STAT.size, self.policy, SCOPE_KEY, 0, self.key,
                                       *[0] * 47))
        fcntl.ioctl(self.device, STAT_COMMAND, argument)
        fields = STAT.unpack(argument)
        return STATES[fields[41]], fields[34] // TOKEN


def spend(caller):
    count = 0
    while caller.report(caller.new_op(), TRANSIENT)[0] == "retry":
        count += 1
    print(count)


def fail(caller, count):
    verdicts = []
    for _ in range(int(count)):
        op = caller.new_op()
        caller.report(op, BEGIN)
        verdicts.append(caller.report(op, TRANSIENT)[0])
    print(*verdicts)


def begin(caller):
    op = caller.new_op()
    verdict, probe = caller.report(op, BEGIN)
    print(verdict, *["probe"] * probe, flush=True)
    return op, verdict


def probe_ok(caller):
    op, verdict = begin(caller)
    if verdict == "go":
        caller.report(op, OK)


def hold(caller):
    begin(caller)
    signal.pause()


def state(caller):
    print(*caller.state())


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
