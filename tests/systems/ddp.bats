#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# examples/ddp.py: PyTorch DDP, four ranks on real data, preempted and resumed: under a real Slurm (examples/ddp.sbatch),
# and under torchrun (examples/torchrun.sh). Needs python3-torch; the first also root, slurm-wlm and munge.
# takes: 120
# asan: no (mostly PyTorch's time; the programs' own tests have it)
# shellcheck disable=SC2016,SC2030,SC2031

bats_require_minimum_version 1.5.0
load ../support/slurm

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	# Debian's Python comes first: it has the package.
	PATH=${BIN:-$ROOT/bin}:/usr/bin:$PATH
	export ROOT PATH PYTHONPATH=$ROOT/lib/client
	unset "${!PREEMPT_@}"
	# The machine's own name may not resolve to an address that gloo can use.
	export GLOO_SOCKET_IFNAME=lo
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	python3 -c 'import torch.distributed' 2>/dev/null || skip "no PyTorch: apt-get install python3-torch"
	# All nodes are this machine; and what is saved is saved at once.
	export PREEMPT_STORE=$PWD/s.db PREEMPT_MACHINES=1 PREEMPT_GRACE=0
	# Slow at first; started again from a checkpoint, it hurries.
	cat >train.py <<-END
		import os, runpy
		os.environ["STEP_SECONDS"] = "0" if os.environ.get("PREEMPT_RESUME") else "0.1"
		runpy.run_path("$ROOT/examples/ddp.py", run_name="__main__")
	END
	job=
}

teardown() {
	[ -z "$job" ] || kill -TERM "$job" 2>/dev/null || :
	[ -n "${BATS_TEST_COMPLETED:-}" ] || head -n 200 ./*.out >&2 || :
	[ -z "${SLURM_RIG-}" ] || { slurm_dump_logs; slurm_stop; }
}

# Or it never will be.
saved_or_ended() { grep -q '^saved step' "$1" || [[ $(slurm_state "$job") == FAILED ]] || { [ -z "${SLURM_RIG-}" ] && ! kill -0 "$job"; }; }

# same_bits OUT: the weights at the final save are those of a training that nothing interrupted; they are what it went
# on from; and it finished.
same_bits() {
	local line
	cat "$1"
	line=$(grep '^start at step [1-9]' "$1")
	[ "$(grep -c '^start at step' "$1")" = 2 ]
	grep -Fqx "saved ${line#start at }" "$1"
	# shellcheck disable=SC2086 # two words: step, weights X
	set -- ${line#start at step }
	(
		unset "${!SLURM_@}" PREEMPT_GRACE
		mkdir alone
		MASTER_ADDR=localhost MASTER_PORT=$((20000 + BASHPID % 10000)) preempt-run --store "$PWD/alone.db" --run alone \
			-n "$ranks" -- python3 "$ROOT/examples/ddp.py" alone "$1" >alone.out
	)
	grep -Fx "saved step $1 weights $3" alone.out
}

@test "examples/ddp.sbatch: four ranks under Slurm, preempted, requeued and resumed; the weights are the same to the bit" {
	slurm_start --grace 20 --kill-wait 10
	export PREEMPT_STORE=$PWD/s.db PREEMPT_MACHINES=1 PREEMPT_GRACE=0 # slurm_start forgets them
	job=$(sbatch --parsable --output=job.out "$ROOT/examples/ddp.sbatch" train.py "$PWD/ck" 200)
	until_true 180 saved_or_ended job.out
	scancel --signal=TERM "$job"
	slurm_wait_state "$job" COMPLETED 180
	job=
	ranks=4
	same_bits job.out
	grep -q '^done step 200 ' job.out
}

@test "examples/torchrun.sh: two ranks are preempted with it: 42; started again, they go on from the same bits" {
	local code=0
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
	"$ROOT/examples/torchrun.sh" train.py ck 200 >r.out 2>err.out 3>&- &
	job=$!
	until_true 180 saved_or_ended r.out
	kill -TERM "$job"
	wait "$job" || code=$?
	job=
	[ "$code" = 42 ]
	"$ROOT/examples/torchrun.sh" train.py ck 200 >>r.out 2>>err.out 3>&-
	ranks=2
	same_bits r.out
	grep -q '^done step 200 ' r.out
}
