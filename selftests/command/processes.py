# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Processes, as /proc shows them."""

import ctypes
import os
import signal
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """From now on what descendants leave behind becomes this process's child, and can be found."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def stat(pid):
    """State and parent, or None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1])


def children_by_parent():
    parents = {}
    for name in os.listdir("/proc"):
        found = stat(name) if name.isdigit() else None
        if found:
            parents.setdefault(found[1], []).append(int(name))
    return parents


def descendants(pid):
    """All of them, nearest first."""
    parents, found = children_by_parent(), [pid]
    for one in found:
        found.extend(parents.get(one, []))
    return found[1:]


def children(pid):
    return children_by_parent().get(pid, [])


def words(pid):
    """The command line, as one text."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def running(text, root=None):
    """The descendants that have this in their command line."""
    return [pid for pid in descendants(root or os.getpid()) if text in words(pid) and (stat(pid) or "Z")[0] != "Z"]


def status_fields(pid, names):
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    return {name: fields[name].strip() for name in names}


def resident(pid):
    """Bytes of memory that are its own."""
    return int(status_fields(pid, ["RssAnon"])["RssAnon"].split()[0]) * 1024


def seconds_of_processor(pid, during):
    """How much it uses in that time."""
    def used():
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    before = used()
    time.sleep(during)
    return used() - before


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def reap():
    """Zombies of this process are nobody's fault: their parents died by the test's hand."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def leftovers(seconds=1.0):
    """What still runs below this process after some grace, killed and told."""
    end = time.monotonic() + seconds
    while True:
        reap()
        left = descendants(os.getpid())
        if not left or time.monotonic() > end:
            break
        time.sleep(0.01)
    told = [f"{pid} {words(pid)}" for pid in left]
    while left:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
        reap()
        left = descendants(os.getpid())
    return told
