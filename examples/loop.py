#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The smallest training in Python that saves and stops together with the other tasks, and resumes from there:

    PYTHONPATH=lib/client preempt-run --run loop -n 2 --checkpoints ck -- examples/loop.py ck 1000
"""
import os
import subprocess
import sys
import time

import preempt

if len(sys.argv) != 3:
    sys.exit(f"usage: {sys.argv[0]} CHECKPOINTS STEPS")
top, steps = sys.argv[1], int(sys.argv[2])
task = os.environ.get("PREEMPT_TASK", "0")
step, state, newest = 0, 0, None
if os.environ.get("PREEMPT_RESUME"):
    with open(f"{os.environ['PREEMPT_RESUME']}/task-{task}/state") as file:
        step, state = map(int, file.read().split())
    newest = step  # the step of the newest checkpoint


def save():
    """Each task has its own directory in the checkpoint, which is complete when the last task has committed."""
    begin = subprocess.run(["ckpt-rotate", "begin", top, str(step), "--sharded"], check=True, stdout=subprocess.PIPE, text=True)
    with open(f"{begin.stdout.strip()}/state", "w") as file:
        print(step, state, file=file)
    subprocess.run(["ckpt-rotate", "commit", top, str(step), "--sharded"], check=True, stdout=subprocess.DEVNULL)


while step < steps:  # step: the number of finished steps
    if preempt.step(step):
        if step != newest:
            save()
        if preempt.saved(step):
            sys.exit(preempt.EXIT)
    state = (state * 31 + step) % 1000003
    time.sleep(0.01)
    step += 1
print(f"task {task}: {state}")
