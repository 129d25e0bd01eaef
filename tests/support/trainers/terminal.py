# SPDX-License-Identifier: MIT
"""terminal.py SCRIPT: a person at a terminal, for tests. SCRIPT is lines of "type TEXT" (with a newline),
"key C" (Ctrl-C), "see TEXT" (wait until it was shown, behind what was seen before). The terminal runs
an interactive bash with the environment's PATH. Exit 0: all was seen."""

import os
import pty
import select
import signal
import sys
import time

PATIENCE = 120


def main():
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        os.environ.update(PS1="READY> ", TERM="dumb")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
    shown = b""
    code = 0
    for line in open(sys.argv[1]):
        word, _, text = line.rstrip("\n").partition(" ")
        if word == "type":
            os.write(terminal, text.encode() + b"\n")
        elif word == "key":
            os.write(terminal, bytes([ord(text) & 31]))
        elif word == "see":
            end = time.monotonic() + PATIENCE
            while text.encode() not in shown and time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    try:
                        more = os.read(terminal, 4096)
                    except OSError:
                        break
                    sys.stdout.write(more.decode(errors="replace"))
                    shown += more
            if text.encode() not in shown:
                print("\nnever seen: %s" % text)
                code = 1
                break
            shown = shown[shown.index(text.encode()) + len(text) :]
    os.close(terminal)
    for _ in range(100):
        if os.waitpid(pid, os.WNOHANG)[0]:
            break
        time.sleep(0.05)
    else:
        os.kill(pid, signal.SIGKILL)
    sys.exit(code)


main()
