# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The storm as a picture, drawn by gnuplot: one panel a policy."""

import shutil
import subprocess

from text import number, seconds, shown_seconds

# Lines of the grid: what each process does for itself above what the host shares. None: the legend.
GRID = (("fixed", "exponential", "jitter"),
        ("budget-own", "breaker-own", None),
        ("budget-host", "breaker-host", "paced-host"))
COLUMNS = 3
# The slowest policy comes back in ever the same waves: it need not be seen to its end.
SHOWN_MAX = 18

WIDTH, LEFT, BETWEEN, RIGHT = 1000, 40, 26, 12
TOP, HEAD, PANEL, BOTTOM = 40, 48, 124, 58
SERVED, TURNED_AWAY, CAPACITY, OUTAGE, TEXT, FAINT = "#3b7dbd", "#e0703a", "#222222", "#d9d9d9", "#222222", "#666666"


class PlotError(RuntimeError):
    """gnuplot is missing or failed."""


def _quote(text):
    return "'" + text.replace("'", "''") + "'"


def _places(rows):
    """Line and column of each row, by name, the legend's under None in the first place left, and the lines."""
    names = {row.name for row in rows}
    lines = [line for line in GRID if names & set(line)]
    places = {name: (i, k) for i, line in enumerate(lines) for k, name in enumerate(line) if name in names}
    cells = [(i, k) for i in range(len(rows) + 1) for k in range(COLUMNS)]
    left = [cell for cell in cells if cell not in places.values()]
    places.update(zip([None, *sorted(names - places.keys())], left))
    return places, 1 + max(line for line, _ in places.values())


class Page:
    """Where things are, in gnuplot's screen coordinates, which begin at the bottom."""

    def __init__(self, rows):
        self.places, self.lines = _places(rows)
        self.height = TOP + (HEAD + PANEL) * self.lines + BOTTOM
        self.panel_width = (WIDTH - LEFT - RIGHT - BETWEEN * (COLUMNS - 1)) / COLUMNS

    def left(self, place):
        return (LEFT + place[1] * (self.panel_width + BETWEEN)) / WIDTH

    def right(self, place):
        return self.left(place) + self.panel_width / WIDTH

    def at(self, place, below_head):
        """So many pixels below the panel's upper edge, or above it."""
        return 1 - (TOP + place[0] * (HEAD + PANEL) + HEAD + below_head) / self.height

    def is_lowest(self, place):
        return place[0] == max(line for name, (line, column) in self.places.items()
                               if column == place[1] and name is not None)


def _datablock(name, run, shown):
    served, away = run.bins(served=True), run.bins(served=False)
    bin_s = run.setup.bin_ns / 1e9
    lines = [f"{(i + 0.5) * bin_s:g} {a} {a + b}" for i, (a, b) in enumerate(zip(served, away)) if i * bin_s < shown]
    return [f"${name} << EOD", *lines, "EOD"]


def _label(tag, text, x, y, size, color, where="left"):
    return f"set label {tag} {_quote(text)} at screen {x:.4f},{y:.4f} {where} font ',{size}' textcolor rgb '{color}'"


def _head(page, setup, output, shown, highest):
    title = f"{setup.clients} clients call a server that serves {setup.capacity} requests per " \
            f"{setup.bin_ns / 1e9:g} s and was down for {setup.outage_ns / 1e9:g} s"
    return [
        f"set terminal svg size {WIDTH},{page.height} fixed font 'Helvetica,Arial,sans-serif,13' background '#ffffff'",
        f"set output {_quote(str(output))}",
        "set multiplot",
        _label(1, title, LEFT / WIDTH, 1 - 24 / page.height, 18, TEXT),
        "unset key",
        "set style fill solid 1.0 noborder",
        f"set boxwidth {setup.bin_ns * 0.9 / 1e9:g}",
        f"set xrange [-0.2:{shown}]", f"set yrange [0:{-(-(highest + 2) // 4) * 4}]",
        "set ytics 8 nomirror out scale 0.5", "set xtics 4 nomirror out scale 0.5", "set border 3 lc rgb '#888888'",
        f"set tics font ',12' textcolor rgb '{TEXT}'",
        "set grid ytics lt 1 lc rgb '#eeeeee'",
        f"set object 1 rectangle from 0,graph 0 to {setup.outage_ns / 1e9},graph 1 behind "
        f"fillcolor rgb '{OUTAGE}' fillstyle solid noborder",
    ]


