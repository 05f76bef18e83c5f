# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the command writes, and what of it is let through."""

import hashlib
import json
import os
import subprocess
import time

from harness import SLACK, between, expect, failing, failing_until, same, test
from processes import children, seconds_of_processor

QUICK = ("--attempts", 3, "--delay", "2ms", "--jitter", "none")
ODD = b"\0\1\xff\r\n\x1b[31mred\n no newline at the end"


@test
def output_pass_is_all_as_it_is(box):
    box.write("odd", ODD)
    done = box.run(*QUICK, "sh", "-c", "cat odd; cat odd >&2; exit 1").ends(1)
    same("stdout", done.out, ODD * 3)
    same("stderr, times", done.err.count(ODD), 3)


@test
def output_pass_is_inherited_itself(box):
    with open(box.dir / "file", "wb") as file:
        box.run("sh", "-c", "readlink /proc/$$/fd/1 | cat >&2; echo text", stdout=file).ends(0, "/file$")
    same("file", box.lines("file"), ["text"])


@test
def output_last_is_the_last_attempts_only(box):
    box.write("odd", ODD)
    command = box.script("tells", "echo >>log; n=$(wc -l <log); cat odd; echo out $n; cat odd >&2; echo err $n >&2; "
                                  "exit $((n < ${1:-9}))")
    done = box.run("-q", "--output", "last", *QUICK, command).ends(1)
    same("stdout", done.out, ODD + b"out 3\n")
    same("stderr", done.err, ODD + b"err 3\n")
    box.write("log", "")
    done = box.run("-q", "--output", "last", *QUICK, command, 2).ends(0)
    same("stdout of the second, which succeeds", done.out, ODD + b"out 2\n")
    same("stderr", done.err, ODD + b"err 2\n")


@test
def output_success_is_nothing_of_failures(box):
    command = box.script("tells", "echo >>log; n=$(wc -l <log); echo out $n; echo err $n >&2; exit $((n < ${1:-9}))")
    done = box.run("-q", "--output", "success", *QUICK, command).ends(1)
    same("stdout, stderr", (done.out, done.err), (b"", b"err 3\n"))
    box.write("log", "")
    done = box.run("-q", "--output", "success", *QUICK, command, 3).ends(0)
    same("stdout, stderr", (done.out, done.err), (b"out 3\n", b"err 3\n"))


@test
def output_big_is_exact(box):
    """5 MiB of each, beyond what is kept in memory."""
    box.write("big", os.urandom(5 << 20))
    wanted = hashlib.sha256((box.dir / "big").read_bytes()).hexdigest()
    for kind, times in (("pass", 3), ("last", 1)):
        done = box.run("-q", "--output", kind, *QUICK, "sh", "-c", "cat big & cat big >&2; wait; exit 1")
        for name, got in (("stdout", done.out), ("stderr", done.err)):
            same(f"{kind}: bytes of {name}", len(got), times * 5 << 20)
            same(f"{kind}: {name}", hashlib.sha256(got[-(5 << 20):]).hexdigest(), wanted)


@test
def output_last_of_a_timed_out_attempt_is_what_it_wrote(box):
    done = box.run("-q", "--output", "last", "--attempts", 2, "--delay", "1ms", "--timeout", "300ms", "sh", "-c",
                   "echo >>log; echo part $(wc -l <log); sleep 20").ends(124)
    same("stdout", done.out, b"part 2\n")


@test
def output_last_held_open_by_a_grandchild_is_not_waited_for(box):
    """The command has ended; what it left behind has its output still."""
    start = time.monotonic()
    process = box.start("-q", "--output", "last", "--attempts", 1, "sh", "-c", "echo text; sleep 3 & exit 4")
    same("stdout", process.stdout.read(), b"text\n")
    same("exit status", process.wait(20), 4)
    between("seconds", time.monotonic() - start, 0, 2.5)
    process.communicate()
    time.sleep(max(0, 3 - time.monotonic() + start))


@test
def output_last_nobody_reads_ends(box):
    process = box.start("--output", "last", *QUICK, "sh", "-c", "seq 300000; exit 1")
    process.stdout.read(10)
    process.stdout.close()
    process.stdout = None
    done = box.finish(process, 20)
    expect(done.status != 0, f"exit status {done.status}")


@test
def output_pass_nobody_reads_is_the_commands_matter(box):
    """A command that dies of SIGPIPE: kretry ends too, and not by that signal."""
    process = box.start("--attempts", 1, "sh", "-c", "yes")
    process.stdout.read(10)
    process.stdout.close()
    process.stdout = None
    done = box.finish(process, 20)
    expect(done.status == 141, f"exit status {done.status}")


@test
def output_last_spool_full_is_told(box):
    (box.dir / "tiny").mkdir()
    wrapper = box.script("tiny-tmp", 'mount -t tmpfs -o size=2m none tiny && TMPDIR=$PWD/tiny exec "$@"')
    done = box.run("--output", "last", *QUICK, "sh", "-c", "echo >>log; head -c 8000000 /dev/zero; exit 5",
                   before=("unshare", "-m", wrapper), seconds=30)
    expect(done.status in (5, 125), f"exit status {done.status}")
    done.ends(done.status, "(?i)no space|disk.* full|room")


