# SPDX-License-Identifier: MIT
"""count.py DIR STEPS STEP_SECONDS: what count.c does, with the client for Python."""
import os
import sys
import time

sys.path.insert(0, os.environ["CLIENTS"])
import preempt  # noqa: E402

os.chdir(sys.argv[1])
steps, pause = int(sys.argv[2]), float(sys.argv[3])
task, tasks = os.environ["PREEMPT_TASK"], int(os.environ["PREEMPT_TASKS"])
for name in "log", "ckpt", "end":
    os.makedirs(name, exist_ok=True)
log = open(f"log/{os.environ['PREEMPT_ATTEMPT']}.{task}", "a", buffering=1)

start = max([int(s) for s in os.listdir("ckpt") if s.isdigit()
             and all(os.path.exists(f"ckpt/{s}/{i}") for i in range(tasks))], default=0)
counter = int(open(f"ckpt/{start}/{task}").read()) if start else 0
print("start", start, file=log)
for s in range(start, steps):
    print("ask", s, file=log)
    if preempt.step(s):
        print("save", s, file=log)
        os.makedirs(f"ckpt/{s}", exist_ok=True)
        with open(f"ckpt/.{task}", "w") as f:
            print(counter, file=f)
        os.rename(f"ckpt/.{task}", f"ckpt/{s}/{task}")
        print("saved", s, file=log)
        code = preempt.saved(s)
        if code:
            sys.exit(code)
    print("begin", s, file=log)
    time.sleep(pause)
    counter += 1
with open(f"end/{task}", "w") as f:
    print(counter, file=f)
print("end", steps, file=log)
