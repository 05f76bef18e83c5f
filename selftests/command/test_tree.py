# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Timeouts leave nothing running; a command that kills kretry is not run again."""

import os
import signal
import subprocess
import sys
import time

from harness import SLACK, between, expect, same, test, until
from processes import children, descendants, running, stat, words

ONE = ("--attempts", 1)


def timed(box, command, low, high, *options, status=124):
    """A timeout of 400 ms and a grace of 400 ms: when it has ended nothing of the command runs."""
    done = box.run(*ONE, "--timeout", "400ms", "--grace", "400ms", *options, *command)
    done.ends(status)
    left = [f"{pid} {words(pid)}" for pid in descendants(os.getpid()) if (stat(pid) or "Z")[0] != "Z"]
    same("left behind", left, [])
    between("seconds", done.seconds, low, high)
    return done


@test
def timeout_ends_a_command_that_obeys(box):
    done = timed(box, ["sleep", "30"], 0.4, 0.4 + SLACK)
    expect("timed out after 400ms" in done.text, done.text)
    box.note(f"timeout of 400 ms: ends after {done.seconds:.3f} s")


@test
def timeout_sends_sigterm_first(box):
    command = box.script("tidy", "trap 'echo term >>log; exit 0' TERM; while :; do sleep 0.02; done")
    timed(box, [command], 0.4, 0.4 + SLACK)
    same("heard", box.lines(), ["term"])


@test
def timeout_kills_after_grace_what_ignores_sigterm(box):
    done = timed(box, ["sh", "-c", "trap '' TERM; sleep 30 & sleep 30 & wait; wait; sleep 30"], 0.8, 0.8 + SLACK)
    box.note(f"timeout and grace of 400 ms each: ends after {done.seconds:.3f} s")


@test
def timeout_ends_what_left_the_group_or_the_session(box):
    timed(box, ["sh", "-c", "setsid sleep 31 & setsid -f sleep 32; (setsid -f sh -c 'sleep 33' &); sleep 34"],
          0.4, 0.8 + SLACK)


@test
def timeout_kills_what_left_and_ignores_sigterm(box):
    timed(box, ["sh", "-c", "trap '' TERM; setsid sleep 31 & setsid -f sleep 32; (setsid -f sleep 33 &) ; sleep 34"],
          0.8, 0.8 + SLACK)


@test
def timeout_ends_what_stopped_itself(box):
    timed(box, ["sh", "-c", "kill -STOP $$"], 0.4, 0.8 + SLACK)
    timed(box, ["sh", "-c", "trap '' TERM; kill -STOP $$"], 0.4, 0.8 + SLACK)
    timed(box, ["sh", "-c", "sh -c 'trap \"\" TERM; kill -STOP $$' & sleep 30"], 0.4, 0.8 + SLACK)


@test
def timeout_continues_what_is_stopped_so_that_it_can_obey(box):
    for command in ("kill -STOP $$", "setsid sh -c 'kill -STOP $$' & wait"):
        done = box.run(*ONE, "--timeout", "400ms", "--grace", "20s", "sh", "-c", command).ends(124)
        between(f"seconds for {command}", done.seconds, 0.4, 0.4 + SLACK)


@test
def timeout_ends_daemons_whose_parent_is_gone(box):
    """The command itself obeys at once; two daemons do not."""
    daemon = box.script("daemon", "trap '' TERM HUP; while :; do sleep 0.05; done")
    timed(box, ["sh", "-c", f"for i in 1 2; do setsid -f {daemon}; done; exec sleep 30"], 0.4, 0.8 + SLACK)


