#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a training starts: a notice to the whole tree spares what it needs for its save, and what it ends itself ends.
# takes: 15
# shellcheck disable=SC2016 # text for other programs

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	export CLIENT=$BATS_TEST_DIRNAME/../../lib/client PREEMPT_STORE=$PWD/s.db PREEMPT_PLATFORM=generic
	export PYTHONDONTWRITEBYTECODE=1
}

# A minute is for ever: each of these ends at once, or not at all.
under() {
	run -0 --separate-stderr timeout -s KILL 60 preempt-run --run r -- "$@"
	echo "$output"
}

@test "shells: a command from before the first step, and one by preempt_bg, end by kill; others outlive a notice" {
	cat >train <<'END'
. "$CLIENT/preempt.sh"
loop() { while :; do sleep 0.2; done; }
loop & early=$!
preempt_step 0 || exit
preempt_bg sleep 1000 & monitor=$!
preempt_bg loop & function=$!
sleep 1000 & other=$!
for pid in $early $monitor $function; do
	# A moment later it has become the program.
	while kill $pid 2>/dev/null; do sleep 0.05; done
	wait $pid
	echo $?
done
kill $other && sleep 0.2 && kill -KILL $other && wait $other
echo $?
(preempt_bg sleep 1)
kill $$
preempt_bg true && echo wrong
END
	for shell in bash dash; do
		run --separate-stderr timeout -s KILL 60 preempt-run --run "$shell" -- "$shell" train
		[ "$output" = $'143\n143\n143\n137' ]
		[[ $stderr = *"the call is preempt_bg COMMAND [ARGUMENT]... &"* ]]
	done
}

@test "Python: commands, forked processes and pools end when they are told" {
	cat >train <<'END'
import multiprocessing, os, signal, subprocess, preempt
preempt.step(0)
command = subprocess.Popen(["sleep", "1000"])
command.terminate()
assert command.wait() == -15
for _ in range(100):
    pid = os.fork()
    if not pid:
        signal.pause()
    os.kill(pid, signal.SIGTERM)
    assert os.waitpid(pid, 0)[1] in (9, 15)
for _ in range(10):
    process = multiprocessing.get_context("fork").Process(target=signal.pause)
    process.start()
    process.terminate()
    process.join()
    assert process.exitcode == -9
with multiprocessing.get_context("fork").Pool(4) as pool:
    for result in pool.imap_unordered(abs, range(40)):
        if result == 25:
            break
os.kill(os.getpid(), signal.SIGTERM)
print("survived")
END
	under python3 -c 'import sys; sys.path.append(sys.argv[1]); exec(open("train").read())' "$CLIENT"
	[ "$output" = survived ]
}

@test "Python: processes of multiprocessing outlive a notice to the tree, and end with their parent's word" {
	cat >train.py <<'END'
import multiprocessing, os, signal, subprocess, time
import preempt
def tree(pid):
    below = open("/proc/%d/task/%d/children" % (pid, pid)).read().split()
    return sum((tree(int(child)) for child in below), [pid])
def load(queue, start):
    if start == "early":
        preempt.worker_init(0)
    # What it starts has its signals back.
    command = subprocess.Popen(["sh", "-c", "echo started; exec sleep 1000"], stdout=subprocess.PIPE)
    command.stdout.readline()
    command.terminate()
    assert command.wait() == -9
    queue.put(os.getpid())
    time.sleep(1000)
if __name__ == "__main__":
    methods = ["fork", "spawn", "forkserver"]
    queue = multiprocessing.Manager().Queue()
    start = lambda method, word: multiprocessing.get_context(method).Process(target=load, args=(queue, word), daemon=True)
    # Before the first step it takes worker_init.
    workers = [start("fork", "early")]
    workers[0].start()
    preempt.step(0)
    for method in methods:
        workers.append(start(method, "late"))
        workers[-1].start()
    for worker in workers:
        queue.get()
    # The server of forkserver is one of these.
    subprocess.run(["kill", "-TERM", *map(str, tree(os.getpid()))], check=True)
    time.sleep(0.5)
    print([worker.is_alive() for worker in workers])
    for worker in workers:
        worker.terminate()
        worker.join()
    print([worker.exitcode for worker in workers])
    for method in methods:
        with multiprocessing.get_context(method).Pool(2) as pool:
            for result in pool.imap_unordered(abs, range(40)):
                if result == 25:
                    break
    # Just forked: the notice to the tree does not find it without its shelter.
    for _ in range(50):
        worker = start("fork", "late")
        worker.start()
        subprocess.run(["kill", "-TERM", str(worker.pid)], check=True)
        queue.get(timeout=30)
        worker.terminate()
        worker.join()
    print("done")
END
	PYTHONPATH=$CLIENT under python3 train.py
	[ "$output" = $'[True, True, True, True]\n[-9, -9, -9, -9]\ndone' ]
}

