# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Reads the serial log of a test VM and says what passed, and whether the boot can be believed."""

import fnmatch
import re

PLAN = re.compile(r"^1\.\.(\d+) # (\S+)$")
RESULT = re.compile(r"^(not )?ok (\d+) (\S+?):(.*?)(?: # SKIP (.*))?$")
DONE = re.compile(r"^kretry-vm-done (\S+) total=(\d+) failed=(\d+) skipped=(\d+)$")
OUTPUT = "# output of "
PANIC = ("Kernel panic", "Attempted to kill init", "Bail out!")


class Result:
    """One test: state is 'ok', 'fail' or 'skip', said is what the guest called it; note says why."""

    def __init__(self, name, state, note="", diag=()):
        self.name, self.state, self.note, self.diag = name, state, note, list(diag)
        self.said = state


class Log:
    """Takes the log line by line; results are there as soon as their line is."""

    def __init__(self, label, nonce):
        self.label, self.nonce = label, nonce
        self.planned = None
        self.numbers, self.results, self.problems = [], [], []
        self.done = []
        self.diag = []
        self.in_output = False

    def feed(self, line):
        """Returns the Result the line completes, the line itself when it is the output of a
        program the plan runs, else None."""
        result = RESULT.match(line)
        if result and result[3] == self.label:
            return self._result(result)
        for text in PANIC:
            if text in line:
                self.problems.append(line.strip())
        plan, done = PLAN.match(line), DONE.match(line)
        if plan and plan[2] == self.label and self.planned is None:
            self.planned = int(plan[1])
        elif done and done[1] == self.nonce:
            self.done.append([int(n) for n in done.groups()[1:]])
        elif line.startswith(OUTPUT):
            self.in_output = True
        elif line.startswith("# "):
            self.diag.append(line)
        elif self.in_output:
            return line
        return None

    def _result(self, match):
        state = "fail" if match[1] else "skip" if match[5] else "ok"
        result = Result(match[4], state, match[5] or "", self.diag)
        self.numbers.append(int(match[2]))
        self.results.append(result)
        self.diag, self.in_output = [], False
        return result

    def count(self, state):
        return sum(r.state == state for r in self.results)

    def distrust(self):
        """Why the boot as a whole cannot count as passed, whatever its tests say."""
        total = len(self.results)
        if self.problems:
            return self.problems[0]
        if self.planned is None:
            return "the guest never got as far as its test plan"
        if not self.done:
            return f"the guest stopped without its closing line after {total} of {self.planned} tests"
        if len(self.done) > 1:
            return "the closing line is there more than once"
        if self.numbers != list(range(1, self.planned + 1)):
            return f"planned {self.planned} tests, but the result lines of {total} arrived in order"
        said = [r.said for r in self.results]
        if self.done[0] != [total, said.count("fail"), said.count("skip")]:
            return "the totals of the guest differ from its result lines"
        return None


class Skips:
    """The list of skips that are right for one kernel and mode."""

    def __init__(self, path, kernel, mode):
        self.entries = []
        with open(path, encoding="utf-8") as file:
            for line in file:
                words = line.split(None, 3)
                if not words or words[0].startswith("#"):
                    continue
                if len(words) != 4:
                    raise ValueError(f"{path}: not four columns: {line.strip()}")
                if fnmatch.fnmatch(kernel, words[1]) and fnmatch.fnmatch(mode, words[2]):
                    self.entries.append((words[0], words[3].strip()))

    def judge(self, result):
        """Turns a skip that is not on the list into a failure."""
        if result.state != "skip":
            return
        for test, reason in self.entries:
            if fnmatch.fnmatch(result.name, test) and fnmatch.fnmatch(result.note, reason):
                return
        result.state = "fail"
        result.note = f"skipped, and not on the list of skips: {result.note}"

    def unused(self, results):
        """Entries whose test ran (or whose program ran without it) and did not skip."""
        programs = {r.name.split(".")[0] for r in results}
        used = {t for t, _ in self.entries for r in results
                if r.state == "skip" and fnmatch.fnmatch(r.name, t)}
        return [t for t, _ in self.entries if t.split(".")[0] in programs and t not in used]