FORKS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + 20
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.001)
"""


@test
def timeout_ends_what_forks_and_flees_again_and_again(box):
    """A process that is another each millisecond, in a new session, and never in the group."""
    flee = box.write("flee.py", FORKS)
    timed(box, ["sh", "-c", f"{sys.executable} {flee} & sleep 30"], 0.4, 0.8 + 2 * SLACK)


@test
def timeout_grandchild_that_holds_the_output_is_ended(box):
    """Who reads the output sees its end at once."""
    process = box.start(*ONE, "--timeout", "300ms", "--grace", "300ms", "sh", "-c",
                        "trap '' TERM; setsid -f sleep 40; echo text; sleep 40")
    start = time.monotonic()
    same("stdout", process.stdout.read(), b"text\n")
    between("seconds until the end of the output", time.monotonic() - start, 0.3, 0.6 + SLACK)
    box.finish(process).ends(124)


@test
def timeout_counts_for_each_attempt(box):
    done = box.run("--attempts", 3, "--delay", "1ms", "--timeout", "300ms", "sh", "-c", "echo >>log; sleep 30")
    done.ends(124)
    same("executions", len(box.lines()), 3)
    between("seconds", done.seconds, 0.9, 0.9 + SLACK)


@test
def timeout_not_reached_changes_nothing(box):
    done = box.run(*ONE, "--timeout", "20s", "sh", "-c", "exit 3").ends(3)
    between("seconds", done.seconds, 0, SLACK)


@test
def timeout_last_attempt_fails_otherwise_exits_as_it(box):
    box.run("--attempts", 2, "--delay", "1ms", "--timeout", "300ms", "sh", "-c",
            "echo >>log; [ $(wc -l <log) = 2 ] && exit 8; sleep 30").ends(8)


@test
def timeout_leaves_other_children_of_the_caller_alone(box):
    with subprocess.Popen(["sleep", "30"]) as other:
        wrapper = box.script("with-sibling", 'sleep 29 >/dev/null 2>&1 & exec "$@"')
        box.run(*ONE, "--timeout", "200ms", "sleep", "30", before=(wrapper,)).ends(124)
        same("the caller's other child", other.poll(), None)
        siblings = running("sleep 29")
        same("children that kretry's process had before", len(siblings), 1)
        other.kill()
        os.kill(siblings[0], signal.SIGKILL)


@test
def descendants_left_by_an_attempt_in_time_may_stay(box):
    """A command that starts a daemon and succeeds has done what it should."""
    box.run("sh", "-c", "setsid -f sh -c 'sleep 0.5; echo done >>log' </dev/null >/dev/null 2>&1").ends(0)
    box.logged(1)


@test
def killed_by_its_command_runs_it_no_more(box):
    """A job that kills its worker: it ends too, and nobody runs it again."""
    process = box.start("--delay", "1ms", "sh", "-c", "echo run >>log; kill -KILL $PPID; sleep 0.5; echo on >>log")
    done = box.finish(process)
    same("killed by", done.status, -signal.SIGKILL)
    time.sleep(0.8)
    same("what happened", box.lines(), ["run"])


@test
def killed_while_waiting_leaves_nothing(box):
    process = box.start("--delay", "30s", "--jitter", "none", "sh", "-c", "echo >>log; exit 1")
    box.logged(1)
    time.sleep(0.1)
    process.kill()
    box.finish(process)
    same("left behind", running("sh"), [])


@test
def killed_while_the_command_runs_ends_the_command(box):
    process = box.start("sh", "-c", "trap '' TERM INT HUP; echo >>log; while :; do sleep 0.05; done")
    box.logged(1)
    child = children(process.pid)[0]
    process.kill()
    until("the command has ended too", lambda: (stat(child) or "Z")[0] == "Z", 2)
    process.communicate()


@test
def killed_by_its_command_with_input_and_output_kept(box):
    (box.dir / "tmp").mkdir()
    done = box.run("--output", "last", "--delay", "1ms", "sh", "-c",
                   "cat >/dev/null; head -c 3000000 /dev/zero; echo run >>log; kill -KILL $PPID; sleep 1; "
                   "echo on >>log",
                   data=b"x" * 3_000_000, env={"TMPDIR": str(box.dir / "tmp")})
    same("killed by", done.status, -signal.SIGKILL)
    time.sleep(0.3)
    same("what happened", box.lines(), ["run"])
    same("files left", os.listdir(box.dir / "tmp"), [])
