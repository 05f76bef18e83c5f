# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""curl against real servers: what Retry-After says is waited for, whatever the form."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

from harness import SLACK, between, expect, same, test
from server import Answer, Server, Server2, unused_port

FINE = Answer(200)


def curl(box, server, *options, run=(), head="head", delay="20ms"):
    """kretry run around curl, with the head of each answer in a file."""
    return box.run("--delay", delay, "--jitter", "none", *run, "--retry-after-from", head, "--", "curl", "-s", "-D",
                   head, *(["--http2-prior-knowledge"] if isinstance(server, Server2) else []), *options, server.url)


def waits_for(box, seconds, *headers, status=503, kind=Server, options=("-f",), head="head", run=()):
    with kind(Answer(status, *headers), FINE) as server:
        done = curl(box, server, *options, head=head, run=run).ends(0)
        same(f"{status} {headers} {options}: requests", len(server.came), 2)
        between(f"{status} {headers} {options} {kind.__name__}: seconds", server.waits()[0], seconds, seconds + SLACK)
    return server.waits()[0], done


def every_way(box, kind):
    """Statuses, with and without -f, the body kept or discarded, the header's name in both cases."""
    ways = list(itertools.product((429, 503, 500), ((), ("-f",)), ((), ("-o", "/dev/null"), ("-o", "body")),
                                  ("Retry-After: 2", "retry-after: 2")))

    def one(numbered):
        number, (status, fail, body, header) = numbered
        body = ["-o", f"body.{number}"] if body[-1:] == ("body",) else body
        return waits_for(box, 2.0, header, status=status, kind=kind, options=[*fail, *body], head=f"head.{number}")[0]
    with ThreadPoolExecutor(8) as pool:
        seconds = list(pool.map(one, enumerate(ways)))
    box.note(f"{len(ways)} ways of Retry-After: 2: waits of {min(seconds):.3f} to {max(seconds):.3f} s")


@test
def retry_after_2_by_http_1_is_2_seconds_in_every_way(box):
    every_way(box, Server)


@test
def retry_after_2_by_http_2_is_2_seconds_in_every_way(box):
    every_way(box, Server2)


@test
def retry_after_fraction_is_waited_for(box):
    for text, seconds in (("0.7", 0.7), ("1.25", 1.25), (" 1 ", 1.0)):
        waits_for(box, seconds, f"Retry-After: {text}")


def http_dates(when):
    day = f"{when:%d %b %Y %H:%M:%S}"
    return (f"{when:%a}, {day} GMT", f"{when:%A, %d-%b-%y %H:%M:%S} GMT",
            f"{when:%a %b} {when.day:2d} {when:%H:%M:%S %Y}")


@test
def retry_after_date_is_relative_to_the_servers_clock(box):
    """The server's clock is 5 minutes ahead; three forms of a date."""
    for ahead in (300, -300, 0):
        now = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=ahead)
        for form in range(3):
            waits_for(box, 1.0, f"Date: {http_dates(now)[0]}",
                      f"Retry-After: {http_dates(now + timedelta(seconds=1))[form]}")


@test
def retry_after_date_without_the_servers_clock_is_by_ours(box):
    now = datetime.now(timezone.utc)
    with Server(Answer(503, f"Retry-After: {http_dates(now + timedelta(seconds=3))[0]}"), FINE) as server:
        curl(box, server).ends(0)
    between("seconds", server.waits()[0], 1.9, 3 + SLACK)


@test
def retry_after_date_past_is_as_0(box):
    now = datetime.now(timezone.utc)
    waits_for(box, 0.3, f"Date: {http_dates(now)[0]}", f"Retry-After: {http_dates(now - timedelta(seconds=60))[0]}",
              run=("--delay", "300ms"))


@test
def retry_after_garbage_is_no_hint(box):
    for text in ("soon", "-5", "1e9", "2 seconds", "", "Thu, 99 Foo 2026 00:00:00 GMT", "٣"):
        seconds, done = waits_for(box, 0.3, f"Retry-After: {text}", run=("-v", "--delay", "300ms"))
        expect(seconds < 0.3 + SLACK, f"{text!r}: {seconds}")
        expect("asks to wait" not in done.text, f"{text!r}: {done.text!r}")


@test
def ratelimit_reset_is_waited_for(box):
    waits_for(box, 1.0, "RateLimit-Reset: 1", status=429)
    waits_for(box, 1.0, "x-ratelimit-reset: 1", status=429, kind=Server2)
    waits_for(box, 1.0, "RateLimit-Remaining: 0", "RateLimit-Reset: 1", status=500)


@test
def retry_after_wins_over_ratelimit_reset(box):
    waits_for(box, 1.0, "RateLimit-Reset: 20", "Retry-After: 1", status=429)


@test
def retry_after_of_the_last_head_counts(box):
    """curl -L writes one head after the other."""
    with Server(Answer(429, "Retry-After: 1"), FINE) as last:
        with Server(Answer(302, f"Location: {last.url}", "Retry-After: 30")) as server:
            curl(box, server, "-L", "-f").ends(0)
        same("requests", (len(server.came), len(last.came)), (2, 2))
        between("seconds", last.waits()[0], 1.0, 1 + SLACK)


