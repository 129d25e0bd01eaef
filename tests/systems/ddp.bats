#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# examples/ddp.py under torchrun (examples/torchrun.sh): PyTorch DDP, two ranks on real data, preempted and resumed.
# Under Slurm (examples/ddp.sbatch): slurm_shapes.bats. Needs python3-torch.
# takes: 45
# asan: no (mostly PyTorch's time; the programs' own tests have it)

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	# Debian's Python comes first: it has the package. The machine's own name may have no address that gloo can use.
	export PATH=${PATH%%:*}:/usr/bin:$PATH PYTHONPATH=$REPO/lib/client GLOO_SOCKET_IFNAME=lo
	python3 -c 'import torch.distributed' 2>/dev/null || skip "no PyTorch: apt-get install python3-torch"
	export PREEMPT_MACHINES=1 PREEMPT_GRACE=0 # this machine only; saved at once
	# Slow at first; started again from a checkpoint, it hurries.
	cat >train.py <<-END
		import os, runpy
		os.environ["STEP_SECONDS"] = "0" if os.environ.get("PREEMPT_RESUME") else "0.1"
		runpy.run_path("$REPO/examples/ddp.py", run_name="__main__")
	END
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED:-}" ] || head -n 200 ./*.out >&2 || :
	end_started
}

@test "examples/torchrun.sh: two ranks are preempted with it: 42; started again, they go on from the same bits" {
	export PREEMPT_RUN=r RANKS=2
	# That of PyTorch 1.13 fails under Python 3.11, whose flags do not count one of value 0 as a member.
	mkdir path
	cat >path/torchrun <<-'END'
		#!/usr/bin/python3
		import torch.distributed.elastic.multiprocessing.api as api, torch.distributed.run as run
		api.Std.from_str = classmethod(lambda cls, text: cls(int(text)))
		run.Std = api.Std
		run.main()
	END
	chmod +x path/torchrun
	PATH=$PWD/path:$PATH
	"$REPO/examples/torchrun.sh" train.py ck 100 >r.out 2>err.out 3>&- &
	started+=($!)
	saved_or_ended() { grep -q '^saved step' r.out || gone "${started[0]}"; }
	patience=360 eventually saved_or_ended
	kill -TERM "${started[0]}"
	patience=360 code_of "${started[0]}"
	[ "$code" = 42 ]
	"$REPO/examples/torchrun.sh" train.py ck 100 >>r.out 2>>err.out 3>&-
	grep -q '^done step 100 ' r.out
	# What it went on from is what was saved, and the same as of a training that nothing interrupted.
	[ "$(grep -c '^start at step' r.out)" = 2 ]
	from=$(sed -n 's/^start at \(step [1-9].*\)/\1/p' r.out)
	grep -Fqx "saved $from" r.out
	read -r _ step _ weights <<<"$from"
	mkdir alone
	MASTER_ADDR=localhost MASTER_PORT=$((20000 + BASHPID % 10000)) preempt-run --store "$PWD/alone.db" --run alone \
		-n 2 -- python3 "$REPO/examples/ddp.py" alone "$step" >alone.out
	grep -Fx "saved step $step weights $weights" alone.out
}