@test
def progress_is_a_line_for_each_failure(box):
    done = box.run(*QUICK, "--retry-on", 7, *failing(7)).ends(7)
    same("stderr", done.lines[:2], ["kretry: attempt 1 of 3: exit status 7 (transient); next in 2ms",
                                    "kretry: attempt 2 of 3: exit status 7 (transient); next in 4ms"])
    expect(done.lines[-1].startswith("kretry: giving up after 3 attempts: stop-limit"), done.lines[-1])
    expect(len(done.lines) in (3, 4), f"{len(done.lines)} lines: {done.text!r}")


@test
def progress_of_a_signal_names_it(box):
    box.run("--attempts", 2, "--delay", "2ms", "--jitter", "none", "--retry-on", "SIGTERM", "sh", "-c",
            "kill -TERM $$").ends(143, r"attempt 1 of 2: .*SIGTERM.*\(transient\); next in 2ms")


@test
def progress_of_a_timeout_names_it(box):
    box.run("--attempts", 2, "--delay", "2ms", "--jitter", "none", "--timeout", "150ms", "sleep", "20").ends(
        124, r"attempt 1 of 2: timed out after 150ms \(unknown\); next in 2ms")


@test
def progress_quiet_is_nothing(box):
    done = box.run("-q", *QUICK, *failing(7)).ends(7)
    same("stderr", done.text, "")
    same("stderr of a success", box.run("--quiet", *QUICK, *failing_until(2)).ends(0).text, "")


@test
def progress_quiet_errors_are_told(box):
    box.run("-q", "no-such-command-anywhere").ends(127, "no-such-command")


@test
def progress_of_success_after_retries_with_verbose_only(box):
    done = box.run(*QUICK, *failing_until(3)).ends(0)
    same("lines", len(done.lines), 2)
    box.write("log", "")
    done = box.run("-v", *QUICK, *failing_until(3)).ends(0)
    expect("3" in done.lines[-1], f"the last line does not tell the attempts: {done.text!r}")


@test
def json_each_line_parses_and_says_all(box):
    done = box.run("--json", "--attempts", 3, "--delay", "200ms", "--jitter", "none", *failing(7)).ends(7)
    events = [json.loads(line) for line in done.lines]
    same("events", [event["event"] for event in events], ["attempt"] * 3 + ["end"])
    between("delay", events[0].pop("delay_ns"), 100_000_000, 200_000_000)
    same("first", events[0], {
        "event": "attempt", "attempt": 1, "of": 3, "status": 7, "signal": None, "timeout": False, "http": None,
        "class": "unknown", "verdict": "retry", "hint_ns": None, "backend": "process"})
    same("numbers", [event["attempt"] for event in events[:3]], [1, 2, 3])
    same("last verdict", events[2]["verdict"], "stop-limit")
    same("end", events[3], {"event": "end", "attempts": 3, "verdict": "stop-limit", "exit": 7})


@test
def json_of_success_signal_timeout_and_hint(box):
    events = [json.loads(line) for line in box.run("--json", *QUICK, *failing_until(2)).ends(0).lines]
    same("end", events[-1], {"event": "end", "attempts": 2, "verdict": "done", "exit": 0})
    done = box.run("--json", "--attempts", 1, "sh", "-c", "kill -KILL $$").ends(137)
    first = json.loads(done.lines[0])
    same("signal, status", (first["signal"], first["status"]), ("SIGKILL", None))
    done = box.run("--json", "--attempts", 1, "--timeout", "100ms", "sleep", "20").ends(124)
    first = json.loads(done.lines[0])
    same("timeout, class", (first["timeout"], first["class"]), (True, "unknown"))
    same("exit", json.loads(done.lines[-1])["exit"], 124)
    done = box.run("--json", "--attempts", "unlimited", "--total", "5s", "--retry-after-from", "fd:3", "sh", "-c",
                   "echo 40 >&3; exit 1").ends(123)
    first = json.loads(done.lines[0])
    same("hint, of", (first["hint_ns"], first["of"]), (40_000_000_000, None))


@test
def json_of_odd_words_is_still_json(box):
    """What is not the command's: a name that is no UTF-8, with quotes."""
    done = box.run("--json", b"./no\xff\"such\\\n".decode("utf-8", "surrogateescape"))
    same("exit status", done.status, 127)
    for line in done.err.splitlines():
        if line.startswith(b"{"):
            json.loads(line)


@test
def waiting_shows_no_process_but_kretry(box):
    process = box.start("--delay", "30s", "--jitter", "none", *failing(), stderr=subprocess.DEVNULL)
    box.logged(1)
    time.sleep(0.3)
    same("children", children(process.pid), [])
    used = seconds_of_processor(process.pid, 1)
    expect(used <= 0.02, f"{used} s of the processor while it waits a second")
    process.terminate()
    box.finish(process).ends(143)


@test
def waiting_in_a_time_namespace_is_as_long(box):
    done = box.run("--attempts", 2, "--delay", "700ms", "--jitter", "none", *failing(),
                   before=("unshare", "--time", "--monotonic", "86400", "--fork"))
    same("exit status", done.status, 1)
    between("gap", box.gaps()[0], 0.7, 0.7 + SLACK)
