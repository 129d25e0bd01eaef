#!/bin/bash
# SPDX-License-Identifier: MIT
# The budgets of docs/design.md, section 8, measured here and now: each is a ratio or a limit, with peers in the same
# run. Nothing fails on a time: a figure over its budget says so. Ends in less than 10 minutes.
#
#   tests/bench/bench.sh                    also writes build/bench/bench.txt
#   tests/bench/bench.sh queue|scale        only that section
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
out=$here/build/plain
PATH=$here/bin:$PATH
repeat=$out/tests/bench/repeat
work=$(mktemp -d "${TMPDIR:-/tmp}/preempt-bench.XXXXXX")
# Where boards are in real life, too: in memory.
quiet=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "$work")/preempt-bench.XXXXXX")
unset "${!PREEMPT_@}" "${!SLURM_@}"
export PREEMPT_STORE=$work/store.db
# shellcheck source-path=SCRIPTDIR source=figures.sh
. "$here/tests/bench/figures.sh"

page() {
	[ ! -t 2 ] || printf '\r\033[K' >&2
	mkdir -p "$here/build/bench"
	python3 -B "$here/tests/bench/page.py" "$here/tests/bench/budgets" "$work/machine" "$work/figures" $whole |
		tee ${whole:+"$here/build/bench/bench.txt"}
}
# What was measured until an interruption is shown, too.
cleanup() {
	local job
	# make passes on a signal that its group has got already.
	trap '' INT TERM
	for job in $(jobs -p); do kill "$job" 2>/dev/null || :; done
	wait 2>/dev/null || :
	"$here/tests/support/mounts" stop "$work/mounts"
	[ ! -e "$work/figures" ] || page
	"$here/tests/support/forget-stores" "$work"
	rm -rf --one-file-system "$work" "$quiet"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# version COMMAND...: the first number of what it says; nothing where it is not there.
version() { "$@" 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)*' | head -n 1 || :; }
# machine: where this is measured, and what with.
machine() {
	local name
	echo "preempt-tools $(<"$here/VERSION"), $(date -u '+%Y-%m-%d %H:%M UTC')"
	echo "$(sed -n 's/^model name\t: //p' /proc/cpuinfo | head -n 1), $(nproc) processors," \
		"$(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), Linux $(uname -r)," \
		"$(stat -f -c %T "$work") at ${TMPDIR:-/tmp}"
	for name in bash python3 sqlite3 etcd; do
		! has "$name" || printf '%s %s, ' "$name" "$(version "$name" --version)"
	done
	echo "gcc $(version gcc --version)"
}

"$here/tests/support/packages" bench >&2 || :
machine >"$work/machine"
whole=''
case ${1:-} in
'') whole=whole ;;
queue | scale)
	# shellcheck source-path=SCRIPTDIR source=queue.sh source=scale.sh
	. "$here/tests/bench/$1.sh"
	exit
	;;
*)
	echo "bench.sh: there is no section $1" >&2
	exit 2
	;;
esac

# shellcheck source-path=SCRIPTDIR source=step.sh
. "$here/tests/bench/step.sh"

title "preempt-claim as a whole process, local disk (milliseconds, median)"
count=40
for ((i = 0; i < count; i++)); do
	preempt-store join --run "claim$i" --task 0 --tasks 1 --no-board --pid $$ >/dev/null
done
claim=$("$repeat" $count preempt-claim -q --run "claim{}")
bare=$("$repeat" $count "$out/tests/bench/bare_put" "$work/bare.db" "key{}" x)
row preempt-claim "$claim"
row "bare C program, one synced SQLite transaction" "$bare"
budget claim-bare "$(ratio "$claim" "$bare")"
if has sqlite3; then
	sqlite3 "$work/shell.db" 'create table keys(key text primary key, value text)'
	peer=$("$repeat" $count sqlite3 "$work/shell.db" "insert or ignore into keys values('key{}', 'x')")
	row "sqlite3 shell" "$peer"
	budget claim-sqlite3 "$(ratio "$peer" "$claim")"
else
	missing claim-sqlite3 "sqlite3 is not installed"
fi
if has etcd && has etcdctl; then
	start_etcd
	peer=$("$repeat" $count etcdctl --endpoints "$etcd_at" put "key{}" x)
	row "etcdctl put" "$peer"
	budget claim-etcdctl "$(ratio "$peer" "$claim")"
	for ((i = 0; i < count; i++)); do
		preempt-store join --store "etcd://$etcd_at/bench" --run "claim$i" --task 0 --tasks 1 --no-board \
			--pid $$ >/dev/null
	done
	claim=$("$repeat" $count preempt-claim -q --store "etcd://$etcd_at/bench" --run "claim{}")
	row "preempt-claim on this etcd" "$claim"
	budget etcd-claim "$(ratio "$peer" "$claim")"
	kill "$etcd"
