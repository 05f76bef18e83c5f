# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Tests in Python that print TAP: each function of a module that begins with "test_" is one."""

import sys
import traceback

SHOWN = 12


def raises(kind, text, function, *args, **kwargs):
    """The exception that a call must raise, with this text in it."""
    try:
        function(*args, **kwargs)
    except kind as error:
        assert text in str(error), f"no {text!r} in {str(error)!r}"
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def equal(is_so, should):
    """They must be."""
    assert is_so == should, f"{is_so!r}, not {should!r}"


def run(module):
    """In the order of their definition. The exit status is 1 if one fails."""
    tests = {name[5:]: function for name, function in vars(module).items() if name.startswith("test_")}
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, (name, function) in enumerate(tests.items(), 1):
        try:
            function()
            status = "ok"
        except Exception:  # pylint: disable=broad-exception-caught # whatever it is, it is told
            status, failed = "not ok", 1
            for line in traceback.format_exc().splitlines()[-SHOWN:]:
                print(f"# {line}")
        print(f"{status} {number} - {name}", flush=True)
    sys.exit(failed)
