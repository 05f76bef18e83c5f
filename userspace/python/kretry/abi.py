# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Numbers and layouts of linux/kretry.h, and the calls. "=" is without padding: there is none."""

import array
import enum
import fcntl
import struct

ABI_VERSION = 1
NS_MAX = 2**63 - 1
PPM = 10**6
UTOK = 10**6
NO_LIMIT = 2**32 - 1
TABLE_MAX = 64
NAME_MAX = 64

CLOCK_MONOTONIC, CLOCK_BOOTTIME = 1, 7

OP_IDEMPOTENT, OP_HINT, OP_NO_RETRY, OP_QUEUE = 0x01, 0x02, 0x04, 0x08
OP_AFTER = 0x30
OP_IN_MASK = 0xff
OP_READMIT, OP_SHARED_KEY, OP_CLAMPED, OP_PROBE, OP_QUEUED = 0x0100, 0x0200, 0x0400, 0x0800, 0x1000

ASSUME_IDEMPOTENT, HINT_CLAMP, HINT_MAX, HINT_EXACT = 0x01, 0x02, 0x04, 0x08
HINT_SHARED, WAIT_OPEN, PACE_ALL = 0x10, 0x20, 0x40

OPEN_GLOBAL, OPEN_NOTIFY = 0x01, 0x02
FEATURE_QUEUE = 0x0080
SCOPE_KEY = 0x1


class Event(enum.IntEnum):
    """What is reported of an operation."""

    BEGIN = 1
    OK = 2
    CANCELLED = 3
    TRANSIENT = 4
    THROTTLED = 5
    UNKNOWN = 6
    PERMANENT = 7

    def __str__(self):
        return self.name.lower()


class Verdict(enum.IntEnum):
    """What to do; str() of it is the name that the kretry command prints."""

    NONE = 0
    GO = 1
    RETRY = 2
    DONE = 3
    STOP_PERMANENT = 16
    STOP_UNSAFE = 17
    STOP_LIMIT = 18
    STOP_HINT = 19
    STOP_ELAPSED = 20
    STOP_BUDGET = 21
    STOP_OPEN = 22
    STOP_COOLING = 23
    STOP_PACED = 24

    @property
    def is_stop(self):
        """Whether the attempt must not be made."""
        return self >= Verdict.STOP_PERMANENT

    def __str__(self):
        return self.name.lower().replace("_", "-")


STRATEGIES = {"fixed": 1, "linear": 2, "exponential": 3, "decorrelated": 4, "slotted": 5, "table": 6}
JITTERS = {"none": 0, "full": 1, "equal": 2, "proportional": 3, "additive": 4}
THROTTLED_AS = {"ignored": 0, "success": 1, "failure": 2}
MODES = {"automatic": 0, "open": 1, "closed": 2, "metrics-only": 3}
STATES = ("closed", "open", "half-open")


class Record:
    """A struct of the header by the names of its fields, which Python has as a dict."""

    def __init__(self, layout, names):
        self.struct = struct.Struct("=" + layout)
        self.names = names.split()

    @property
    def size(self):
        """In bytes."""
        return self.struct.size

    def pack(self, **fields):
        """Fields that are not given are zero; a field of many is a tuple, padded with zeros."""
        values = []
        for name in self.names:
            name, _, count = name.partition("*")
            value = fields.get(name, b"" if name in ("name", "op") else 0)
            if count:
                value = tuple(value or ())
                values += value + (0,) * (int(count) - len(value))
            else:
                values.append(value)
        return bytearray(self.struct.pack(*values))

    def unpack(self, data):
        """The fields by name; of many a tuple."""
        values = iter(self.struct.unpack(data))
        fields = {}
        for name in self.names:
            name, _, count = name.partition("*")
            fields[name] = tuple(next(values) for _ in range(int(count))) if count else next(values)
        return fields


OP = Record("IBBHQQQIIQQQ", "policy event verdict flags key user_data hint_ns attempt generation"
            " start_ns delay_ns deadline_ns")
