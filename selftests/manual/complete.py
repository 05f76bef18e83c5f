# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the manuals leave out, or say of what is not there: each function yields what is wrong."""

import re
import subprocess

from pages import OURS, TOP, prototypes, synopsis

UAPI = TOP / "uapi/linux/kretry.h"
LIBRARY = TOP / "userspace/lib/kretry.h"
MAP = TOP / "userspace/lib/libkretry.map"
# --option, as mdoc has it.
OPTION = r"\bFl (?:Fl |-)([a-z][a-z-]*)"


def without_comments(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)


def constants(path):
    """Macros and enumerators of a header, without its guard."""
    code = without_comments(path)
    found = re.findall(r"^#define (\w+)", code, re.M)
    for body in re.findall(r"\benum \w+ \{([^}]*)\}", code):
        found += re.findall(r"^\s*(\w+)", body, re.M)
    return [name for name in found if not re.match(r"_?(UAPI_LINUX_)?KRETRY_H$", name)]


def members(path):
    """(struct, member) of a header; its structs have none inside."""
    code = without_comments(path)
    for name, body in re.findall(r"\bstruct (\w+) \{([^}]*)\}", code):
        for line in body.split(";"):
            function = re.search(r"\(\*(\w+)\)", line)
            last = re.search(r"(\w+)(\[\w+\])?\s*$", line)
            if function or last:
                yield name, (function or last).group(1)


def says(text, word):
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text)