@test "Python: commands that the save starts outlive a second notice; a handler made in C stays" {
	cat >train.py <<'END'
import faulthandler, os, signal, subprocess, sys, time, preempt
faulthandler.register(signal.SIGUSR1)
for s in range(100000):
    if preempt.step(s):
        subprocess.run(["sh", "-c", "kill -TERM $$ $PPID; echo saved >ck"], check=True)
        if preempt.saved(s):
            os.kill(os.getpid(), signal.SIGUSR1)
            subprocess.run(["sh", "-c", "trap 'echo told' TERM; kill -TERM $$; exit 0"], check=True)
            sys.exit(preempt.EXIT)
    time.sleep(0.01)
    open("started", "w")
END
	PYTHONPATH=$CLIENT preempt-run --run r -- python3 train.py >out 2>err 3>&- &
	agent=$!
	eventually test -e started
	kill -TERM $agent
	code=0
	wait $agent || code=$?
	cat out err
	[ "$code" = 42 ]
	[ "$(cat ck)" = saved ]
	[ "$(cat out)" = told ]
	grep -q 'Current thread' err
}

@test "Python: once another thread has said saved, commands end when they are told, again" {
	cat >train.py <<'END'
import os, subprocess, threading, time, preempt
saved = False
for s in range(100000):
    if preempt.step(s):
        saver = threading.Thread(target=preempt.saved, args=(s,))
        saver.start()
        saver.join()
        while os.path.exists(os.environ["PREEMPT_DIR"] + "/hold"):
            time.sleep(0.01)
        saved = True
    if saved and subprocess.run(["sh", "-c", "kill -TERM $$; exit 0"]).returncode == -15:
        break
    time.sleep(0.01)
    open("started", "w")
END
	PYTHONPATH=$CLIENT timeout -s KILL 60 preempt-run --run r -- python3 train.py 3>&- &
	eventually test -e started
	preempt-claim --run r --then continue >/dev/null
	wait $!
}

@test "C: commands that the save starts outlive a second notice, those after it do not" {
	cat >train.c <<'END'
#include <preempt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	for (unsigned s = 0;; s++, usleep(10000)) {
		if (preempt_step(s) == PREEMPT_SAVE) {
			int in_save = system("kill -TERM $$; true"), code = preempt_saved(s);
			printf("%d %d\n", in_save, system("kill -TERM $$; true"));
			fflush(stdout);
			return code;
		}
		fclose(fopen("started", "w"));
	}
}
END
	local out=${OUT:-$BATS_TEST_DIRNAME/../../build/plain} sanitize=()
	[[ $out != */asan ]] || sanitize=(-fsanitize=address -fsanitize=undefined)
	cc "${sanitize[@]}" -o train train.c -I"$CLIENT" "$out/libpreempt.a" -pthread
	preempt-run --run r -- ./train >out 3>&- &
	eventually test -e started
	kill -TERM $!
	code=0
	wait $! || code=$?
	[ "$code" = 42 ]
	[ "$(cat out)" = "0 15" ]
}
