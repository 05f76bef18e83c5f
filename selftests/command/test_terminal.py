# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""At a real terminal: keys that are signals, jobs, and the countdown."""

import os
import re
import shlex
import subprocess
import time

from harness import between, expect, failing, same, test, until
from processes import running, stat
from terminal import Terminal, shell

ESCAPES = "\x1b\\[[0-9;?]*[A-Za-z]"
LONG = ("--delay", "60s", "--jitter", "none")
CTRL_C, CTRL_Z, CTRL_BACKSLASH, CTRL_D = "\x03", "\x1a", "\x1c", "\x04"


def quoted(box, *words):
    return " ".join(shlex.quote(word) for word in box.command(*words))


@test
def terminal_ctrl_c_while_waiting_ends_it_at_once(box):
    terminal = Terminal(box, box.command(*LONG, *failing()))
    terminal.wait_for("next in")
    box.logged(1)
    time.sleep(0.2)
    start = time.monotonic()
    terminal.type(CTRL_C)
    same("exit status", terminal.finish(), 130)
    seconds = time.monotonic() - start
    between("seconds", seconds, 0, 1)
    box.note(f"Ctrl-C while it waits: exits 130 after {seconds * 1000:.1f} ms")
    same("executions", len(box.lines()), 1)


@test
def terminal_ctrl_c_reaches_the_command_once(box):
    command = box.script("counts", "trap 'echo heard >>log' INT; echo ready; while [ ! -e end ]; do sleep 0.02; done; "
                                   "exit 7")
    terminal = Terminal(box, box.command(*LONG, "--grace", "20s", command))
    terminal.wait_for("ready")
    time.sleep(0.1)
    terminal.type(CTRL_C)
    box.logged(1)
    time.sleep(0.4)
    box.write("end", "")
    same("exit status", terminal.finish(), 130)
    same("heard", box.lines(), ["heard"])


@test
def terminal_ctrl_c_is_passed_on_where_the_input_is_no_terminal(box):
    command = box.script("counts", "trap 'echo heard >>log' INT; echo ready; while [ ! -e end ]; do sleep 0.02; done; "
                                   "exit 7")
    terminal = Terminal(box, box.command(*LONG, "--grace", "20s", command), stdin=subprocess.DEVNULL)
    terminal.wait_for("ready")
    time.sleep(0.1)
    terminal.type(CTRL_C)
    box.logged(1)
    time.sleep(0.3)
    box.write("end", "")
    same("exit status", terminal.finish(), 130)
    same("heard", box.lines(), ["heard"])


@test
def terminal_ctrl_c_ends_command_and_kretry(box):
    terminal = Terminal(box, box.command(*LONG, "sh", "-c", "echo x >>log; exec sleep 30"))
    box.logged(1)
    time.sleep(0.2)
    start = time.monotonic()
    terminal.type(CTRL_C)
    same("exit status", terminal.finish(), 130)
    between("seconds", time.monotonic() - start, 0, 1)
    same("executions", len(box.lines()), 1)


@test
def terminal_ctrl_c_twice_kills_what_ignores_it(box):
    command = box.script("stubborn", "trap '' INT; echo ready; while :; do sleep 0.02; done")
    terminal = Terminal(box, box.command(*LONG, "--grace", "50s", command))
    terminal.wait_for("ready")
    time.sleep(0.1)
    terminal.type(CTRL_C)
    time.sleep(0.3)
    same("after the first", terminal.process.poll(), None)
    start = time.monotonic()
    terminal.type(CTRL_C)
    same("exit status", terminal.finish(), 130)
    between("seconds", time.monotonic() - start, 0, 1)


@test
def terminal_ctrl_backslash_quits(box):
    terminal = Terminal(box, box.command(*LONG, "sh", "-c", "ulimit -c 0; echo x >>log; exec sleep 30"))
    box.logged(1)
    time.sleep(0.1)
    terminal.type(CTRL_BACKSLASH)
    same("exit status", terminal.finish(), 131)


@test
def terminal_command_reads_from_it_at_each_attempt(box):
    terminal = Terminal(box, box.command("--attempts", 3, "--delay", "10ms", "--jitter", "none", "sh", "-c",
                                         "echo ask; read answer; echo got-$answer >>log; [ $answer = yes ]"))
    for count, answer in enumerate(("no", "maybe", "yes"), 1):
        terminal.wait_for(f"(?s)(ask.*){{{count}}}")
        terminal.type(f"{answer}\n")
        box.logged(count)
    same("exit status", terminal.finish(), 0)
    same("read", box.lines(), ["got-no", "got-maybe", "got-yes"])


