# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""How often, how far apart, and what it exits with."""

from harness import SLACK, between, expect, failing, failing_until, same, test

QUICK = ("--delay", "5ms", "--jitter", "none")


@test
def attempts_fail_fail_success_exits_0(box):
    done = box.run("--attempts", 3, *QUICK, *failing_until(3))
    done.ends(0)
    same("executions", len(box.lines()), 3)
    expect("giving up" not in done.text, done.text)


@test
def attempts_all_fail_exits_as_the_command(box):
    box.run("--attempts", 3, *QUICK, *failing(3)).ends(3, r"giving up after 3 attempts: stop-limit")
    same("executions", len(box.lines()), 3)


@test
def attempts_status_differs_exits_with_the_last(box):
    command = f"{failing_until(1)[2]}; exit $((10 + $(wc -l <log)))"
    box.run("--attempts", 4, *QUICK, "sh", "-c", command.replace("|| exit 1", "|| exit 9")).ends(14)


@test
def attempts_success_at_first_runs_once_and_is_silent(box):
    done = box.run("sh", "-c", "echo x >>log; echo out; echo err >&2").ends(0)
    same("executions", box.lines(), ["x"])
    same("stdout and stderr", (done.out, done.err), (b"out\n", b"err\n"))


@test
def attempts_one_runs_once_and_does_not_wait(box):
    done = box.run("--attempts", 1, "--delay", "30s", "--jitter", "none", *failing(9)).ends(9)
    same("executions", len(box.lines()), 1)
    between("seconds", done.seconds, 0, 5)


@test
def attempts_zero_is_refused(box):
    box.run("--attempts", 0, *failing()).ends(2, "attempts")
    same("executions", box.lines(), [])


@test
def attempts_any_limit_is_exact(box):
    for count in (2, 3, 7, 20):
        box.write("log", "")
        done = box.run("--attempts", count, "--delay", "1ms", "--max-delay", "2ms", *failing())
        done.ends(1, f"after {count} attempts")
        same("executions", len(box.lines()), count)


@test
def attempts_not_given_are_five(box):
    box.run(*QUICK, *failing()).ends(1, "attempt 1 of 5: ", "attempt 4 of 5: ", "giving up after 5 attempts")
    same("executions", len(box.lines()), 5)


@test
def attempts_unlimited_go_on_and_name_no_limit(box):
    done = box.run("--attempts", "unlimited", "--delay", "1ms", "--max-delay", "2ms", *failing_until(40)).ends(0)
    same("executions", len(box.lines()), 40)
    expect("attempt 39: exit status 1" in done.text and " of " not in done.text, done.text)


@test
def attempts_defaults_are_exponential_from_1s_with_full_jitter(box):
    done = box.run("false").ends(1, "giving up after 5 attempts")
    delays = [line.rpartition("next in ")[2] for line in done.lines if "next in" in line]
    same("waits", len(delays), 4)
    between("seconds for at most 1, 2, 4 and 8", done.seconds, 0.05, 15 + 2 * SLACK)
    box.note(f"waits {', '.join(delays)}")


@test
def attempts_fixed_delay_no_wait_after_the_last(box):
    done = box.run("--set", "strategy=fixed", "--attempts", 3, "--delay", "1s", "--jitter", "none", *failing()).ends(1)
    between("seconds", done.seconds, 2.0, 2.9)
    for gap in box.gaps():
        between("gap", gap, 1.0, 1.0 + SLACK)
    box.note(f"{done.seconds:.3f} s for two delays of 1 s")


@test
def attempts_first_delay_is_base_then_by_factor(box):
    box.run("--attempts", 5, "--delay", "100ms", "--factor", "3", "--jitter", "none", "--max-delay", "1s",
            *failing()).ends(1)
    for gap, wanted in zip(box.gaps(), (0.1, 0.3, 0.9, 1.0), strict=True):
        between("gap", gap, wanted, wanted + SLACK)


@test
def attempts_delays_are_from_the_end_of_the_attempt(box):
    box.run("--attempts", 2, "--delay", "300ms", "--jitter", "none", "sh", "-c",
            "date +%s%N >>log; sleep 0.5; date +%s%N >>log; exit 1").ends(1)
    between("gap", box.gaps()[1], 0.3, 0.3 + SLACK)


@test
def attempts_full_jitter_stays_under_the_ceiling(box):
    done = box.run("--json", "--attempts", 60, "--delay", "20ms", "--set", "strategy=fixed", "false").ends(1)
    delays = [int(line.partition('"delay_ns":')[2].split(",")[0]) for line in done.lines if '"retry"' in line]
    same("waits", len(delays), 59)
    expect(0 < max(delays) <= 20_000_000, f"longest {max(delays)}")
    expect(len(set(delays)) > 50, "the same delay over and over")


@test
def total_next_attempt_would_be_late_ends_at_once(box):
    done = box.run("--total", "5s", "--delay", "20s", "--jitter", "none", *failing(4))
    done.ends(4, "stop-elapsed", "--total 5s")
    same("executions", len(box.lines()), 1)
    between("seconds", done.seconds, 0, SLACK)


@test
def total_counts_what_the_series_leaves_room_for(box):
    """100, 150, 225, 337, 506, 759 ms; the next second would pass the limit."""
    done = box.run("--attempts", "unlimited", "--total", "3s", "--delay", "100ms", "--factor", "1.5", "--max-delay",
                   "1s", "--jitter", "none", *failing()).ends(1, "giving up after 7 attempts")
    same("executions", len(box.lines()), 7)
    between("seconds", done.seconds, 2.07, 2.95)


@test
def total_success_later_than_it_is_success(box):
    box.run("--total", "300ms", "--delay", "1ms", "sh", "-c", "sleep 0.6; exit 0").ends(0)


@test
def killed_by_signal_exits_128_and_its_number(box):
    for name, status in (("KILL", 137), ("SEGV", 139), ("TERM", 143), ("ABRT", 134)):
        box.run("--attempts", 1, "sh", "-c", f"ulimit -c 0; kill -{name} $$").ends(status)
        box.run("--attempts", 2, *QUICK, "--retry-on", f"SIG{name}", "sh", "-c",
                f"ulimit -c 0; kill -{name} $$").ends(status, f"SIG{name}")


@test
def not_found_exits_127_and_is_not_retried(box):
    done = box.run("--delay", "30s", "--jitter", "none", "no-such-command-anywhere").ends(127, "no-such-command")
    between("seconds", done.seconds, 0, SLACK)
    box.run("--delay", "30s", "--jitter", "none", "./no/such/file").ends(127)


@test
def not_executable_exits_126_and_is_not_retried(box):
    box.write("plain", "echo >>log\n")
    done = box.run("--delay", "30s", "--jitter", "none", "./plain").ends(126, "plain")
    between("seconds", done.seconds, 0, SLACK)
    box.run("--delay", "30s", "--jitter", "none", box.dir).ends(126)
    box.script("foreign", "").replace("foreign", "")
    box.write("bad", "#!/no/such/interpreter\n")
    (box.dir / "bad").chmod(0o755)
    expect(box.run("--delay", "30s", "--jitter", "none", "./bad").status in (126, 127), "a script without interpreter")


@test
def arguments_reach_the_command_untouched(box):
    odd = ["", " ", "--attempts", "-q", "a\nb", "*", "'\"", "é", "--"]
    done = box.run("-q", "--", "printf", "[%s]", *odd).ends(0)
    same("arguments", done.out.decode(), "".join(f"[{word}]" for word in odd))
    same("the command's own options", box.run("printf", "%s", "-v").ends(0).out, b"-v")
