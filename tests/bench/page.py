#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""page.py BUDGETS MACHINE FIGURES [DIR]: the page of make bench, on stdout; with DIR also as bench.txt and bench.svg there.

BUDGETS has lines NAME, LIMIT ("at most N", "at least N", "exactly N") and WHAT, MACHINE has lines of text, FIGURES those of
figures.sh, all with tabs. With DIR, a budget that is not among the figures gets a row that says so. In the picture, the bar
of a figure with a budget is as long as its part of the budget, which is the line at one half; with "at least N" a short bar is
good, too. The other figures of a section, such as the peers, have grey bars, the longest as long as a budget; those that are
indented are in another unit and have none.
"""
import pathlib
import sys
import textwrap
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
LEGEND = "The line is the budget. Grey: figures of one section beside each other, without a budget of their own."


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


class Row:
    """share: the part of the budget that is used, None without a budget or a figure. over: it is not met."""

    def __init__(self, what, figure, limit=""):
        self.what, self.figure, self.limit = what, figure, limit
        self.share, self.over, value = None, False, number(figure)
        if limit:
            kind, bound = limit.rsplit(" ", 1)
            bound = float(bound)
            if value is None:
                self.over = True
            elif kind == "at least":
                self.share = bound / value if value else 2
                self.over = value < bound
            else:
                self.share = value / bound if bound else 2 * value
                self.over = value > bound or (kind == "exactly" and value != bound)
        self.peer = None if limit or what.startswith(" ") else value


class Missing(Row):
    def __init__(self, what, why):
        super().__init__(what, "")
        self.limit = "not measured: " + why


class Wrong(Row):
    def __init__(self, what, figure):
        super().__init__(what, figure)
        self.over, self.peer = True, None


def lines_of(name):
    return [line.split("\t") for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def sections_of(figures, budgets, whole):
    """[title, rows], and the counts of budgets that are met, not met and not measured."""
    sections, open_budgets, met, measured = [], dict(budgets), 0, 0
    for kind, name, *rest in figures:
        if kind == "title":
            sections.append((name, []))
            continue
        if kind in ("budget", "missing"):
            open_budgets.pop(name, None)
            limit, what = budgets[name]
        if kind == "budget":
            row = Row(what, rest[0] or "-", limit)
            measured += 1
            met += not row.over
        elif kind == "missing":
            row = Missing(what, rest[0])
        else:
            row = (Wrong if kind == "wrong" else Row)(name, *rest)
        sections[-1][1].append(row)
    if whole and open_budgets:
        rows = [Missing(f"{name}: {what}", "the bench ended early") for name, (_, what) in open_budgets.items()]
        sections.append(("not measured", rows))
    missing = sum(isinstance(row, Missing) for _, rows in sections for row in rows)
    return sections, f"{met} budgets are met, {measured - met} are not, {missing} were not measured."


def text_page(machine, sections, summary):
    lines = [*machine, "", f"{'what':<58} {'measured':>13}  budget"]
    for title, rows in sections:
        lines += ["", title]
        for row in rows:
            if isinstance(row, Missing):
                lines += textwrap.wrap(f"  {row.what}: {row.limit}", 98, subsequent_indent="    ", break_long_words=False)
            else:
                lines.append(f"  {row.what:<56} {row.figure:>13}  {row.limit:<14} {'OVER' * row.over}".rstrip())
    return "\n".join([*lines, "", summary, ""])


def svg_page(machine, sections, summary):
    body, y = [], 30

    def text(x, what, style="", end=False):
        anchor = ' text-anchor="end"' if end else ""
        body.append(f'<text x="{x}" y="{y}" class="{style}"{anchor} xml:space="preserve">{escape(what)}</text>')

    text(20, "make bench", "title")
    for line in [*machine, summary]:
        y += LINE
        text(20, line, "quiet")
    for title, rows in sections:
        y += LINE + LINE // 2
        text(20, title, "title")
        largest = max((row.peer or 0 for row in rows), default=0) or 1
        for row in rows:
            y += LINE
            text(36, row.what)
            text(510, row.figure, "over" if row.over else "", True)
            text(530, row.limit + "  OVER" * row.over, "over" if row.over else "quiet")
            share, style = (row.share, "over" if row.over else "ok") if row.share is not None else (row.peer, "peer")
            if share is not None:
                length = min(max((share / largest if style == "peer" else share) * BAR / 2, 1), BAR)
                body.append(f'<rect x="{AT}" y="{y - 10}" width="{length:.1f}" height="11" class="{style}-bar"/>')
            if row.share is not None:
                x = AT + BAR // 2
                body.append(f'<line x1="{x}" x2="{x}" y1="{y - 13}" y2="{y + 4}" class="limit"/>')
    y += 2 * LINE
    text(20, LEGEND, "quiet")
    height = y + LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">\n'
        f"<style>{STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n"
    )


def main(budgets, machine, figures, directory=None):
    limits = {name: (limit, what) for name, limit, what in lines_of(budgets)}
    heading = pathlib.Path(machine).read_text(encoding="utf-8").splitlines()
    page = heading, *sections_of(lines_of(figures), limits, directory is not None)
    sys.stdout.write(text_page(*page))
    if directory:
        pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
        pathlib.Path(directory, "bench.txt").write_text(text_page(*page), encoding="utf-8")
        pathlib.Path(directory, "bench.svg").write_text(svg_page(*page), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
