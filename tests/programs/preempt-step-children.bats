#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a training starts: a notice to the whole tree spares what it needs for its save, and what it ends itself ends.
# takes: 8
# shellcheck disable=SC2016 # text for other programs

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	export CLIENT=$REPO/lib/client PYTHONPATH=$REPO/lib/client PREEMPT_RUN=r PREEMPT_PLATFORM=generic
}

teardown() { end_started; }

# begins COMMAND...: in the background, until it has started: out, err, $agent.
begins() {
	preempt-run -- "$@" >out 2>err 3>&- &
	agent=$!
	started+=("$agent")
	eventually test -e started
}

# leaves CODE TEXT: the agent does, and the training has printed TEXT.
leaves() {
	code_of "$agent"
	cat out err
	[ "$code" = "$1" ]
	[ "$(cat out)" = "$2" ]
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
		another_store
		run --separate-stderr timeout -s KILL 60 preempt-run -- "$shell" train
		[ "$output" = $'143\n143\n143\n137' ]
		[[ $stderr = *"the call is preempt_bg COMMAND [ARGUMENT]... &"* ]]
	done
}

@test "Python: commands, forked processes and pools end when they are told; those of multiprocessing outlive a notice to the tree" {
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
def end(worker):
    worker.terminate()
    worker.join()
    return worker.exitcode
if __name__ == "__main__":
    methods = ["fork", "spawn", "forkserver"]
    queue = multiprocessing.Manager().Queue()
    start = lambda method, word: multiprocessing.get_context(method).Process(target=load, args=(queue, word), daemon=True)
    # Before the first step it takes worker_init.
    workers = [start("fork", "early")]
    workers[0].start()
    preempt.step(0)
    command = subprocess.Popen(["sleep", "1000"])
    command.terminate()
    assert command.wait() == -15
    for _ in range(30):
        pid = os.fork()
        if not pid:
            signal.pause()
        os.kill(pid, signal.SIGTERM)
        assert os.waitpid(pid, 0)[1] in (9, 15)
    for _ in range(5):
        process = multiprocessing.get_context("fork").Process(target=signal.pause)
        process.start()
        assert end(process) == -9
    for method in methods:
        workers.append(start(method, "late"))
        workers[-1].start()
    for worker in workers:
        queue.get()
    # The server of forkserver is one of these.
    subprocess.run(["kill", "-TERM", *map(str, tree(os.getpid()))], check=True)
    time.sleep(0.5)
    print([worker.is_alive() for worker in workers])
    print([end(worker) for worker in workers])
    for method in methods:
        with multiprocessing.get_context(method).Pool(2) as pool:
            for result in pool.imap_unordered(abs, range(40)):
                if result == 25:
                    break
    # Just forked: the notice to the tree does not find it without its shelter.
    for _ in range(15):
        worker = start("fork", "late")
        worker.start()
        subprocess.run(["kill", "-TERM", str(worker.pid)], check=True)
        queue.get(timeout=30)
        end(worker)
    print("done")
END
	run -0 --separate-stderr timeout -s KILL 60 preempt-run -- python3 train.py
	echo "$output"
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
	begins python3 train.py
	kill -TERM "$agent"
	leaves 42 told
	[ "$(cat ck)" = saved ]
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
	begins python3 train.py
	preempt-claim --then continue >/dev/null
	leaves 0 ""
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
	local sanitize=()
	[[ $OUT != */asan ]] || sanitize=(-fsanitize=address -fsanitize=undefined)
	cc "${sanitize[@]}" -o train train.c -I"$CLIENT" "$OUT/libpreempt.a" -pthread
	begins ./train
	kill -TERM "$agent"
	leaves 42 "0 15"
}
