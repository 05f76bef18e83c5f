# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Standard input: each attempt reads the whole of it from its start."""

import hashlib
import os
import socket
import subprocess
import threading
import time

from harness import SLACK, Fault, between, expect, same, test, unsanitized
from processes import resident, seconds_of_processor

QUICK = ("--attempts", 3, "--delay", "5ms", "--jitter", "none")
SUM = ["sh", "-c", "sha256sum >>log; exit 1"]
MIB = 1 << 20


def digest(data):
    return f"{hashlib.sha256(data).hexdigest()}  -"


@test
def stdin_file_is_read_from_its_start_each_time(box):
    data = os.urandom(300_000)
    with open(box.write("input", data), "rb") as file:
        box.run(*QUICK, *SUM, stdin=file).ends(1)
    same("sums", box.lines(), [digest(data)] * 3)


@test
def stdin_file_at_an_offset_is_read_from_there(box):
    data = os.urandom(100_000)
    with open(box.write("input", data), "rb") as file:
        os.lseek(file.fileno(), 4097, os.SEEK_SET)
        box.run(*QUICK, *SUM, stdin=file).ends(1)
    same("sums", box.lines(), [digest(data[4097:])] * 3)


@test
def stdin_file_deleted_since_is_read(box):
    data = os.urandom(100_000)
    with open(box.write("input", data), "rb") as file:
        (box.dir / "input").unlink()
        box.run(*QUICK, *SUM, stdin=file).ends(1)
    same("sums", box.lines(), [digest(data)] * 3)


@test
def stdin_file_read_in_part_is_rewound(box):
    with open(box.write("input", b"one\ntwo\n"), "rb") as file:
        box.run(*QUICK, "sh", "-c", "read line; echo $line >>log; exit 1", stdin=file).ends(1)
    same("read", box.lines(), ["one"] * 3)


@test
def stdin_file_opened_for_writing_too_is_read(box):
    with open(box.write("input", b"both\n"), "r+b") as file:
        box.run(*QUICK, *SUM, stdin=file).ends(1)
    same("sums", box.lines(), [digest(b"both\n")] * 3)


@test
def stdin_pipe_small_is_the_same_each_time(box):
    for data in (b"", b"x", b"line\n\0binary\xff" * 100, os.urandom(65536), os.urandom(65537)):
        box.write("log", "")
        box.run(*QUICK, *SUM, data=data).ends(1)
        same(f"sums of {len(data)} bytes", box.lines(), [digest(data)] * 3)


@unsanitized
@test
def stdin_pipe_of_64_mib_is_the_same_and_memory_bounded(box):
    data = os.urandom(64 * MIB)
    process = box.start("--attempts", 4, "--delay", "5ms", *SUM, stdin=subprocess.PIPE)
    most = [0]

    def watch():
        while process.poll() is None:
            try:
                most[0] = max(most[0], resident(process.pid))
            except (KeyError, OSError):
                return
            time.sleep(0.005)
    watcher = threading.Thread(target=watch)
    watcher.start()
    box.finish(process, 60, data).ends(1)
    watcher.join()
    same("sums", box.lines(), [digest(data)] * 4)
    expect(most[0] < 4 * MIB, f"{most[0]} bytes resident")
    box.note(f"64 MiB through a pipe, four times: {most[0] // 1024} KiB resident at most")


@test
def stdin_pipe_above_1_mib_leaves_no_file(box):
    (box.dir / "tmp").mkdir()
    data = os.urandom(3 * MIB)
    box.run(*QUICK, "sh", "-c", "sha256sum >>log; ls tmp >>listed; exit 1", data=data,
            env={"TMPDIR": str(box.dir / "tmp")}).ends(1)
    same("sums", box.lines(), [digest(data)] * 3)
    same("names in TMPDIR", (box.lines("listed"), os.listdir(box.dir / "tmp")), ([], []))


