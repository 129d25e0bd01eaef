#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a training starts: a notice to the whole tree spares what it needs for its save, and what it ends itself ends.
# takes: 15
# shellcheck disable=SC2016 # text for other programs

bats_require_minimum_version 1.5.0
load eventually

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../bin}:$PATH
	export CLIENT=$BATS_TEST_DIRNAME/../lib/client PREEMPT_STORE=$PWD/s.db PREEMPT_PLATFORM=generic
	export PYTHONDONTWRITEBYTECODE=1
}

# A minute is for ever: each of these ends at once, or not at all.
under() {
	run -0 --separate-stderr timeout -s KILL 60 preempt-run --run r -- "$@"
	echo "$output"
}

# bats test_tags=smoke
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

# bats test_tags=smoke
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
    assert os.waitpid(pid, 0)[1] == 15
for _ in range(10):
    process = multiprocessing.get_context("fork").Process(target=signal.pause)
    process.start()
    process.terminate()
    process.join()
    assert process.exitcode == -15
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

# bats test_tags=smoke
@test "Python: loader processes outlive a notice to the tree, and end with their parent's word" {
	cat >train <<'END'
import multiprocessing, os, subprocess, sys, time, preempt
fork, spawn = multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")
def load(queue, explicit):
    if explicit:
        preempt.worker_init(0)
    queue.put(os.getpid())
    time.sleep(1000)
if __name__ == "__main__":
    early = fork.Queue(), fork.Queue(), spawn.Queue()
    # Before the first step, and with another start method, it takes worker_init.
    workers = [fork.Process(target=load, args=(early[0], True), daemon=True)]
    workers[0].start()
    preempt.step(0)
    workers.append(fork.Process(target=load, args=(early[1], False), daemon=True))
    workers.append(spawn.Process(target=load, args=(early[2], True), daemon=True))
    for worker in workers[1:]:
        worker.start()
    pids = [queue.get() for queue in early]
    subprocess.run(["sh", "-c", "kill -TERM %d %s" % (os.getpid(), " ".join(map(str, pids)))], check=True)
    time.sleep(0.5)
    print([worker.is_alive() for worker in workers])
    for worker in workers:
        worker.terminate()
        worker.join()
    print([worker.exitcode for worker in workers])
END
	mv train train.py
	PYTHONPATH=$CLIENT under python3 train.py
	[ "$output" = $'[True, True, True]\n[-15, -15, -15]' ]
}
