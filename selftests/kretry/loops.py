# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Retries on an asyncio loop: the device's descriptor is all it waits on.

loops.py COUNT STEP_NS SEED     queues COUNT retries in an order of its own, the delay of retry I being
                                (I + 1) * STEP_NS, and prints "I verdict attempt lateness" as each comes
"""

import asyncio
import fcntl
import os
import random
import struct
import sys
import time

TRANSIENT = 4
QUEUE, QUEUED = 0x0008, 0x1000
TABLE = 6
NO_LIMIT = 0xffffffff
MAX = 2**63 - 1

# The layouts of uapi/linux/kretry.h; "=" is without padding, which the header has none of.
OP = struct.Struct("=IBBHQQQIIQQQ")
BACKOFF = struct.Struct("=BBBBIIIQQQQ64Q")
POLICY = struct.Struct("=10IQ64s5Q")
REST = (13 * 8 + 16) + (10 * 4 + 8 + 6 * 8) + 2 * 8


def command(number):
    return 0xd9 << 8 | number


POLICY_CREATE, STEP = command(1), command(7)


class Retries:
    """Futures that are done when the kernel says that their attempt may start."""

    def __init__(self, table):
        self.device = os.open("/dev/kretry", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self.policy = self.create(table)
        self.waiting = {}
        asyncio.get_running_loop().add_reader(self.device, self.on_due)

    def create(self, table):
        size = POLICY.size + BACKOFF.size + REST
        argument = bytearray(
            POLICY.pack(size, 0, 0, 0, 1, NO_LIMIT, 0, 0, 0, 0, 0, b"", 0, 0, 0, 0, 0) +
            BACKOFF.pack(TABLE, 0, len(table), 0, 0, 0, 0, 0, 0, MAX, 0,
                         *table, *[0] * (64 - len(table))) + bytes(REST))
        fcntl.ioctl(self.device, POLICY_CREATE, argument)
        return struct.unpack_from("=I", argument, 4)[0]

    def failed(self, name, attempt):
        """A future of the next attempt, and its deadline."""
        op = bytearray(OP.pack(self.policy, TRANSIENT, 0, QUEUE, 0, name, 0, attempt, 0, 0, 0, 0))
        fcntl.ioctl(self.device, STEP, op)
        fields = OP.unpack(op)
        assert fields[3] & QUEUED
        self.waiting[name] = asyncio.get_running_loop().create_future()
        return self.waiting[name], fields[11]

    def on_due(self):
        try:
            due = os.read(self.device, 64 * OP.size)
        except BlockingIOError:
            return
        for fields in OP.iter_unpack(due):
            self.waiting.pop(fields[5]).set_result(fields)


async def retry(retries, number):
    future, deadline = retries.failed(number, number)
    fields = await future
    print(number, fields[2], fields[7], time.monotonic_ns() - deadline, flush=True)


async def main(count, step, seed):
    retries = Retries([(i + 1) * step for i in range(count)])
    order = list(range(count))
    random.Random(seed).shuffle(order)
    await asyncio.gather(*(retry(retries, number) for number in order))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
