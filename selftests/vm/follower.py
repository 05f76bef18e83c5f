# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Shows a boot while it runs and says how it went."""

import os
import sys
import time

import ktap

TAIL_LINES = 20
# Of a failed test's output this much is shown at each end; the log has it whole.
SHOWN_LINES = 20
TTY = sys.stdout.isatty()
VERBOSE = os.environ.get("V", "0") not in ("", "0")


def shorten(lines):
    cut = len(lines) - 2 * SHOWN_LINES
    if cut <= 1:
        return lines
    return lines[:SHOWN_LINES] + [f"# ... {cut} more lines in the log ..."] + lines[-SHOWN_LINES:]


class Follower:
    """Shows failures and program output, with V=1 everything."""

    def __init__(self, args, skips):
        self.args, self.skips = args, skips
        self.log = ktap.Log(args.label, args.nonce)
        self.rest = b""
        self.tail = []
        self.last, self.slowest = time.monotonic(), (0.0, "")

    def take(self, data):
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r")
            self.tail = (self.tail + [line])[-TAIL_LINES:]
            started = self.log.planned is not None
            self.show(line, self.log.feed(line))
            if not started:
                self.last = time.monotonic()

    def show(self, line, event):
        if isinstance(event, ktap.Result):
            self.skips.judge(event)
            self.time(event)
        if VERBOSE:
            print(line, flush=True)
        elif isinstance(event, ktap.Result):
            self.show_result(event)
        elif event is not None:
            self.clear()
            print(event, flush=True)

    def time(self, result):
        now = time.monotonic()
        self.slowest = max(self.slowest, (now - self.last, result.name))
        self.last = now

    def show_result(self, result):
        if result.state == "fail":
            self.clear()
            lines = shorten(result.diag) + [f"not ok {self.args.label}:{result.name} {result.note}".rstrip()]
            print("\n".join(lines), flush=True)
        elif TTY:
            print(f"\r\x1b[K  {self.args.label} {len(self.log.results)}/{self.log.planned} {result.name[:60]}",
                  end="", flush=True)

    @staticmethod
    def clear():
        if TTY:
            print("\r\x1b[K", end="")


def write_results(args, results, trouble):
    if not args.results:
        return
    args.results.parent.mkdir(parents=True, exist_ok=True)
    with open(args.results, "a", encoding="utf-8") as file:
        for r in results:
            status = "not ok" if r.state == "fail" else "ok"
            note = f" # SKIP {r.note}" if r.state == "skip" else f" # {r.note}" if r.note else ""
            file.write(f"{status} - {args.label}:{r.name}{note}\n")
        status, note = ("not ok", f" # {trouble}") if trouble else ("ok", "")
        file.write(f"{status} - {args.label}:boot.completes{note}\n")


def conclude(args, follower, trouble, seconds):
    """Prints and writes the results; the exit code."""
    log = follower.log
    follower.clear()
    if trouble:
        print("\n".join(f"| {line}" for line in follower.tail))
        print(f"not ok {args.label}:boot.completes {trouble}")
    for test in follower.skips.unused(log.results):
        print(f"  note: {args.label}: the list of skips has {test}, which did not skip")
    slow = f", slowest {follower.slowest[1]} {follower.slowest[0]:.1f} s" if log.results else ""
    print(f"  {args.label} {args.plan.resolve().parent.name}: {len(log.results)} tests, {log.count('fail')} failed, "
          f"{log.count('skip')} skipped in {seconds:.1f} s{slow}", flush=True)
    write_results(args, log.results, trouble)
    return 1 if trouble or log.count("fail") else 0
