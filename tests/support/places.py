# SPDX-License-Identifier: MIT
"""Where the tasks of a random life run, and where their store is (tests/support/lives).

A place has machines, among which the agents are distributed. All machines have the same methods for
processes and files: this machine, with one of several mounts. Each place can make the store unreachable and
reachable again, in its own way.
"""
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
    """The processes of this machine with this NAME=VALUE in their environment."""
    found = subprocess.run([OUT + '/tests/support/marked', mark], check=True, stdout=subprocess.PIPE, text=True)
    return [int(pid) for pid in found.stdout.split()]


def marked_until_gone(mark):
    """The same after a minute, or as soon as there are none."""
    end = time.monotonic() + 60
    while (found := marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def children_of(pid):
    try:
        return [int(child) for task in os.listdir('/proc/%d/task' % pid)
                for child in read('/proc/%d/task/%s/children' % (pid, task)).split()]
    except OSError:
        return []


def forget_stores(*directories):
    subprocess.run([rig + '/forget-stores', *directories], check=False)


# ---- Machines ----

class Here:
    """This machine. A life has its files in room, its checkpoints below cwd, its store at store."""

    programs = BIN
    trainers = rig + '/trainers/'
    count = OUT + '/tests/support/trainers/count'
    train = OUT + '/examples/train'
    composed = repository + '/examples/composed.sh'
    clients = repository + '/lib/client'

    def __init__(self, room, cwd, store):
        self.room, self.cwd, self.store = room, cwd, store

    def prepare(self, pieces):
        """Make the directories that a life needs, and its scripts: pieces is {name: text}."""
        for name in 'boards', 'pieces':
            os.makedirs(self.room + '/' + name, mode=0o700, exist_ok=True)
        for name, text in pieces.items():
            with open('%s/pieces/%s' % (self.room, name), 'w') as file:
                file.write(text)
                os.chmod(file.fileno(), 0o700)

    def start(self, arguments, environment, out, err):
        return subprocess.Popen(arguments, cwd=self.cwd, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=err, preexec_fn=die_with_us)

    def run(self, arguments, environment, patience):
        run = subprocess.run(arguments, cwd=self.room, env=environment, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, timeout=patience)
        return run.returncode, run.stdout

    def trainers_of(self, child):
        """The commands of an agent: they have PREEMPT_TASK in their environment."""
        return self.commands_below(child.pid)

    def commands_below(self, pid):
        found = []
        leads = read('/proc/%d/comm' % pid).strip() in ('preempt-run', 'preempt-heartbe')
        for one in children_of(pid):
            if leads and '\0PREEMPT_TASK=' in '\0' + read('/proc/%d/environ' % one):
                found.append(one)
            elif not leads:
                found += self.commands_below(one)
        return found

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def marked(self, mark):
        return marked(mark)

    @staticmethod
    def describe(pid):
        return read('/proc/%d/cmdline' % pid).replace('\0', ' ')[:100]

    def threads(self, child):
        return ['thread %s: system call %s' % (task, read('/proc/%d/task/%s/syscall' % (child.pid, task)).strip())
                for task in sorted(os.listdir('/proc/%d/task' % child.pid))]

    def boards(self):
        return os.listdir(self.room + '/boards')


# ---- Places ----

class Local:
    """One machine, and the store in a directory that is renamed and renamed back."""

    def __init__(self, room):
        self.room = room
        os.mkdir(room + '/disk', 0o700)
        self.machines = [Here(room, room, room + '/disk/db')]

    def take_away(self, _fault, _lasts):
        os.rename(self.room + '/disk', self.room + '/away')

    def bring_back(self, _):
        os.rename(self.room + '/away', self.room + '/disk')

    def make_job(self, directories):
        for name in directories:
            os.mkdir('%s/%s' % (self.machines[0].cwd, name), 0o700)

    def job(self):
        """The job's directory, as this machine sees it now."""
        return self.machines[0].cwd + '/job'

    def end(self):
        forget_stores(self.room)


class Bindfs(Local):
    """One machine, and the store on a bindfs that is unmounted and mounted again."""

    def __init__(self, room, lock):
        super().__init__(room)
        self.point = room + '/mount'
        os.mkdir(self.point, 0o700)
        # So that no process makes a file in the empty mount point.
        subprocess.run(['chattr', '+i', self.point], check=False)
        self.machines[0].store = self.point + '/db?assume=shared'
        if lock == 'token':
            subprocess.run([os.path.dirname(__file__) + '/token-store', room + '/disk/db'], check=True)
        self.bring_back(None)

    def take_away(self, _fault, _lasts):
        subprocess.run(['umount', '-l', self.point], check=False)

    def bring_back(self, _):
        subprocess.run(['bindfs', '--no-allow-other', self.room + '/disk', self.point], check=True)

    def end(self):
        super().end()
        self.take_away(None, 0)
        subprocess.run(['chattr', '-i', self.point], check=False)


class Shared(Local):
    """Two machines on one shared filesystem. Each has the job's directory on a mount that stays, and the
    store on a mount of the life's own, which is unmounted and mounted again; or the server is stopped.
    Many lives use one store; their runs have different names."""

    def take_away(self, fault, lasts):
        if fault.startswith('server'):
            # In another process, which continues the server even if we hang in a call to it.
            self.freezer = subprocess.Popen(self.freeze(lasts))
        else:
            for side in self.sides(fault):
                self.unmount(side)

    def bring_back(self, fault):
        if fault.startswith('server'):
            self.freezer.wait()
        else:
            for side in self.sides(fault):
                self.mount(side)

    def sides(self, fault):
        """The machines whose store the fault takes."""
        return [0, 1] if 'both' in fault else [0 if 'first' in fault else 1]


class Gluster(Shared):
    """A volume of tests/support/mounts: two mounts are two machines."""

    def __init__(self, room, directory, name):
        self.room, self.directory, self.name = room, directory, name
        self.points = ['%s/own/%s.%s' % (directory, name, side) for side in 'ab']
        self.machines = [Here('%s/%s' % (room, side), '%s/gluster/%s/%s' % (directory, side, name),
                              point + '/runs.db') for side, point in zip('ab', self.points)]
        os.mkdir(self.machines[0].cwd)
        for side in 0, 1:
            os.mkdir(self.machines[side].room)
            self.mount(side)

    def mount(self, side):
        subprocess.run([rig + '/mounts', 'attach', self.directory, self.points[side]], check=True)

    def unmount(self, side):
        subprocess.run(['umount', '-l', self.points[side]], check=False)

    def freeze(self, lasts):
        return [rig + '/mounts', 'freeze', self.directory, '%.2f' % lasts]

    def end(self):
        for point in self.points:
            forget_stores(point)
            subprocess.run([rig + '/mounts', 'detach', self.directory, point], check=False)
        subprocess.run(['rm', '-rf', self.machines[0].cwd], check=False)

