# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The device, and who decides where it cannot be used."""

import errno
import fcntl
import grp
import os
import threading

from . import abi, clock, process
from .abi import Command
from .errors import NoModule
from .operation import Operation, attempts, aio_attempts
from .classes import classify as default_classify
from .keys import parse_key
from .params import parameters, parse_name

DEVICE = "/dev/kretry"
CLOSED = "it is closed"
REMEDIES = {errno.ENOENT: "load the module with modprobe kretry", errno.EPERM: "allow the device in the"
            " container's device rules", errno.EMFILE: "raise the limit of open files"}
REMEDIES[errno.ENODEV] = REMEDIES[errno.ENXIO] = REMEDIES[errno.ENOENT]
REMEDIES[errno.ENFILE] = REMEDIES[errno.EMFILE]


def denied(path):
    """What to do where a file may not be opened."""
    try:
        gid = os.stat(path).st_gid
    except OSError:
        return "ask for access to its directory"
    try:
        group = grp.getgrgid(gid).gr_name
    except KeyError:
        group = gid
    return f"ask for access to the node (its group is {group})"


def open_device(path):
    """A file descriptor of kretry's device; NoModule says why there is none."""
    try:
        device = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        remedy = denied(path) if error.errno == errno.EACCES else REMEDIES.get(error.errno, "see open(2)")
        raise NoModule(error.errno, f"{path}: {os.strerror(error.errno)}: {remedy}") from None
    try:
        version = abi.call(device, Command.INFO, abi.INFO)["abi_version"]
        trouble = errno.EPROTO, f"the module speaks ABI {version} and kretry for Python ABI {abi.ABI_VERSION}:" \
            " update the older one"
    except OSError:
        version, trouble = None, (errno.ENOTTY, "it is another device: give the path of kretry's (usually"
                                  f" {DEVICE})")
    if version != abi.ABI_VERSION:
        os.close(device)
        raise NoModule(trouble[0], f"{path}: {trouble[1]}")
    return device


def text_of(name):
    """A name of the ABI as text."""
    return name.rstrip(b"\0").decode(errors="backslashreplace")


class Kretry:
    """An open /dev/kretry, or decisions in this process where there is none.

    module=True raises NoModule where the module cannot be used, module=False does not look for it. By default
    the process decides without it: delays, limits and hints as the module would; policies with a name, a
    budget, a breaker, pacing or hint_shared then raise NoModule. May be used by many threads. After fork()
    parent and child share it, as they do any open file; what asyncio waits for stays the parent's.
    """

    def __init__(self, path=DEVICE, *, module=None):
        self.pid = os.getpid()
        self.reason = ""
        self.device = None
        self.queue = None
        self.error = errno.ENODEV
        if module is False:
            self.reason = "the program asked for decisions in the process"
            return
        try:
            self.device = open_device(path)
        except NoModule as error:
            if module:
                raise
            self.error, self.reason = error.errno, str(error)

    @property
    def backend(self):
        """Who decides: "module" or "process"; reason says in a line why it is not the module."""
        return "process" if self.device is None else "module"

    def fileno(self):
        """The file descriptor of the device."""
        return self.need("a file descriptor")

    def close(self):
        """Drop everything and close the device. The policies are unusable then."""
        if self.queue:
            self.queue.close()
        if self.device is not None:
            os.close(self.device)
        self.device, self.queue, self.reason = None, None, CLOSED

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "device", None) is not None:
            self.close()

    def need(self, what):
        """The device, for what only the module can do."""
        if self.reason == CLOSED:
            raise OSError(errno.EBADF, "this Kretry is closed")
        if self.device is None:
            raise NoModule(self.error, f"{self.reason}: {what} needs the module")
        return self.device

    def info(self):
        """Version, features and limits of the module, as a dict."""
        fields = abi.call(self.need("info"), Command.INFO, abi.INFO)
        del fields["size"]
        return fields

    def shutdown(self):
        """Drop everything it holds, policies included; it stays usable."""
        fcntl.ioctl(self.need("shutdown"), int(Command.SHUTDOWN), 0)

    # -------- policies --------

    def policy(self, **settings):
        """A policy of its own. Settings as in a policy file; README.md lists them."""
        return self.register(parameters(settings))

    def create(self, name, **settings):
        """The policy of that name, shared with every process of the user; OSError EEXIST if it exists with
        other settings. linger says how long it outlives its last opener."""
        return self.register(parameters(settings, name))

    def register(self, fields):
        """From fields of the ABI."""
        shared = process.needs_module(fields)
        if self.device is None and not shared and self.reason != CLOSED:
            return Policy(self, 0, fields)
        answer = abi.call(self.need(shared or "a policy"), Command.POLICY_CREATE, abi.POLICY, **fields)
        return Policy(self, answer["id"], fields)

    def open(self, name, *, host_wide=None, notify=False):
        """An existing policy: the user's own of that name or, if there is none, the host's."""
        device, data = self.need(f"the policy {name}"), parse_name(name)
        scopes = (False, True) if host_wide is None else (host_wide,)
        for scope in scopes:
            flags = scope * abi.OPEN_GLOBAL | notify * abi.OPEN_NOTIFY
            try:
                ref = abi.call(device, Command.POLICY_OPEN, abi.POLICY_REF, open_flags=flags, name=data)
                return Policy(self, ref["id"], None)
            except FileNotFoundError:
                if scope == scopes[-1]:
                    raise FileNotFoundError(errno.ENOENT, "no such policy: create it, or see kretry policy"
                                            " list", text_of(data)) from None
        return None

    def unlink(self, name, *, host_wide=False):
        """Free the name; those who hold the policy keep it."""
        abi.call(self.need("unlink"), Command.POLICY_UNLINK, abi.POLICY_REF, name=parse_name(name),
                 open_flags=host_wide * abi.OPEN_GLOBAL)

    def list(self):
        """The named policies that the caller may see, as dicts."""
        entries = abi.list_policies(self.need("list"))
        return [dict(name=text_of(entry["name"]), host_wide=bool(entry["open_flags"] & abi.OPEN_GLOBAL),
                     **{key: entry[key] for key in ("uid", "gid", "mode", "openers", "keys")})
                for entry in entries]


