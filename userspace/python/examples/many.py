# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Many requests at once to a server that fails every other one: all of them wait behind one descriptor.

many.py [COUNT]     prints how many were served, by how many requests, and the descriptors in use
"""

import asyncio
import os
import sys

import kretry


class Flaky:
    """An HTTP server that answers 503 to every other request."""

    def __init__(self):
        self.requests = 0

    async def serve(self, reader, writer):
        """One connection, one request."""
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        status = "503 Service Unavailable" if self.requests % 2 else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


class StatusError(Exception):
    """An answer that is none, with its status where kretry looks for one."""

    def __init__(self, status):
        super().__init__(status)
        self.status = status


async def get(host, port):
    """One request."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status = int((await reader.readline()).split()[1])
        await reader.read()
    finally:
        writer.close()
    if status >= 400:
        raise StatusError(status)


async def fetch(policy, host, port):
    """One request, as often as it takes."""
    async for attempt in policy.aio_attempts(idempotent=True):
        with attempt:
            await get(host, port)


async def main(count):
    """All of them."""
    flaky = Flaky()
    async with await asyncio.start_server(flaky.serve, "127.0.0.1", 0, backlog=4096) as server:
        host, port = server.sockets[0].getsockname()
        with kretry.Kretry() as k:
            policy = k.policy(base="100ms", cap="1s", max_retries="unlimited", max_elapsed="1m")
            tasks = [asyncio.create_task(fetch(policy, host, port)) for _ in range(count)]
            done = await asyncio.gather(*tasks)
            print(f"{len(done)} served, {flaky.requests} requests, {len(os.listdir('/proc/self/fd'))} descriptors"
                  f" at the end, decided by the {k.backend}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
