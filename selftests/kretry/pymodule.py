# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The Python module on the real one. pymodule.py TEST runs a test: 0 is passed, 1 with the reason on stderr."""

import asyncio
import errno
import os
import sys
import time

import kretry
import same
import textbook
from kretry import Verdict

SECOND, MS = 10**9, 10**6
# An interpreter takes its time before it looks at the clock.
LATE = 20 * MS
URL = "http://shop.example:80"
SETTINGS = {"strategy": "fixed", "base": "100ms", "jitter": "none"}
BREAKER = {"consecutive": 3, "open": "5s", "probe_timeout": "10s"}


def equal(is_so, should):
    """They must be."""
    assert is_so == should, f"{is_so!r}, not {should!r}"


def raises(kind, number, function, *args, **kwargs):
    """A call that must fail, with this errno."""
    try:
        function(*args, **kwargs)
    except kind as error:
        equal(getattr(error, "errno", None), number)
        return error
    raise AssertionError(f"no {kind.__name__}")


class Failing:
    """Always refused; it remembers when it was called."""

    def __init__(self, failures=10**9):
        self.failures, self.times = failures, []

    def __call__(self):
        self.times.append(time.monotonic_ns())
        if len(self.times) <= self.failures:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
        return "served"

    async def later(self):
        """For asyncio."""
        return self()

    def waits(self, *delays, early=0):
        """Exactly these lie between the calls, never less. Slots are times: a call may be later than the next."""
        equal(len(self.times), len(delays) + 1)
        for before, after, delay in zip(self.times, self.times[1:], delays):
            assert delay - early <= after - before < delay + LATE, f"{after - before} ns, not {delay}"


def fail(policy, count):
    """So many failed attempts: their verdicts."""
    verdicts = []
    for _ in range(count):
        operation = policy.operation(URL)
        operation.begin()
        verdicts.append(str(operation.failed()))
    return verdicts


# -------- the calls --------

def test_calls():
    """Each does what it says."""
    with kretry.Kretry(module=True) as k:
        equal((k.backend, k.reason, k.info()["abi_version"]), ("module", "", 1))
        policy = k.create("calls", linger="1m", budget={"capacity": 10}, breaker=BREAKER, **SETTINGS)
        equal([entry["name"] for entry in k.list()], ["calls"])
        equal(k.list()[0]["openers"], 1)
        other = k.open("calls")
        equal((other.name, other.parameters()), ("calls", policy.parameters()))
        equal(other.fields["base_ns"], 100 * MS)
        fail(policy, 3)
        state = other.stat(URL)
        equal((state["state"], state["mode"], state["window_calls"]), ("open", "automatic", 0))
        equal((state["balance_utok"], state["window_failures"]), (8 * 10**6, 0))
        counted = other.stat()
        equal((counted["go"], counted["events"]["transient"], counted["stops"]["stop-open"]), (3, 3, 1))
        other.force("closed", URL)
        equal(policy.stat(URL)["mode"], "closed")
        equal(policy.operation(URL).begin(), Verdict.GO)
        k.unlink("calls")
        equal(k.list(), [])
        other.close()
        k.shutdown()
        raises(OSError, errno.ENOENT, policy.stat)
        equal(k.policy().operation().begin(), Verdict.GO)
    raises(OSError, errno.EBADF, k.policy)


def test_errnos():
    """A call that fails is an OSError with its errno, and has changed nothing."""
    with kretry.Kretry() as k:
        policy = k.create("errnos", breaker=BREAKER, **SETTINGS)
        raises(FileExistsError, errno.EEXIST, k.create, "errnos", breaker=BREAKER, **SETTINGS | {"base": "1ms"})
        raises(FileNotFoundError, errno.ENOENT, k.open, "nothing")
        raises(FileNotFoundError, errno.ENOENT, k.unlink, "nothing")
        raises(OSError, errno.EINVAL, k.create, "long", linger="1000d")
        fail(policy, 3)
        time.sleep(5)
        probe = policy.operation(URL)
        equal((probe.begin(), probe.is_probe), (Verdict.GO, True))
        raises(OSError, errno.EBUSY, policy.close)
        before = dict(probe.fields)
        raises(OSError, errno.EINVAL, probe.report, kretry.Event.OK, 0x2)
        equal(probe.fields, before)
        equal(probe.ok(), Verdict.DONE)
        policy.close()
        equal(k.list(), [])


def test_denied():
    """Whoever may not open the node is told whom to ask, and decides for himself."""
    os.chmod("/dev/kretry", 0o600)
    try:
        if os.fork() == 0:
            os.setgroups([])
            os.setuid(1000)
            error = raises(kretry.NoModule, errno.EACCES, kretry.Kretry, module=True)
            assert "its group is" in str(error), error
            equal(kretry.Kretry().backend, "process")
            os._exit(0)
        equal(os.wait()[1], 0)
    finally:
        os.chmod("/dev/kretry", 0o666)


# -------- loops --------

def test_textbook():
    """The idiom and the same with kretry wait 1, 2, 4 and 8 s."""
    for retry in (textbook.retry, same.retry):
        server = Failing()
        raises(ConnectionRefusedError, errno.ECONNREFUSED, retry, server)
        server.waits(*(SECOND * delay for delay in (1, 2, 4, 8)))
        server = Failing(2)
        equal(retry(server), "served")
        server.waits(SECOND, 2 * SECOND)


