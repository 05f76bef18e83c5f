# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""asyncio: any number of retries wait in the kernel, behind the one file descriptor of the device."""

import asyncio
import errno
import fcntl
import itertools
import os

from . import abi, clock
from .abi import Command, Event, Verdict
from .operation import Operation, Series

READ_OPS = 64
# A queue that cannot take it: then a timer of the loop's own.
NO_ROOM = (errno.ENOBUFS, errno.EOPNOTSUPP)


class Queue:
    """What waits on a device, and the futures of those who wait for it."""

    def __init__(self, device, loop):
        self.device = device
        self.loop = loop
        self.waiting = {}
        self.numbers = itertools.count(1)
        loop.add_reader(device, self.take_due)

    def close(self):
        """Those who still wait are cancelled."""
        if not self.loop.is_closed():
            self.loop.remove_reader(self.device)
            for future in self.waiting.values():
                future.cancel()
        self.waiting.clear()

    def future(self, number):
        """Of the op of that user_data: its fields when it is due."""
        self.waiting[number] = self.loop.create_future()
        return self.waiting[number]

    def take_due(self):
        """The device is readable. That it then has nothing to give is no error."""
        try:
            due = os.read(self.device, READ_OPS * abi.OP.size)
        except BlockingIOError:
            return
        for at in range(0, len(due), abi.OP.size):
            fields = abi.OP.unpack(due[at:at + abi.OP.size])
            future = self.waiting.pop(fields["user_data"], None)
            if future is None or future.done():
                self.give_back(fields)
            else:
                future.set_result(fields)

    def give_back(self, fields):
        """An attempt that nobody will make may be a probe that others wait for."""
        if fields["verdict"] == Verdict.GO:
            fields = dict(fields, event=int(Event.CANCELLED), flags=fields["flags"] & abi.OP_IDEMPOTENT)
            fcntl.ioctl(self.device, int(Command.STEP), abi.OP.pack(**fields))

    def forget(self, number, future):
        """Whoever waited has been cancelled."""
        self.waiting.pop(number, None)
        if future.done() and not future.cancelled():
            self.give_back(future.result())
            return
        try:
            abi.call(self.device, Command.CANCEL, abi.CANCEL, user_data=number)
        except FileNotFoundError:
            # It will be read, and given back then.
            pass

    async def wait(self, number):
        """Until the op is due: its fields."""
        future = self.waiting[number]
        try:
            return await future
        except asyncio.CancelledError:
            self.forget(number, future)
            raise


def queue_of(kretry):
    """The queue of the running loop; None where it has to use timers of its own: without the module, in a
    child of fork(), and beside another loop that uses the same Kretry."""
    loop = asyncio.get_running_loop()
    if kretry.device is None or kretry.pid != os.getpid():
        return None
    if kretry.queue is None or kretry.queue.loop.is_closed():
        kretry.queue = Queue(kretry.device, loop)
    return kretry.queue if kretry.queue.loop is loop else None


class AioOperation(Operation):
    """An operation whose waits are those of a loop."""

    def __init__(self, policy, key=0, idempotent=False):
        super().__init__(policy, key, idempotent)
        self.queue = queue_of(policy.kretry)

    def report(self, event, flags=0, hint_ns=0):
        """With QUEUE, so that the kernel waits and admits."""
        if self.queue is None or event in (Event.OK, Event.CANCELLED):
            return super().report(event, flags, hint_ns)
        self.fields["user_data"] = next(self.queue.numbers)
        try:
            super().report(event, flags | abi.OP_QUEUE, hint_ns)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return super().report(event, flags, hint_ns)
        if self.is_queued:
            self.queue.future(self.fields["user_data"])
        return self.verdict

    @property
    def is_queued(self):
        """Whether it waits in the kernel."""
        return bool(self.fields["flags"] & abi.OP_QUEUED)

    def forget(self):
        """Take it back, if it waits."""
        if self.is_queued and self.queue.waiting.get(self.fields["user_data"]):
            self.queue.forget(self.fields["user_data"], self.queue.waiting[self.fields["user_data"]])

    async def aio_admit(self):
        """Wait until the next attempt may start: GO or RETRY, now, or a stop."""
        if self.verdict != Verdict.RETRY:
            self.begin()
        while not self.verdict.is_stop:
            if self.is_queued:
                self.fields = await self.queue.wait(self.fields["user_data"])
                continue
            while left := clock.ahead(self.policy.clock, self.deadline_ns):
                await asyncio.sleep(left)
            if not self.waits_to_begin():
                break
            self.begin()
        return self.verdict


class AioAttempts(Series):
    """An asynchronous iterator of attempts."""

    def __del__(self):
        super().__del__()
        self.operation.forget()

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.ready():
            raise StopAsyncIteration
        return self.admitted(await self.operation.aio_admit())
