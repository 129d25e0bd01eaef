# SPDX-License-Identifier: MIT
"""All tasks of a group stop at the same step, each with a complete checkpoint. Training code calls this.

A training process that runs under an agent (preempt-run, for example) finds its board, a directory, in
$PREEMPT_DIR and asks at every step boundary whether it should save. This file needs only the standard
library:

    import preempt

    for s in range(start, total):           # s steps are finished
        if preempt.step(s):
            save(s)                         # complete and durable when it returns, else it raises
            if preempt.saved(s):
                sys.exit(preempt.EXIT)
        train(s)

Report periodic saves with preempt.saved too: the agent measures how long a save takes.
A step number is the number of finished steps, 0 to 999999999999999999. It never falls within one process.

Two forms: ask and saved always return, so a program can end its threads or its other processes before it
  leaves. step does the same as ask and leaves the process where ask returns LEAVE + code: by SystemExit, or,
  in a thread other than the main one, where SystemExit would end only the thread, by os._exit after a flush.
Errors: a call that fails writes one line to stderr, which says what to do, and answers with
    2   wrong use: two writers on one board, a falling or impossible step number, a board or an agent
        that cannot be seen from this process (in a container, for example)
    43  the agent or the board is gone: the process must leave, no save can be reported
  Any other code is the agent's. Without $PREEMPT_DIR every call does nothing and returns 0; the first
  call says so on stderr.
Threads: one thread asks at step boundaries; saved may be called later and from another thread (an
  asynchronous saver). Then the asking thread asks again until the answer is not SAVE. A forked or spawned
  child is another process: it is refused (2) as long as the process that called first lives. Data loader
  processes: DataLoader(..., worker_init_fn=preempt.worker_init).
Signals: from the first call on, in the main thread, the notice signals ($PREEMPT_SIGNALS, default TERM) that
  had their default action do nothing: schedulers signal whole process trees, and a trainer that dies of the
  notice cannot save. Handlers of the program are never replaced. Commands and forked processes get the default
  action back, except commands that are started between SAVE and saved. Processes of multiprocessing, data
  loaders among them, ignore these signals. If their parent sends them TERM, by terminate or os.kill, they get KILL.

The rules are those of lib/client/board.h; the same tests run through all clients.
"""

import fcntl
import operator
import os
import re
import signal
import sys
import threading
import time

__all__ = ["EXIT", "LEAVE", "SAVE", "ask", "saved", "step", "worker_init"]

SAVE = 10  #: ask and step return it to ask for a save
LEAVE = 0x100  #: ask adds it to the code with which the process must leave
EXIT = 42  #: the code to leave with: the last one that saved returned, if any

_LAST = 10**18 - 1  # step numbers have at most 18 digits
_POLL = 0.010
_SETTLED = 50_000_000  # ns: several ticks of any kernel
_SIGNALS = "HUP INT QUIT USR1 USR2 ALRM TERM CONT TSTP URG XCPU XFSZ PWR".split()

_board = None
_boardless = False
_lock = threading.Lock()
_getpid, _fstat, _pwrite = os.getpid, os.fstat, os.pwrite


class _Leave(Exception):
    """The process must leave with the code that is the argument."""


def ask(n, next=None):
    """Report that n steps are finished and the next one has not begun. next: the step at which the program
    will ask again, if that is not n + 1. Returns 0: run the next step; SAVE: save this state, call saved,
    act on its answer; LEAVE + code: leave with the code.

    Waits while the group agrees on a step, which is rare and short. Asking again with the same number is
    allowed. After SAVE, the next answer is 0 if the training may go on during the save. If the save is the
    final one, the call waits until the process must leave; if no save is reported for 2 s, it returns SAVE again.
    """
    try:
        return _ask(n, next)
    except _Leave as leave:
        return LEAVE + leave.args[0]


def step(n, next=None):
    """The same as ask, but leaves the process instead of returning LEAVE + code."""
    try:
        return _ask(n, next)
    except _Leave as leave:
        code = leave.args[0]
    _exit(code)


def saved(n):
    """Report that the checkpoint of step n is complete and durable. Returns 0: run on; else the code to
    leave with, which is then also in preempt.EXIT. After the final save it first waits until every other
    task has saved."""
    global EXIT
    try:
        code = _saved(n)
    except _Leave as leave:
        code = leave.args[0]
    if code:
        EXIT = code
    return code


