# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Command lines that are wrong: one line on stderr, status 2, and nothing was run."""

import os
import pathlib

from harness import expect, same, test

MARK = ("sh", "-c", "echo >>log")


def refused(box, *options, status=2, command=MARK):
    done = box.run(*options, *command)
    expect(done.status == status, f"{options}: exit status {done.status}, not {status}: {done.text!r}")
    same(f"{options}: stdout", done.out, b"")
    expect(len(done.lines) == 1 and done.text.startswith("kretry"), f"{options}: not one line: {done.text!r}")
    same(f"{options}: executions", box.lines(), [])
    return done.text


@test
def options_durations_wrong_are_refused(box):
    for option in ("--delay", "--max-delay", "--total", "--max-hint", "--timeout", "--grace"):
        for value in ("5", "", "s", "-1s", "1x", "1s2", "1.s", "0x1s", "1e3s", " 1s", "99999999999999999999s", "1 s"):
            text = refused(box, option, value)
            expect(option in text, f"{option} {value!r} is not named: {text!r}")


@test
def options_attempts_wrong_are_refused(box):
    for value in ("0", "-1", "", "x", "1.5", "3x", "4294967297", "99999999999999999999", " 3", "+3"):
        expect("--attempts" in refused(box, "--attempts", value), f"{value!r}: the option is not named")


@test
def options_lists_wrong_are_refused(box):
    for option in ("--retry-on", "--no-retry-on"):
        for value in ("", ",", "1,", ",1", "1,,2", "256", "-1", "1-", "-", "7-4", "1-256", "x", "SIG", "SIGNONE",
                      "1.5", "1-2-3", "99999999999"):
            expect(option in refused(box, option, value), f"{option} {value!r}: not named")


@test
def options_words_wrong_are_refused(box):
    for option, values in (("--jitter", ("", "fulll", "FULL", "1")), ("--codes", ("", "http", "Curl")),
                           ("--stdin", ("", "replay ", "no")), ("--output", ("", "first", "pas")),
                           ("--factor", ("", "x", "-1", "99999")), ("--preset", ("", "none-such")),
                           ("--key", ("", "-1", "example.org", "99999999999999999999999")),
                           ("--retry-after-from", ("", "fd:", "fd:x", "fd:0", "fd:2", "fd:-1", "fd:99999999999"))):
        for value in values:
            text = refused(box, option, value)
            expect(option[2:] in text, f"{option} {value!r} is not named: {text!r}")


@test
def options_settings_wrong_are_refused(box):
    for setting in ("", "x", "=", "=1", "base", "base=", "base=5", "nonsense=1", "budget.capacity=x", "jitter=most",
                    "max_retries=-1", "breaker.ratio=200%", "base=2s=3s"):
        refused(box, "--set", setting)
    refused(box, "--set", "multiplier=0.5")
    refused(box, "--set", "breaker.consecutive=3")


@test
def options_unknown_or_without_value_are_refused(box):
    for words in (["--no-such"], ["-x"], ["--attempt=3x"], ["-vx"], ["--quiet=1"], ["--json=yes"], ["---"]):
        refused(box, *words)
    for option in ("--delay", "--policy", "--set", "--retry-on", "--stdin"):
        refused(box, option, command=())


@test
def options_without_command_are_refused(box):
    for words in ([], ["--"], ["-v"], ["--attempts", "3"], ["--attempts", "3", "--"]):
        refused(box, *words, command=())


@test
def options_command_empty_word_is_not_found(box):
    box.run("--", "").ends(127)


@test
def options_that_contradict_are_refused(box):
    box.write("conf/a.conf", "[p]\nbase = 1ms\n")
    for words in (["--set", "base=1s"], ["--preset", "grpc"], ["--attempts", "3"], ["--delay", "1s"],
                  ["--max-delay", "1s"], ["--factor", "2"], ["--jitter", "none"], ["--total", "1s"],
                  ["--max-hint", "1s"]):
        refused(box, "--policy", "p", "--config", "conf", *words)
        refused(box, *words, "--policy", "p", "--config", "conf")


@test
def options_help_is_on_stdout_and_runs_nothing(box):
    for words in (["--help"], ["-h"], ["--attempts", "3", "--help"]):
        done = box.run(*words, *MARK).ends(0)
        expect(b"--retry-after-from" in done.out and not done.err, f"{words}: {done.out!r} {done.err!r}")
    same("executions", box.lines(), [])


@test
def options_after_the_command_are_its_own(box):
    done = box.run("echo", "--attempts", "0", "--no-such").ends(0)
    same("stdout", done.out, b"--attempts 0 --no-such\n")


@test
def policy_unknown_exits_125_and_says_what_to_do(box):
    pathlib.Path(box.dir / "conf").mkdir()
    text = refused(box, "--policy", "none-such", "--config", "conf", status=125)
    expect("none-such" in text and "conf" in text, text)
    refused(box, "--policy", "none-such", "--config", "not-there", status=125)


@test
def policy_file_wrong_is_told_with_its_line(box):
    for number, content in (("2", "[p]\nbase = 5\n"), ("3", "[p]\nbase = 1s\nnonsense = 1\n"),
                            ("1", "base = 1s\n"), ("2", "[p]\nbase\n")):
        box.write("conf/a.conf", content)
        done = box.run("--policy", "p", "--config", "conf", *MARK)
        expect(done.status in (2, 125), f"{content!r}: exit status {done.status}")
        expect(len(done.lines) == 1 and f"a.conf:{number}" in done.text, f"{content!r}: {done.text!r}")
    same("executions", box.lines(), [])


@test
def policy_file_that_cannot_be_read_is_told(box):
    (box.dir / "conf").mkdir()
    os.symlink("nowhere", box.dir / "conf/a.conf")
    done = box.run("--policy", "p", "--config", "conf", *MARK)
    expect(done.status in (2, 125) and len(done.lines) == 1 and "a.conf" in done.text, f"{done.status} {done.text!r}")
    (box.dir / "conf/a.conf").unlink()
    (box.dir / "conf/a.conf").mkdir()
    done = box.run("--policy", "p", "--config", "conf", *MARK)
    expect(done.status in (2, 125) and len(done.lines) == 1, f"a directory: {done.status} {done.text!r}")
    same("executions", box.lines(), [])