POLICY = Record(
    "10IQ64s5Q" "4B3I4Q64Q" "13Q4I" "10I4BI6Q" "2Q",
    "size id flags open_flags clockid max_retries uid gid mode reserved linger_ns name max_elapsed_ns"
    " reset_after_ns slack_ns hint_limit_ns hint_over_own_ns"
    " strategy jitter table_len reserved1 multiplier_ppm jitter_ppm reserved2 base_ns"
    " base_throttled_ns cap_ns floor_ns table_ns*64"
    " budget.capacity_utok budget.initial_utok budget.reserve_cap_utok budget.refill_utok_per_s"
    " budget.deposit_request_utok budget.deposit_first_success_utok"
    " budget.deposit_retry_success_utok budget.drain_per_failure_utok budget.cost_transient_utok"
    " budget.cost_throttled_utok budget.cost_unknown_utok budget.admit_above_utok budget.window_ns"
    " budget.max_retrying budget.retrying_ppm budget.flags budget.reserved"
    " breaker.consecutive breaker.min_calls breaker.ratio_ppm breaker.slow_ppm breaker.half_open_ppm"
    " breaker.open_growth_ppm breaker.open_jitter_ppm breaker.window_calls breaker.probes"
    " breaker.successes_to_close breaker.min_reporters breaker.throttled"
    " breaker.throttled_half_open breaker.reserved breaker.flags breaker.open_ns breaker.open_cap_ns"
    " breaker.window_ns breaker.probe_timeout_ns breaker.slow_ns breaker.ramp_ns"
    " pacing.pace_ns pacing.horizon_ns")
POLICY_REF = Record("4I64s", "size id open_flags reserved name")
POLICY_ENTRY = Record("6I64s", "open_flags uid gid mode openers keys name")
POLICY_LIST = Record("2IQ2I", "size entry_size entries count reserved")
INFO = Record("2IQ4IQ", "size abi_version features max_batch max_policies max_keys max_queued"
              " max_linger_ns")
CANCEL = Record("2IQ64s", "size flags user_data op")
STAT = Record("4IQ8Q3Q16Q7Q8I5Q", "size policy flags keys key events*8 go retry done stops*16"
              " charged_utok refunded_utok balance_utok opened transitions evicted probes_lost queued"
              " leases state mode streak window_calls window_failures reserved half_open_ns cooling_ns"
              " pace_next_ns redrawn spread")
FORCE = Record("4IQ", "size policy flags mode key")


class Command(enum.IntEnum):
    """The commands: _IO(0xd9, number)."""

    INFO = 0xd900
    POLICY_CREATE = 0xd901
    POLICY_OPEN = 0xd902
    POLICY_GET = 0xd903
    POLICY_CLOSE = 0xd904
    POLICY_UNLINK = 0xd905
    POLICY_LIST = 0xd906
    STEP = 0xd907
    CANCEL = 0xd90a
    STAT = 0xd90b
    FORCE = 0xd90c
    SHUTDOWN = 0xd90d


def call(device, command, record, **fields):
    """One command with a struct that starts with its size: the struct as it comes back."""
    argument = record.pack(size=record.size, **fields)
    fcntl.ioctl(device, int(command), argument)
    return record.unpack(argument)


def list_policies(device):
    """The entries of POLICY_LIST, however many there are by the time it is asked."""
    room = 16
    while True:
        memory = array.array("B", bytes(room * POLICY_ENTRY.size))
        there = call(device, Command.POLICY_LIST, POLICY_LIST, entry_size=POLICY_ENTRY.size,
                     entries=memory.buffer_info()[0], count=room)["count"]
        if there <= room:
            data = memory.tobytes()[:there * POLICY_ENTRY.size]
            return [POLICY_ENTRY.unpack(data[at:at + POLICY_ENTRY.size])
                    for at in range(0, len(data), POLICY_ENTRY.size)]
        room = there + 16
