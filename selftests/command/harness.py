# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the tests of kretry run share: a directory of their own, the command started, faults told.

A test is a function with @test; its name, after the module's own subject, is the test's. It gets a
Box. What it raises is why it fails, and so is any process that it leaves behind.
"""

import os
import re
import subprocess
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
NO_DEVICE = "/nonexistent/kretry"

# What a loaded machine may be late by. Nothing may be early.
SLACK = 1.5


class Fault(Exception):
    """What is wrong."""


class Late(Fault):
    """It took too long, which may be the machine's doing: such a test is run once more, alone."""


def test(function):
    function.is_test = True
    function.sanitized = True
    return function


def unsanitized(function):
    """Its subject is what sanitizers change: memory, or signal handlers."""
    function.sanitized = False
    return function


def expect(condition, text):
    if not condition:
        raise Fault(text)


def same(what, got, wanted):
    if got != wanted:
        raise Fault(f"{what}: {short(got)}, not {short(wanted)}")


def short(value):
    text = repr(value)
    return text if len(text) < 600 else f"{text[:400]} … {text[-150:]} ({len(text)} characters)"


def between(what, value, low, high):
    if not low <= value <= high:
        raise (Late if value > high else Fault)(f"{what}: {value:.3f}, not {low:.3f} to {high:.3f}")


def until(what, condition, seconds=20):
    """Its first true value. Polls, for what nobody tells."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Fault(f"not within {seconds} s: {what}")
        time.sleep(0.003)


class Done:
    """A run of the command that has ended."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err or b"", seconds

    @property
    def text(self):
        return self.err.decode("utf-8", "replace")

    @property
    def lines(self):
        return self.text.splitlines()

    def ends(self, status, *patterns):
        """It has this status, and each pattern is in what it told on stderr."""
        if self.status != status:
            raise Fault(f"exit status {self.status}, not {status}; stderr: {short(self.text)}")
        for pattern in patterns:
            expect(re.search(pattern, self.text), f"no {pattern!r} on stderr: {short(self.text)}")
        return self


class Box:
    """What one test has: a directory, which it runs in, and the command."""

    def __init__(self, kretry, directory):
        self.kretry, self.dir = kretry, Path(directory)
        self.notes = []

    def note(self, text):
        """Something measured, for those who read the results."""
        self.notes.append(text)

    def command(self, *words):
        return [str(self.kretry), "run", "--device", NO_DEVICE, *map(str, words)]

    def env(self, changes):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("KRETRY_") and name not in ("NO_COLOR", "TMPDIR")}
        env.update(changes, LC_ALL="C.UTF-8")
        return env

    def start(self, *words, before=(), env=None, **options):
        """The process, started; before is a command that starts it in turn."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([*before, *self.command(*words)], cwd=self.dir, env=self.env(env or {}), **options)

    def finish(self, process, seconds=60, data=None):
        """What became of it. Kills it when it takes longer."""
        start = time.monotonic()
        try:
            out, err = process.communicate(data, timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Fault(f"still runs after {seconds} s: {' '.join(map(str, process.args[4:]))}") from None
        return Done(process.returncode, out, err, time.monotonic() - start)

    def run(self, *words, seconds=60, data=None, **options):
        start = time.monotonic()
        if data is not None:
            options["stdin"] = subprocess.PIPE
        done = self.finish(self.start(*words, **options), seconds, data)
        done.seconds = time.monotonic() - start
        return done

    def script(self, name, text):
        """An executable shell script here."""
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def write(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        return str(path)

    def lines(self, name="log"):
        path = self.dir / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def logged(self, count, name="log"):
        """Waits until the commands have written so many lines."""
        until(f"{count} lines in {name}, it has {self.lines(name)}", lambda: len(self.lines(name)) >= count)

    def gaps(self, name="log"):
        """The seconds between the lines, which are times in nanoseconds."""
        times = [int(line) / 1e9 for line in self.lines(name)]
        return [later - sooner for sooner, later in zip(times, times[1:])]


# For commands that count themselves, and say when they ran.
STAMP = "date +%s%N >>log"


def failing(status=1):
    return ["sh", "-c", f"{STAMP}; exit {status}"]


def failing_until(count, status=1):
    """Succeeds at the attempt of that number."""
    return ["sh", "-c", f"{STAMP}; [ $(wc -l <log) -ge {count} ] || exit {status}"]
