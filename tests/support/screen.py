#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""screen.py ROWS COLUMNS -- COMMAND...: run a command on a terminal of this size, driven by lines of stdin.

  expect TEXT   wait until the screen shows TEXT (two minutes at most)
  see TEXT      wait until it was written, behind what was seen before
  type TEXT     type it, with escapes such as \\x03; "enter TEXT": as it is, and a newline; "key c": Ctrl-C
  size ROWS COLUMNS
  show          print the screen as it is now
  wait          wait for the end, and print "exit CODE" (or "signal N") and the state of the terminal

The screen is what a terminal would show after cursor movements, erasing and the alternate screen; colours are left
out. The command "colours" prints "colours" if there were any, otherwise "no colours".
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

TIME = 120


class Screen:
    def __init__(self, rows, columns):
        self.coloured = self.alternate = False
        self.hidden = False
        self.rest = ""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.clear()

    def clear(self):
        self.lines = [[" "] * self.columns for _ in range(self.rows)]
        self.y = self.x = 0

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        while text:
            sequence = re.match(r"\x1b\[([?0-9;]*)([A-Za-z])", text)
            if sequence:
                self.control(*sequence.groups())
                text = text[sequence.end():]
            elif text[0] == "\x1b" and len(text) < 16:
                self.rest = text
                return
            else:
                self.put(text[0])
                text = text[1:]

    def control(self, numbers, letter):
        if letter == "H":
            self.y = self.x = 0
        elif letter == "K":
            self.lines[self.y][self.x:] = [" "] * (self.columns - self.x)
        elif letter == "J":
            self.control("", "K")
            for y in range(self.y + 1, self.rows):
                self.lines[y] = [" "] * self.columns
        elif letter == "m":
            self.coloured |= numbers not in ("", "0")
        elif numbers == "?1049":
            self.alternate = letter == "h"
            self.clear()
        elif numbers == "?25":
            self.hidden = letter == "l"

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            if self.y == self.rows - 1:
                self.lines = self.lines[1:] + [[" "] * self.columns]
            else:
                self.y += 1
        elif self.x < self.columns:
            self.lines[self.y][self.x] = character
            self.x += 1

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines).rstrip()


def set_size(descriptor, rows, columns):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main():
    rows, columns = int(sys.argv[1]), int(sys.argv[2])
    screen = Screen(rows, columns)
    child, terminal = pty.fork()
    if child == 0:
        set_size(0, rows, columns)
        for name in signal.SIGINT, signal.SIGQUIT:
            signal.signal(name, signal.SIG_DFL)
        os.execvp(sys.argv[4], sys.argv[4:])

    written = ""  # and not seen yet

    def read(seconds):
        nonlocal written
        if not select.select([terminal], [], [], seconds)[0]:
            return True
        try:
            text = os.read(terminal, 65536).decode("utf-8", "replace")
            written += text
            screen.feed(text)
            return True
        except OSError:
            return False

    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word in ("expect", "see"):
            end = time.monotonic() + TIME
            while rest not in (screen.text() if word == "expect" else written):
                if time.monotonic() > end or not read(1):
                    print(f"not shown: {rest}\n{screen.text()}")
                    os.kill(child, 9)
                    sys.exit(1)
            if word == "see":
                written = written[written.index(rest) + len(rest):]
        elif word == "enter":
            os.write(terminal, rest.encode() + b"\n")
        elif word == "key":
            os.write(terminal, bytes([ord(rest) & 31]))
        elif word == "type":
            os.write(terminal, rest.encode().decode("unicode_escape").encode("latin-1"))
        elif word == "size":
            rows, columns = map(int, rest.split())
            screen.resize(rows, columns)
            set_size(terminal, rows, columns)
        elif word == "show":
            print(screen.text())
        elif word == "colours":
            print("colours" if screen.coloured else "no colours")
        elif word == "wait":
            while read(TIME):
                pass
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(f"exit {code}" if code >= 0 else f"signal {-code}")
            print("alternate" if screen.alternate else "normal", "hidden" if screen.hidden else "cursor")


main()
