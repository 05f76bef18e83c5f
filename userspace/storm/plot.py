# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The storm as a picture, drawn by gnuplot: one panel a policy."""

import shutil
import subprocess

from text import number, seconds, shown_seconds

WIDTH, LEFT, RIGHT = 960, 64, 20
TOP, PANEL, GAP, BOTTOM = 58, 204, 44, 60
SERVED, TURNED_AWAY, CAPACITY, OUTAGE, TEXT, FAINT = "#3b7dbd", "#e0703a", "#222222", "#d9d9d9", "#222222", "#666666"


class PlotError(RuntimeError):
    """gnuplot is missing or failed."""


def _quote(text):
    return "'" + text.replace("'", "''") + "'"


def _datablock(name, run, shown):
    served, away = run.bins(served=True), run.bins(served=False)
    bin_s = run.setup.bin_ns / 1e9
    lines = [f"{(i + 0.5) * bin_s:g} {a} {a + b}" for i, (a, b) in enumerate(zip(served, away)) if i * bin_s < shown]
    return [f"${name} << EOD", *lines, "EOD"]


def _head(rows, output, shown, highest):
    setup, height = rows[0].runs[0].setup, TOP + PANEL * len(rows) + BOTTOM
    title = f"{setup.clients} clients retry against a server that serves {setup.capacity} requests per " \
            f"{setup.bin_ns / 1e9:g} s"
    return [
        f"set terminal svg size {WIDTH},{height} fixed font 'Helvetica,Arial,sans-serif,14' background '#ffffff'",
        f"set output {_quote(str(output))}",
        "set multiplot",
        f"set label 1 {_quote(title)} at screen {LEFT / WIDTH},{1 - 26 / height} left font ',19' "
        f"textcolor rgb '{TEXT}'",
        f"set key at screen {1 - RIGHT / WIDTH},{1 - 52 / height} horizontal right font ',13' samplen 1.6 width 1",
        "set style fill solid 1.0 noborder",
        f"set boxwidth {setup.bin_ns * 0.86 / 1e9:g}",
        f"set xrange [-0.2:{shown}]", f"set yrange [0:{-(-(highest + 5) // 4) * 4}]",
        "set ytics 8 nomirror out scale 0.5", "set xtics 2 nomirror out scale 0.5", "set border 3 lc rgb '#888888'",
        f"set tics textcolor rgb '{TEXT}'",
        "set format x ''",
        "set grid ytics lt 1 lc rgb '#eeeeee'",
        f"set ylabel 'requests per {setup.bin_ns / 1e9:g} s' font ',12' offset 1,0",
        f"set lmargin at screen {LEFT / WIDTH}", f"set rmargin at screen {1 - RIGHT / WIDTH}",
        f"set object 1 rectangle from 0,graph 0 to {setup.outage_ns / 1e9},graph 1 behind "
        f"fillcolor rgb '{OUTAGE}' fillstyle solid noborder",
        f"set label 4 'server down' at 0.1,graph 0.93 left font ',12' textcolor rgb '{FAINT}'",
    ]


def _panel(index, row, rows, height):
    run, m = row.typical()
    top, bottom = TOP + PANEL * index + GAP, TOP + PANEL * (index + 1)
    facts = (f"peak after the outage {number(m.after)},  everyone served after {seconds(m.all_served_ns)},  "
             f"{number(m.requests)} requests")
    lines = [
        f"set tmargin at screen {1 - top / height}", f"set bmargin at screen {1 - bottom / height}",
        f"set label 2 {_quote(row.label)} at screen {LEFT / WIDTH},{1 - (top - 12) / height} left font ',16' "
        f"textcolor rgb '{TEXT}'",
        f"set label 3 {_quote(facts)} at screen {1 - RIGHT / WIDTH},{1 - (top - 12) / height} right font ',13' "
        f"textcolor rgb '{FAINT}'",
    ]
    if index == 1:
        lines.append("unset label 1; unset label 4; unset key")
    if index == len(rows) - 1:
        lines += ["set format x '%g'",
                  f"set xlabel 'seconds since the server reset all calls' offset 0,0.4 textcolor rgb '{TEXT}'"]
    lines.append(
        f"plot $run{index} using 1:3 with boxes lc rgb '{TURNED_AWAY}' title 'turned away', "
        f"'' using 1:2 with boxes lc rgb '{SERVED}' title 'served', "
        f"{run.setup.capacity} with lines lw 1.5 dt (6,4) lc rgb '{CAPACITY}' title 'capacity'")
    return lines


def script(rows, output):
    shown = shown_seconds(rows)
    highest = max(max(row.typical()[0].bins()) for row in rows)
    height = TOP + PANEL * len(rows) + BOTTOM
    lines = []
    for index, row in enumerate(rows):
        lines += _datablock(f"run{index}", row.typical()[0], shown)
    lines += _head(rows, output, shown, highest)
    for index, row in enumerate(rows):
        lines += _panel(index, row, rows, height)
    return "\n".join(lines + ["unset multiplot", ""])


def draw(rows, output):
    if not shutil.which("gnuplot"):
        raise PlotError("gnuplot is missing: install the package gnuplot-nox")
    done = subprocess.run(["gnuplot", "-"], input=script(rows, output), text=True, capture_output=True, check=False)
    if done.returncode or done.stderr.strip():
        raise PlotError(f"gnuplot failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
