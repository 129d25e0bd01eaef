# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set, or used, by bats and by the tests
# What the tests of preempt-store doctor share; load programs, too. $MOUNTS: see support/mounts.bash.

doctor_setup() {
	programs
	unset PREEMPT_STORE
	dir=$PWD/dir
	mkdir -m 700 "$dir"
	job='' bound='' tree=()
}

doctor_teardown() {
	[ -z "$job" ] || kill -9 "$job" 2>/dev/null || :
	end_tree
	[ -z "$bound" ] || umount --lazy "$bound" || :
	"$REPO/tests/support/forget-stores" "$BATS_TEST_TMPDIR"
	# Useful for GlusterFS only, and long.
	[[ ${a:-} != */gluster/* ]] || mounts_dump_logs
}

# pair KIND: $a and $b are one directory of this test's own, through its two mounts.
pair() {
	local name=t$BATS_TEST_NUMBER
	[ -d "$MOUNTS/$1/a/$name" ] || mkdir -m 700 "$MOUNTS/$1/a/$name"
	a=$MOUNTS/$1/a/$name b=$MOUNTS/$1/b/$name
}

# bind DIRECTORY OPTION...: a bindfs of this test's own, $job, on $bound.
bind() {
	bound=$PWD/bound
	mkdir -m 700 "$bound"
	setpriv --pdeathsig KILL bindfs -f "${@:2}" "$1" "$bound" 3>&- &
	job=$!
	eventually mountpoint -q "$bound"
}

# value PATH...: of the JSON object in $output.
value() {
	python3 -c 'import json, sys
value = json.loads(sys.argv[1])
for name in sys.argv[2:]: value = value[int(name) if isinstance(value, list) else name]
print(json.dumps(value).strip("\""))' "$output" "$@"
}

empty() {
	[ -z "$(ls -A "$1")" ] || { ls -lA "$1"; return 1; }
}

has() { compgen -G "$1" >/dev/null; }

# As on another node: in the background, what it says in $BATS_TEST_TMPDIR/NAME.
node() {
	local name=$1
	shift
	(
		code=0
		"$@" >"$name" 2>"$name.err" || code=$?
		echo "$code" >"$name.code"
	) 3>&- &
	job=$!
}
said() { cat "$1" "$1.err"; }

# stop_tree PID: it and all below it, whose numbers are in $tree. The leaves first: a stopped process
# group that loses its parent is continued by the kernel.
stop_tree() {
	local pid
	local -a more=("$1")
	tree=("$1")
	kill -STOP "$1" || :
	while [ "${#more[@]}" -gt 0 ]; do
		mapfile -t more < <(for pid in "${more[@]}"; do pgrep -P "$pid" || :; done)
		[ "${#more[@]}" = 0 ] || kill -STOP "${more[@]}" || :
		tree=("${more[@]}" "${tree[@]}")
	done
}

# They go on, or are killed at once, as on a machine that loses power.
continue_tree() {
	kill -CONT "${tree[@]}" 2>/dev/null || :
	tree=()
}
end_tree() {
	[ "${#tree[@]}" = 0 ] || kill -KILL "${tree[@]}" 2>/dev/null || :
	tree=()
}

# in_the_middle FILE COMMAND...: COMMAND starts a doctor, $pid, which is stopped with all of its own
# when FILE is in its scratch directory. Where it was over before we came it is started again.
in_the_middle() {
	local file=$1 try
	shift
	for ((try = 0; try < 10; try++)); do
		"$@"
		eventually has_or_over "$file" "$pid"
		stop_tree "$pid"
		! has "$file" || return 0
		continue_tree
		wait "$pid" || :
	done
	echo "always over before it was seen"
	false
}
has_or_over() { has "$1" || ! [[ $(ps -o stat= -p "$2") == [^Z]* ]]; }

# swept DIRECTORY NAMES: a doctor finds it safe, and then only these names are there.
swept() {
	answers 0 preempt-store doctor "$1" --quick --timeout 60s
	[ "$(ls -A "$1")" = "$2" ]
}