class Policy:
    """A policy of an open Kretry: from policy(), create() or open()."""

    def __init__(self, kretry, ident, fields):
        self.kretry = kretry
        self.id = ident
        self.fields = fields
        if fields is None:
            try:
                self.fields = self.parameters()
            except PermissionError:
                self.fields = {"clockid": abi.CLOCK_MONOTONIC}

    def __repr__(self):
        return f"<kretry.Policy {self.name or self.id} by the {self.kretry.backend}>"

    @property
    def name(self):
        """Its name, or ""."""
        return text_of(self.fields.get("name", b""))

    @property
    def clock(self):
        """The clock of its deadlines, for time.clock_gettime_ns()."""
        return self.fields["clockid"]

    def parameters(self):
        """Its parameters, by the names of struct kretry_policy."""
        if self.kretry.device is None:
            return dict(self.fields)
        fields = abi.call(self.kretry.device, Command.POLICY_GET, abi.POLICY, id=self.id)
        del fields["size"], fields["id"]
        return fields

    def stat(self, key=None):
        """Counters, or with a key its state: a dict by the names of struct kretry_stat. Breaker's state and
        mode, events and stops have the names that the kretry command prints."""
        fields = abi.call(self.kretry.need("stat"), Command.STAT, abi.STAT, policy=self.id, **self.scope(key))
        for name in ("size", "policy", "flags", "reserved"):
            del fields[name]
        fields["events"] = {str(event): fields["events"][event] for event in abi.Event}
        fields["stops"] = {str(verdict): fields["stops"][verdict - abi.Verdict.STOP_PERMANENT]
                           for verdict in abi.Verdict if verdict.is_stop}
        fields["state"] = abi.STATES[fields["state"]]
        fields["mode"] = list(abi.MODES)[fields["mode"]]
        return fields

    def force(self, mode, key=None):
        """Have the breaker, or that of one key, do as told: "open", "closed", "metrics-only", "automatic"."""
        if mode not in abi.MODES:
            raise ValueError(f"{mode!r}: one of {', '.join(abi.MODES)}")
        abi.call(self.kretry.need("force"), Command.FORCE, abi.FORCE, policy=self.id, mode=abi.MODES[mode],
                 **self.scope(key))

    @staticmethod
    def scope(key):
        """One key, or all."""
        return {} if key is None else {"flags": abi.SCOPE_KEY, "key": parse_key(key)}

    def close(self):
        """Forget it. OSError EBUSY while it has queued operations or probes under way."""
        if self.kretry.device is not None:
            abi.call(self.kretry.device, Command.POLICY_CLOSE, abi.POLICY_REF, id=self.id)
        self.kretry = NOBODY

    def now(self):
        """Nanoseconds on its clock."""
        return clock.now(self.clock)

    def step(self, fields):
        """KRETRY_IOC_STEP: report what the op's event says, have its verdict. Changes nothing if it raises."""
        if self.kretry.device is None:
            if self.kretry.reason == CLOSED:
                raise OSError(errno.EBADF, "the policy is closed")
            process.decide(self.fields, fields, self.now())
            return
        argument = abi.OP.pack(**fields)
        fcntl.ioctl(self.kretry.device, int(Command.STEP), argument)
        fields.update(abi.OP.unpack(argument))

    # -------- operations --------

    def operation(self, key=0, *, idempotent=False):
        """One thing to be done, to be reported step by step. key is a number or "scheme://host:port"."""
        return Operation(self, key, idempotent)

    def attempts(self, key=0, *, idempotent=False, classify=default_classify):
        """for attempt in policy.attempts(): with attempt: ..."""
        return attempts(self, key, idempotent, classify)

    def aio_attempts(self, key=0, *, idempotent=False, classify=default_classify):
        """async for attempt in policy.aio_attempts(): with attempt: await ..."""
        return aio_attempts(self, key, idempotent, classify)


NOBODY = Kretry(module=False)
NOBODY.close()
LOCK = threading.Lock()
HANDLES = {}


def default():
    """The Kretry of this process, which retry() uses: opened at its first use, anew after fork()."""
    with LOCK:
        pid = os.getpid()
        if pid not in HANDLES:
            HANDLES[pid] = Kretry()
        return HANDLES[pid]


# A lock that another thread held when this one forked would be held for ever.
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
