# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The storm for a terminal: table, chart and sentences."""

import os
import shutil
import sys
import textwrap

BLOCKS = " ▁▂▃▄▅▆▇█"
PANEL_LINES = 8
AXIS_WIDTH = 6


class Style:
    """Colours on a terminal, nothing elsewhere."""

    def __init__(self, stream=sys.stdout):
        self.on = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def __call__(self, code, text):
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def bold(self, text):
        return self("1", text)

    def dim(self, text):
        return self("2", text)

    def served(self, text):
        return self("34", text)

    def over(self, text):
        return self("31", text)


def width():
    return min(max(shutil.get_terminal_size((80, 24)).columns, 60), 200)


def seconds(ns):
    return "never" if ns is None else f"{ns / 1e9:.1f} s"


def number(value):
    return "never" if value is None else f"{value:g}"


# Head of the column (two lines), its metric, how to write a value
COLUMNS = (
    ("", "first", "first", number),
    ("", "outage", "outage", number),
    ("", "after", "after", number),
    ("bins", "over", "over", number),
    ("", "requests", "requests", number),
    ("gave", "up", "gave_up", number),
    ("", "probes", "probes", number),
    ("everyone", "served", "all_served_ns", seconds),
)


def column_width(column):
    return max(len(column[0]), len(column[1]), 6) + 1


def _spread(values, write):
    low, high = (write(end(values, key=lambda v: (v is None, v or 0))) for end in (min, max))
    return "" if low == high else f"{low.removesuffix(' s')}–{high.removesuffix(' s')}"


def _cells(row):
    for column in COLUMNS:
        _, _, metric, write = column
        if metric == "probes" and not row.limits.open_ns:
            yield column, "–", ""
        else:
            yield column, write(row.median(metric)), _spread(row.values(metric), write)


def _table_head(setup, label_width):
    group, rest = COLUMNS[:3], COLUMNS[3:]
    above = f"most in {setup.bin_ns / 1e9:g} s".rjust(sum(map(column_width, group)))
    yield " " * label_width + above + "".join(c[0].rjust(column_width(c)) for c in rest)
    yield "retry policy".ljust(label_width) + "".join(c[1].rjust(column_width(c)) for c in COLUMNS)


def _table_foot(rows):
    setup, runs = rows[0].runs[0].setup, rows[0].runs
    medians = f"Medians of {len(runs)} runs, below them lowest–highest. " if len(runs) > 1 else ""
    by_module = all(run.backend == "module" for row in rows for run in row.runs)
    added = "Lines with + add to exponential with full jitter. " if any(r.label.startswith("+") for r in rows) else ""
    yield (f"{medians}{added}Most in {setup.bin_ns / 1e9:g} s: requests in one bin, the first after the reset, the rest of "
           f"the outage ({setup.outage_ns / 1e9:g} s), and after it. Over: bins with more than {setup.capacity}. "
           "Requests: of each client, from its call that was reset to its first success, both counted. "
           "Gave up: operations that ended by a stop; the client thinks, and starts another. "
           "Everyone served: since the reset. Decided by "
           f"{'the kernel module' if by_module else 'the library, in each process: nothing was host-wide'}.")


def table(rows, style):
    label_width = max(len(row.label) for row in rows) + 1
    lines = [style.bold(line) for line in _table_head(rows[0].runs[0].setup, label_width)]
    for row in rows:
        cells = list(_cells(row))
        lines.append(row.label.ljust(label_width) + "".join(text.rjust(column_width(c)) for c, text, _ in cells))
        if any(spread for _, _, spread in cells):
            lines.append(style.dim(" " * label_width + "".join(s.rjust(column_width(c)) for c, _, s in cells)))
    lines += [style.dim(line) for foot in _table_foot(rows) for line in textwrap.wrap(foot, width())]
    return lines


def _columns_of(bins, columns):
    """So many bins a column that all fit; a column shows its highest bin."""
    per = -(-len(bins) // columns)
    return per, [max(bins[i:i + per]) for i in range(0, len(bins), per)]


def _cell(count, line, unit, style, capacity):
    eighths = max(0, min(8, round((count - line * unit) * 8 / unit)))
    if eighths:
        paint = style.over if line * unit >= capacity else style.served
        return paint(BLOCKS[eighths])
    return style.dim("_") if line * unit == capacity else " "


def panel(row, highest, seconds_shown, style):
    """Arrivals in each bin of the typical run against the capacity, as high as they need."""
    run, m = row.typical()
    setup = run.setup
    bins = run.bins()[:seconds_shown * 10**9 // setup.bin_ns]
    per, counts = _columns_of(bins, width() - AXIS_WIDTH)
    unit = max(setup.capacity, -(-highest // PANEL_LINES))
    lines = [style.bold(row.title) + style.dim(f": peak after the outage {m.after}, everyone served "
                                               f"after {seconds(m.all_served_ns)}")]
    for line in reversed(range(-(-max(*counts, setup.capacity + 1) // unit))):
        mark = str((line + 1) * unit) if line % 2 == 1 or line == 0 else ""
        lines.append(mark.rjust(AXIS_WIDTH - 2) + " │" +
                     "".join(_cell(count, line, unit, style, setup.capacity) for count in counts))
    down = -(-setup.outage_bins // per)
    lines.append(" " * (AXIS_WIDTH - 2) + " └" + style.over("▒" * down) + "─" * (len(counts) - down))
    return lines, _time_axis(len(counts), per * setup.bin_ns)


def _time_axis(columns, column_ns):
    axis = [" "] * (AXIS_WIDTH + columns + 6)
    step = next(s for s in (2, 5, 10, 20, 60) if s * 10**9 / column_ns >= 8)
    for second in range(0, int(columns * column_ns / 1e9) + 1, step):
        text, at = f"{second} s", AXIS_WIDTH + round(second * 1e9 / column_ns)
        if at + len(text) <= AXIS_WIDTH + columns:
            axis[at:at + len(text)] = text
    return "".join(axis).rstrip()


def shown_seconds(rows):
    """Until the slowest typical run has served everyone, and a little more."""
    ends = [row.typical()[1].all_served_ns or row.runs[0].window_ns for row in rows]
    return min(int(max(ends) / 1e9) + 3, min(row.runs[0].window_ns for row in rows) // 10**9)


def chart(rows, style):
    """All to one scale, and one axis of time below them all."""
    setup, highest = rows[0].runs[0].setup, max(max(row.typical()[0].bins()) for row in rows)
    lines = textwrap.wrap(f"Requests in each {setup.bin_ns / 1e9:g} s since the reset, in the run nearest to the "
                          f"medians; ___ the {setup.capacity} that can be served, ▒ the outage", width())
    axis = ""
    for row in rows:
        drawn, axis = panel(row, highest, shown_seconds(rows), style)
        lines += drawn
    return [*lines, axis]
