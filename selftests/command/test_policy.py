# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Where the parameters come from: files, presets, settings. Without the module they decide here."""

import json

from harness import SLACK, between, expect, failing, failing_until, same, test

BUDGET_10 = """
[other]
max_retries = 1

[storm]
max_retries = 999
base = 1ms
cap = 2ms
assume_idempotent = yes
budget.capacity = 10
"""


@test
def budget_of_10_in_a_file_is_11_executions(box):
    box.write("conf/storm.conf", BUDGET_10)
    box.run("--policy", "storm", "--config", "conf", *failing(6)).ends(6, "giving up after 11 attempts",
                                                                       "the budget is exhausted")
    same("executions", len(box.lines()), 11)


@test
def budget_of_10_by_settings_is_11_executions(box):
    box.run("--attempts", 1000, "--delay", "1ms", "--max-delay", "1ms", "--set", "budget.capacity=10",
            *failing(6)).ends(6, "the budget is exhausted")
    same("executions", len(box.lines()), 11)


@test
def budget_refills_and_lets_more_through(box):
    """Two tokens are three executions; with five more a second four a second never run out."""
    words = ("--attempts", 1000, "--delay", "250ms", "--max-delay", "250ms", "--jitter", "none", "--total", "1900ms",
             "--set", "budget.capacity=2")
    box.run(*words, *failing()).ends(1, "stop-budget")
    same("executions", len(box.lines()), 3)
    box.write("log", "")
    box.run(*words, "--set", "budget.refill_per_s=5", *failing()).ends(1, "stop-elapsed")
    expect(5 <= len(box.lines()) <= 8, f"{len(box.lines())} executions")


@test
def policy_not_idempotent_in_its_file_is_so_by_the_option_only(box):
    box.write("conf/p.conf", "[p]\nbase = 1ms\nmax_retries = 2\n")
    sleeper = ("--timeout", "100ms", "sh", "-c", "echo >>log; sleep 20")
    box.run("--policy", "p", "--config", "conf", *sleeper).ends(124)
    same("executions", len(box.lines()), 3)
    box.run("--once-only", "--policy", "p", "--config", "conf", *sleeper).ends(124)
    same("executions with --once-only", len(box.lines()), 4)


@test
def policy_is_found_in_any_file_of_the_directory(box):
    box.write("conf/10-a.conf", "[a]\nmax_retries = 1\nbase = 1ms\n")
    box.write("conf/20-b.conf", "[b]\nmax_retries = 2\nbase = 1ms\n")
    box.write("conf/b.conf.bak", "[b]\nmax_retries = 7\nbase = 1ms\n")
    for name, count in (("a", 2), ("b", 3)):
        box.write("log", "")
        box.run("--policy", name, "--config", "conf", *failing()).ends(1, f"after {count} attempts")
        same(f"executions of {name}", len(box.lines()), count)


@test
def policy_is_found_where_the_host_has_its_policies(box):
    box.write("p.conf", "[p]\nmax_retries = 2\nbase = 1ms\n")
    wrapper = box.script("etc", 'mount -t tmpfs none /etc && mkdir /etc/kretry.d && cp p.conf /etc/kretry.d && '
                                'exec "$@"')
    box.run("--policy", "p", *failing(), before=("unshare", "-m", wrapper)).ends(1, "after 3 attempts")
    box.run("--policy", "q", *failing(), before=("unshare", "-m", wrapper)).ends(125, "/etc/kretry.d")
    same("executions", len(box.lines()), 3)


@test
def preset_then_settings_take_effect(box):
    box.run("--preset", "grpc", "--delay", "1ms", "--max-delay", "2ms", "--attempts", 3, *failing()).ends(1)
    same("executions", len(box.lines()), 3)


@test
def settings_twice_are_refused(box):
    for words in (["--set", "max_retries=5", "--set", "max_retries=1"], ["--delay", "1s", "--set", "base=2s"]):
        box.run(*words, *failing()).ends(2, "twice")
    same("executions", len(box.lines()), 0)


@test
def breaker_opens_and_ends_it(box):
    box.run("--attempts", 50, "--delay", "1ms", "--max-delay", "1ms", "--set", "breaker.consecutive=3", "--set",
            "breaker.open=1m", *failing(8)).ends(8, "giving up after 3 attempts: .*open")
    same("executions", len(box.lines()), 3)


@test
def breaker_waited_for_goes_on(box):
    done = box.run("--attempts", 9, "--delay", "1ms", "--max-delay", "1ms", "--set", "breaker.consecutive=2", "--set",
                   "breaker.open=500ms", "--set", "breaker.wait_open=yes", *failing_until(3)).ends(0)
    same("executions", len(box.lines()), 3)
    between("seconds", done.seconds, 0.5, 0.5 + SLACK)


@test
def pacing_spaces_the_retries(box):
    box.run("--attempts", 5, "--delay", "1ms", "--max-delay", "1ms", "--set", "pacing.every=300ms",
            *failing()).ends(1)
    for gap in box.gaps()[1:]:
        between("gap, as far as starts take equally long", gap, 0.1, 0.3 + SLACK)


@test
def pacing_too_far_exits_with_the_commands_status(box):
    box.run("--attempts", 9, "--delay", "1ms", "--max-delay", "1ms", "--set", "pacing.every=10s", "--set",
            "pacing.horizon=1s", *failing(5)).ends(5, "giving up after 2 attempts")
    same("executions", len(box.lines()), 2)


@test
def key_wide_apart_are_accepted(box):
    for key in ("0", "18446744073709551615", "https://example.org:443", "HTTP://Example.org:80"):
        box.run("--key", key, "true").ends(0)


@test
def backend_is_told_with_its_reason(box):
    done = box.run("-v", "true").ends(0, r"kretry: decided in this process: \S")
    expect("decided by the module" not in done.text, done.text)
    done = box.run("--json", "--attempts", 2, "--delay", "1ms", "false").ends(1)
    same("backend", json.loads(done.lines[0])["backend"], "process")
