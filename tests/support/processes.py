# SPDX-License-Identifier: MIT
"""What tests in Python need of processes, and of what the machine keeps of a store."""
import ctypes
import os
import signal
import subprocess
import time

rig = os.path.dirname(os.path.realpath(__file__))
repository = os.path.dirname(os.path.dirname(rig))
BIN = os.environ.get('BIN', repository + '/bin')
OUT = os.environ.get('OUT', repository + '/build/plain')
libc = ctypes.CDLL(None)


def die_with_us():
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def read(path, otherwise=''):
    try:
        with open(path, errors='replace') as file:
            return file.read()
    except OSError:
        return otherwise


def marked(mark):
    """The processes with this NAME=VALUE in their environment."""
    wanted = '\0' + mark + '\0'
    return [int(pid) for pid in os.listdir('/proc')
            if pid.isdigit() and wanted in '\0' + read('/proc/%s/environ' % pid) + '\0']


def marked_until_gone(mark):
    """The same after a minute, or as soon as there are none."""
    end = time.monotonic() + 60
    while (found := marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def commands_of(pid):
    """The commands of an agent: its children that have PREEMPT_TASK in their environment."""
    try:
        tasks = os.listdir('/proc/%d/task' % pid)
    except OSError:
        return []
    children = [int(child) for task in tasks for child in read('/proc/%d/task/%s/children' % (pid, task)).split()]
    return [child for child in children if '\0PREEMPT_TASK=' in '\0' + read('/proc/%d/environ' % child)]


def page_of(lock):
    """The place in shared memory that belongs to a store, by its lock; "": there is no lock."""
    if not os.path.exists(lock):
        return ''
    st = os.stat(lock)
    return '/dev/shm/preempt-%d/%x-%x-lock1' % (os.geteuid(), st.st_dev, st.st_ino)


def forget_stores(*directories):
    subprocess.run([rig + '/forget-stores', *directories], check=False)
