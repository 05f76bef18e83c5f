# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Signals to kretry run itself: while it waits, and while the command runs."""

import os
import signal
import time

from harness import between, expect, failing, same, test, until
from processes import children, descendants, running, stat

ENDING = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGQUIT: 131}
LONG = ("--delay", "60s", "--jitter", "none")
# The bound for a person is 200 ms; a loaded machine gets more.
AT_ONCE = 1.0


def wait_begins(box, process, name="log"):
    """The command has run once and is gone."""
    box.logged(1, name)
    until("the command is gone", lambda: not children(process.pid))
    time.sleep(0.05)


def send_and_time(box, process, number, sender=None):
    start = time.monotonic()
    (sender or process.send_signal)(number)
    done = box.finish(process, 30)
    return done, time.monotonic() - start


@test
def signal_while_waiting_ends_it_at_once(box):
    for number, status in ENDING.items():
        box.write("log", "")
        process = box.start(*LONG, *failing())
        wait_begins(box, process)
        done, seconds = send_and_time(box, process, number)
        done.ends(status)
        between(f"seconds after {number.name}", seconds, 0, AT_ONCE)
        box.note(f"{number.name} in a wait of 60 s: exits {status} after {seconds * 1000:.1f} ms")
        same("executions", len(box.lines()), 1)


@test
def signal_in_an_attempt_reaches_the_whole_group(box):
    """A shell that waits, and its child: both hear it, and kretry waits for them."""
    child = box.script("child", "trap 'echo child >>log; exit 0' INT TERM HUP QUIT; echo ready >>log; "
                                "while :; do sleep 0.02; done")
    parent = box.script("parent", f"trap 'sleep 0.3; echo parent >>log; exit 3' INT TERM HUP QUIT; {child} & "
                                  "while :; do sleep 0.02; done")
    for number, status in ENDING.items():
        box.write("log", "")
        process = box.start(*LONG, parent)
        box.logged(1)
        done, seconds = send_and_time(box, process, number)
        done.ends(status)
        same(f"who heard {number.name}", sorted(box.lines()), ["child", "parent", "ready"])
        between("seconds", seconds, 0.3, 3)


@test
def signal_in_an_attempt_that_then_succeeds_exits_0(box):
    command = box.script("tidy", "trap 'exit 0' TERM; echo ready >>log; while :; do sleep 0.02; done")
    process = box.start(*LONG, command)
    box.logged(1)
    send_and_time(box, process, signal.SIGTERM)[0].ends(0)


@test
def signal_in_an_attempt_is_not_followed_by_another(box):
    process = box.start("--delay", "1ms", "--max-delay", "1ms", "--attempts", 9, "sh", "-c",
                        "echo x >>log; exec sleep 20")
    box.logged(1)
    done, seconds = send_and_time(box, process, signal.SIGINT)
    done.ends(130)
    between("seconds", seconds, 0, AT_ONCE)
    same("executions", len(box.lines()), 1)
    box.note(f"SIGINT during an attempt: exits 130 after {seconds * 1000:.1f} ms")


STUBBORN = "trap '' INT TERM HUP QUIT; echo ready >>log; while :; do sleep 0.02; done"


@test
def signal_ignored_by_the_command_kills_after_grace(box):
    stubborn = box.script("stubborn", STUBBORN)
    process = box.start(*LONG, "--grace", "700ms", "sh", "-c", f"{stubborn} & exec {stubborn}")
    box.logged(2)
    done, seconds = send_and_time(box, process, signal.SIGTERM)
    done.ends(143)
    between("seconds", seconds, 0.7, 2.2)
    expect(not running("stubborn"), "the command still runs")


@test
def signal_second_kills_now(box):
    stubborn = box.script("stubborn", STUBBORN)
    for first, second, status in ((signal.SIGINT, signal.SIGINT, 130), (signal.SIGTERM, signal.SIGINT, 143)):
        box.write("log", "")
        process = box.start(*LONG, "--grace", "50s", "setsid", "-w", "sh", "-c", f"{stubborn} & exec {stubborn}")
        box.logged(2)
        process.send_signal(first)
        time.sleep(0.3)
        same("after the first", process.poll(), None)
        done, seconds = send_and_time(box, process, second)
        expect(done.status in (status, 128 + second), f"exit status {done.status}")
        between("seconds", seconds, 0, AT_ONCE)
        expect(not running("stubborn"), "the command still runs")
        box.note(f"second signal: exits after {seconds * 1000:.1f} ms")


@test
def signal_in_an_attempt_also_ends_what_left_the_group(box):
    stubborn = box.script("stubborn", STUBBORN)
    process = box.start(*LONG, "--grace", "500ms", "sh", "-c", f"setsid {stubborn} & setsid -f {stubborn}; sleep 30")
    box.logged(2)
    send_and_time(box, process, signal.SIGTERM)[0].ends(143)
    expect(not running("stubborn"), "a descendant still runs")


