#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""page.py MACHINE ROWS: what make bench has measured, as a picture (SVG, on stdout).

MACHINE has lines of text, ROWS has those of bench.sh: "title WHAT", "row WHAT FIGURE BUDGET ok|OVER", with tabs.
A row with a number for its budget has a bar that is as long as its part of the budget, which is the line at one half;
with "at least N" a short bar is good, too. The other rows of a section, such as the peers, have grey bars, the longest
as long as a budget. What is indented belongs to the row above, and is in another unit.
"""
import sys
from xml.sax.saxutils import escape

WIDTH, LINE, BAR, AT = 1000, 18, 240, 740
STYLE = """
svg { background: #fff; font: 12px sans-serif; fill: #1f2933 }
.title { font-weight: 600 } .quiet { fill: #52606d } .over { fill: #b42318; font-weight: 600 }
.ok-bar { fill: #2a9d78 } .over-bar { fill: #d64545 } .peer-bar { fill: #a9b4c0 } .limit { stroke: #1f2933 }
@media (prefers-color-scheme: dark) {
  svg { background: #15191e; fill: #e4e7eb } .quiet { fill: #9aa5b1 } .over { fill: #ff8a80 }
  .peer-bar { fill: #616e7c } .limit { stroke: #e4e7eb }
}
"""


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def limit_of(budget):
    """(limit, whether more is better), or None where the budget is no number."""
    more = budget.startswith("at least ")
    limit = number(budget.removeprefix("at least "))
    return (limit, more) if limit else None


def text(x, y, what, style="", end=False):
    anchor = ' text-anchor="end"' if end else ""
    space = ' xml:space="preserve"' if what.startswith(" ") else ""
    return f'<text x="{x}" y="{y}" class="{style}"{anchor}{space}>{escape(what)}</text>'


def compared(row):
    """The figure that is compared with those of the same section, or None."""
    return None if row[0].startswith(" ") or limit_of(row[2]) else number(row[1])


def share_of(row, largest):
    """The length of the row's bar, in budgets; None: it has none."""
    value, limit = number(row[1]), limit_of(row[2])
    if value is None:
        return None
    if limit:
        return limit[0] / value if limit[1] and value else value / limit[0]
    return value / largest if largest and compared(row) is not None else None


def sections_of(lines):
    """[title, rows], and each row what, figure, budget, verdict."""
    sections = []
    for kind, *rest in (line.rstrip("\n").split("\t") for line in lines):
        if kind == "title":
            sections.append((rest[0], []))
        else:
            sections[-1][1].append(rest)
    return sections


def page(machine, lines):
    body, y = [], 30
    body.append(f'<text x="20" y="{y}" style="font-size: 16px" class="title">make bench</text>')
    for line in machine:
        y += LINE
        body.append(text(20, y, line.strip(), "quiet"))
    for title, rows in sections_of(lines):
        y += LINE + LINE // 2
        body.append(text(20, y, title, "title"))
        largest = max((compared(row) or 0 for row in rows), default=0)
        for row in rows:
            y += LINE
            what, figure, budget, verdict = row
            over = "" if verdict == "ok" else "over"
            body.append(text(36, y, what))
            body.append(text(510, y, figure, over, True))
            body.append(text(530, y, budget + ("  OVER" if over else ""), over or "quiet"))
            share, limited = share_of(row, largest), limit_of(budget) is not None
            if share is not None:
                length = min(max(share * BAR / 2, 1), BAR)
                style = "peer" if not limited else over or "ok"
                body.append(f'<rect x="{AT}" y="{y - 10}" width="{length:.1f}" height="11" class="{style}-bar"/>')
            if limited:
                x = AT + BAR // 2
                body.append(f'<line x1="{x}" x2="{x}" y1="{y - 13}" y2="{y + 4}" class="limit"/>')
    y += 2 * LINE
    body.append(text(20, y, "The line is the budget. Grey: figures of one section beside each other, without a budget of their own.", "quiet"))
    height = y + LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">\n<style>{STYLE}</style>\n' + "\n".join(body) + "\n</svg>\n"
    )


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as machine, open(sys.argv[2], encoding="utf-8") as rows:
        sys.stdout.write(page(list(machine), list(rows)))
