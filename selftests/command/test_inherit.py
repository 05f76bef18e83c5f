# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the command gets from kretry's caller: signals, descriptors, environment."""

import os
import re
import shutil
import signal
import subprocess
import uuid

from harness import expect, same, test, unsanitized
from processes import status_fields

QUICK = ("--attempts", 3, "--delay", "2ms", "--jitter", "none")
SHOW = ["grep", "-E", "^Sig(Blk|Ign)|^SigPnd", "/proc/self/status"]


def odd_signals():
    """Some blocked, some ignored, as no shell would leave them."""
    signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD, signal.SIGTERM})
    for number in (signal.SIGUSR2, signal.SIGQUIT, signal.SIGINT, signal.SIGTSTP, signal.SIGPIPE, signal.SIGTTOU,
                   signal.SIGRTMIN + 3):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGHUP, signal.SIGCONT):
        signal.signal(number, signal.SIG_DFL)


def shown(box, words, before=(), **options):
    done = subprocess.run([*before, *words], cwd=box.dir, env=box.env({}), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, **options)
    return done.stdout.decode().splitlines()


@test
def signals_of_the_command_are_those_of_the_caller(box):
    for options in ({}, {"preexec_fn": odd_signals, "restore_signals": False}):
        wanted = shown(box, SHOW, **options)
        same("lines", len(wanted), 3)
        for extra in ((), ("--timeout", "20s"), ("--output", "last"), ("--retry-after-from", "fd:3")):
            same(f"signals with {extra}", shown(box, box.command("-q", *extra, *SHOW), **options), wanted)


@test
def signals_of_later_attempts_are_too(box):
    fails = ["grep", "-hsE", "^Sig(Blk|Ign)", "/proc/self/status", "/nonexistent"]
    seen = shown(box, box.command("-q", *QUICK, *fails), preexec_fn=odd_signals, restore_signals=False)
    same("lines", len(seen), 6)
    same("attempts alike", seen[0:2] == seen[2:4] == seen[4:6], True)
    expect(int(seen[0].split()[1], 16) & 1 << signal.SIGUSR1 - 1, f"SIGUSR1 is not blocked: {seen[0]}")


@test
def signals_under_nohup_and_in_the_background_are_kept(box):
    wanted = shown(box, SHOW, before=("nohup",))
    expect(int(wanted[-1].split()[1], 16) & 1, f"nohup ignores no SIGHUP: {wanted}")
    same("under nohup", shown(box, box.command("-q", *SHOW), before=("nohup",)), wanted)
    background = ("sh", "-c", '"$@" & wait', "sh")
    wanted = shown(box, SHOW, before=background)
    expect(int(wanted[-1].split()[1], 16) & 1 << signal.SIGINT - 1, f"no SIGINT ignored: {wanted}")
    same("in the background", shown(box, box.command("-q", *SHOW), before=background), wanted)


@test
def signal_blocked_by_the_caller_still_ends_it(box):
    """A caller that leaves SIGTERM blocked has not asked for a command that cannot be ended."""
    process = box.start("--delay", "60s", "--jitter", "none", "sh", "-c", "echo >>log; exit 1",
                        preexec_fn=odd_signals, restore_signals=False)
    box.logged(1)
    process.send_signal(signal.SIGHUP)
    box.finish(process, 10).ends(129)


@test
def descriptors_of_the_command_are_the_three_and_the_callers(box):
    with open(box.dir / "extra", "wb") as file:
        os.dup2(file.fileno(), 77)
        for extra in ((), ("--timeout", "20s"), ("--output", "last"), ("--json",), ("-v",)):
            done = box.run("-q" if extra[:1] not in (("--json",), ("-v",)) else "--stdin=replay", *extra, "--attempts",
                           2, "--delay", "1ms", "sh", "-c", "ls /proc/self/fd >list; exit 1", data=b"input",
                           pass_fds=(77,))
            done.ends(1)
            same(f"descriptors with {extra}", sorted(box.lines("list"), key=int), ["0", "1", "2", "3", "77"])
        os.close(77)


@test
def descriptor_for_the_hint_is_there_and_no_other(box):
    box.run("-q", "--attempts", 1, "--retry-after-from", "fd:8", "sh", "-c", "ls /proc/self/fd >list; exit 1").ends(1)
    same("descriptors", sorted(box.lines("list"), key=int), ["0", "1", "2", "3", "8"])


@test
def descriptors_few_are_an_error_and_no_crash(box):
    wrapper = box.script("few", 'ulimit -n 5; exec "$@"')
    done = box.run("--output", "last", "--retry-after-from", "fd:3", "true", data=b"x" * 10, before=(wrapper,))
    expect(done.status in (0, 125), f"exit status {done.status}: {done.text!r}")
    expect(done.status == 0 or len(done.lines) == 1, done.text)


@unsanitized
@test
def processes_none_left_is_an_error_and_no_crash(box):
    """fork() fails: as another user, who may have one process."""
    box.kretry = shutil.copy(box.kretry, box.dir)
    box.dir.chmod(0o755)
    wrapper = ("setpriv", "--reuid", "61234", "--clear-groups", "prlimit", "--nproc=1:1")
    done = box.run("--attempts", 2, "--delay", "1ms", "true", before=wrapper)
    done.ends(125, "(?i)resource|process|fork")


