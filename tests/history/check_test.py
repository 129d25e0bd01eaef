#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
check_test.py examples|random: what history/check says of histories that were made by hand, each fault in its words;
and of small random ones, right and falsified, where its verdict is that of trying all orders of their operations one
after the other. There the keys are d/a and d/b; a list is of both, a wait of both or of one.
"""
import importlib.machinery
import importlib.util
import math
import os
import random
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


def judge(lines):
    logs, history = {}, check.History()
    for line in lines.replace('|', '\n').splitlines(keepends=True):
        logs[line[0]] = logs.get(line[0], f'history 1 {line[0]} 0 0\n') + line[2:]
    for log in logs.values():
        history.add('log', log)
    history.finish()
    return check.check(history, 100000)[:2]


def examples():
    failed = 0
    for title, says, lines in EXAMPLES:
        try:
            verdict, words = judge(lines)
        except check.NoLog as error:
            verdict, words = NO_LOG, str(error)
        if verdict is not (NO_LOG if says is NO_LOG else says == GOOD) or (says or '') not in words:
            failed += 1
            print(f'{title}: {verdict}, {words}')
    return failed


# ---- A key store, as store.h says, and the definition ----

def ask(history, model, operation):
    """model: the revision, and of each key (revision, value, changed). Returns the next one, and the answer."""
    revision, keys = model
    keys, entries, found = dict(keys), [], False
    held = all(keys[key][0] == compared for key, compared in operation.compares)
    changed = False
    for branch, action, key in operation.parts:
        if branch != held:
            continue
        if action == 'g':
            entries.append((key, *keys[key][:2]))
        elif action == 'p' or keys[key][0]:
            keys[key] = (revision + 1, operation.name, revision + 1) if action == 'p' else (0, None, revision + 1)
            changed = True
    for key in sorted(history.under[operation.prefix]) if operation.kind != 'txn' else ():
        found |= keys[key][2] > operation.since
        if operation.kind == 'list' and keys[key][0] > operation.since:
            entries.append((key, *keys[key][:2]))
    return (revision + changed, keys), (held, found, entries)


def agrees(operation, after, answer):
    held, found, entries = answer
    if after[0] != operation.revision:
        return False
    if operation.kind == 'wait':
        return found == (operation.outcome == 'answered')
    return (operation.kind == 'list' or held == operation.held) and entries == operation.entries


def may_change(history, left, done, before, after):
    """Where the next one changes what a wait in the order saw unchanged at an instant, the change comes after that
    instant, and so does all that follows: nothing of it had been answered before."""
    earliest = -math.inf
    for wait in done:
        if wait.outcome == 'quiet' and any(
                before[1][key][2] != after[1][key][2] for key in history.under[wait.prefix]):
            earliest = max(earliest, wait.unchanged, wait.call if wait.limit >= check.LONG_WAIT else -math.inf)
    return all(not operation.is_told() or operation.back >= earliest for operation in left)


def any_order(history, model, left, done):
    if not any(operation.is_told() for operation in left):
        return True
    for operation in left:
        # Nothing that is left had been answered before it was called; what a quiet wait says may be of long ago.
        if operation.outcome == 'refused' or (operation.outcome != 'quiet' and any(
                other.is_told() and other.back < operation.call for other in left)):
            continue
        after, answer = ask(history, model, operation)
        if (not operation.is_told() or agrees(operation, after, answer)) and may_change(history, left, done, model, after) \
                and any_order(history, after, [other for other in left if other is not operation], done + [operation]):
            return True
    return False


# ---- Random histories ----

NEW = (0, {'d/a': (0, None, 0), 'd/b': (0, None, 0)})


def questions(dice, count):
    forms = ('txn +p{0}', 'txn +d{0}', 'txn +g{0}', 'txn ?{0}={2} +p{1} -g{0}', 'txn ?{0}={2} +d{1} -g{0}',
             'txn ?{0}={2} +g{1} +p{0} -d{1}', 'txn +dd/a +pd/b', 'txn +dd/a +dd/b', 'txn +gd/a +dd/a', 'list d/ {2}',
             'wait d/ {2} 5', 'wait d/ {2} 5', 'wait d/ {2} 60000', 'wait {0} {2} 5', 'wait {0} {2} 5')
    return ['txn +gd/a +gd/b'] + [dice.choice(forms).format(dice.choice(('d/a', 'd/b')), dice.choice(('d/a', 'd/b')),
                                                           dice.randrange(4)) for _ in range(count - 1)]


def answer_all(dice, history):
    """What the model answers in this order, and instants that agree with it."""
    model = NEW
    for i, operation in enumerate(history.operations):
        lost = dice.randrange(3) == 0
        operation.call = i * 10 - dice.randrange(30)
        if lost and (operation.kind != 'txn' or dice.randrange(2)):
            continue
        model, (operation.held, found, entries) = ask(history, model, operation)
        if lost:
            continue
        operation.back, operation.revision, operation.entries = i * 10 + dice.randrange(30), model[0], entries
        operation.outcome = 'quiet' if operation.kind == 'wait' and not found else 'answered'
        if operation.outcome == 'quiet' and dice.randrange(3):
            operation.unchanged = i * 10 - dice.randrange(30)


def falsify(dice, history):
    operation, form = dice.choice(history.operations), dice.randrange(9)
    if not operation.is_told():
        operation.call += 40
    elif form == 0:
        operation.revision = max(0, operation.revision + dice.choice((-1, 0, 1)))
    elif form == 1:
        operation.held = operation.kind == 'txn' and not operation.held
    elif form == 2:
        operation.call -= dice.randrange(40)
    elif form == 3:
        operation.call, operation.back = operation.call + 40, operation.back + 50
    elif form == 4:
        operation.outcome = 'refused'
    elif form == 5:
        operation.outcome, operation.back = 'unknown', math.inf
    elif form == 6 and operation.kind == 'wait':
        operation.outcome = 'answered' if operation.outcome == 'quiet' else 'quiet'
    elif form == 7:
        for wait in [o for o in history.operations if o.outcome == 'quiet'][:1]:
            wait.back += dice.randrange(50)
            wait.unchanged = wait.back - dice.randrange(20)
    elif form == 8 and operation.entries:
        at = dice.randrange(len(operation.entries))
        key, revision, value = operation.entries[at]
        operation.entries = list(operation.entries)
        operation.entries[at] = dice.choice((
            (key, 0, None), (key, 1 + dice.randrange(4), value) if revision else (key, 0, None),
            (key, revision or 1 + dice.randrange(3), dice.choice(history.operations).name)))


def show(history, right, words):
    print('by definition it is', 'right' if right else 'wrong', 'and the checker says:', words)
    for o in history.operations:
        print('  ', o.name, o.asked, o.outcome, o.call, o.back, o.held, o.revision, o.entries, o.unchanged)


def randoms(count=10000):
    dice, rights, different = random.Random(1), 0, 0
    for _ in range(count):
        history = check.History()
        asked = questions(dice, 2 + dice.randrange(6))
        history.add('random', 'history 1 0 0 0\n' + ''.join(f'call {n} 0 {text}\n' for n, text in enumerate(asked)))
        history.finish()
        answer_all(dice, history)
        for _ in range(dice.randrange(4)):
            falsify(dice, history)
        right = any_order(history, NEW, history.operations, [])
        verdict, words, _ = check.check(history)
        rights += right
        if verdict is not right:
            different += 1
            show(history, right, words)
    print(rights, 'of', count, 'are right;', different, 'judged otherwise')
    return different or not count / 10 < rights < count * 9 / 10


sys.exit(1 if {'examples': examples, 'random': randoms}[sys.argv[1]]() else 0)
