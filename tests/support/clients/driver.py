# SPDX-License-Identifier: MIT
"""A training program for tests/programs/preempt-step.bats: commands on stdin, answers on stdout, as driver.sh."""

import os
import re
import signal
import sys
import threading

sys.path.insert(0, os.environ["CLIENT"])
sys.dont_write_bytecode = True
import preempt  # noqa: E402

if os.environ.get("HANDLER"):
    signal.signal(signal.SIGTERM, lambda *_: print("trapped", flush=True))


def value(word):
    return int(word) if re.fullmatch("-?(0|[1-9][0-9]*)", word) else "" if word == "EMPTY" else word


def child(n):
    pid = os.fork()
    if pid == 0:
        try:
            preempt.step(n)
        except SystemExit as leave:
            os._exit(leave.code)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def clobber():
    """Closes everything, as a daemon does, and opens a file of its own where the client's were."""
    os.closerange(3, 1024)
    return [os.open(os.environ["MINE"], os.O_RDWR) for _ in range(8)]


def answer(line):
    print(line, flush=True)


def main():
    for line in sys.stdin:
        command, *words = line.split()
        words = [value(word) for word in words]
        if command == "step":
            answer("step %d" % preempt.step(*words))
        elif command == "saved":
            code = preempt.saved(*words)
            assert not code or code == preempt.EXIT
            if code == 2:  # a wrong use ends this process, as it ends a shell
                sys.exit(code)
            answer("saved %d" % code)
        elif command == "ask":
            answer("ask %d" % preempt.ask(*words))
        elif command == "report":
            answer("report %d" % preempt.saved(*words))
        elif command == "child":
            answer("child %d" % child(*words))
        elif command == "async":
            threading.Thread(
                target=lambda: answer("async %d" % preempt.saved(*words)), daemon=True
            ).start()
        elif command == "thread":
            threading.Thread(target=lambda: answer("thread %d" % preempt.step(*words))).start()
        elif command == "clobber":
            clobber()
            answer("clobber")


main()