def worker_init(*_):
    """For data loader processes (worker_init_fn) that have a handler made in C for TERM, as those of PyTorch: with it
    a notice to the whole process tree would take the data away before the save. Other processes of multiprocessing
    need no call. Handlers made in Python stay."""
    if os.environ.get("PREEMPT_DIR"):
        _ignore((signal.SIG_DFL, signal.SIG_IGN, None, _outlive))


# These functions do the work of those above; each may raise _Leave


def _ask(n, next):
    board = _board
    if board is None or board.process != _getpid():
        board = _attach()
        if board is None:
            return 0
    if type(n) is not int:
        n = _number(n)
    following = n + 1 if next is None else _number(next)
    if not board.last <= n < following or following > _LAST + 1:
        _refuse_step(board, n, following)
    line = b"%020d %020d\n" % (n, following)
    try:
        _pwrite(board.step, line, 0)
        about = _fstat(board.dir)
    except OSError:
        about = _rewrite(board, line)
    board.last = n
    if about.st_mtime_ns == board.unheld and about[1] == board.ino and about[3]:
        return 0
    answer = _answer(board, n, following) if _held(board) else 0
    if answer == SAVE or _sheltered:
        _shelter(answer == SAVE)
    return answer


def _saved(n):
    board = _attach()
    if board is None:
        return 0
    n = _number(n)
    if not 0 <= n <= _LAST:
        _say("saved %d: steps go from 0 to %d" % (n, _LAST))
        raise _Leave(2)
    _overwrite(board, "saved", b"%020d\n" % n)
    _shelter(False)
    return _barrier(board, n) if os.path.lexists(board.hold) else 0


# Leaving and printing


def _say(text):
    try:
        line = "preempt: " + "".join(c if c.isprintable() else "?" for c in text) + "\n"
        os.write(2, line.encode(errors="replace"))
    except OSError:
        pass  # stderr is closed


def _exit(code):
    if threading.current_thread() is threading.main_thread():
        raise SystemExit(code)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    os._exit(code)


def _vanished(board, what, error):
    _say("cannot write %s on the board %s: %s; leaving with 43" % (what, board.path, error.strerror or error))
    raise _Leave(43)


# Numbers, files and processes


def _number(n):
    try:
        return operator.index(n)
    except TypeError:
        _say("%.60r is not a step number: it is an int from 0 to %d" % (n, _LAST))
        raise _Leave(2)


def _decimal(text, most):
    """A number without sign and leading zeros, or None."""
    if not re.fullmatch("0|[1-9][0-9]{0,17}", text) or int(text) > most:
        return None
    return int(text)


def _refuse_step(board, n, following):
    if 0 <= n < following <= _LAST + 1:
        _say(
            "step %d after step %d: the number of finished steps never falls; start the command under "
            "its agent again to go back to a checkpoint" % (n, board.last)
        )
    else:
        said = "step %d, next %d: steps go from 0 to %d, and the next boundary is a later one"
        _say(said % (n, following, _LAST))
    raise _Leave(2)


def _read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read(1024).decode("ascii", "replace")


def _stat(pid):
    """State and start time as /proc shows them, or None."""
    try:
        fields = _read("/proc/%d/stat" % pid).rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _alive(pid, started=0):
    now = _stat(pid)
    if now:
        return now[0] not in "ZX" and started in (0, now[1])
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


# First use