@test
def signal_in_an_attempt_continues_what_is_stopped(box):
    process = box.start(*LONG, "--grace", "20s", "sh", "-c", "echo >>log; kill -STOP $$")
    box.logged(1)
    until("the command is stopped", lambda: [stat(pid)[0] for pid in children(process.pid)] == ["T"])
    done, seconds = send_and_time(box, process, signal.SIGTERM)
    done.ends(143)
    between("seconds", seconds, 0, AT_ONCE)


@test
def signal_others_are_passed_on(box):
    """Each is heard once, and none ends kretry."""
    numbers = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT)
    traps = "; ".join(f"trap 'echo {number.name} >>log' {number.name[3:]}" for number in numbers)
    command = box.script("hears", f"{traps}; echo ready >>log; while [ ! -e end ]; do sleep 0.02; done; exit 0")
    process = box.start(*LONG, command)
    box.logged(1)
    for count, number in enumerate(numbers, 2):
        process.send_signal(number)
        box.logged(count)
    time.sleep(0.2)
    same("heard", box.lines(), ["ready", *(number.name for number in numbers)])
    box.write("end", "")
    box.finish(process).ends(0)


@test
def signal_others_while_waiting_change_nothing(box):
    process = box.start("--delay", "1500ms", "--jitter", "none", "--attempts", 2, *failing())
    wait_begins(box, process)
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT, signal.SIGCHLD):
        process.send_signal(number)
        time.sleep(0.05)
    box.finish(process).ends(1)
    between("gap", box.gaps()[0], 1.5, 3.5)


@test
def signal_stop_while_waiting_does_not_move_the_deadline(box):
    process = box.start("--delay", "1s", "--jitter", "none", "--attempts", 2, *failing())
    wait_begins(box, process)
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    box.finish(process).ends(1)
    between("gap", box.gaps()[0], 1.5, 2.4)


@test
def signal_tstp_stops_the_command_with_it_and_cont_goes_on(box):
    command = box.script("counts", "echo ready >>log; while [ ! -e end ]; do echo . >>ticks; sleep 0.02; done")
    process = box.start(*LONG, command)
    box.logged(1)
    child = children(process.pid)[0]
    process.send_signal(signal.SIGTSTP)
    until("the command is stopped", lambda: stat(child)[0] == "T")
    before = len(box.lines("ticks"))
    time.sleep(0.3)
    expect(len(box.lines("ticks")) - before <= 1, "it runs on")
    process.send_signal(signal.SIGCONT)
    until("the command goes on", lambda: len(box.lines("ticks")) > before + 3)
    box.write("end", "")
    box.finish(process).ends(0)


@test
def signal_under_nohup_hangup_is_ignored(box):
    process = box.start("--delay", "1s", "--jitter", "none", "--attempts", 2, *failing(), before=("nohup",))
    wait_begins(box, process)
    process.send_signal(signal.SIGHUP)
    box.finish(process).ends(1)
    same("executions", len(box.lines()), 2)


def pid_1_start(box, *words):
    """As a container's first process; (unshare, kretry's process number out here)."""
    process = box.start(*words, before=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"))
    inner = until("kretry is PID 1", lambda: [pid for pid in children(process.pid) if "kretry" in os.readlink(
        f"/proc/{pid}/exe")])
    return process, inner[0]


@test
def pid_1_signal_while_waiting_ends_it_at_once(box):
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        box.write("log", "")
        process, inner = pid_1_start(box, *LONG, *failing())
        wait_begins_below(box, inner)
        done, seconds = send_and_time(box, process, number, lambda number, pid=inner: os.kill(pid, number))
        done.ends(status)
        between("seconds", seconds, 0, AT_ONCE)
        box.note(f"as PID 1: {number.name} ends it after {seconds * 1000:.1f} ms")


def wait_begins_below(box, pid):
    box.logged(1)
    until("the command is gone", lambda: not children(pid))
    time.sleep(0.05)


@test
def pid_1_signal_in_an_attempt_is_passed_on(box):
    command = box.script("hears", "trap 'echo heard >>log; exit 5' TERM; echo ready >>log; "
                                  "while :; do sleep 0.02; done")
    process, inner = pid_1_start(box, *LONG, command)
    box.logged(1)
    send_and_time(box, process, signal.SIGTERM, lambda number: os.kill(inner, number))[0].ends(143)
    same("heard", box.lines(), ["ready", "heard"])


@test
def pid_1_orphans_are_reaped(box):
    """Twenty of an attempt: some end while the command runs, some while kretry waits."""
    command = box.script("orphans", "for i in 1 2 3 4 5 6 7 8 9 10; do setsid -f sleep 0.1; setsid -f sleep 0.6; done; "
                                    "sleep 0.3; echo >>log; exit 1")
    process, inner = pid_1_start(box, "--delay", "3s", "--jitter", "none", "--attempts", 2, command)
    box.logged(1)
    until("the second ones have ended", lambda: not running("sleep 0.6", inner))
    until("no zombie is left", lambda: not descendants(inner), 2)
    box.finish(process).ends(1)
