#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The Slurm rig by itself, and the facts about Slurm that the tools rely on. Nothing of ours runs
# here. Needs root, slurm-wlm and munge.
# takes: 80
# asan: no (nothing of ours runs here)
# shellcheck disable=SC2016,SC2030,SC2031

bats_require_minimum_version 1.5.0
load ../support/slurm

rig=$BATS_TEST_DIRNAME/../support/slurm
recorder=$BATS_TEST_DIRNAME/../support/recorder

setup_file() {
	slurm_start --grace 15 --kill-wait 2
}

teardown_file() {
	slurm_stop
}

setup() {
	here=$SLURM_CONF
	record=$BATS_TEST_TMPDIR/record
	mkdir -p "$record"
	other=
}

teardown() {
	slurm_dump_logs
	until_true 60 rm -rf "$record" # recorders outside of Slurm's reach end when it is gone
	if [ -n "$other" ]; then
		[ -n "${BATS_TEST_COMPLETED:-}" ] || "$rig" logs "$other" >&2
		"$rig" stop "$other"
		export SLURM_CONF=$here
	fi
	slurm_cancel_all
}

# Another rig, for this test only.
other_rig() {
	local lines
	other=$(slurm_new_dir)
	lines=$("$rig" start "$other" "$@") || return
	eval "$lines"
}

# submit OPTION... -- COMMAND: on four nodes; the id is in $job, the output in $out.
submit() {
	local options=() command
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	command=$2
	out=$BATS_TEST_TMPDIR/out
	job=$(sbatch --parsable --nodes=4 --output="$out" --open-mode=append "${options[@]}" --wrap "$command")
}

# recorded TASK.ROLE SIGNAL: how often it got it.
recorded() { grep -c "^$2 " "$record/$1" || :; }
when() { awk -v name="$2" '$1 == name { print $2; exit }' "$record/$1"; }
all_recorded() { # ROLE SIGNAL: by this role of all four tasks
	local task
	for task in 0 1 2 3; do grep -qs "^$2 " "$record/$task.$1" || return 1; done
}
# All recorders were alive SECONDS after TIME, so whatever came before that is written down.
seen_alive_after() {
	local file
	for file in "$record"/?.*.alive; do
		awk -v until="$1" '$1 < until { late = 1 } END { exit late || NR == 0 }' "$file" || return 1
	done
}
four_files() { [ "$(cd "$record" && echo [0-3])" = "0 1 2 3" ]; }
later() { awk -v t="$1" -v d="$2" 'BEGIN { printf "%.3f", t + d }'; }
# Of $job, in seconds.
time_of() { date -d "$(scontrol show job -o "$job" | grep -o " $1=[^ ]*" | cut -d= -f2)" +%s; }
none_alive() { ! ps -o pid= -p "$1" >/dev/null; }
number_of_lines() { [ "$(grep -c "$2" "$1" 2>/dev/null)" = "$3" ]; }

