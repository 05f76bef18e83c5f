# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a server says about when to come back: Retry-After, against its own Date."""

import datetime
import re
import time

from . import abi

SECONDS = re.compile(r"([0-9]+)(?:\.([0-9]+))?", re.ASCII)
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
# The three forms of RFC 9110, 5.6.7.
DATES = [re.compile(form, re.ASCII) for form in (
    rf"[A-Z][a-z]{{2}}, (?P<day>\d\d) (?P<month>[A-Z][a-z]{{2}}) (?P<year>\d{{4}}) {CLOCK} GMT",
    rf"[A-Z][a-z]{{5,8}}, (?P<day>\d\d)-(?P<month>[A-Z][a-z]{{2}})-(?P<year>\d\d) {CLOCK} GMT",
    rf"[A-Z][a-z]{{2}} (?P<month>[A-Z][a-z]{{2}}) (?P<day>[ \d]\d) {CLOCK} (?P<year>\d{{4}})")]


def full_year(text):
    """Two digits are the year with these that is at most 50 years ahead."""
    if len(text) == 4:
        return int(text)
    now = time.gmtime().tm_year
    year = now - now % 100 + int(text)
    return year - 100 if year > now + 50 else year


def parse_date(text):
    """Seconds since 1970 of a date of HTTP, or None."""
    for form in DATES:
        match = form.fullmatch(text.strip(" \t"))
        if not match or match["month"] not in MONTHS:
            continue
        # A leap second is the one before it.
        second = min(int(match["second"]), 59)
        try:
            moment = datetime.datetime(full_year(match["year"]), MONTHS.index(match["month"]) + 1,
                                       int(match["day"]), int(match["hour"]), int(match["minute"]), second,
                                       tzinfo=datetime.timezone.utc)
        except ValueError:
            return None
        return int(moment.timestamp()) if int(match["second"]) <= 60 else None
    return None


def parse_retry_after(value, date=None):
    """Nanoseconds that the header's value asks to wait, or None. Date is the response's own header."""
    match = SECONDS.fullmatch(value.strip(" \t"))
    if match:
        fraction = match[2] or ""
        ns = -(-int(match[1] + fraction) * 10**9 // 10**len(fraction))
        return min(ns, abi.NS_MAX)
    when = parse_date(value)
    if when is None:
        return None
    now = parse_date(date) if date else None
    since = time.time_ns() if now is None else now * 10**9
    return min(max(when * 10**9 - since, 0), abi.NS_MAX)