def test_budget():
    """It ends the loop, and the exception says so."""
    with kretry.Kretry() as k:
        policy = k.policy(max_retries="unlimited", budget={"capacity": 3}, **SETTINGS)
        server = Failing()
        error = raises(ConnectionRefusedError, errno.ECONNREFUSED, kretry.retry(policy, key=URL)(server))
        server.waits(*[100 * MS] * 3)
        equal(error.__notes__, ["kretry: stop-budget after 4 attempts: the retry budget is exhausted"])
        server = Failing()
        raises(ConnectionRefusedError, errno.ECONNREFUSED, kretry.retry(policy, key=URL)(server))
        server.waits()


def test_breaker():
    """Open it refuses before the call, then lets a probe pass, whose success closes it."""
    with kretry.Kretry() as k:
        policy = k.policy(breaker=BREAKER, **SETTINGS)
        equal(fail(policy, 3), ["retry", "retry", "stop-open"])
        server = Failing(0)
        stopped = raises(kretry.Stopped, None, kretry.retry(policy, key=URL)(server))
        equal((str(stopped.verdict), server.times), ("stop-open", []))
        assert stopped.deadline_ns >= policy.now() + 4 * SECOND
        time.sleep(5)
        equal(kretry.retry(policy, key=URL)(server)(), "served")
        equal(policy.stat(URL)["state"], "closed")


def test_probe_of_a_loop_left():
    """Whoever leaves the loop, by whatever way, gives the probe back."""
    with kretry.Kretry() as k:
        policy = k.policy(breaker=BREAKER, **SETTINGS)
        fail(policy, 3)
        time.sleep(5)

        def leave():
            for _ in policy.attempts(URL):
                return policy.stat()["leases"]
            return None

        equal(leave(), 1)
        equal(policy.stat()["leases"], 0)
        for failure in (KeyboardInterrupt, ValueError):
            try:
                for attempt in policy.attempts(URL):
                    with attempt:
                        equal((policy.stat()["leases"], attempt.series.operation.is_probe), (1, True))
                        raise failure
            except failure:
                equal((policy.stat()["leases"], policy.stat(URL)["state"]), (0, "half-open"))


def test_pacing():
    """Retries of one key are spaced, and the loop waits for its slot."""
    with kretry.Kretry() as k:
        policy = k.policy(pacing={"every": "1s", "all": True}, **SETTINGS)
        server = Failing(3)
        equal(kretry.retry(policy)(server)(), "served")
        server.waits(*[SECOND] * 3, early=LATE)


# -------- asyncio --------

async def timed(policy, number, arrived):
    """A retry whose delay is its number; when it comes."""
    begun = time.monotonic_ns()
    async for attempt in policy.aio_attempts(number):
        with attempt:
            if attempt.number == 1:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
            arrived.append((number, time.monotonic_ns() - begun))


def test_asyncio_thousand():
    """In the order of their deadlines, none early, all behind one descriptor."""
    async def main():
        with kretry.Kretry() as k:
            policies = [k.policy(strategy="fixed", base=f"{i + 1}0s", jitter="none") for i in range(20)]
            before, arrived = len(os.listdir("/proc/self/fd")), []
            order = [i * 387 % 1000 for i in range(1000)]
            tasks = [asyncio.create_task(timed(policies[i % 20], i, arrived)) for i in order]
            await asyncio.sleep(9)
            equal((sum(policy.stat()["queued"] for policy in policies), arrived), (1000, []))
            equal(len(os.listdir("/proc/self/fd")), before)
            await asyncio.gather(*tasks)
            equal(sorted(number for number, _ in arrived), list(range(1000)))
            tens = [took // (10 * SECOND) for _, took in arrived]
            equal(tens, sorted(tens))
            equal(tens, [number % 20 + 1 for number, _ in arrived])
    asyncio.run(main())


def test_asyncio_cancelled():
    """It waits no longer in the kernel, and its token is back."""
    async def main():
        with kretry.Kretry() as k:
            policy = k.policy(strategy="fixed", base="1h", cap="1h", jitter="none", budget={"capacity": 3})
            task = asyncio.create_task(timed(policy, 7, []))
            await asyncio.sleep(0.5)
            equal((policy.stat()["queued"], policy.stat(7)["balance_utok"]), (1, 2 * 10**6))
            task.cancel()
            await asyncio.wait([task])
            equal((policy.stat()["queued"], policy.stat(7)["balance_utok"]), (0, 3 * 10**6))
    asyncio.run(main())


def test_asyncio_breaker_and_pacing():
    """The kernel admits: who waits for an open breaker comes when it lets a probe pass, one slot after another."""
    async def main():
        with kretry.Kretry() as k:
            policy = k.policy(breaker=BREAKER | {"wait_open": True, "consecutive": 1}, **SETTINGS)
            server = Failing(1)
            equal(await kretry.retry(policy)(server.later)(), "served")
            server.waits(5 * SECOND + 100 * MS)
            policy = k.policy(pacing={"every": "1s"}, **SETTINGS)
            server = Failing(3)
            equal(await kretry.retry(policy)(server.later)(), "served")
            server.waits(100 * MS, SECOND, SECOND, early=LATE)
    asyncio.run(main())


def test_asyncio_after_fork():
    """A child of fork() does not read what waits for its parent: it uses timers, as a second loop does."""
    with kretry.Kretry() as k:
        policy = k.policy(**SETTINGS)
        if os.fork() == 0:
            server = Failing(2)
            equal(asyncio.run(kretry.retry(policy)(server.later)()), "served")
            server.waits(100 * MS, 100 * MS)
            equal(k.queue, None)
            os._exit(0)
        equal(os.wait()[1], 0)
        for _ in range(2):
            server = Failing(1)
            equal(asyncio.run(kretry.retry(policy)(server.later)()), "served")
            server.waits(100 * MS)
            assert k.queue is not None


if __name__ == "__main__":
    globals()[f"test_{sys.argv[1]}"]()
