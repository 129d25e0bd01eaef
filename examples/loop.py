#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The smallest training in Python that saves and stops together with the other tasks, and resumes from there:

    preempt-run --run loop -n 2 -- examples/loop.py ckpt 1000
"""
import os
import subprocess
import sys
import time

import preempt

if len(sys.argv) != 3:
    sys.exit(f"usage: {sys.argv[0]} CHECKPOINTS STEPS")
ckpt, total, every, state = sys.argv[1], int(sys.argv[2]), 100, 0


def train(s):
    global state
    state = (state * 31 + s) % 1000003
    time.sleep(0.01)


def write_state(directory):
    with open(directory + "/state", "w") as file:
        print(state, file=file)


def read_state(directory):
    global state
    with open(directory + "/state") as file:
        state = int(file.read())


def rotate(*words):                              # leaves with the code of ckpt-rotate if that fails
    done = subprocess.run(["ckpt-rotate", *words], stdout=subprocess.PIPE, text=True)
    return sys.exit(done.returncode) if done.returncode else done.stdout.strip()

def save(s):                                     # each task writes its own part of the checkpoint
    global saved
    if saved != str(s):
        write_state(rotate("begin", ckpt, str(s), "--sharded"))
        rotate("commit", ckpt, str(s), "--sharded")
        saved = str(s)

saved = rotate("latest", ckpt, "--step", "--or", "")
if saved:
    read_state(rotate("latest", ckpt) + "/task-" + os.environ["PREEMPT_TASK"])
start = int(saved or 0)
for s in range(start, total):                    # s steps are finished
    if preempt.step(s) or (s > start and s % every == 0):
        save(s)
        if preempt.saved(s):
            sys.exit(preempt.EXIT)
    train(s)
print(f"task {os.environ['PREEMPT_TASK']}: {state}")