@test
def stdin_pipe_read_by_halves_is_whole_at_the_next(box):
    """The first attempt takes 1,000 bytes, the second 2 MiB, the third all."""
    data = os.urandom(4 * MIB)
    command = box.script("halves", "echo >>log; n=$(wc -l <log); [ $n = 3 ] && exec sha256sum; "
                                   "head -c $((n == 1 ? 1000 : 2097152)) | sha256sum >>sums; exit 1")
    same("the last", box.run(*QUICK, command, data=data).ends(0).out.decode().strip(), digest(data))
    same("the parts", box.lines("sums"), [digest(data[:1000]), digest(data[:2 * MIB])])


@test
def stdin_pipe_written_slowly_is_passed_on_as_it_comes(box):
    """The first attempt has its first line before the second is written."""
    command = box.script("reads", "while read line; do echo $line >>log; done; exit 1")
    process = box.start(*QUICK, "--attempts", 2, command, stdin=subprocess.PIPE)
    for count in (1, 2, 3):
        process.stdin.write(b"line\n")
        process.stdin.flush()
        box.logged(count)
    box.finish(process).ends(1)
    same("lines of both", len(box.lines()), 6)


@test
def stdin_pipe_next_attempt_goes_on_with_what_comes_later(box):
    command = box.script("reads", "read a; echo $a >>log; [ -e go ] || { sleep 0.1; exit 1; }; cat >>log; exit 0")
    process = box.start(*QUICK, command, stdin=subprocess.PIPE)
    process.stdin.write(b"first\n")
    process.stdin.flush()
    box.logged(1)
    box.write("go", "")
    box.logged(2)
    process.stdin.write(b"second\n")
    box.finish(process).ends(0)
    same("read", box.lines(), ["first", "first", "second"])


@test
def stdin_pipe_never_ending_is_not_waited_for(box):
    """The writer stays, the command does not read."""
    process = box.start("true", stdin=subprocess.PIPE)
    try:
        start = time.monotonic()
        same("exit status", process.wait(20), 0)
        between("seconds", time.monotonic() - start, 0, SLACK)
    finally:
        process.communicate()
    process = box.start(*QUICK, "sh", "-c", "echo >>log; exit 3", stdin=subprocess.PIPE)
    try:
        same("exit status", process.wait(20), 3)
        same("executions", len(box.lines()), 3)
    finally:
        process.communicate()


@test
def stdin_pipe_not_read_is_not_drained(box):
    """What the command leaves, kretry leaves too, but for the buffers in between."""
    process = box.start("sleep", "0.7", stdin=subprocess.PIPE)
    os.set_blocking(process.stdin.fileno(), False)
    written, end = 0, time.monotonic() + 0.6
    while time.monotonic() < end:
        try:
            written += os.write(process.stdin.fileno(), b"x" * 4096)
        except BlockingIOError:
            time.sleep(0.01)
    expect(written <= 256 * 1024, f"{written} bytes were taken")
    box.note(f"of a pipe that the command does not read, {written // 1024} KiB were taken")
    try:
        process.stdin.close()
    except BrokenPipeError:
        pass
    process.stdin = None
    box.finish(process).ends(0)


@test
def stdin_pipe_that_does_not_move_costs_nothing(box):
    """The command does not read, or has closed its end; the writer writes, is idle, or is gone."""
    for command in ("sleep 2", "exec <&-; sleep 2"):
        for data, stays in ((b"x" * 200_000, True), (b"", True), (b"x" * 50_000, False)):
            process = box.start("sh", "-c", f"echo >>log; {command}", stdin=subprocess.PIPE)
            writer = threading.Thread(target=write_all, args=(process.stdin, data, stays))
            writer.start()
            time.sleep(0.5)
            used = seconds_of_processor(process.pid, 1)
            expect(used <= 0.05, f"{command}, {len(data)} bytes, {stays}: {used} s of the processor in 1 s")
            process.stdin = None
            box.finish(process).ends(0)
            writer.join()


def write_all(pipe, data, stays):
    try:
        with pipe:
            pipe.write(data)
            pipe.flush()
            time.sleep(1.6 if stays else 0)
    except BrokenPipeError:
        pass