@test
def terminal_command_is_in_the_foreground(box):
    """It may set the terminal's modes without being stopped."""
    terminal = Terminal(box, box.command("--attempts", 1, "sh", "-c", "stty -echo && stty echo && echo fine"))
    terminal.wait_for("fine")
    same("exit status", terminal.finish(), 0)


@test
def terminal_shell_goes_on_after_ctrl_c(box):
    terminal = shell(box)
    terminal.type(f"{quoted(box, *LONG, 'false')}; echo status=$?\n")
    terminal.wait_for("next in 1m|next in 60")
    terminal.type(CTRL_C)
    terminal.wait_for("status=130")
    terminal.type("exit\n")
    terminal.finish()


def stopped_ticker(box, redirection=""):
    """A shell in which a command that ticks has been stopped by Ctrl-Z."""
    command = box.script("ticker", "echo begun; while [ ! -e end ]; do echo . >>ticks; sleep 0.02; done; echo ended")
    terminal = shell(box)
    terminal.type(f"{quoted(box, *LONG, command)}{redirection}; echo status=$?\n")
    terminal.wait_for("begun\r")
    terminal.type(CTRL_Z)
    terminal.wait_for("Stopped")

    def states():
        return {stat(pid)[0] for pid in running("ticker", terminal.process.pid)}
    # The shell says so of kretry, a moment before or after the command has got the signal too. And
    # another shell that has just called vfork() is in state D, until its child may go on.
    until("the command is stopped", lambda: states() and states() <= {"T", "D"})
    return terminal


@test
def terminal_ctrl_z_stops_the_command_and_fg_goes_on(box):
    terminal = stopped_ticker(box)
    before = len(box.lines("ticks"))
    time.sleep(0.2)
    same("ticks while stopped", len(box.lines("ticks")), before)
    terminal.type("fg\n")
    until("the command goes on", lambda: len(box.lines("ticks")) > before + 3)
    mark = len(terminal.seen)
    box.write("end", "")
    terminal.wait_for("ended", start=mark)
    terminal.type("exit\n")
    terminal.finish()


@test
def terminal_ctrl_z_is_passed_on_where_the_input_is_no_terminal(box):
    terminal = stopped_ticker(box, " </dev/null")
    before = len(box.lines("ticks"))
    time.sleep(0.2)
    same("ticks while stopped", len(box.lines("ticks")), before)
    terminal.type("fg\n")
    until("the command goes on", lambda: len(box.lines("ticks")) > before + 3)
    box.write("end", "")
    terminal.wait_for("ended")
    terminal.type("exit\n")
    terminal.finish()


@test
def terminal_ctrl_z_while_waiting_then_fg_keeps_the_deadline(box):
    terminal = shell(box)
    terminal.type(f"{quoted(box, '--attempts', 2, '--delay', '1s', '--jitter', 'none', *failing())}\n")
    terminal.wait_for("next in 1s")
    box.logged(1)
    time.sleep(0.1)
    terminal.type(CTRL_Z)
    terminal.wait_for("Stopped")
    time.sleep(1.2)
    same("executions while stopped", len(box.lines()), 1)
    terminal.type("fg\n")
    terminal.wait_for("giving up after 2")
    between("gap", box.gaps()[0], 1.2, 5)
    terminal.type("exit\n")
    terminal.finish()


@test
def terminal_ctrl_z_then_bg_runs_on(box):
    terminal = shell(box)
    terminal.type(f"{quoted(box, '--attempts', 2, '--delay', '1s', '--jitter', 'none', *failing(4))}\n")
    terminal.wait_for("next in 1s")
    box.logged(1)
    terminal.type(CTRL_Z)
    terminal.wait_for("Stopped")
    terminal.type("bg\n")
    box.logged(2)
    terminal.type("wait\n")
    terminal.wait_for("giving up after 2")
    terminal.type("exit\n")
    terminal.finish()


@test
def terminal_started_in_the_background_runs(box):
    terminal = shell(box)
    terminal.type(f"{quoted(box, '--attempts', 2, '--delay', '100ms', '--jitter', 'none', *failing(4))} & wait $!; "
                  "echo status=$?\n")
    terminal.wait_for("status=4")
    same("executions", len(box.lines()), 2)
    terminal.type("exit\n")
    terminal.finish()