@test
def environment_tells_attempt_limit_key_and_reason(box):
    command = box.script("tells", 'echo "$KRETRY_ATTEMPT $KRETRY_ATTEMPTS $KRETRY_IDEMPOTENCY_KEY "'
                                  '"${KRETRY_REASON-none}" >>log; exit 1')
    box.run(*QUICK, command).ends(1)
    seen = [line.split(" ") for line in box.lines()]
    same("attempts", [one[0] for one in seen], ["1", "2", "3"])
    same("limits", {one[1] for one in seen}, {"3"})
    same("keys", len({one[2] for one in seen}), 1)
    key = uuid.UUID(seen[0][2])
    same("version, text", (key.version, str(key)), (4, seen[0][2]))
    same("reasons", [one[3] for one in seen], ["none", "unknown", "unknown"])
    box.write("log", "")
    box.run(*QUICK, command).ends(1)
    expect(box.lines()[0].split()[2] != seen[0][2], "the same key in two runs")


@test
def environment_reason_names_the_class(box):
    box.run(*QUICK, "--retry-on", "1", "sh", "-c", "echo ${KRETRY_REASON-none} >>log; exit 1").ends(1)
    same("reasons", box.lines(), ["none", "transient", "transient"])


@test
def environment_without_limit_or_retries_says_none(box):
    show = ["sh", "-c", "env | grep ^KRETRY_ | sed 's/=.*//' | sort >>log"]
    box.run("--attempts", "unlimited", *show).ends(0)
    same("unlimited", box.lines(), ["KRETRY_ATTEMPT", "KRETRY_IDEMPOTENCY_KEY"])
    box.write("log", "")
    box.run("--attempts", 1, *show)
    expect("KRETRY_ATTEMPT" not in box.lines(), f"one attempt is no layer that retries: {box.lines()}")


@test
def environment_else_is_the_callers(box):
    box.run("sh", "-c", "env | grep -v ^KRETRY_ | grep -v ^_= | sort >with", env={"ODD": "a b\nc"}).ends(0)
    subprocess.run(["sh", "-c", "env | grep -v ^_= | sort >without"], cwd=box.dir, env=box.env({"ODD": "a b\nc"}),
                   check=True)
    same("environment", box.lines("with"), box.lines("without"))


@test
def nested_makes_n_attempts_and_not_n_times_n(box):
    done = box.run("--attempts", 4, "--delay", "1ms", *box.command("-v", "--attempts", 4, "--delay", "1ms", "sh", "-c",
                                                                  "echo $KRETRY_ATTEMPT >>log; exit 3"))
    done.ends(3, "nested|layer")
    same("attempts", box.lines(), ["1", "2", "3", "4"])


@test
def nested_with_the_option_retries_all_the_same(box):
    inner = box.command("--nested", "--attempts", 3, "--delay", "1ms", "sh", "-c",
                        "echo $KRETRY_ATTEMPT $KRETRY_IDEMPOTENCY_KEY >>log; exit 3")
    box.run("--attempts", 2, "--delay", "1ms", *inner).ends(3)
    same("attempts", [line.split()[0] for line in box.lines()], ["1", "2", "3"] * 2)


@test
def nested_keeps_the_outer_key(box):
    inner = box.command("--attempts", 3, "--delay", "1ms", "sh", "-c", "echo $KRETRY_IDEMPOTENCY_KEY >>log; exit 3")
    box.run("--attempts", 2, "--delay", "1ms", "sh", "-c", 'echo $KRETRY_IDEMPOTENCY_KEY >>log; exec "$@"', "sh",
            *inner).ends(3)
    same("keys", (len(box.lines()), len(set(box.lines()))), (4, 1))
    box.write("log", "")
    box.run("--attempts", 2, "--delay", "1ms", "sh", "-c", "echo $KRETRY_IDEMPOTENCY_KEY >>log; exit 1",
            env={"KRETRY_IDEMPOTENCY_KEY": "mine"}).ends(1)
    expect(len(set(box.lines())) == 1 and len(box.lines()) == 2, f"keys {box.lines()}")


@test
def nested_garbage_in_the_environment_is_no_layer(box):
    for value in ("", "x", "0", "-1", "1 "):
        box.write("log", "")
        box.run("--attempts", 2, "--delay", "1ms", "sh", "-c", "echo >>log; exit 1",
                env={"KRETRY_ATTEMPT": value}).ends(1)
        expect(len(box.lines()) in (1, 2), f"{value!r}: {len(box.lines())} executions")


@test
def working_directory_and_umask_are_the_callers(box):
    before = ("sh", "-c", 'umask 027; ulimit -n 123; exec "$@"', "sh")
    done = box.run("sh", "-c", "pwd; umask; ulimit -n", before=before)
    same("shown", done.ends(0).out.decode().split(), [os.path.realpath(box.dir), "0027", "123"])


@test
def group_of_the_command_is_its_own_without_a_terminal(box):
    done = box.run("sh", "-c", "ps -o pid=,pgid=,sid= -p $$").ends(0)
    pid, group, session = re.findall(r"\d+", done.out.decode())
    same("group", group, pid)
    same("session", int(session), os.getsid(0))


@test
def state_of_the_parent_is_not_the_commands(box):
    fields = ["NoNewPrivs", "Seccomp", "CapEff"]
    wanted = status_fields(os.getpid(), fields)
    done = box.run("cat", "/proc/self/status").ends(0)
    got = dict(line.split(":\t", 1) for line in done.out.decode().splitlines() if ":\t" in line)
    same("status", {name: got[name].strip() for name in fields}, wanted)