class _Board:
    """What this process remembers of its board."""

    def __init__(self, path):
        self.process = os.getpid()
        self.path = path
        self.hold = path + "/hold"
        self.agent = self.agent_started = 0
        self.dir = self.step = self.alive = -1  # descriptors
        self.ino = self.dev = -1  # the file that dir was opened on
        self.dated = False  # the directory's time shows reliably whether a file was made in it
        self.unheld = None  # that time when there was no hold
        self.last = 0
        self.answered = -1  # the greatest step that the caller was asked to save
        self.final = -1  # the same, of `exit` only
        self.at = -1  # the boundary of that answer: the first one at or after `final`

    def open(self, how=0):
        self.dir = self.step = -1
        self.dir = _raise(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self.step = _raise(os.open(self.path + "/step", os.O_RDWR | os.O_CLOEXEC | how, 0o600))
        about = os.fstat(self.dir)
        self.ino, self.dev = about.st_ino, about.st_dev
        self.dated = _on_tmpfs(about.st_dev)
        self.unheld = None

    def close(self):
        for fd in (self.dir, self.step, self.alive):
            if fd >= 0:
                os.close(fd)


def _raise(fd):
    """Move a descriptor above the numbers that programs use: if a program closes them all (to become a daemon,
    for example), the next file that it opens must not get the number of step, and be overwritten."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 400)
    except OSError:
        return fd
    os.close(fd)
    return high


def _on_tmpfs(dev):
    number = "%d:%d" % (os.major(dev), os.minor(dev))
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                if line.split()[2] == number:
                    return " - tmpfs " in line
    except (OSError, IndexError):
        pass
    return False


def _attach():
    """The board, attached to this process; None without one."""
    global _board, _boardless
    if _board is not None and _board.process == os.getpid():
        return _board
    if _boardless:
        return None
    with _lock:
        if _board is not None and _board.process == os.getpid():
            return _board
        if not os.environ.get("PREEMPT_DIR"):
            _boardless = True
            _say("PREEMPT_DIR is not set: no agent, so nothing will ask this task to save")
            return None
        board = _Board(_find())
        if _board is not None:  # forked: another process, but with the memory of its parent
            board.last, board.answered = _board.last, _board.answered
            board.final, board.at = _board.final, _board.at
        try:
            _check_agent(board)
            _take(board)
            _open(board)
            _die_with_agent(board)
        except _Leave:
            board.close()
            raise
        _board = board
        if threading.current_thread() is threading.main_thread():
            _outlive_notices()
        else:
            _say("first call not in the main thread: a notice signal ends this process")
        return board


_forking = threading.local()


def _fork():
    """A signal to a process that was just forked must not be lost."""
    _forking.mask = None
    if os.environ.get("PREEMPT_DIR"):
        _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG, *_notices()])


def _forked_other():
    if _forking.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _forked():
    global _lock
    _lock = threading.Lock()
    if _forking.mask is not None:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("multiprocess"):
            _ignore((signal.SIG_DFL, _outlive))
        else:
            marked = signal.getsignal(signal.SIGURG) == signal.SIG_IGN
            for number in [signal.SIGURG, *_notices()] if marked else _outlived:
                if signal.getsignal(number) in (signal.SIG_IGN, _outlive):
                    signal.signal(number, signal.SIG_DFL)
        _outlived.clear()
    _forked_other()


os.register_at_fork(before=_fork, after_in_parent=_forked_other, after_in_child=_forked)


def _find():
    path = os.path.abspath(os.environ["PREEMPT_DIR"])
    ranks = os.environ.get("PREEMPT_RANKS")
    if ranks is not None:
        count = _decimal(ranks, 2**31 - 1)
        if not count:
            _say("PREEMPT_RANKS=%s is not a number of ranks; leave it as the agent set it" % ranks)
            raise _Leave(2)
        local = os.environ.get("LOCAL_RANK")
        if local is None or _decimal(local, count - 1) is None:
            _say(
                "LOCAL_RANK is %s, but the agent serves ranks 0 to %d; start the ranks with a launcher "
                "that sets LOCAL_RANK (torchrun), or set it"
                % ("not set" if local is None else local or "empty", count - 1)
            )
            raise _Leave(2)
        path += "/" + local
    if not os.path.isdir(path):
        _say("the board %s is not visible here: in a container? share the directory and use --board" % path)
        raise _Leave(2)
    return path


def _check_agent(board):
    try:
        text = _read(board.path + "/agent")
    except OSError:
        return
    found = re.match("([1-9][0-9]{0,9})[ \n]", text)
    if not found:
        _say(
            "%s/agent does not name the agent's process: not a board, or damaged; start the command "
            "under its agent again" % board.path
        )
        raise _Leave(2)
    pid = int(found.group(1))
    try:
        ours, theirs = os.stat("/proc/self/ns/pid"), os.stat("/proc/%d/ns/pid" % pid)
        shared = os.path.samestat(ours, theirs)
    except OSError:
        shared = True  # the agent is gone, or we may not ask: _alive finds out
    if not shared:
        _say(
            "the agent (process %d) is in another PID namespace, so its death could not be seen; run "
            "the agent inside the container, or share the PID namespace" % pid
        )
        raise _Leave(2)
    if not _alive(pid):
        _say(
            "the agent of the board %s (process %d) is gone, or not visible from this container; "
            "leaving with 43" % (board.path, pid)
        )
        raise _Leave(43)
    board.agent, board.agent_started = pid, (_stat(pid) or ("", 0))[1]


def _owner(path):
    """Read process and start time from an owner file, which is empty at first: wait for them. (0, 0): none."""
    for _ in range(100):
        try:
            found = re.match("([0-9]{1,10})(?: ([0-9]{1,20}))?\n", _read(path))
        except OSError:
            found = None
        if found:
            return int(found.group(1)), int(found.group(2) or 0)
        time.sleep(_POLL)
    return 0, 0


def _take(board):
    """Make this process the board's writer; board.h says how a second one is kept out."""
    pid, started = os.getpid(), (_stat(os.getpid()) or ("", 0))[1]
    line = b"%d %d\n" % (pid, started) if started else b"%d\n" % pid
    first = path = board.path + "/owner"
    turn = 0
    try:
        while True:
            turn += 1
            try:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                theirs, since = _owner(path)
                if theirs == pid and (not since or not started or since == started):
                    return
                if theirs and theirs != pid and _alive(theirs, since):
                    break
                path = "%s.%d" % (first, turn)
                continue
            os.write(fd, line)
            os.close(fd)
            if turn > 1:
                _forget_former(board)
                fd = os.open(first, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
                os.write(fd, line)
                os.close(fd)
            return
    except OSError as error:
        _say(
            "cannot write on the board %s: %s; it must belong to the user who trains"
            % (board.path, error.strerror)
        )
        raise _Leave(2)
    _say(
        "the board %s belongs to process %d, this is process %d; let one process per task call it, and "
        "give each task its own board (preempt-run -n L or --ranks L)" % (board.path, theirs, pid)
    )
    raise _Leave(2)


def _forget_former(board):
    """Discard the former training process's step and answers: its successor may have gone back to an earlier
    checkpoint."""
    for name in ("step", "saved", "answered"):
        try:
            os.truncate(board.path + "/" + name, 0)
        except FileNotFoundError:
            pass


def _open(board):
    """Open step and read the last step of this owner."""
    try:
        board.open(os.O_CREAT)
        text = os.pread(board.step, 64, 0)
    except OSError as error:
        _say("cannot use %s/step: %s" % (board.path, error.strerror))
        raise _Leave(2)
    found = re.match(b"([0-9]{1,20})[ \n]", text)
    if text and (not found or int(found.group(1)) > _LAST):
        _say("%s/step has no step number in it: damaged; start the command under its agent again" % board.path)
        raise _Leave(2)
    if found:
        board.last = max(board.last, int(found.group(1)))


def _die_with_agent(board):
    """Ask the kernel to kill this process's group when the agent dies, whatever ends it: the agent does not
    know the groups of ranks that a launcher started in sessions of their own."""
    if not board.agent:
        return
    try:
        alive = os.open(board.path + "/alive", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        board.alive = _raise(alive)
        fcntl.fcntl(board.alive, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(board.alive, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(board.alive, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    except OSError:
        return
    if not _alive(board.agent, board.agent_started):
        raise _Leave(43)


# Signals


_outlived = []  # the signals whose handler is _outlive
_sheltered = False  # they are ignored for now
_numbers = None


def _outlive(*_):
    """A handler that does nothing, instead of SIG_IGN, which commands would inherit."""


def _notices():
    """The numbers of the notice signals."""
    global _numbers
    if _numbers is None:
        _numbers = []
        for name in os.environ.get("PREEMPT_SIGNALS", "TERM").split(","):
            bare = name[3:] if name.startswith("SIG") else name
            if bare in _SIGNALS:
                _numbers.append(getattr(signal, "SIG" + bare))
            elif name:
                _say("PREEMPT_SIGNALS: no signal %s that could be ignored" % name)
    return _numbers


def _mask(pid, *names):
    """The signals that a process ignores (SigIgn), blocks (SigBlk), or has handlers for (SigCgt): signal.getsignal
    does not know those made in C."""
    mask = 0
    try:
        with open("/proc/%d/status" % pid) as status:
            for line in status:
                if line[:6] in names:
                    mask |= int(line[8:], 16)
    except OSError:
        pass  # it has ended
    return mask


def _outlive_notices():
    caught = _mask(os.getpid(), "SigCgt")
    for number in _notices():
        if signal.getsignal(number) == signal.SIG_DFL and not caught >> (number - 1) & 1:
            _outlived.append(number)
            signal.signal(number, _outlive)
    _shelter(False)
    import multiprocessing.util  # takes 10 ms

    _shelter_spawned(multiprocessing.util)


def _shelter(saving):
    """While the answer is SAVE the signals are ignored: the commands that the save starts outlive them, too. If another
    thread has saved, the next step ends that."""
    global _sheltered
    if threading.current_thread() is threading.main_thread():
        _sheltered = saving
        for number in _outlived:
            if signal.getsignal(number) in (_outlive, signal.SIG_IGN):
                signal.signal(number, signal.SIG_IGN if saving else _outlive)
                signal.siginterrupt(number, False)


# Processes of multiprocessing ignore the notice signals, from their start. URG, which is ignored by default, is
# ignored explicitly with them: it marks those that we have made so.


def _ignore(replaced):
    """Returns what it has replaced."""
    before = {number: signal.getsignal(number) for number in [signal.SIGURG, *_notices()]}
    before = {number: action for number, action in before.items() if action in replaced}
    for number in before:
        signal.signal(number, signal.SIG_IGN)
    return before


def _shelter_spawned(util):
    """They, and the server that forks them, are started by this function of multiprocessing.util."""
    start = util.spawnv_passfds
    if hasattr(start, "of_preempt"):
        return

    def spawnv_passfds(*arguments):
        if threading.current_thread() is not threading.main_thread():
            return start(*arguments)
        before = _ignore((signal.SIG_DFL, _outlive))
        try:
            return start(*arguments)
        finally:
            for number, action in before.items():
                signal.signal(number, action)
                signal.siginterrupt(number, action is not _outlive)

    spawnv_passfds.of_preempt = True
    util.spawnv_passfds = spawnv_passfds


def _obey(event, arguments):
    """If os.kill (terminate calls it) sends TERM to such a process, KILL it. One that was just forked blocks both."""
    if event == "os.kill" and arguments[1] == signal.SIGTERM and arguments[0] > 0:
        both = 1 << (signal.SIGTERM - 1) | 1 << (signal.SIGURG - 1)
        if arguments[0] not in (os.getpid(), os.getppid()) and both & ~_mask(arguments[0], "SigIgn", "SigBlk") == 0:
            os.kill(arguments[0], signal.SIGKILL)


if os.environ.get("PREEMPT_DIR"):
    if hasattr(sys, "addaudithook"):  # since Python 3.8
        sys.addaudithook(_obey)
    if "multiprocessing.util" in sys.modules:
        _shelter_spawned(sys.modules["multiprocessing.util"])


# Hold


def _overwrite(board, name, line):
    """Replace a small file on the board in place, in one write."""
    try:
        fd = os.open(board.path + "/" + name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(fd, line, 0)
        finally:
            os.close(fd)
    except OSError as error:
        _vanished(board, name, error)


def _rewrite(board, line):
    """Write step again: the program has closed the descriptors, or the board is gone."""
    try:
        board.open()
        os.pwrite(board.step, line, 0)
        return os.fstat(board.dir)
    except OSError as error:
        _vanished(board, "step", error)


def _held(board):
    """Whether hold exists, and whether the board does. tmpfs does not cache missing names: looking one up
    takes 1.6 us, and a step may take 5. So step reads the directory's modification time instead. It has the
    resolution of a clock tick: trust "no hold" only if the directory last changed well before the previous
    lookup, because any later change then shows. On other filesystems times may be coarser or cached: look
    up the name at each step."""
    try:
        about = os.fstat(board.dir)
        if about.st_ino != board.ino or about.st_dev != board.dev:
            board.open()
            about = os.fstat(board.dir)
        if not about.st_nlink:
            raise FileNotFoundError(2, "it was removed")
        now = time.time_ns()
        about = os.fstat(board.dir)
    except OSError as error:
        _vanished(board, "step", error)
    if os.access(board.hold, os.F_OK):
        return True
    settled = board.dated and now - about.st_mtime_ns > _SETTLED
    board.unheld = about.st_mtime_ns if settled else None
    return False


def _look(board):
    """Hold as (text, word, number, process to watch). Text that cannot be parsed is treated as a wait."""
    try:
        text = _read(board.hold)
    except FileNotFoundError:
        if not os.path.isdir(board.path):
            _say("the board %s has vanished, the agent is gone; leaving with 43" % board.path)
            return "", "leave", 43, 0
        return "", "none", 0, 0
    except OSError as error:
        return "(%s)" % error.strerror, "garbled", 0, 0
    found = re.fullmatch("(wait|save|exit|leave) ([0-9]+)(?: ([0-9]+))?\n", text)
    if found:
        word, first, second = found.groups()
        if word == "wait" or word == "leave":
            number = _decimal(first, 255 if word == "leave" else 2**31 - 1)
            if number and second is None:
                return text, word, number, number if word == "wait" else 0
        else:
            number = _decimal(first, _LAST)
            watch = _decimal(second, 2**31 - 1) if second is not None else 0
            if number is not None and watch is not None and (watch or second is None):
                return text, word, number, watch
    return text, "garbled", 0, 0


class _Patience:
    """What a wait for hold to change remembers between two readings."""

    def __init__(self):
        self.text = None
        self.told = self.gone = False

    def turn(self, board, text, word, watch):
        """Wait a moment. False: the process that hold names is gone, and hold is the same when read again
        after that. (An agent may write hold a last time and end.)"""
        if text != self.text:
            self.text, self.told, self.gone = text, False, False
        if word == "garbled" and not self.told:
            self.told = True
            _say(
                "cannot understand %s: %.60s; waiting here until the agent changes it"
                % (board.hold, text.rstrip("\n"))
            )
        if watch and not _alive(watch, board.agent_started if watch == board.agent else 0):
            if self.gone:
                _say("the agent (process %d) is gone while this task waits; leaving with 43" % watch)
                return False
            self.gone = True
            return True
        self.gone = False
        time.sleep(_POLL)
        return True


def _decide(board, word, s, n, following):
    """What hold asks for when n steps are finished. A task whose boundaries pass the step waits at the last
    one before it, until the agents have found a later step. Once the final save was asked for, no further step may
    start: asking at the same boundary again waits for the report of the save."""
    if word in ("none", "leave"):
        return word
    if word not in ("save", "exit"):
        return "stay"
    if word == "save" and s <= board.answered:
        return "run"
    if word == "exit" and s <= board.final:
        return "again" if n <= board.at else "stay"
    if n < s:
        return "stay" if following > s else "run"
    board.answered = max(board.answered, s)
    if word == "exit":
        board.final, board.at = s, n
    return "save"


def _reported(board, n):
    """Whether a save of step n or a later one was reported."""
    try:
        return int(_read(board.path + "/saved")) >= n
    except (OSError, ValueError):
        return False


def _answer(board, n, following):
    patience = _Patience()
    since = time.monotonic()
    while True:
        text, word, number, watch = _look(board)
        verdict = _decide(board, word, number, n, following)
        if verdict == "leave":
            raise _Leave(number)
        if verdict == "save":
            return SAVE
        if verdict == "again" and not _reported(board, number) and time.monotonic() - since >= 2:
            return SAVE  # another thread saves, or the caller has not begun to save
        if verdict not in ("stay", "again"):
            return 0
        if not patience.turn(board, text, word, watch):
            raise _Leave(43)


def _barrier(board, n):
    """The exit barrier: wait until all tasks have saved. Returns 0, or the code to leave with."""
    patience = _Patience()
    parked = False
    while True:
        text, word, number, watch = _look(board)
        if word == "leave":
            return number
        if word == "exit" and n >= number:
            parked = True
        elif not parked or word not in ("wait", "garbled"):
            if word == "garbled":
                patience.turn(board, text, word, watch)
            return 0  # hold is gone, or of another round: the next boundary acts on it
        if not patience.turn(board, text, word, watch):
            return 43