@test
def stdin_endless_ends_with_the_command(box):
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as yes:
        done = box.run(*QUICK, "sh", "-c", "head -n 20000 | sha256sum >>log; exit 1", stdin=yes.stdout, seconds=30)
        yes.stdout.close()
        done.ends(1)
        try:
            yes.wait(10)
        except subprocess.TimeoutExpired:
            yes.kill()
            raise Fault("the writer still runs: its pipe is held open") from None
    same("sums", box.lines(), [digest(b"y\n" * 20000)] * 3)


@test
def stdin_null_is_empty(box):
    box.run(*QUICK, "--stdin", "null", *SUM, data=b"not this").ends(1)
    same("sums", box.lines(), [digest(b"")] * 3)


@test
def stdin_inherit_is_read_on(box):
    with open(box.write("input", b"one\ntwo\nthree\n"), "rb", buffering=0) as file:
        box.run(*QUICK, "--stdin", "inherit", "sh", "-c", "read line; echo $line >>log; exit 1", stdin=file).ends(1)
        same("read", box.lines(), ["one", "two", "three"])
        same("the caller's offset", file.tell(), 14)


@test
def stdin_dev_null_is_inherited(box):
    done = box.run("sh", "-c", "readlink /proc/self/fd/0; cat").ends(0)
    same("stdin", done.out, b"/dev/null\n")


@test
def stdin_closed_does_no_harm(box):
    for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        box.write("log", "")
        start = box.script("closed", f'exec "$@" {closing}')
        done = box.run(*QUICK, "sh", "-c", "echo >>log; echo out; echo err >&2; ls /proc/self/fd >>seen; exit 6",
                       before=(start,))
        same(f"exit status with {closing}", done.status, 6)
        same(f"executions with {closing}", len(box.lines()), 3)
        expect(b"kretry:" not in done.out, f"{closing}: its own text is on stdout: {done.out!r}")


@test
def stdout_and_stderr_closed_do_not_spoil_the_input(box):
    """What is told must not go to a file of kretry's own that has taken their place."""
    data = os.urandom(3 * MIB)
    start = box.script("closed", 'exec "$@" >&- 2>&-')
    same("exit status", box.run(*QUICK, *SUM, data=data, before=(start,)).status, 1)
    same("sums", box.lines(), [digest(data)] * 3)


@test
def stdin_socket_is_like_a_pipe(box):
    ours, theirs = socket.socketpair()
    data = os.urandom(50_000)
    process = box.start(*QUICK, *SUM, stdin=theirs)
    theirs.close()
    with ours:
        ours.sendall(data)
    box.finish(process).ends(1)
    same("sums", box.lines(), [digest(data)] * 3)


@test
def stdin_spool_full_lets_the_attempt_go_on_and_no_other(box):
    """2 MiB of room for 8 MiB."""
    (box.dir / "tiny").mkdir()
    wrapper = box.script("tiny-tmp", 'mount -t tmpfs -o size=2m none tiny && TMPDIR=$PWD/tiny exec "$@"')
    data = os.urandom(8 * MIB)
    done = box.run(*QUICK, "sh", "-c", "sha256sum >>log; exit 5", data=data, before=("unshare", "-m", wrapper))
    same("sums", box.lines(), [digest(data)])
    done.ends(5, "(?i)no space|disk.* full|room")
    box.write("log", "")
    box.run(*QUICK, "sh", "-c", "sha256sum >>log; exit 0", data=data, before=("unshare", "-m", wrapper)).ends(0)
    same("sums of a success", box.lines(), [digest(data)])


@test
def stdin_spool_directory_missing_is_told(box):
    data = os.urandom(2 * MIB)
    done = box.run(*QUICK, "sh", "-c", "sha256sum >>log; exit 5", data=data, env={"TMPDIR": "/no/such/place"})
    same("sums", sorted(set(box.lines())), [digest(data)])
    expect(done.status == 5, f"exit status {done.status}: {done.text!r}")
    expect(len(box.lines()) == 3 or "/no/such/place" in done.text, f"one attempt and no reason: {done.text!r}")