@test
def hint_above_total_gives_up_at_once_with_123(box):
    with Server(Answer(503, "Retry-After: 86400")) as server:
        for options in (("--total", "5s"), ("--total", "5s", "--max-hint", "2d"), ("--max-hint", "60s"), ()):
            start = time.monotonic()
            done = curl(box, server, "-f", run=options).ends(123, r"\b(1d|24h|86400s)\b")
            between(f"{options}: seconds", time.monotonic() - start, 0, SLACK)
            box.note(f"{' '.join(options) or 'no limit given'}: {done.lines[-1]}")
    same("requests", len(server.came), 4)


@test
def hint_above_max_hint_clamped_by_setting_is_cut(box):
    waits_for(box, 1.0, "Retry-After: 86400", run=("--max-hint", "1s", "--set", "hint_clamp=yes"))


@test
def hint_0_again_and_again_is_no_hot_loop(box):
    """At most 6 requests in 10 s: 0, 0.2, 0.6, 1.4, 3.0 and 6.2 s."""
    with Server(Answer(429, "Retry-After: 0")) as server:
        done = curl(box, server, "-f", delay="200ms",
                    run=("--factor", 2, "--max-delay", "5s", "--attempts", "unlimited", "--total", "10s"))
    done.ends(22, "giving up after 6 attempts")
    same("requests", len(server.came), 6)
    for wait, wanted in zip(server.waits(), (0.2, 0.4, 0.8, 1.6, 3.2), strict=True):
        between("wait", wait, wanted, wanted + SLACK)


@test
def hint_0_with_a_long_own_delay_is_not_blamed(box):
    """What would be too late is the own delay."""
    done = box.run("--total", "1s", "--delay", "5s", "--jitter", "none", "--retry-after-from", "fd:3", "sh", "-c",
                   "echo 0 >&3; exit 4").ends(4, "stop-elapsed")
    expect("server" not in done.text, done.text)


@test
def status_404_is_not_retried(box):
    for options, status in ((("-f",), 22), ((), 0)):
        with Server(Answer(404, "Retry-After: 1")) as server:
            done = curl(box, server, *options).ends(status, "permanent") if status else curl(box, server, *options)
        same(f"curl {options}: requests", len(server.came), 1)
        between("seconds", done.seconds, 0, SLACK)


@test
def status_of_the_head_decides_over_curls_exit_status(box):
    """Without -f curl exits with 0 whatever the answer."""
    with Server(Answer(503), Answer(500), Answer(429), FINE) as server:
        curl(box, server, run=("--attempts", 6)).ends(0)
    same("requests", len(server.came), 4)


@test
def status_503_to_the_end_without_f_is_no_success(box):
    with Server(Answer(503)) as server:
        done = curl(box, server, run=("--attempts", 2))
    done.ends(1, "giving up after 2 attempts")
    same("requests", len(server.came), 2)


@test
def retry_on_names_the_status_then_it_counts(box):
    with Server(Answer(404), FINE) as server:
        curl(box, server, "-f", run=("--retry-on", "22")).ends(0)
    same("requests", len(server.came), 2)
    with Server(Answer(503), FINE) as server:
        curl(box, server, "-f", run=("--no-retry-on", "22")).ends(22)
    same("requests", len(server.came), 1)


@test
def connection_refused_is_retried(box):
    url = f"http://127.0.0.1:{unused_port()}/"
    done = box.run("--attempts", 3, "--delay", "5ms", "curl", "-s", url)
    done.ends(7, "giving up after 3 attempts", "transient")


@test
def connection_reset_is_retried(box):
    for kind in (Server, Server2):
        with kind(Server.RESET, Server.RESET, FINE) as server:
            curl(box, server, "-f").ends(0)
        same("requests", len(server.came), 3)


@test
def connection_reset_with_once_only_is_not_retried(box):
    with Server(Server.RESET, FINE) as server:
        curl(box, server, "-f", run=("--once-only",)).ends(56, "unknown")
    same("requests", len(server.came), 1)


@test
def head_of_an_earlier_attempt_says_nothing(box):
    """A server that asked for a wait and is then gone: curl writes no head."""
    with Server(Answer(503, "Retry-After: 1"), Server.RESET, FINE) as server:
        curl(box, server, "-f", run=("--attempts", 4, "--delay", "30ms", "--factor", 1)).ends(0)
    same("requests", len(server.came), 3)
    between("first wait", server.waits()[0], 1.0, 1 + SLACK)
    between("second wait", server.waits()[1], 0.03, 0.9)


@test
def body_is_the_successful_ones_with_output_success(box):
    with Server(Answer(503, body=b"sorry\n"), Answer(200, body=b"fine\n")) as server:
        same("stdout", curl(box, server, run=("--output", "success")).ends(0).out, b"fine\n")
