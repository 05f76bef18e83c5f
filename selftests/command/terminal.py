# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A real terminal: a pty whose other end is here."""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time

from harness import Fault, short


class Terminal:
    """A process in a session of its own, with this as its controlling terminal."""

    def __init__(self, box, words, env=None, **options):
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        for name in ("stdin", "stdout", "stderr"):
            options.setdefault(name, slave)
        env = box.env({"TERM": "xterm-256color", "PS1": "READY> ", **(env or {})})
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            words, cwd=box.dir, env=env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0), **options)
        os.close(slave)
        self.seen = ""

    def read(self, seconds):
        """Takes what comes within this time into self.seen; False at the end of the other side."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def type(self, text):
        os.write(self.master, text.encode())

    def wait_for(self, pattern, seconds=20, start=0):
        """The match, in what was shown from start on."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.seen[start:])
            if match:
                return match
            if time.monotonic() > end or not self.read(0.05):
                raise Fault(f"no {pattern!r} on the terminal: {short(self.seen[start:])}")

    def finish(self, seconds=20):
        """Reads until the process has ended; its status."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            self.read(0.02)
            if time.monotonic() > end:
                self.process.kill()
                raise Fault(f"still runs after {seconds} s; shown: {short(self.seen)}")
        while select.select([self.master], [], [], 0)[0] and self.read(0):
            pass
        os.close(self.master)
        return self.process.returncode


def shell(box):
    """An interactive shell, which has jobs."""
    terminal = Terminal(box, ["bash", "--norc", "--noprofile", "-i"])
    terminal.wait_for("READY> ")
    return terminal
