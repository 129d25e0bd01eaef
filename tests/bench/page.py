#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""page.py BUDGETS MACHINE FIGURES [whole]: the page of make bench.

BUDGETS has lines NAME, LIMIT ("at most N", "at least N", "exactly N") and WHAT, MACHINE has lines of text, FIGURES those of
figures.sh, all with tabs. "whole": a budget that is not among the figures gets a row that says so.
"""
import pathlib
import sys
import textwrap


def lines_of(name):
    return [line.split("\t") for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def is_over(figure, limit):
    kind, bound = limit.rsplit(" ", 1)
    try:
        value, bound = float(figure), float(bound)
    except ValueError:
        return True
    return value < bound if kind == "at least" else value > bound if kind == "at most" else value != bound


def show(what, figure, limit="", over=False):
    print(f"  {what:<56} {figure:>13}  {limit:<14} {'OVER' * over}".rstrip())


def show_missing(what, why):
    print(*textwrap.wrap(f"  {what}: not measured: {why}", 98, subsequent_indent="    ", break_long_words=False), sep="\n")


def main(budgets, machine, figures, whole=None):
    left = {name: (limit, what) for name, limit, what in lines_of(budgets)}
    over = missing = measured = 0
    print(pathlib.Path(machine).read_text(encoding="utf-8"))
    print(f"{'what':<58} {'measured':>13}  budget")
    for kind, name, *rest in lines_of(figures):
        if kind == "title":
            print(f"\n{name}")
        elif kind == "row":
            show(name, rest[0])
        elif kind == "wrong":
            show(name, rest[0], over=True)
        elif kind == "missing":
            show_missing(left.pop(name)[1], rest[0])
            missing += 1
        else:
            limit, what = left.pop(name)
            show(what, rest[0] or "-", limit, is_over(rest[0], limit))
            measured += 1
            over += is_over(rest[0], limit)
    if whole and left:
        print("\nnot measured")
        for name, (_, what) in left.items():
            show_missing(f"{name}: {what}", "the bench ended early")
            missing += 1
    print(f"\n{measured - over} budgets are met, {over} are not, {missing} were not measured.")


if __name__ == "__main__":
    main(*sys.argv[1:])
