# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What counts as a failure, and as which."""

from harness import SLACK, between, expect, failing, failing_until, same, test

QUICK = ("--attempts", 3, "--delay", "2ms", "--jitter", "none")


def executions(box, *words):
    box.write("log", "")
    done = box.run(*QUICK, *words)
    return done, len(box.lines())


@test
def retry_on_others_are_not_retried(box):
    for wanted, status in ((3, 1), (3, 4), (3, 5), (3, 7), (3, 137), (1, 2), (1, 3), (1, 8), (1, 138)):
        done, count = executions(box, "--retry-on", "1,4-7,137", *failing(status))
        same(f"executions with status {status}", (count, done.status), (wanted, status))


@test
def retry_on_success_is_success(box):
    done, count = executions(box, "--retry-on", "1-255", *failing(0))
    same("executions, status", (count, done.status), (1, 0))


@test
def retry_on_signals_by_name_and_as_status(box):
    for listed in ("SIGSEGV", "1,SIGSEGV,3", "139"):
        done, count = executions(box, "--retry-on", listed, "sh", "-c", "echo >>log; ulimit -c 0; kill -SEGV $$")
        same(f"with {listed}", (count, done.status), (3, 139))
    done, count = executions(box, "--retry-on", "SIGBUS", "sh", "-c", "echo >>log; ulimit -c 0; kill -SEGV $$")
    same("with another", (count, done.status), (1, 139))


@test
def no_retry_on_ends_with_permanent(box):
    for status in (1, 4, 7):
        done, count = executions(box, "--no-retry-on", "1,4-7", *failing(status))
        same(f"executions with status {status}", (count, done.status), (1, status))
        expect("permanent" in done.text, done.text)
    same("another", executions(box, "--no-retry-on", "1,4-7", *failing(3))[1], 3)


@test
def once_only_unknown_outcome_is_not_retried(box):
    done = box.run("--once-only", "--timeout", "200ms", "--delay", "1ms", "sh", "-c", "echo >>log; sleep 30")
    done.ends(124, "timed out", "unknown")
    same("executions", len(box.lines()), 1)


@test
def once_only_not_given_unknown_is_retried(box):
    box.run(*QUICK, "--timeout", "200ms", "sh", "-c", "echo >>log; sleep 30").ends(124, "timed out after 200ms")
    same("executions", len(box.lines()), 3)


@test
def codes_command_named_curl_has_curls_table(box):
    """7 is a refused connection, 3 a malformed URL."""
    box.script("bin/curl", "echo >>log; exit $1")
    done, count = executions(box, "bin/curl", "7")
    same("refused", (count, done.status), (3, 7))
    done, count = executions(box, "bin/curl", "3")
    same("malformed", (count, done.status), (1, 3))
    expect("permanent" in done.text, done.text)
    done, count = executions(box, "--codes", "exit", "bin/curl", "3")
    same("by the other table", (count, done.status), (3, 3))


@test
def codes_curl_for_any_command(box):
    same("malformed", executions(box, "--codes", "curl", *failing(3))[1], 1)
    same("by default", executions(box, *failing(3))[1], 3)


@test
def codes_of_sysexits_are_known(box):
    for status, wanted in ((75, 3), (69, 3), (64, 1), (78, 1)):
        done, count = executions(box, *failing(status))
        same(f"executions with status {status}", (count, done.status), (wanted, status))
        expect("(transient)" in done.text if wanted == 3 else "(permanent)" in done.text, done.text)


@test
def classes_are_told(box):
    done, _ = executions(box, "--retry-on", "5", *failing(5))
    expect("attempt 1 of 3: exit status 5 (transient); next in 2ms" in done.text, done.text)
    done, _ = executions(box, "--no-retry-on", "5", *failing(5))
    expect("(permanent)" in done.text and "next in" not in done.text, done.text)


@test
def retry_on_given_twice_or_with_its_opposite_is_clear(box):
    """Whatever one status is named by both is not retried, and what is in neither is not either."""
    done, count = executions(box, "--retry-on", "1-9", "--no-retry-on", "4", *failing(4))
    same("named by both", (count, done.status), (1, 4))
    same("by the first", executions(box, "--retry-on", "1-9", "--no-retry-on", "4", *failing(5))[1], 3)
    same("by none", executions(box, "--retry-on", "1-9", "--no-retry-on", "4", *failing(10))[1], 1)


@test
def success_at_the_last_attempt_leaves_its_class_behind(box):
    done = box.run(*QUICK, "-v", *failing_until(3)).ends(0)
    expect(sum("exit status 1" in line for line in done.lines) == 2, done.text)
    between("seconds", done.seconds, 0, SLACK)