else
	missing claim-etcdctl "etcd is not installed"
	missing etcd-claim "etcd is not installed"
fi

title "256 processes claiming at once"
preempt-store join --run crowd --task 0 --tasks 1 --no-board --pid $$ >/dev/null
total=$("$repeat" -256 sh -c "preempt-claim -q --run crowd >/dev/null 2>&1 && echo won >>$work/winners; :")
budget claims-winners "$(wc -l <"$work/winners")"
row "total, milliseconds" "$total"
budget claims-total "$(calc "$total / 256 / $bare")"

# cpu_of NAME PID...: microseconds that their threads of this name have had; "" is all.
cpu_of() {
	local name=$1 pid thread
	shift
	for pid; do
		for thread in "/proc/$pid"/task/*; do
			if [ -z "$name" ] || [ "$(<"$thread/comm")" = "$name" ]; then cat "$thread/schedstat"; fi
		done
	done | awk '{ s += $1 } END { printf "%.0f", s / 1000 }'
}

title "256 agents that beat every second (percent of a core, of all)"
agents=() loads=()
for ((i = 0; i < 256; i++)); do
	preempt-run -q --run hearts --period 1s --join-timeout 2m --task $i --tasks 256 -- sleep 1000 >/dev/null 2>&1 &
	agents+=($!)
done
all_joined() { [ "$(preempt-store list run/hearts/000001/TASK/ | wc -l)" = 256 ]; }
await all_joined
sleep 3
before=$(cpu_of "" "${agents[@]}")
sleep 10
row "the agents with all they do" "$(calc "($(cpu_of "" "${agents[@]}") - $before) / 1e5")"
for i in 1 2 3 4; do
	(while :; do :; done) &
	loads+=($!)
done
before=$(cpu_of pulse "${agents[@]}")
sleep 10
budget beats-processor "$(calc "($(cpu_of pulse "${agents[@]}") - $before) / 1e5")"
kill "${loads[@]}"
budget beats-dead "$(preempt-store list run/hearts/000001/DEAD/ | wc -l)"
# (They were started in the background, where bash has INT ignored.)
{
	kill -KILL "${agents[@]}"
	wait "${agents[@]}" "${loads[@]}" || :
} 2>/dev/null # bash tells of each

title "an idle agent"
preempt-run -q --run idle -- sleep 100 &
agent=$!
sleep 2 # past its start
# Before the first safety reading, 15 s after it. Each second it reads the store's counter of changes, 4 bytes, which shows
# that the trace works.
! has strace ||
	timeout -s INT 8 strace -f -p $agent -o "$work/traced" -e trace=pread64,fcntl 2>/dev/null || :
if grep -qs pread64 "$work/traced"; then
	budget idle-asks "$(grep -cE 'SETLK|pread64.* = [0-9]{4,}$' "$work/traced" || :)"
else
	missing idle-asks "strace is not installed, or may not trace"
fi
before=$(cpu_of "" $agent)
sleep 10
budget idle-processor "$(calc "($(cpu_of "" $agent) - $before) / 1e5" %.3f)"
budget idle-memory "$(awk '/VmRSS/ { printf "%.1f", $2 / 1024 }' /proc/$agent/status)"
kill -KILL $agent
wait $agent 2>/dev/null || :

title "ckpt-rotate with many (seconds)"
d=$(ckpt-rotate begin "$work/one" 10000)
echo x >"$d/model"
ckpt-rotate commit "$work/one" 10000 >/dev/null
mkdir "$work/ten"
manifest=$(<"$work/one/step-00010000/.ckpt-manifest.json")
seq -f "$work/ten/step-%08g" 10000 | xargs mkdir
for ((step = 1; step <= 10000; step++)); do
	printf -v d '%s/step-%08d' "$work/ten" $step
	echo x >"$d/model"
	echo "${manifest/'"step": 10000'/"\"step\": $step"}" >"$d/.ckpt-manifest.json"
done
# Best of three: what it costs, not who else is on this machine.
for i in 1 2 3; do
	seconds ckpt-rotate list "$work/ten" >>"$work/listed"
done
pruned=$(seconds ckpt-rotate prune -q --keep-last 1 "$work/ten")
budget list "$(least <"$work/listed")"
budget prune "$pruned"
rm -r "$work/one" "$work/ten"
# shellcheck source-path=SCRIPTDIR source=queue.sh
. "$here/tests/bench/queue.sh"

# What the section alone measures three times, once.
TIMES=${TIMES:-1} ON_ETCD=${ON_ETCD-1250}
# shellcheck source-path=SCRIPTDIR source=scale.sh
. "$here/tests/bench/scale.sh"

title "a program that speaks no HTTP, and the build (seconds)"
budget libcurl "$(ldd "$here"/bin/* 2>/dev/null | grep -c libcurl || :)"
budget make "$(seconds make -C "$here" -s -B -j2 OUT="$work/build" BIN="$work/bin" all)"
