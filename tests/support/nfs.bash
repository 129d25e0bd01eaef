# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For bats files that need NFS, with a server and two clients in virtual machines (tests/support/nfs):
#
#   load ../support/nfs
#   setup_file()    { nfs_start; }         skips the file if no rig can run here
#   teardown_file() { nfs_stop; }
#   teardown()      { nfs_dump_logs; }     prints logs, only after a failure
#
# The project's programs and those of its tests are in the machines' /bin. $NFS is the rig's
# directory. Tests of one file share the machines, so each leaves all of them running.

beside_pids=() beside_files=()
nfs_rig=$(realpath "$(dirname "${BASH_SOURCE[0]}")/nfs")
# shellcheck disable=SC2034 # files that load this use it
nfs_versions=(v42 v41 v40 v3 v3nolock)

# nfs_start [PROGRAM]...: start the machines, with these programs in them, too.
nfs_start() {
	local why root out
	root=$(realpath "${nfs_rig%/*}/../..")
	out=${OUT:-$root/build/plain}
	"${nfs_rig%/*}/packages" nfs || skip "cannot install what the rig needs"
	why=$("$nfs_rig" usable 2>&1) || skip "$why"
	# While you write a test: NFS_RIG names a rig that already runs, and is left running.
	[ -z "${NFS_RIG:-}" ] || { export NFS=$NFS_RIG && return; }
	# The name of a socket must be short: do not use bats' deep directories.
	NFS=$(mktemp -d "${TMPDIR:-/tmp}/nfs.XXXXXX")
	export NFS
	"$nfs_rig" up "$NFS" --owner $$ "${BIN:-$root/bin}"/* "$out"/tests/support/{hold_store,clock_offset} \
		"$out/unit/store" "$out/examples/train" "$@"
}
nfs_stop() {
	[ -z "${NFS:-}" ] || [ -n "${NFS_RIG:-}" ] || "$nfs_rig" down "$NFS"
}
nfs_dump_logs() {
	[ -z "${BATS_TEST_COMPLETED:-}" ] && [ -d "${NFS:-/nonexistent}" ] || return 0
	"$nfs_rig" logs "$NFS" >&2
}

# on MACHINE COMMAND: run COMMAND there; prints its output and returns its exit code.
on() { "$nfs_rig" run "$NFS" "$1" "$2"; }

# beside NAME MACHINE COMMAND: the same in the background; in the test's directory, its output goes to NAME and
# its exit code to NAME.code. join_all waits for all these commands, and fails unless all end with 0.
beside() {
	local file=$BATS_TEST_TMPDIR/$1
	shift
	(
		exec >"$file" 2>&1 3>&- </dev/null
		code=0
		on "$@" || code=$?
		echo $code >"$file.code"
	) &
	beside_pids+=($!) beside_files+=("$file")
}
join_all() {
	local file bad=0
	wait_beside
	for file in "${beside_files[@]}"; do
		[ "$(cat "$file.code")" = 0 ] || bad=1
		[ "$(cat "$file.code")" = 0 ] || echo "${file##*/} ended with $(cat "$file.code"): $(tail -n 20 "$file")"
	done
	beside_files=()
	return $bad
}
# Wait for all these commands, whatever their exit codes are.
wait_beside() {
	wait "${beside_pids[@]}"
	beside_pids=()
}

# The test has checked the exit codes: join_all must not.
forget_beside() { beside_files=(); }

# For teardown: after a failed test, end its processes here and in the machines, and start machines that are down.
end_beside() {
	local pid machine
	for pid in "${beside_pids[@]}"; do
		# shellcheck disable=SC2046 # several numbers
		kill "$pid" $(cat "/proc/$pid/task/$pid/children") || :
	done 2>/dev/null
	beside_pids=() beside_files=()
	[ -z "${BATS_TEST_COMPLETED:-}" ] && [ -d "${NFS:-/nonexistent}" ] || return 0
	for machine in s c1 c2; do
		"$nfs_rig" continue "$NFS" $machine || "$nfs_rig" boot "$NFS" $machine || :
	done
	for machine in c1 c2; do
		"$nfs_rig" net "$NFS" $machine on || :
		# shellcheck disable=SC2016 # the machine expands it
		on $machine 'touch /tmp/stop; kill -9 $(pidof hold_store preempt-run preempt-store store_history)' || :
	done
}

# read_clocks FILE: write the clock offset of each client to FILE, for add_clocks.
read_clocks() {
	local client
	for client in c1 c2; do "$nfs_rig" clock "$NFS" $client; done >"$1"
}
# add_clocks BEFORE AFTER N LOG...: put a "clock" line (tests/history/operations.h) behind the first line of
# logs that client N wrote between two read_clocks. The client's clock has a constant rate, which is not known.
add_clocks() {
	local offset0 bound0 offset1 bound1 apart bound
	read -r offset0 bound0 < <(sed -n "$3p" "$1")
	read -r offset1 bound1 < <(sed -n "$3p" "$2")
	apart=$((offset1 > offset0 ? offset1 - offset0 : offset0 - offset1))
	bound=$((apart / 2 + (bound0 > bound1 ? bound0 : bound1)))
	# Offsets are in nanoseconds, the line is in microseconds.
	sed -i "1a clock $((-(offset0 + offset1) / 2000)) $((bound / 1000 + 2))" "${@:4}"
}