@test
def terminal_hangup_ends_it(box):
    terminal = Terminal(box, box.command(*LONG, "--grace", "500ms", "sh", "-c", "echo x >>log; exec sleep 30"))
    box.logged(1)
    os.close(terminal.master)
    same("exit status", terminal.process.wait(10), 129)


@test
def countdown_is_live_and_gone_when_it_ends(box):
    terminal = Terminal(box, box.command("--attempts", 2, "--delay", "3s", "--jitter", "none", "sh", "-c",
                                         "echo begun; exit 1"))
    terminal.wait_for("giving up after 2", 20)
    same("exit status", terminal.finish(), 1)
    begin = terminal.seen.index("next in 3s")
    waited = terminal.seen[begin:terminal.seen.index("begun", begin)]
    rewritten = waited.count("\r") - waited.count("\r\n")
    expect(8 <= rewritten <= 60, f"{rewritten} rewritings in 3 s: {waited!r}")
    same("lines while it waits", waited.count("\n"), 1)
    shown = re.findall(r"\r[^\r\n]*?\bin ([0-9.]+)s", re.sub(ESCAPES, "", waited))
    seconds = [float(text) for text in shown]
    expect(len(seconds) >= 8, f"no seconds count down: {waited!r}")
    same("seconds in their order", seconds, sorted(seconds, reverse=True))
    expect(seconds[0] <= 3 and 0 < seconds[-1] <= 0.5, f"{seconds}")
    expect(max(len(part) for part in re.split("[\r\n]+", re.sub(ESCAPES, "", waited))) < 80, f"wide: {waited!r}")


@test
def countdown_colours_only_without_no_color(box):
    words = box.command("--attempts", 2, "--delay", "1200ms", "--jitter", "none", "false")
    colours = "\x1b\\[[0-9;]*m"
    terminal = Terminal(box, words)
    terminal.finish()
    expect(re.search(colours, terminal.seen), f"no colours: {terminal.seen!r}")
    terminal = Terminal(box, words, {"NO_COLOR": "1"})
    terminal.finish()
    expect(not re.search(colours, terminal.seen), f"colours in spite of NO_COLOR: {terminal.seen!r}")
    expect(terminal.seen.count("\r") > terminal.seen.count("\r\n"), f"no countdown: {terminal.seen!r}")


@test
def countdown_is_on_no_pipe_and_not_with_quiet_or_json(box):
    words = ("--attempts", 2, "--delay", "1200ms", "--jitter", "none", "false")
    done = box.run(*words)
    expect("\r" not in done.text and "\x1b" not in done.text, f"on a pipe: {done.text!r}")
    terminal = Terminal(box, box.command(*words), stderr=subprocess.PIPE)
    err = terminal.process.stderr.read()
    terminal.finish()
    expect(b"\r" not in err and b"\x1b" not in err, f"stderr on a pipe: {err!r}")
    for option in ("-q", "--json"):
        terminal = Terminal(box, box.command(option, *words))
        terminal.finish()
        left = terminal.seen.replace("\r\n", "\n")
        expect("\r" not in left and "\x1b" not in left, f"with {option}: {terminal.seen!r}")


@test
def tmux_ctrl_c_reaches_the_command_once(box):
    env = box.env({"TMUX_TMPDIR": str(box.dir), "TERM": "screen"})
    env.pop("TMUX", None)

    def tmux(*words):
        return subprocess.run(["tmux", "-f", "/dev/null", *words], env=env, cwd=box.dir, check=True,
                              stdout=subprocess.PIPE).stdout.decode()

    command = box.script("counts", "trap 'echo heard >>log; exit 9' INT; echo ready >>log; "
                                   "while :; do sleep 0.02; done")
    tmux("new-session", "-d", "-x", "100", "-y", "30",
         f"{quoted(box, *LONG, command)}; echo run=$? >>log; {quoted(box, *LONG, 'false')}; echo wait=$? >>log; "
         "exec sleep 600")
    try:
        box.logged(1)
        tmux("send-keys", "C-c")
        box.logged(3)
        until("it waits", lambda: "next in" in tmux("capture-pane", "-p"))
        time.sleep(0.3)
        start = time.monotonic()
        tmux("send-keys", "C-c")
        box.logged(4)
        box.note(f"under tmux: Ctrl-C while it waits ends it after {(time.monotonic() - start) * 1000:.0f} ms")
        same("what happened", box.lines(), ["ready", "heard", "run=130", "wait=130"])
    finally:
        tmux("kill-server")
