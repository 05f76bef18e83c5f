# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The manual pages: their sections, names, references and examples, from their mdoc source."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
MAN = TOP / "userspace/man"

ESCAPES = {"e": "\\", "-": "-", "&": "", "(rs": "\\", "(aq": "'", "(dq": '"', "(ti": "~", "(ha": "^", "(ga": "`",
           "(mu": "×"}
ESCAPE = re.compile(r"\\(\(..|.)")
MARKER = re.compile(r'\.\\"\s*test:\s*(.*)')
OURS = re.compile(r"(lib)?kretry")


class Fault(Exception):
    """What is wrong with a page."""


def unescape(text):
    """A line as the reader sees it."""
    def one(match):
        if match.group(1) not in ESCAPES:
            raise Fault(f"escape {match.group(0)} in: {text}")
        return ESCAPES[match.group(1)]
    return ESCAPE.sub(one, text)


def words(text):
    """The arguments of a macro: words, or quoted."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', text)]


class Example:
    """A literal block, the section it is in, and what its marker says."""

    def __init__(self, page, number, line, section, marker):
        self.page, self.number, self.line, self.section = page, number, line, section
        self.marker = marker.split() if marker else []
        self.lines = []

    @property
    def text(self):
        return "".join(unescape(line) + "\n" for line in self.lines)

    @property
    def name(self):
        return f"{self.page.id}_example_{self.number}"


class Page:
    """One file. An alias is a page that has the name of another in it, and nothing else."""

    def __init__(self, path):
        self.path = path
        self.name, _, self.section = path.name.rpartition(".")
        self.id = re.sub(r"[^a-z0-9]+", "_", path.name.lower())
        self.source = path.read_text(encoding="utf-8")
        self.lines = self.source.splitlines()
        alias = re.search(r"^\.so man(\d)/(\S+)$", self.source, re.M)
        self.alias = alias.group(2) if alias else None

    def macros(self, name):
        """The arguments of each line with that macro, and the section that it is in."""
        section = ""
        for line in self.lines:
            if line.startswith(".Sh "):
                section = line[4:].strip()
            if line == f".{name}" or line.startswith(f".{name} "):
                yield section, words(line[len(name) + 1:])

    def names(self):
        """What NAME says it is about."""
        return [args[0] for section, args in self.macros("Nm") if section == "NAME" and args]

    def references(self):
        """Pages it refers to, anywhere in a line: (name, section)."""
        return set(re.findall(r"\bXr (\S+) (\d)\b", self.source))

    def text(self):
        """The source without the escapes that stand inside names."""
        return self.source.replace("\\&", "").replace("\\-", "-")

    def examples(self):
        found, section, marker, block = [], "", None, None
        for number, line in enumerate(self.lines, 1):
            if block:
                if line.startswith(".Ed"):
                    block = None
                elif line[:1] in (".", "'"):
                    raise Fault(f"line {number}: a macro inside an example")
                else:
                    block.lines.append(line)
            elif re.match(r"\.Bd\b.*-literal", line):
                block = Example(self, len(found) + 1, number, section, marker)
                found.append(block)
            elif line.startswith(".Sh "):
                section = line[4:].strip()
            match = MARKER.match(line)
            marker = match.group(1) if match else None
        return found


def all_pages():
    return [Page(path) for path in sorted(MAN.glob("*.[1-8]"))]


# -------- prototypes --------

def normal(text):
    """White space as a C programmer has it, whatever it was."""
    text = re.sub(r"\s+", " ", text.strip())
    text = re.sub(r"\s*\*\s*", " *", text)
    text = re.sub(r"\* \*", "**", text)
    text = re.sub(r"\s*([(),;\[\]])\s*", r"\1", text)
    return text.replace(",", ", ")


def prototypes(header):
    """name: "type name(argument, argument)" of each function that the header declares."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    found = {}
    pattern = r"(?:^|(?<=[;{}]))\s*([a-z_][a-z_0-9 ]*?[ *]+)(kretry_\w+)\(((?:[^()]|\([^()]*\))*)\)\s*[;{]"
    for match in re.finditer(pattern, text, re.M):
        kind = re.sub(r"\b(static|inline)\b", "", match.group(1))
        arguments = match.group(3)
        # A pointer to a function has its own parentheses.
        found[match.group(2)] = normal(f"{kind} {match.group(2)}({arguments})")
    return found


def synopsis(page):
    """The same of what SYNOPSIS of a page says, by Ft and Fn or Fo, Fa, Fc."""
    found, kind, function, arguments = {}, "", None, []
    for section, line in _synopsis_lines(page):
        if section != "SYNOPSIS":
            continue
        macro, args = line
        if macro == "Ft":
            kind = re.sub(r"\b(static|inline) ", "", " ".join(args))
        elif macro == "Fn" and args:
            found[args[0]] = normal(f"{kind} {args[0]}({', '.join(args[1:])})")
        elif macro == "Fo" and args:
            function, arguments = args[0], []
        elif macro == "Fa" and function:
            arguments += args
        elif macro == "Fc" and function:
            found[function] = normal(f"{kind} {function}({', '.join(arguments)})")
            function = None
    return found


def _synopsis_lines(page):
    section = ""
    for line in page.lines:
        if line.startswith(".Sh "):
            section = line[4:].strip()
        match = re.match(r"\.(Ft|Fn|Fo|Fa|Fc)\b\s*(.*)", line)
        if match:
            yield section, (match.group(1), words(match.group(2)))