class Manuals:
    """All pages, and the command they describe."""

    def __init__(self, pages, kretry):
        self.kretry = kretry
        self.pages = {page.path.name: page for page in pages}

    def page(self, name):
        page = self.pages.get(name)
        return self.page(page.alias) if page and page.alias else page

    def text(self, *names):
        """Of the pages that there are of these."""
        return "\n".join(self.pages[name].text() for name in names if name in self.pages)

    def output(self, *words):
        done = subprocess.run([self.kretry, *words], capture_output=True, text=True, check=False)
        if done.returncode or not done.stdout:
            raise AssertionError(f"kretry {' '.join(words)}: status {done.returncode} {done.stderr}")
        return done.stdout

    def help(self, *words):
        return self.output(*words, "--help")

    def verbs(self, *words):
        return re.findall(r"^  ([a-z]+)  +\S", self.help(*words), re.M)

    # -------- section 3 --------

    def functions(self):
        """A page for each function, with the prototype that the header has."""
        declared = prototypes(LIBRARY.read_text(encoding="utf-8"))
        exported = re.findall(r"\b(kretry_\w+);", MAP.read_text(encoding="utf-8"))
        for name in sorted({*exported, *declared}):
            page = self.page(f"{name}.3")
            if name not in declared:
                yield f"{name}: exported, and not in kretry.h"
            elif not page:
                yield f"{name}: no page {name}.3"
            elif synopsis(page).get(name) != declared[name]:
                found = synopsis(page).get(name) or f"{name} is not in SYNOPSIS"
                yield f"{page.path.name}: {found}, not {declared[name]}"
            elif name not in page.names():
                yield f"{page.path.name}: no .Nm {name} in NAME"
        for page in self.pages.values():
            for name in synopsis(page):
                if name not in declared and name.startswith("kretry_"):
                    yield f"{page.path.name}: no function {name}"

    def library(self):
        """Constants and members of the library's header are in some page of section 3."""
        text = "\n".join(page.text() for page in self.pages.values() if page.section == "3")
        for name in constants(LIBRARY):
            if not says(text, name):
                yield f"no page of section 3 has {name}"
        for struct, member in members(LIBRARY):
            if member != "kept" and not (says(text, member) and says(text, struct)):
                yield f"no page of section 3 has {member} of struct {struct}"

    def aliases(self):
        """What NAME lists can be looked up, and an alias has a page that lists it."""
        for page in self.pages.values():
            target = self.pages.get(page.alias)
            if page.alias and not target:
                yield f"{page.path.name}: no page {page.alias}"
            elif page.alias and page.name not in target.names():
                yield f"{page.path.name}: {page.alias} has no .Nm {page.name}"
            for name in page.names():
                if f"{name}.{page.section}" not in self.pages:
                    yield f"{page.path.name}: no file {name}.{page.section}"

    # -------- section 4 --------

    def constants(self):
        """All of the uapi header is in kretry(4), or for what is common in a page that it refers to."""
        device = self.pages["kretry.4"]
        others = [f"{name}.{section}" for name, section in device.references()]
        text, more = device.text(), self.text(*others)
        for name in constants(UAPI):
            if not says(text, name) and not says(more, name):
                yield f"kretry(4), and what it refers to, have no {name}"
        for struct, member in members(UAPI):
            if not member.startswith("reserved") and not (says(text, member) and says(text, struct)):
                yield f"kretry(4) has no {member} of struct {struct}"

    def device(self):
        """Errors, parameters of the module and tracepoints are in kretry(4)."""
        text = self.pages["kretry.4"].text()
        head = UAPI.read_text(encoding="utf-8").split("#ifndef", 1)[0]
        for name in re.findall(r"^ \*   (E[A-Z0-9]+) ", head, re.M):
            if not re.search(rf"^\.It Bq Er {name}$", text, re.M):
                yield f"kretry(4) has no .It Bq Er {name}"
        main = (TOP / "module/main.c").read_text(encoding="utf-8")
        trace = (TOP / "module/trace.h").read_text(encoding="utf-8")
        parameters = re.findall(r"^module_param(?:_named)?\((\w+)", main, re.M)
        for name in parameters + re.findall(r"^TRACE_EVENT\((\w+)", trace, re.M):
            if not says(text, name):
                yield f"kretry(4) has no {name}"

    # -------- the command --------

    def verb_pages(self):
        """page: the verbs it has to describe, each a list of words."""
        pages = {}
        for verb in self.verbs():
            name = f"kretry-{verb}.1" if f"kretry-{verb}.1" in self.pages else "kretry.1"
            pages.setdefault(name, []).append([verb])
            if verb == "policy":
                pages[name] += [[verb, word] for word in self.verbs(verb)]
        return pages

    def verbs_described(self):
        """Each verb is in kretry(1), and each of kretry policy in its page."""
        pages = self.verb_pages()
        pages["kretry.1"] = pages.get("kretry.1", []) + [[verb] for verb in self.verbs()]
        for name, verbs in pages.items():
            for words in verbs:
                if not re.search(rf"\b(Cm|Ic)( [a-z]+)*? {words[-1]}\b", self.text(name)):
                    yield f"{name}: no Cm {words[-1]}"

    def options(self):
        """Each option that --help prints is in its page, and no other is."""
        for name, verbs in self.verb_pages().items():
            text = self.text(name)
            texts = "\n".join(self.help(*words) for words in verbs)
            there = {"help", *re.findall(r"(?:^  (?:-\w, )?|\[)--([a-z][a-z-]*)", texts, re.M)}
            if name == "kretry.1":
                there |= set(re.findall(r"(?:^| )--([a-z][a-z-]*)", self.help(), re.M))
            described = set(re.findall(OPTION, text))
            items = {option for line in re.findall(r"^\.It (.*Fl .*)$", text, re.M)
                     for option in re.findall(OPTION, line)}
            for option in sorted(there - described - {"help"}):
                yield f"{name}: no --{option}"
            for option in sorted(items - there):
                yield f"{name}: --{option} is no option of {', '.join(' '.join(words) for words in verbs)}"

    def settings(self):
        """The settings of a policy are the items of kretry.conf(5)."""
        listed = self.help("policy", "add").split("\nSettings", 1)[1]
        there = set(re.findall(r"^  ([a-z_.]+)  +\S", listed, re.M))
        items = set(re.findall(r"^\.It (?:Ic|Cm) ([a-z_.]+)", self.text("kretry.conf.5"), re.M))
        for name in sorted(there - items):
            yield f"kretry.conf(5): no .It Ic {name}"
        for name in sorted(items - there):
            yield f"kretry.conf(5): {name} is no setting"

    def presets(self):
        """Each preset has its part of kretry-presets(7), and no other has."""
        there = set(re.findall(r"^(\S+) ", self.output("policy", "presets"), re.M))
        parts = set(re.findall(r"^\.Ss (\S+)$", self.text("kretry-presets.7"), re.M))
        for name in sorted(there ^ parts):
            yield f"kretry-presets(7): {name} is " + ("missing" if name in there else "no preset")
        for name in sorted(there):
            shown = self.output("policy", "show", "--preset", name)
            part = self.text("kretry-presets.7").partition(f"\n.Ss {name}\n")[2].partition("\n.S")[0]
            block = re.search(r"^\.Bd -literal.*\n((?:[^.].*\n)*)\.Ed", part, re.M)
            if not block or block.group(1) != shown:
                yield f"kretry-presets(7): {name} is not as kretry policy show --preset prints it"

    # -------- all --------

    def references(self):
        """A page of ours that is referred to is there."""
        for page in self.pages.values():
            for name, section in sorted(page.references()):
                if OURS.match(name) and f"{name}.{section}" not in self.pages:
                    yield f"{page.path.name}: no page {name}({section})"

    def tests(self):
        return [self.functions, self.library, self.aliases, self.constants, self.device, self.verbs_described,
                self.options, self.settings, self.presets, self.references]
