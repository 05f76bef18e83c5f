# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Runs a command while port 8080 listens, in a network namespace in which nothing is up yet."""

import fcntl
import socket
import struct
import subprocess
import sys

SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def main():
    """Exits as the command does."""
    with socket.socket() as server:
        fcntl.ioctl(server, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
        server.bind(("127.0.0.1", 8080))
        server.listen()
        return subprocess.run(sys.argv[1:], check=False).returncode


sys.exit(main())
