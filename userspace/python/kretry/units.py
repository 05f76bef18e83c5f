# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Amounts as people write them, exactly: "250ms", 0.2, "20%"."""

import datetime
import re

from . import abi

UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9,
         "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
DECIMAL = re.compile(r"([0-9]+)(?:\.([0-9]+))?", re.ASCII)


def scaled(text, scale):
    """A decimal number times scale, or None if that is no whole number or above NS_MAX."""
    match = DECIMAL.fullmatch(text)
    if not match:
        return None
    fraction = match[2] or ""
    value, rest = divmod(int(match[1] + fraction) * scale, 10**len(fraction))
    return value if not rest and value <= abi.NS_MAX else None


def number(value):
    """What was given as a number, as it is written: 0.2 is one fifth, and 1e-06 a millionth."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    text = f"{value:.15f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return text if not isinstance(value, float) or float(text) == value else repr(value)


def duration(value):
    """Nanoseconds of "250ms", "1.5s", "2m", "unlimited", or of a timedelta. A bare number is refused."""
    if isinstance(value, datetime.timedelta):
        ns = (value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000
        if not 0 <= ns <= abi.NS_MAX:
            raise ValueError(f"{value}: not a duration from 0 to 292 years")
        return ns
    if value in ("0", 0) and not isinstance(value, bool):
        return 0
    if not isinstance(value, str) or DECIMAL.fullmatch(value):
        raise ValueError(f"{value!r}: a duration needs a unit: write \"250ms\", \"1.5s\" or \"2m\", or give"
                         " a datetime.timedelta")
    if value == "unlimited":
        return abi.NS_MAX
    unit = value.lstrip("0123456789.")
    if unit not in UNITS or unit == value:
        raise ValueError(f"{value!r}: no such unit: use ns, us, ms, s, m, h or d")
    ns = scaled(value[:-len(unit)], UNITS[unit])
    if ns is None:
        raise ValueError(f"{value!r}: not a duration, finer than 1ns or longer than 292 years")
    return ns


def tokens(value):
    """Micro-tokens of 500 or 0.2."""
    text = number(value)
    utok = scaled(text, abi.UTOK) if isinstance(text, str) else None
    if utok is None:
        raise ValueError(f"{value!r}: not a number of tokens: write 500 or 0.2, in millionths at the finest")
    return utok


def millionths(value, what):
    """Parts per million of a number, up to 4294.967295."""
    ppm = scaled(value, abi.PPM) if isinstance(value, str) else None
    if ppm is None:
        raise ValueError(f"{value!r}: not a {what}, in millionths at the finest")
    if ppm > 2**32 - 1:
        raise ValueError(f"{value!r}: too large: a {what} is at most 4294.967295")
    return ppm


def ratio(value):
    """Parts per million of 0.2 or "20%"."""
    if isinstance(value, str) and value.endswith("%"):
        ppm = scaled(value[:-1], abi.PPM // 100)
        if ppm is None or ppm > 2**32 - 1:
            raise ValueError(f"{value!r}: not a ratio: write 0.2 or \"20%\", in millionths at the finest")
        return ppm
    return millionths(number(value), "ratio")


def factor(value):
    """Parts per million of 2 or 1.5."""
    return millionths(number(value), "factor")


def count(value, most=2**32 - 1):
    """A whole number."""
    whole = scaled(number(value), 1) if isinstance(number(value), str) else None
    if whole is None:
        raise ValueError(f"{value!r}: not a whole number")
    if whole > most:
        raise ValueError(f"{value!r}: above {most}")
    return whole


def limit(value):
    """A count, or "unlimited"."""
    return abi.NO_LIMIT if value == "unlimited" else count(value)


def flag(value):
    """True or False, or as in a policy file yes or no."""
    if value is True or value == "yes":
        return True
    if value is False or value == "no":
        return False
    raise ValueError(f"{value!r}: neither True nor False")


def table(value):
    """Delays as a sequence, or in a string with commas between them."""
    delays = value.split(",") if isinstance(value, str) else list(value)
    delays = [duration(delay.strip() if isinstance(delay, str) else delay) for delay in delays]
    if not 0 < len(delays) <= abi.TABLE_MAX:
        raise ValueError(f"{len(delays)} delays: a table has 1 to {abi.TABLE_MAX}")
    return tuple(delays)


def mode(value):
    """Permissions: 0o660, or as in a policy file "0660"."""
    if isinstance(value, str) and re.fullmatch("[0-7]+", value):
        value = int(value, 8)
    if isinstance(value, bool) or not isinstance(value, int) or value & ~0o666:
        raise ValueError(f"{value!r}: not a mode: write 0o660, without execute bits")
    return value


def shown(ns):
    """A duration for a person."""
    for unit in ("d", "h", "m"):
        if ns and ns % UNITS[unit] == 0:
            return f"{ns // UNITS[unit]}{unit}"
    unit = next((unit for unit in ("s", "ms", "us") if ns >= UNITS[unit]), "ns")
    return f"{ns / UNITS[unit]:.3f}".rstrip("0").rstrip(".") + unit
