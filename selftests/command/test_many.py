# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A thousand attempts leave no zombie, no descriptor and no memory behind."""

import os
import subprocess
import threading

from harness import expect, same, test, unsanitized
from processes import children, descriptors, resident, stat

MANY = 1000
OPTIONS = ("-q", "--attempts", MANY, "--delay", "1ms", "--max-delay", "1ms", "--jitter", "none")


class Watch:
    """Looks at a process again and again: descriptors, zombies, memory."""

    def __init__(self, pid):
        self.pid, self.ended = pid, threading.Event()
        self.descriptors, self.zombies, self.memory = [], [], []
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while not self.ended.wait(0.01):
            try:
                seen = descriptors(self.pid), resident(self.pid)
            except (OSError, KeyError):
                continue
            self.descriptors.append(seen[0])
            self.memory.append(seen[1])
            self.zombies.append(sum((stat(child) or "X")[0] == "Z" for child in children(self.pid)))

    def end(self):
        self.ended.set()
        self.thread.join()


def watched(box, *words, zombies=1, data=None, **options):
    if data is not None:
        options["stdin"] = subprocess.PIPE
    process = box.start(*OPTIONS, *words, **options)
    watch = Watch(process.pid)
    done = box.finish(process, 100, data)
    watch.end()
    looks = len(watch.descriptors)
    expect(looks >= 50, f"only {looks} looks")
    early, late = watch.descriptors[:looks // 3], watch.descriptors[-looks // 3:]
    expect(max(late) <= max(early) + 3 and max(late) < 20, f"descriptors: {max(early)} at first, {max(late)} at last")
    expect(max(watch.zombies) <= zombies, f"{max(watch.zombies)} zombies at once")
    growth = max(watch.memory[-looks // 3:]) - max(watch.memory[looks // 10:looks // 3])
    box.note(f"{MANY} attempts: {max(late)} descriptors at most, {max(watch.memory) // 1024} KiB resident at most, "
             f"{growth // 1024} KiB more in the last third than in the first")
    return done, growth


@unsanitized
@test
def many_attempts_leave_nothing(box):
    done, growth = watched(box, "sh", "-c", "echo >>log; exit 1")
    done.ends(1)
    same("executions", len(box.lines()), MANY)
    expect(growth <= 65536, f"{growth} bytes more")


@unsanitized
@test
def many_attempts_with_all_features_leave_nothing(box):
    """Input kept, output kept, a time limit, a hint by a pipe, a file to look at, a daemon each time."""
    command = box.script("all", "cat >/dev/null; echo out; echo err >&2; setsid -f true; exit 1")
    done, growth = watched(box, "--output", "last", "--timeout", "30s", "--retry-after-from", "fd:5", command,
                           data=os.urandom(100_000), zombies=8)
    done.ends(1)
    same("stdout", done.out, b"out\n")
    expect(growth <= 1 << 20, f"{growth} bytes more")


@test
def many_attempts_ending_before_they_are_looked_at_are_not_missed(box):
    """Commands that end at once, and kretry is slow: none is taken for another, none waits for ever."""
    done = box.run("-q", "--attempts", 300, "--delay", "1ms", "--max-delay", "1ms", "true", seconds=60)
    done.ends(0)
    done = box.run("-q", "--attempts", 300, "--delay", "1ms", "--max-delay", "1ms", "--timeout", "20s", "false",
                   seconds=60)
    done.ends(1)
