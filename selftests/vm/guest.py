# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A test VM: what goes into it, how QEMU is called, and a QEMU that runs."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VM = Path(__file__).resolve().parent
TOP = VM.parent.parent
BUILD = Path(os.environ.get("KRETRY_BUILD", TOP / "build"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kretry"
QEMU = os.environ.get("QEMU", "qemu-system-x86_64")
APPEND = "console=ttyS0 panic=-1 quiet nokaslr mitigations=off randomize_kstack_offset=off log_buf_len=4M"
# A guest clock that counts instructions passes hours while it idles, so its limit is generous.
TEST_TIMEOUT = {"virtual": 100000, "smp": 60}
MEMORY_MB = 512


def die(message):
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(1)


def call(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(1)


def check_inputs(args):
    if not shutil.which(QEMU):
        die(f"{QEMU} is missing: run make deps")
    if not args.plan.is_file():
        die(f"there is no plan {args.plan}")
    for root in args.root:
        if not root.is_dir():
            die(f"there are no programs in {root}: build them first")


def prepare(args):
    call(VM / "fetch", args.kernel)
    call("make", "-s", "-C", VM, f"O={BUILD / 'vm'}", BUILD / "vm/init")
    if not args.no_module:
        call(VM / "build-module", args.kernel)


def make_initramfs(args, work):
    stage = work / "root"
    (stage / "tests").mkdir(parents=True)
    shutil.copy(BUILD / "vm/init", stage / "init")
    shutil.copy(args.plan, stage / "plan")
    if not args.no_module:
        shutil.copy(BUILD / f"module-{args.kernel}" / "kretry.ko", stage)
        call("strip", "--strip-debug", stage / "kretry.ko")
    for root in args.root:
        shutil.copytree(root, stage / "tests", dirs_exist_ok=True)
    # Debug information would only make the guest's start slower.
    call("find", stage / "tests", "-type", "f", "-perm", "-u+x", "-exec", "strip", "{}", "+")
    call(VM / "initramfs", work / "initramfs", stage)
    shutil.rmtree(stage)


def command_line(args):
    words = [APPEND, f"kretry_vm.nonce={args.nonce}", f"kretry_vm.label={args.label}",
             f"kretry_vm.timeout={TEST_TIMEOUT[args.mode]}"]
    words += [f"kretry.{word}" for word in args.module_args.split()]
    if args.only:
        words.append(f"kretry_vm.only={args.only}")
    if args.no_module:
        words.append("kretry_vm.module=0")
    return " ".join(words + args.append.split())


def file_chardev(name, path, append=False):
    if path is None:
        return ["-chardev", f"null,id={name}"]
    escaped = str(path).replace(",", ",,")
    return ["-chardev", f"file,id={name},path={escaped}" + (",append=on" if append else "")]


def machine(args, accel):
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host", "-smp", str(args.smp)]
    cpu = "max,-erms,-fsrm" if args.bench else "max"
    if args.mode == "smp":
        return ["-accel", "tcg,thread=multi", "-cpu", cpu, "-smp", str(args.smp)]
    # A vCPU that sleeps lets the clock of the VM race ahead; how long it slept must not depend on that.
    clock = "rt" if args.suspend else "vm"
    # Without the HPET, whose wrap-arounds make an idle hour ten times as long on newer QEMUs.
    return ["-accel", "tcg", "-machine", "pc,hpet=off", "-cpu", cpu, "-smp", "1",
            "-icount", "shift=0,sleep=off", "-seed", "1",
            "-rtc", f"base=2026-01-01T00:00:00,clock={clock}"]


def qemu_command(args, work, accel, ports):
    """@ports defines the character devices console and data. What is written there must not wait for
    a reader: a full pipe would hold the guest up and show in its clock."""
    return [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", str(args.memory),
            *machine(args, accel), *ports, "-serial", "chardev:console", "-serial", "chardev:data",
            "-kernel", str(CACHE / "kernels" / args.kernel / "vmlinuz"),
            "-initrd", str(work / "initramfs"), "-append", command_line(args)]


def die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Guest:
    """A QEMU that runs, at the latest until the with statement ends."""

    def __init__(self, command, ports=()):
        self.command, self.ports = command, ports
        self.errors = self.process = None

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        fds = [fd for port in self.ports for fd in port.fds()]
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.errors,
                                        stderr=self.errors, pass_fds=fds, preexec_fn=die_with_parent)
        try:
            for port in self.ports:
                port.started()
        except OSError:
            # It has ended: how will be said by who waits for it.
            pass
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.errors.close()
        for port in self.ports:
            port.close()

    def follow(self, log, follower, timeout, turn=lambda: None):
        """Until QEMU ends, calling turn() now and then. Why the boot failed as a whole, or None."""
        deadline = time.monotonic() + timeout
        with open(log, "rb") as file:
            while True:
                code = self.process.poll()
                follower.take(file.read())
                if code is not None:
                    break
                if time.monotonic() > deadline:
                    return f"the guest hung: ended after {timeout} s of wall time"
                try:
                    turn()
                except ConnectionError:
                    # A QEMU that is about to end tells no more than its exit code does.
                    pass
                time.sleep(0.05)
        follower.take(b"\n" if follower.rest else b"")
        return self.exit_trouble(code) or follower.log.distrust()

    def exit_trouble(self, code):
        if code == 0:
            return None
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"QEMU ended with {code}: {said[-1] if said else 'it said nothing'}"
