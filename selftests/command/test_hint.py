# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A hint from any command: in a file, or by a pipe that it inherits."""

import subprocess
import time
from email.utils import formatdate

from harness import SLACK, between, expect, same, test, until
from processes import running

OWN = ("--attempts", 2, "--delay", "200ms", "--jitter", "none")


def hinted(box, text, low, source="hint", options=()):
    """The command leaves this text as its hint, and then the second attempt is put off so long."""
    box.write("log", "")
    box.write("text", text)
    place = f"&{source[3:]}" if source.startswith("fd:") else source
    done = box.run(*OWN, *options, "--retry-after-from", source, "sh", "-c",
                   f"cat text >{place}; date +%s%N >>log; exit 1").ends(1)
    between(f"seconds for {text[:20]!r} by {source}", box.gaps()[0], low, low + SLACK)
    return done


@test
def hint_seconds_and_durations_by_file_and_pipe(box):
    for source in ("hint", "fd:3", "fd:9"):
        for text, seconds in (("1\n", 1.0), ("0.6\n", 0.6), ("700ms\n", 0.7), ("0.01m", 0.6)):
            hinted(box, text, seconds, source)


@test
def hint_date_by_file(box):
    hinted(box, formatdate(time.time() + 3, usegmt=True) + "\n", 1.8)


@test
def hint_head_by_pipe(box):
    hinted(box, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n", 1.0, "fd:4")


@test
def hint_garbage_is_told_and_none(box):
    for text in ("soon\n", "-1\n", "5 bananas\n", "\0\1\2", "HTTP/1.1\n", "x" * 100000):
        for source in ("hint", "fd:3"):
            done = hinted(box, text, 0.2, source, ("-v",))
            expect("hint" in done.text, f"{text[:20]!r} by {source} is not told: {done.text!r}")


@test
def hint_empty_or_endless_is_none(box):
    for text in ("", "\n", "1x\n2s\n" * 50000):
        for source in ("hint", "fd:3"):
            hinted(box, text, 0.2, source)


@test
def hint_file_that_did_not_change_says_nothing(box):
    box.write("hint", "30\n")
    time.sleep(0.02)
    box.run(*OWN, "--retry-after-from", "hint", "sh", "-c", "date +%s%N >>log; exit 1").ends(1)
    between("gap", box.gaps()[0], 0.2, 0.2 + SLACK)


@test
def hint_file_written_by_one_attempt_is_not_for_the_next(box):
    box.run("--attempts", 3, "--delay", "50ms", "--factor", 1, "--jitter", "none", "--retry-after-from", "hint", "sh",
            "-c", "[ -e log ] || echo 1 >hint; date +%s%N >>log; exit 1").ends(1)
    first, second = box.gaps()
    between("first gap", first, 1.0, 1 + SLACK)
    between("second gap", second, 0.05, 0.9)


@test
def hint_file_replaced_by_rename_counts(box):
    box.write("hint", "30\n")
    box.run(*OWN, "--retry-after-from", "hint", "sh", "-c",
            "echo 1 >new; mv new hint; date +%s%N >>log; exit 1").ends(1)
    between("gap", box.gaps()[0], 1.0, 1 + SLACK)


@test
def hint_file_odd_ones_do_no_harm(box):
    (box.dir / "directory").mkdir()
    box.script("fifo", "rm -f pipe; mkfifo pipe; date +%s%N >>log; exit 1")
    for source, command in (("directory", "true"), ("no/such/place", "true"), ("hint", "rm -f hint")):
        box.write("log", "")
        box.run(*OWN, "--retry-after-from", source, "sh", "-c", f"{command}; date +%s%N >>log; exit 1").ends(1)
        between(f"gap with {source}", box.gaps()[0], 0.2, 0.2 + SLACK)
    box.write("log", "")
    box.run(*OWN, "--retry-after-from", "pipe", "./fifo", seconds=20).ends(1)
    same("executions with a FIFO as the file", len(box.lines()), 2)


@test
def hint_pipe_held_open_by_a_grandchild_is_not_waited_for(box):
    done = box.run(*OWN, "--retry-after-from", "fd:3", "sh", "-c", "sleep 3 & echo 400ms >&3; date +%s%N >>log; exit 1",
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, seconds=20)
    same("status", done.status, 1)
    between("gap", box.gaps()[0], 0.4, 2.5)
    until("the grandchildren have ended", lambda: not running("sleep 3"))


@test
def hint_pipe_filled_by_the_command_does_not_block_it(box):
    box.run(*OWN, "--retry-after-from", "fd:3", "sh", "-c", "head -c 1000000 /dev/zero >&3; echo >>log; exit 1",
            seconds=20).ends(1)
    same("executions", len(box.lines()), 2)


@test
def hint_of_a_success_is_of_no_use(box):
    done = box.run(*OWN, "--retry-after-from", "hint", "sh", "-c", "echo 20s >hint").ends(0)
    between("seconds", done.seconds, 0, SLACK)


@test
def hint_with_jitter_is_never_early_and_spread(box):
    done = box.run("--json", "--attempts", 12, "--delay", "100ms", "--factor", 1, "--jitter", "full",
                   "--retry-after-from", "fd:3", "sh", "-c", "echo 100ms >&3; exit 1").ends(1)
    delays = [int(line.partition('"delay_ns":')[2].split(",")[0]) for line in done.lines if '"retry"' in line]
    same("waits", len(delays), 11)
    expect(min(delays) >= 100_000_000, f"earliest {min(delays)} ns")
    expect(max(delays) <= 200_000_000 and len(set(delays)) > 5, f"waits {delays}")
