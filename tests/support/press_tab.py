#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""press_tab.py PREFIX SHELL: run an interactive SHELL on a terminal, with the completions below PREFIX.

Types each line of stdin, then TAB and Enter, and prints the words with which the program was called.
The programs in PATH must answer on a terminal with a line "ran:WORDS:end". Exit code 1: the shell
did not answer, or wrote more than one line to the terminal; what it wrote is on stderr.
"""

import fcntl, os, pty, re, select, struct, sys, termios, time

PROMPT = "ready> "
ZSH = "PS1=%r; fpath=($PREFIX/share/zsh/site-functions $fpath); autoload -Uz compinit; compinit -D -u\n" % PROMPT
BASH = "PS1=%r; for file in $PREFIX/share/bash-completion/completions/*; do . $file; done\n" % PROMPT
FISH = "set fish_complete_path $PREFIX/share/fish/vendor_completions.d; function fish_prompt; echo -n %r; end" % PROMPT
SHELLS = {
    "bash": ["bash", "--noprofile", "--rcfile", ".bashrc", "-i"],
    "zsh": ["zsh", "-d", "-i"],
    "fish": ["fish", "--no-config", "-i", "-C", FISH],
}


def start(prefix, shell):
    for name, text in ((".bashrc", BASH), (".zshrc", ZSH)):
        with open(name, "w") as file:
            file.write(text)
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(PREFIX=prefix, HOME=os.getcwd(), ZDOTDIR=os.getcwd(), TERM="xterm", HISTFILE="")
        os.execvp(SHELLS[shell][0], SHELLS[shell])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    return terminal


def read_until(terminal, pattern):
    text, end = "", time.monotonic() + 30
    while not re.search(pattern, text, re.S):
        if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit("no %r within 30 s in: %r" % (pattern, text))
        try:
            text += os.read(terminal, 65536).decode(errors="replace")
        except OSError:
            sys.exit("the shell has ended: %r" % text)
    return text


def main():
    terminal = start(*sys.argv[1:])
    read_until(terminal, PROMPT)
    for line in sys.stdin.read().splitlines():
        os.write(terminal, (line + "\t\r").encode())
        text = read_until(terminal, "ran:.*:end\r\n.*" + PROMPT)
        typed, words = re.search("(.*)ran:(.*?):end", text, re.S).groups()
        if typed.count("\n") > 1:
            sys.exit("more than the line on the terminal: %r" % typed)
        print(words)


main()
