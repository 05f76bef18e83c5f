# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Pages that are broken on purpose: a test that does not see it is none."""

import re
import tempfile
from pathlib import Path

from examples import page_examples, readme_examples
from pages import MAN, TOP, Fault, Page

# name: (page, what to replace, by what, the test that has to see it, what that has to say)
BREAKAGES = {
    "macro_unknown": ("kretry.4", r"^\.Ss Conventions", ".Zz Conventions", "lint", "unknown macro"),
    "list_not_closed": ("kretry.7", r"^\.El\n\.Sh THE DECISION", ".Sh THE DECISION", "lint", "Bl"),
    "license_missing": ("kretry.4", r"\A.*\n", "", "lint", "SPDX"),
    "title_of_another": ("kretry.4", r"^\.Dt KRETRY 4", ".Dt KRETRY 5", "lint", "mismatch"),
    "line_too_wide": ("kretry.4", r"^int main\(void\)$", "int main(void) /* " + "x" * 70 + " */",
                      "render", "columns"),
    "flag_left_out": ("kretry.4", r"KRETRY_OP_CLAMPED", "KRETRY_OP_SHORT", "constants", "no KRETRY_OP_CLAMPED"),
    "field_left_out": ("kretry.4", r"^\.It Fa half_open_ns", ".It Fa when_half_open",
                       "constants", "half_open_ns of struct"),
    "error_left_out": ("kretry.4", r"^\.It Bq Er EDQUOT", ".It Bq Er EUSERS", "device", "EDQUOT"),
    "parameter_left_out": ("kretry.4", r"max_queued", "max_waiting", "constants", "max_queued"),
    "tracepoint_left_out": ("kretry.4", r"kretry_put_off", "kretry_later", "device", "kretry_put_off"),
    "reference_to_nothing": ("kretry.4", r"^\.Xr kretry 7 \.", ".Xr kretry-nothing 7 .",
                             "references", "kretry-nothing(7)"),
    "setting_left_out": ("kretry.conf.5", r"^\.It Ic slack", ".It Cm lazy", "settings", "no .It Ic slack"),
    "setting_made_up": ("kretry.conf.5", r"^\.It Ic slack", ".It Ic lazy\n.It Ic slack",
                        "settings", "lazy is no setting"),
    "preset_other_number": ("kretry-presets.7", r"^budget.capacity = 500$", "budget.capacity = 501",
                            "presets", "aws"),
    "preset_made_up": ("kretry-presets.7", r"^\.Ss curl$", ".Ss wget", "presets", "wget is no preset"),
    "prototype_other_type": ("kretry_key.3", r"^\.Ft uint64_t$", ".Ft uint32_t", "functions", "uint32_t kretry_key"),
    "prototype_missing": ("kretry_key.3", r"^\.F[no] .*kretry_key.*$", "", "functions", "not in SYNOPSIS"),
    "function_made_up": ("kretry_key.3", r"^(\.F[no]) \"?kretry_key\"?", r"\1 kretry_lock",
                         "functions", "no function kretry_lock"),
    "alias_of_nothing": ("kretry_close.3", r"man3/\w+\.3", "man3/kretry_nothing.3",
                         "aliases", "no page kretry_nothing.3"),
    "option_made_up": ("kretry-run.1", r"^\.It Fl ", ".It Fl Fl nothing\n.It Fl ",
                       "options", "--nothing is no option"),
    "option_left_out": ("kretry-run.1", r"Fl (Fl |\\?-)grace", r"Fl \1grade", "options", "no --grace"),
    "verb_left_out": ("kretry.1", r"Cm top", "Cm bottom", "verbs_described", "no Cm top"),
    "marker_missing": ("kretry.7", r'^\.\\" test: conf$', r'.\" nothing', "examples", "no comment"),
    "marker_unknown": ("kretry.7", r'^\.\\" test: conf$', r'.\" test: confuse', "examples", "no kind of example"),
    "program_with_warning": ("kretry.4", r"^\tint waiting;$", "\tint waiting, unused;", "examples", "unused"),
    "program_with_error": ("kretry.4", r"^\tint waiting;$", "\tint waiting", "examples", "error"),
    "policy_refused": ("kretry.7", r"^base = 50ms$", "base = 50", "examples", "needs a unit"),
    "policy_refused_by_module": ("kretry.7", r"^breaker.window = 10s$", "breaker.window = 9ns",
                                 "examples", "status"),
    "policy_not_refused": ("kretry.conf.5", r"^base = 250$", "base = 250ms", "examples", "status 0"),
    "output_differs": ("kretry.conf.5", r"^cap = 20s$", "cap = 21s", "examples", "it prints"),
    "command_fails": ("kretry.7", r"    kretry next ", "    kretry nothing ", "examples", "status 2"),
}

# The same for README.md: what to replace, by what, and what has to be said.
README_BREAKAGES = {
    "readme_block_unknown": (r"^    kretry top$", "    kretry top\n\nand\n\n    kretry bottom",
                             "'kretry bottom' is not in the list"),
    "readme_block_gone": (r"^    make demo .*\n    make check .*\n", "", "not in README.md: ['make demo"),
    "readme_program_broken": (r"^\tstruct kretry \*k;$", "", "does not print"),
    "readme_fragment_broken": (r"kretry_prep_wait\(sqe, k, &wait\);", "kretry_prep_wait(sqe, k);", "too few arguments"),
}


def broken_copy(name, work):
    """All pages in a directory of their own, one of them broken."""
    page, pattern, text, _, _ = BREAKAGES[name]
    for path in MAN.glob("*.[1-8]"):
        source = path.read_text(encoding="utf-8")
        if path.name == page:
            source, count = re.subn(pattern, text, source, flags=re.M)
            if not count:
                raise Fault(f"{page} has no {pattern}")
        (Path(work) / path.name).write_text(source, encoding="utf-8")
    return [Page(path) for path in sorted(Path(work).glob("*.[1-8]"))]


def sees(name, pages, tests, make_manuals, build):
    """What the test says of the broken page."""
    file, _, _, test, _ = BREAKAGES[name]
    page = next(one for one in pages if one.path.name == file)
    if test in tests:
        return tests[test](page) or ""
    if test == "examples":
        return "\n".join(fault for _, fault in page_examples(page, build) if fault)
    return "\n".join(getattr(make_manuals(pages), test)())


def broken_tests(tests, make_manuals, build):
    """(name, None or what was not seen) of each."""
    for name, (file, _, _, test, says) in BREAKAGES.items():
        try:
            with tempfile.TemporaryDirectory(prefix="kretry-manual.") as work:
                said = sees(name, broken_copy(name, work), tests, make_manuals, build)
            fault = None if says in said else f"{test} does not see it in {file}, and says: {said}"
        except (Fault, OSError, StopIteration) as error:
            fault = f"{type(error).__name__}: {error}"
        yield f"broken_{name}_is_seen", fault
    readme = (TOP / "README.md").read_text(encoding="utf-8")
    for name, (pattern, text, says) in README_BREAKAGES.items():
        broken = re.sub(pattern, text, readme, flags=re.M)
        said = "\n".join(fault for _, fault in readme_examples(build, broken) if fault)
        yield f"broken_{name}_is_seen", None if says in said else f"nobody sees it: {said}"
