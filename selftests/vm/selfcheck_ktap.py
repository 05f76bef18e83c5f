#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Feeds the log reader logs that were tampered with: none of them may pass."""

import sys

sys.dont_write_bytecode = True

import ktap  # pylint: disable=wrong-import-position

GOOD = ["KTAP version 1", "1..3 # k/m", "ok 1 k/m:a", "# why", "not ok 2 k/m:b", "ok 3 k/m:c # SKIP no",
        "kretry-vm-done N total=3 failed=1 skipped=1"]

# name, what is done to the good log, what the reader has to say (None: nothing)
CASES = [
    ("good_log_is_believed", lambda log: log, None),
    ("lost_result_is_seen", lambda log: log[:3] + log[5:], "arrived in order"),
    ("doubled_result_is_seen", lambda log: log[:3] + log[2:], "arrived in order"),
    ("damaged_result_is_seen", lambda log: [x.replace("not ok", "[ 1.0] x not ok") for x in log], "arrived in order"),
    ("wrong_total_is_seen", lambda log: [x.replace("failed=1", "failed=0") for x in log], "totals"),
    ("failure_turned_ok_is_seen", lambda log: [x.replace("not ok", "ok") for x in log], "totals"),
    ("missing_closing_line_is_seen", lambda log: log[:-1], "without its closing line"),
    ("closing_line_of_another_boot_is_seen", lambda log: [x.replace("done N", "done M") for x in log],
     "without its closing line"),
    ("second_closing_line_is_seen", lambda log: log + log[-1:], "more than once"),
    ("missing_plan_is_seen", lambda log: log[:1] + log[2:], "test plan"),
    ("panic_after_closing_line_is_seen", lambda log: log + ["Kernel panic - not syncing"], "Kernel panic"),
    ("empty_log_is_seen", lambda log: [], "test plan"),
    ("results_of_another_label_do_not_count", lambda log: log[:3] + ["ok 2 other/m:b"] + log[3:], None),
]


def main():
    failed = 0
    for name, change, expected in CASES:
        log = ktap.Log("k/m", "N")
        for line in change(GOOD):
            log.feed(line)
        said = log.distrust()
        good = said is None if expected is None else expected in (said or "")
        failed += not good
        print(f"{'ok' if good else 'not ok'} - selfcheck.{name}" + ("" if good else f" # it said: {said}"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