def _frame(page, place):
    return [f"set lmargin at screen {page.left(place):.4f}", f"set rmargin at screen {page.right(place):.4f}",
            f"set tmargin at screen {page.at(place, 0):.4f}", f"set bmargin at screen {page.at(place, PANEL):.4f}"]


def _facts(m):
    parts = [f"peak {number(m.after)}", f"all served {seconds(m.all_served_ns)}", f"{number(m.requests)} requests"]
    if m.gave_up:
        parts.append(f"{number(m.gave_up)} gave up")
    if m.probes:
        parts.append(f"{number(m.probes)} probe{'s' if m.probes > 1 else ''}")
    return " · ".join(parts)


def _panel(page, index, row):
    run, m = row.typical()
    place = page.places[row.name]
    return [
        *_frame(page, place),
        _label(2, row.title, page.left(place), page.at(place, -27), 15, TEXT),
        _label(3, _facts(m), page.left(place), page.at(place, -10), 11, FAINT),
        f"set format x '{'%g' if page.is_lowest(place) else ''}'",
        f"set format y '{'%g' if place[1] == 0 else ''}'",
        f"plot $run{index} using 1:3 with boxes lc rgb '{TURNED_AWAY}', '' using 1:2 with boxes lc rgb '{SERVED}', "
        f"{run.setup.capacity} with lines lw 1.5 dt (6,4) lc rgb '{CAPACITY}'",
        "unset label 1",
    ]


def _legend(page, setup):
    """A plot of nothing, in the place that is left."""
    place = page.places[None]
    foot = f"requests in each {setup.bin_ns / 1e9:g} s, by seconds since the server reset all calls; " \
           "peak: the highest bin after the outage"
    return [
        "unset label 2; unset label 3; unset object 1; unset border; unset tics; unset grid",
        _label(4, foot, LEFT / WIDTH, 14 / page.height, 12, FAINT),
        *_frame(page, place),
        f"set tmargin at screen {page.at(place, -HEAD):.4f}",
        f"set key at screen {page.left(place) + 30 / WIDTH:.4f},{page.at(place, 0):.4f} "
        "left top vertical maxcols 1 Left reverse font ',14' samplen 2.2 spacing 1.4",
        f"plot NaN with boxes lc rgb '{SERVED}' title 'served', NaN with boxes lc rgb '{TURNED_AWAY}' "
        f"title 'turned away', NaN with lines lw 1.5 dt (6,4) lc rgb '{CAPACITY}' title 'capacity', "
        f"NaN with boxes lc rgb '{OUTAGE}' title 'server down'"]


def script(rows, output):
    page, setup = Page(rows), rows[0].runs[0].setup
    shown = min(shown_seconds(rows), SHOWN_MAX)
    highest = max(max(row.typical()[0].bins()) for row in rows)
    lines = []
    for index, row in enumerate(rows):
        lines += _datablock(f"run{index}", row.typical()[0], shown)
    lines += _head(page, setup, output, shown, highest)
    for index, row in enumerate(rows):
        lines += _panel(page, index, row)
    return "\n".join(lines + _legend(page, setup) + ["unset multiplot", ""])


def draw(rows, output):
    if not shutil.which("gnuplot"):
        raise PlotError("gnuplot is missing: install the package gnuplot-nox")
    done = subprocess.run(["gnuplot", "-"], input=script(rows, output), text=True, capture_output=True, check=False)
    if done.returncode or done.stderr.strip():
        raise PlotError(f"gnuplot failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
