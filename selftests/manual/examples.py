# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Runs the examples of the manuals and of README.md as their readers would."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from pages import TOP, Fault

LIMIT = 20
README_LIST = TOP / "selftests/manual/readme"
KINDS = ("c", "shell", "conf", "output", "file", "none")


def option_of(words, name):
    """What stands behind NAME= in a marker, at the commas; [] without it."""
    return next((word.partition("=")[2].split(",") for word in words if word.startswith(f"{name}=")), [])


def status_of(words):
    """The exit statuses that are right, from status=1 or status=0,1."""
    return [int(one) for one in option_of(words, "status")] or [0]


class Bench:
    """What examples are built with, and the directory where they run."""

    def __init__(self, build, work):
        self.build, self.work = build, Path(work)
        self.printed = None     # by the example before, if it ran
        self.environment = {
            "PATH": f"{build}:{os.environ['PATH']}", "HOME": str(work), "TMPDIR": str(work), "LC_ALL": "C.UTF-8",
            "KRETRY_TEST": "1",
        }

    def command(self, words, allowed, stdin=""):
        try:
            done = subprocess.run(words, cwd=self.work, input=stdin, env=self.environment, timeout=LIMIT,
                                  capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            raise Fault(f"{words[0]} takes more than {LIMIT} s") from None
        if done.returncode not in allowed:
            said = f"\n{done.stdout}{done.stderr}"
            raise Fault(f"{' '.join(map(str, words[:3]))}: status {done.returncode}, not {allowed}{said}")
        self.printed = done.stdout

    def compile(self, text, name):
        """With main() it is linked too: returns the program."""
        source, program = self.work / f"{name}.c", self.work / name
        source.write_text(text, encoding="utf-8")
        flags = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", f"-I{TOP}/uapi",
                 f"-I{TOP}/userspace/lib"]
        if re.search(r"^\w.*\bmain\(", text, re.M):
            libraries = [f"{self.build}/libkretry.a", "-luring", "-lmd", "-pthread"]
            self.command([*flags, "-o", program, source, *libraries], [0])
        else:
            self.command([*flags, "-c", "-o", f"{program}.o", source], [0])
        return program

    # -------- by the kind that the marker names --------

    def c(self, text, words, name):
        if words[:1] == ["in"]:
            wrapper = TOP / f"selftests/manual/{words[1]}.c"
            whole = wrapper.read_text(encoding="utf-8")
            if whole.count("\tEXAMPLE\n") != 1:
                raise Fault(f"{wrapper.name} has not one line EXAMPLE")
            text = whole.replace("\tEXAMPLE\n", text)
        program = self.compile(text, name)
        if words[:1] in (["run"], ["vm"]) and not program.exists():
            raise Fault("no main()")
        self.printed = None
        if words[:1] == ["run"]:
            self.command([program], status_of(words))

    def shell(self, text, words, _name):
        self.command(["bash", "-eo", "pipefail", "-c", text], status_of(words))
        wanted = option_of(words, "prints")
        if wanted and not any(one in self.printed for one in wanted):
            raise Fault(f"it does not print {' or '.join(wanted)}: {self.printed}")

    def conf(self, text, words, _name):
        (self.work / "example.conf").write_text(text, encoding="utf-8")
        kretry = self.build / "kretry"
        self.command([kretry, "policy", "apply", "--dry-run", "example.conf"], status_of(words))
        # A dry run does not ask the decision code itself what it thinks of them.
        for section in filter(None, self.printed.split("\n\n")):
            settings = [line.replace(" = ", "=", 1) for line in section.strip().splitlines()[1:]
                        if not re.match("(linger|global|uid|gid|mode) ", line)]
            self.command([kretry, "next", "--device", "/nonexistent", *settings], [0])

    def output(self, text, _words, _name):
        if self.printed is None:
            raise Fault("no example before it has run")
        if self.printed != text:
            raise Fault(f"it prints\n{self.printed}")

    def file(self, text, words, _name):
        (self.work / words[0]).write_text(text, encoding="utf-8")

    def none(self, _text, words, _name):
        if not words:
            raise Fault("a reason is missing: test: none REASON")

    def run(self, marker, text, name):
        if not marker:
            raise Fault('no comment .\\" test: ... just before it')
        if marker[0] not in KINDS:
            raise Fault(f"no kind of example: {marker[0]}")
        getattr(self, marker[0])(text, marker[1:], name)


def page_examples(page, build):
    """(name, what is wrong or None) of each; those of one page share a directory."""
    with tempfile.TemporaryDirectory(prefix="kretry-manual.") as work:
        bench = Bench(build, work)
        for example in page.examples():
            if not example.marker and example.section != "EXAMPLES":
                continue
            try:
                bench.run(example.marker, example.text, example.name)
                yield example.name, None
            except Fault as fault:
                yield example.name, f"{page.path.name}:{example.line}: {fault}"


# -------- README.md --------

def readme_blocks(text):
    """The code blocks, fenced or indented, each with its first line."""
    for match in re.finditer(r"^```\w*\n(.*?)^```$|((?:^    [^\n]*\n|^\n(?=    ))+)", text, re.M | re.S):
        block = match.group(1) or re.sub(r"^    ", "", match.group(2), flags=re.M)
        if block.strip():
            yield block.strip("\n") + "\n"


def readme_list(path):
    """first line of a block: the marker that says how it is tested."""
    marked = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            marker, _, first = line.partition(" | ")
            marked[first.strip()] = marker.split()
    return marked


def readme_examples(build, text):
    """As page_examples(), of the text of README.md; every block is on the list, and nothing else is."""
    marked = readme_list(README_LIST)
    with tempfile.TemporaryDirectory(prefix="kretry-manual.") as work:
        bench = Bench(build, work)
        installed = f"{build}/installed"
        bench.environment.update({
            "PKG_CONFIG_SYSROOT_DIR": installed, "PKG_CONFIG_PATH": f"{installed}/usr/local/lib/pkgconfig",
            "LD_LIBRARY_PATH": f"{installed}/usr/local/lib",
        })
        for number, block in enumerate(readme_blocks(text), 1):
            first = block.splitlines()[0].strip()
            name = f"readme_example_{number}"
            try:
                if first not in marked:
                    raise Fault(f"the block that begins with {first!r} is not in the list {README_LIST.name}")
                bench.run(marked.pop(first), block, name)
                yield name, None
            except Fault as fault:
                yield name, f"README.md: {fault}"
    yield "readme_list_without_leftovers", f"not in README.md: {list(marked)}" if marked else None