# What is left of the rig in directory $1: living processes that name it, mounts, files, cgroups.
leftovers() {
	local file
	for file in /proc/[0-9]*; do
		case ${file#/proc/} in "$$" | "$BASHPID") continue ;; esac
		if grep -qzsF "$1/" "$file/environ" "$file/cmdline" ||
			[ -n "$(find "$file/fd" "$file/cwd" -lname "$1/*" -print -quit 2>/dev/null)" ]; then
			echo "process ${file#/proc/}: $(tr '\0' ' ' <"$file/cmdline" 2>/dev/null)"
		fi
	done
	grep -F "$1" /proc/mounts || :
	[ ! -e "$1" ] || echo "file $1"
}

@test "four nodes are idle, and four tasks know who they are" {
	[ "$(sinfo -h -N -p low -o '%N %t')" = $'n1 idle\nn2 idle\nn3 idle\nn4 idle' ]
	run -0 --separate-stderr srun -N4 -n4 sh -c \
		'echo $SLURM_PROCID of $SLURM_STEP_NUM_TASKS in $SLURM_STEP_ID on $SLURMD_NODENAME, ${SLURM_RESTART_COUNT-first}'
	[ "$(sort <<<"$output")" = "0 of 4 in 0 on n1, first
1 of 4 in 0 on n2, first
2 of 4 in 0 on n3, first
3 of 4 in 0 on n4, first" ]
}

@test "the batch shell has SLURM_PROCID=0, too, but no size of a step" {
	submit -- 'echo "${SLURM_PROCID-no} ${SLURM_STEP_ID-no} ${SLURM_STEP_NUM_TASKS-no} ${SLURM_NTASKS-no}"'
	slurm_wait_state "$job" COMPLETED 90
	echo "in the batch shell: $(cat "$out")"
	[[ $(cat "$out") == "0 no no "* ]]
}

@test "all sockets are on 127.0.0.1" {
	submit -- 'srun -n4 sleep 100'
	slurm_wait_state "$job" RUNNING 90
	until_true 90 pgrep -f '^slurmstepd: \['"$job"'\.0\]'
	local pid inode address checked=0
	for pid in $(awk '{ print $2 }' "$SLURM_RIG/daemons") $(pgrep -f "^slurmstepd: .$job") $(pgrep -x srun); do
		# Another rig's srun may be among them.
		[ "$(cat "/proc/$pid/comm")" != srun ] || grep -qzsxF "SLURM_CONF=$SLURM_CONF" "/proc/$pid/environ" || continue
		for inode in $(find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n'); do
			# State 0A is LISTEN; the address is in host byte order.
			address=$(awk -v i="$inode" '$4 == "0A" && $10 == i { print $2 }' "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6")
			[ -n "$address" ] || continue
			echo "$(cat "/proc/$pid/comm") listens on $address"
			[[ $address == 0100007F:* ]]
			checked=$((checked + 1))
		done
	done
	[ "$checked" -ge 7 ] # slurmctld, four slurmds, and srun's
}

@test "a preempted job: TERM to all tasks now, KILL after the grace, run again" {
	submit -- "echo \"run \${SLURM_RESTART_COUNT-first}\"; [ -n \"\$SLURM_RESTART_COUNT\" ] || srun -n4 '$recorder' '$record'"
	until_true 90 all_recorded session START
	slurm_preempt 1
	until_true 90 all_recorded task TERM
	local state end now task first last killed
	state=$(squeue -h -j "$job" -o %T)
	now=$(date +%s)
	end=$(time_of EndTime)
	first=$(when 0.task TERM)
	last=$(cat "$record"/?.task | awk '$1 == "TERM" { print $2 }' | sort -n | tail -n 1)
	echo "TERM to all four within $(later "$last" "-$first") s; state $state, ends in $((end - now)) s"
	# What tells preemption from scancel: still running, and a new end.
	[[ $state == RUNNING || $state == SIGNALING ]]
	[ "$((end - $(time_of PreemptTime)))" = 15 ]
	awk -v a="$first" -v b="$last" 'BEGIN { exit !(b - a < 30) }'

	# The end is looked at every now and then, so it comes late; and then KillWait comes.
	until_true 90 grep -qs 'DUE TO PREEMPTION' "$out"
	until_true 90 number_of_lines "$out" '^run ' 2
	for task in 0 1 2 3; do
		killed=$(cat "$record/$task.task.alive")
		echo "task $task: $(later "$killed" "-$first") s from TERM to KILL, TERM $(recorded $task.task TERM) times"
		awk -v k="$killed" -v t="$first" 'BEGIN { exit !(k - t > 14) }'
		[ "$(recorded $task.task TERM)" -ge 2 ] # once more before KILL
	done
	slurm_wait_state "$job" COMPLETED 90
	[ "$(grep '^run ' "$out")" = $'run first\nrun 1' ]
}

@test "a batch script that ends by itself during the grace is completed, not requeued" {
	submit -- "srun -n4 bash -c 'trap \"exit 0\" TERM; touch $record/\$SLURM_PROCID; sleep 100 & wait'; echo \"srun \$?\""
	until_true 90 four_files
	slurm_preempt
	until_true 90 number_of_lines "$out" '^srun' 1
	slurm_wait_state "$job" COMPLETED 90
	[[ $(scontrol show job "$job") == *Restarts=0* ]]
}

@test "scontrol requeue in the batch script during the grace: the same job runs again" {
	submit -- "echo \"run \${SLURM_RESTART_COUNT-first}\"
		[ -z \"\$SLURM_RESTART_COUNT\" ] || exit 0
		srun -n4 bash -c 'trap \"exit 42\" TERM; touch $record/\$SLURM_PROCID; sleep 100 & wait'
		echo \"srun \$?\"
		scontrol requeue \$SLURM_JOB_ID
		sleep 100"
	until_true 90 four_files
	slurm_preempt
	until_true 90 number_of_lines "$out" '^run 1' 1
	slurm_wait_state "$job" COMPLETED 90
	cat "$out"
	# Slurm leaves tasks that it sent TERM out of srun's answer.
	grep -E '^srun' "$out"
	[ "$(grep '^run ' "$out")" = $'run first\nrun 1' ]
}

# shape KIND ROLE...: these roles, and no others, get TERM at preemption.
shape() {
	local kind=$1 task role seen
	shift
	run "$rig" usable --proctrack "$kind"
	[ "$status" -eq 0 ] || skip "$output"
	other_rig --grace 30 --kill-wait 2 --proctrack "$kind"
	submit -- "srun -n4 '$recorder' '$record'"
	for role in task child group session; do until_true 90 all_recorded $role START; done
	slurm_preempt
	for role; do until_true 90 all_recorded "$role" TERM; done
	until_true 90 seen_alive_after "$(later "$(date +%s.%N)" 0.5)"
	for task in 0 1 2 3; do
		seen=
		for role in task child group session; do
			[ "$(recorded $task.$role TERM)" -eq 0 ] || seen+="$role "
		done
		echo "$kind: TERM to $seen"
		[ "$seen" = "$* " ]
	done
}

@test "proctrack/linuxproc: TERM reaches the whole tree, other groups and sessions as well" {
	shape linuxproc task child group session
}

@test "proctrack/pgid: TERM reaches the process group of the task" {
	shape pgid task child
}

@test "proctrack/cgroup: TERM reaches the direct child of slurmstepd only" {
	shape cgroup task
}

@test "two rigs at once, one of them in a UTS namespace, do not touch each other" {
	local first
	first=$(cat "$SLURM_RIG/daemons")
	other_rig --uts
	[ "$SLURM_CONF" = "$other/slurm.conf" ]
	[ "$(sinfo -h -N -p low -o '%N %t')" = $'n1 idle\nn2 idle\nn3 idle\nn4 idle' ]
	run -0 srun -N4 -n4 hostname
	[ "$output" = $'localhost\nlocalhost\nlocalhost\nlocalhost' ]
	[ "$(SLURM_CONF=$here squeue -h)" = "" ]
	"$rig" stop "$other"
	run -0 leftovers "$other"
	[ "$output" = "" ]
	export SLURM_CONF=$here
	run -0 srun -N4 -n4 true
	[ "$(cat "$SLURM_RIG/daemons")" = "$first" ]
}

@test "after stop nothing is left, also of jobs that do not want to end; again is no error" {
	other_rig --proctrack pgid
	submit -- "trap '' TERM; srun -n4 '$recorder' '$record'; sleep 100"
	srun -N1 sleep 100 & # waits in the queue
	local waiting=$!
	until_true 90 all_recorded session START
	run -0 "$rig" stop "$other"
	[ "$output" = "" ]
	until_true 60 none_alive "$waiting"
	run -0 leftovers "$other"
	echo "$output"
	[ "$output" = "" ]
	run -0 "$rig" stop "$other"
	run -0 "$rig" stop /tmp/slurm.never
}

@test "a start that fails leaves nothing" {
	other=$(slurm_new_dir)
	run -1 "$rig" start "$other" --set StateSaveLocation=/proc/nowhere
	[[ $output == *"slurm rig: did not start"*"/proc/nowhere"* ]]
	run -0 leftovers "$other"
	[ "$output" = "" ]
}

@test "a start killed half-way: stop removes what is present" {
	local starting code=0
	# Once more where we were held up, and it had finished before.
	until [ "$code" = 137 ]; do
		[ -z "$other" ] || "$rig" stop "$other"
		other=$(slurm_new_dir)
		"$rig" start "$other" >/dev/null 2>&1 3>&- &
		starting=$!
		until_true 60 grep -qs '^n2 ' "$other/daemons"
		kill -KILL "$starting" || :
		code=0
		wait "$starting" || code=$?
		[ "$code" = 0 ] || [ "$code" = 137 ]
	done
	run -0 "$rig" stop "$other"
	run -0 leftovers "$other"
	echo "$output"
	[ "$output" = "" ]
}

@test "wrong usage is refused with 2, and touches nothing" {
	local dir=$BATS_TEST_TMPDIR/full
	mkdir -p "$dir"
	touch "$dir/mine"
	for arguments in '' 'begin x' 'start' 'start --grace' "start $dir" "start $SLURM_RIG" "start /tmp/a --grace 3x" \
		"start /tmp/a --proctrack none" "start /tmp/a --set x" "start /tmp/a --set NodeName=x" "start /tmp/a --what" \
		"stop" "start /tmp/$(printf '%080d' 0)" "usable --grace 3"; do
		# shellcheck disable=SC2086
		run -2 "$rig" $arguments
		[[ $output == "slurm rig: "* ]]
	done
	run -0 "$rig" stop "$dir"
	[ -e "$dir/mine" ]
	run -0 srun -N4 -n4 true
}
