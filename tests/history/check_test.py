#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
What history/check says of histories that were made by hand: each fault in its words.
"""
import importlib.machinery
import importlib.util
import os
import sys

loader = importlib.machinery.SourceFileLoader('check', os.path.join(os.path.dirname(__file__), 'check'))
sys.dont_write_bytecode = True
check = importlib.util.module_from_spec(importlib.util.spec_from_loader('check', loader))
loader.exec_module(check)

PUT_A = '0 call 0 10 txn +pa|0 back 0 20 held 1|'
PUT_B_C = PUT_A + '0 call 1 30 txn +pd/b|0 back 1 40 held 2|0 call 2 50 txn +pd/c|0 back 2 60 held 3|'
FIRST_WINS = '0 call 0 10 txn ?a=0 +pa -ga|0 back 0 20 held 1|'
GOOD, NO_LOG = '', None
# Each line begins with the number of its process, a digit; what follows is a line of its log.
EXAMPLES = (
    ('an older state, answered to a later call', 'went back', PUT_A + '1 call 0 30 txn +ga|1 back 0 40 held 0 a=0|'),
    ('the new revision without the new key', 'read key a', PUT_A + '1 call 0 30 txn +ga|1 back 0 40 held 1 a=0|'),
    ('two were told the same revision', 'made twice', PUT_A + '1 call 0 10 txn +pb|1 back 0 20 held 1|'),
    ('a lost write', 'is lost', PUT_A + '1 call 0 10 txn +pa|1 back 0 20 held 1|'),
    ('one winner of a put if absent', GOOD,
     FIRST_WINS + '1 call 0 10 txn ?a=0 +pa -ga|1 back 0 20 not 1 a=1:0.0.0|'),
    ('two winners of one put if absent', 'compares held', FIRST_WINS + '1 call 0 10 txn ?a=0 +pa -ga|1 back 0 20 held 2|'),
    ('a value that was never written', 'never written', PUT_A + '1 call 0 30 txn +ga|1 back 0 40 held 1 a=1:7.0.0|'),
    ('what was refused has no effect', GOOD,
     '0 call 0 10 txn +pa|0 back 0 20 refused busy|1 call 0 30 txn +ga|1 back 0 40 held 0 a=0|'),
    ('what was refused has one', 'certainly nothing was changed',
     '0 call 0 10 txn +pa|0 back 0 20 refused busy|1 call 0 30 txn +ga|1 back 0 40 held 1 a=1:0.0.0|'),
    ('deleted, and still there', 'deleted key a', PUT_A + '1 call 0 30 txn +da|1 back 0 40 held 1|'),
    ('a killed process: its write took effect', GOOD,
     '9 call 0 1 txn +pa|' + PUT_A + '1 call 0 30 txn +pa|1 back 0 40 held 3|'),
    ('a killed process: before it was asked for', 'went back',
     '9 call 0 70 txn +pa|0 call 0 10 txn +pb|0 back 0 20 held 2|1 call 0 80 txn +ga|1 back 0 90 held 2 a=1:9.0.0|'),
    ('a killed process: twice', 'took effect twice',
     '0 call 0 10 txn +pa|1 call 0 30 txn +ga|1 back 0 40 held 1 a=1:0.0.0|1 call 1 50 txn +da|1 back 1 60 held 2|'
     '1 call 2 70 txn +ga|1 back 2 80 held 3 a=3:0.0.0|'),
    ('a revision that no process made', 'made by no operation',
     PUT_A + '1 call 0 30 txn +pa|1 back 0 40 held 3|1 call 1 50 txn +db|1 back 1 60 held 3|'),
    ('a list of all keys', GOOD, PUT_B_C + '1 call 0 70 list d/ 0|1 back 0 80 list 3 d/b=2:0.0.1 d/c=3:0.0.2|'),
    ('a list that lacks one', 'lacks key d/c', PUT_B_C + '1 call 0 70 list d/ 0|1 back 0 80 list 3 d/b=2:0.0.1|'),
    ('a list that shows one of another prefix', 'does not fit',
     PUT_B_C + '1 call 0 70 list d/ 0|1 back 0 80 list 3 a=1:0.0.0 d/b=2:0.0.1 d/c=3:0.0.2|'),
    ('a wait that is over', GOOD, PUT_B_C + '1 call 0 45 wait d/ 1 5|1 back 0 80 changed 3|'),
    ('a wait that is over for nothing', 'nothing under its prefix has changed',
     PUT_B_C + '0 call 3 61 txn +pa|0 back 3 65 held 4|1 call 0 45 wait d/ 3 5|1 back 0 80 changed 4|'),
    ('a wait that timed out', GOOD, PUT_B_C + '1 call 0 45 wait d/ 2 5|1 back 0 80 quiet 2 55|'),
    ('a wait that steps over a change', 'missed a change', PUT_B_C + '1 call 0 45 wait d/ 2 5|1 back 0 80 quiet 3 0|'),
    ('a wait that looked after a change, and missed it', 'should have known',
     PUT_B_C + '1 call 0 45 wait d/ 2 5|1 back 0 80 quiet 2 61|'),
    ('a long wait that missed what was there before', 'should have known',
     PUT_B_C + '1 call 0 70 wait d/ 2 60000|1 back 0 60000000080 quiet 2 0|'),
    # Nanoseconds in the log, microseconds in its clock line.
    ("another machine's clock, whose error is known", 'went back',
     PUT_A + '1 clock -50 0|1 call 0 51000 txn +ga|1 back 0 52000 held 0 a=0|'),
    ('the same with a larger error', GOOD, PUT_A + '1 clock -50 1|1 call 0 51000 txn +ga|1 back 0 52000 held 0 a=0|'),
    ('a line whose end was not written', GOOD, PUT_A + '1 call 0 30 txn +pb|1 back 0 4'),
    ('an answer to no question', NO_LOG, '0 call 0 10 txn +pa|0 back 1 20 held 1|'),
    ('no log', NO_LOG, '0 nonsense|'),
)
# Of a store that has other users.
SHARED = (
    ('a revision of another user', GOOD, PUT_A + '1 call 0 30 txn +pb|1 back 0 40 held 3|'),
    ('a lost write beside one', 'read key a',
     PUT_A + '1 call 0 30 txn +pb|1 back 0 40 held 3|1 call 1 50 txn +ga|1 back 1 60 held 3 a=0|'),
)


def judge(lines, shared):
    logs, history = {}, check.History(shared)
    for line in lines.replace('|', '\n').splitlines(keepends=True):
        logs[line[0]] = logs.get(line[0], f'history 1 {line[0]} 0 0\n') + line[2:]
    for log in logs.values():
        history.add('log', log)
    history.finish()
    return check.check(history, 100000)[:2]


def examples():
    failed = 0
    for title, says, lines, shared in [(*e, False) for e in EXAMPLES] + [(*e, True) for e in SHARED]:
        try:
            verdict, words = judge(lines, shared)
        except check.NoLog as error:
            verdict, words = NO_LOG, str(error)
        if verdict is not (NO_LOG if says is NO_LOG else says == GOOD) or (says or '') not in words:
            failed += 1
            print(f'{title}: {verdict}, {words}')
    return failed


sys.exit(1 if examples() else 0)
