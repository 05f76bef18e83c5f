# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The key of a dependency, on which programs in any language agree."""

import hashlib


def key(origin):
    """The first 8 bytes, little-endian, of SHA-256 of "scheme://host:port" in (ASCII) lower case; 1 for 0."""
    digest = hashlib.sha256(origin.encode(errors="surrogateescape").lower()).digest()
    return int.from_bytes(digest[:8], "little") or 1


def parse_key(value):
    """A number as it is, "scheme://host:port" by key()."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
        return value
    if isinstance(value, str) and "://" in value:
        return key(value)
    raise ValueError(f"{value!r}: a key is a number from 0 to 2^64 - 1, or \"scheme://host:port\"")
