#!/bin/bash
# SPDX-License-Identifier: MIT
# The budgets of docs/design.md, section 8, measured here and now: each row is a ratio or a limit, with peers in the
# same run. Nothing fails on a time; a row over its budget says so. All of it, in less than 10 minutes, also as a page:
# build/bench/bench.txt and bench.svg.
#
#   tests/bench/bench.sh [queue|scale]      only that section, and no page
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
out=$here/build/plain
PATH=$here/bin:$PATH
repeat=$out/tests/bench/repeat
work=$(mktemp -d "${TMPDIR:-/tmp}/preempt-bench.XXXXXX")
unset "${!PREEMPT_@}" "${!SLURM_@}"
# What was measured, for the page: a line each, "title WHAT" or "row WHAT FIGURE BUDGET ok|OVER", with tabs.
rows=$work/rows
cleanup() {
	local job
	for job in $(jobs -p); do kill "$job" 2>/dev/null || :; done
	wait 2>/dev/null || :
	"$here/tests/rig/mounts" stop "$work/mounts"
	"$here/tests/rig/forget-stores" "$work"
	rm -rf --one-file-system "$work" ${quiet:+"$quiet"}
}
trap cleanup EXIT
export PREEMPT_STORE=$work/store.db

# row WHAT FIGURE BUDGET [verdict: 1 within, 0 over]. BUDGET is a number, "at least N", or words.
row() {
	local verdict=OVER
	[ "${4:-1}" != 1 ] || verdict=ok
	printf 'row\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$verdict" >>"$rows"
	printf '%-56s %14s   %-28s %s\n' "$1" "$2" "$3" "${verdict#ok}"
}
title() {
	printf 'title\t%s\n' "$*" >>"$rows"
	printf '\n%s\n' "$*"
}
# unmeasured WHAT WHY
unmeasured() { row "$1" - "not measured: $2"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { print a <= b ? 1 : 0 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
has() { command -v "$1" >/dev/null; }
# One member at 127.0.0.1:16379; its process is $etcd.
start_etcd() {
	etcd --data-dir "$work/etcd" --listen-client-urls http://127.0.0.1:16379 \
		--advertise-client-urls http://127.0.0.1:16379 --listen-peer-urls http://127.0.0.1:16380 >/dev/null 2>&1 &
	etcd=$!
	until etcdctl --endpoints 127.0.0.1:16379 endpoint health >/dev/null 2>&1; do sleep 0.1; done
}
# median: of the numbers on stdin.
median() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# version COMMAND...: the first number of what it says; nothing where it is not there.
version() { "$@" 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1 || :; }
# machine: where this is measured, and what with.
machine() {
	local name
	echo "preempt-tools $(<"$here/VERSION"), $(date -u '+%Y-%m-%d %H:%M UTC')"
	echo "$(sed -n 's/^model name\t: //p' /proc/cpuinfo | head -n 1), $(nproc) processors," \
		"$(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), Linux $(uname -r)," \
		"$(stat -f -c %T "$work") at ${TMPDIR:-/tmp}"
	for name in bash python3 sqlite3 etcd redis-server parallel; do
		has "$name" && printf '%s %s, ' "$name" "$(version "$name" --version)"
	done
	echo "gcc $(version gcc --version)"
}

heading() { printf '%-56s %14s   %s\n' "what" "measured" "budget"; }

case ${1:-} in
'')
	mkdir -p "$here/build/bench"
	exec > >(tee "$here/build/bench/bench.txt")
	machine | tee "$work/machine"
	echo
	heading
	;;
queue | scale)
	heading
	# shellcheck source-path=SCRIPTDIR source=queue.sh source=scale.sh
	. "$here/tests/bench/$1.sh"
	exit
	;;
*)
	echo "bench.sh: there is no section $1" >&2
	exit 2
	;;
esac

title "preempt_step when nothing is wrong (microseconds)"
declare -A budgets=([bash]=25 [Python]=5 [C]=2)
while read -r client figure _; do
	budget=${budgets[$client]:-}
	row "$client" "$figure" "$budget" "$(below "$figure" "${budget:-1e9}")"
done < <("$here/tests/bench/step.sh" 20000)

title "preempt-claim as a whole process, local disk (milliseconds, median)"
count=40
for ((i = 0; i < count; i++)); do
	preempt-store join --run "claim$i" --task 0 --tasks 1 --no-board --pid $$ >/dev/null
done
claim=$("$repeat" $count preempt-claim -q --run "claim{}")
bare=$("$repeat" $count "$out/tests/bench/bare_put" "$work/bare.db" "key{}" x)
row "preempt-claim" "$claim" ""
row "bare C program, one synced SQLite transaction" "$bare" ""
row "  ratio" "$(ratio "$claim" "$bare")" "2" "$(below "$claim" "$(awk -v b="$bare" 'BEGIN { print 2 * b }')")"
put=$("$repeat" $count preempt-store put --if-absent "bench{}" x)
row "preempt-store put --if-absent" "$put" ""
if has sqlite3; then
	sqlite3 "$work/shell.db" 'create table keys(key text primary key, value text)'
	peer=$("$repeat" $count sqlite3 "$work/shell.db" "insert or ignore into keys values('key{}', 'x')")
	row "sqlite3 shell" "$peer" "slower than preempt-claim" "$(below "$claim" "$peer")"
fi
peer=$("$repeat" $count flock "$work/lock" sh -c "[ -e $work/flock{} ] || echo x >$work/flock{}")
row "flock + sh (not synced)" "$peer" ""
if has redis-cli && has redis-server; then
	redis-server --port 16399 --bind 127.0.0.1 --save '' --dir "$work" >/dev/null 2>&1 &
	until redis-cli -p 16399 ping >/dev/null 2>&1; do sleep 0.05; done
	peer=$("$repeat" $count redis-cli -p 16399 set "key{}" x nx)
	row "redis-cli set nx (not synced)" "$peer" ""
	kill $!
fi
if has etcd && has etcdctl; then
	start_etcd
	peer=$("$repeat" $count etcdctl --endpoints 127.0.0.1:16379 put "key{}" x)
	row "etcdctl put" "$peer" "slower than preempt-claim" "$(below "$claim" "$peer")"
	for ((i = 0; i < count; i++)); do
		preempt-store join --store etcd://127.0.0.1:16379/bench --run "claim$i" --task 0 --tasks 1 --no-board \
			--pid $$ >/dev/null
	done
	claim=$("$repeat" $count preempt-claim -q --store etcd://127.0.0.1:16379/bench --run "claim{}")
	row "preempt-claim on this etcd" "$claim" ""
	row "  etcdctl put / it" "$(ratio "$peer" "$claim")" "at least 3" \
		"$(below "$(awk -v c="$claim" 'BEGIN { print 3 * c }')" "$peer")"
	kill "$etcd"
fi

title "256 processes claiming at once"
preempt-store join --run crowd --task 0 --tasks 1 --no-board --pid $$ >/dev/null
total=$("$repeat" -256 sh -c "preempt-claim -q --run crowd >/dev/null 2>&1 && echo won >>$work/winners; :")
row "winners" "$(wc -l <"$work/winners")" "1" "$([ "$(wc -l <"$work/winners")" = 1 ] && echo 1 || echo 0)"
row "total (milliseconds)" "$total" "1.5 x 256 x one transaction" \
	"$(below "$total" "$(awk -v b="$bare" 'BEGIN { print 1.5 * 256 * b }')")"
row "  in transactions of the bare program, each" "$(awk -v t="$total" -v b="$bare" 'BEGIN { printf "%.2f", t / 256 / b }')" "1.5"

title "one uncontended transaction within a process, local disk (milliseconds, median, in turns)"
declare -A took
mkdir -m 700 "$work/recipe"
while read -r name microseconds; do
	took[$name]=$(ratio "$microseconds" 1000)
done < <("$out/tests/bench/recipe" "$work/recipe" 200)
row "bare SQLite, opened for it" "${took[bare]}" ""
for mode in fcntl link; do
	figure=$(ratio "${took[$mode]}" "${took[bare]}")
	budget=1.15
	[ $mode = fcntl ] || budget=''
	row "  a store with lock=$mode, ratio" "$figure" "$budget" "$(below "$figure" "${budget:-1e9}")"
done

title "contenders at one store, local disk, one put each (seconds, median of three, in turns)"
# figure_of NAME LINE: of the line that contend prints.
figure_of() { sed -n "s/.*\b$1 \([^ ]*\).*/\1/p" <<<"$2"; }
for count in 8 64 256; do
	unanswered=0
	rm -f "$work/ours" "$work/plain" "$work/spread"
	for ((i = 0; i < 3; i++)); do
		line=$("$out/tests/rig/contend" -p $count -k 1 "$work/contend$count-$i.db")
		figure_of seconds "$line" >>"$work/ours"
		ratio "$(figure_of max_ms "$line")" "$(figure_of median_ms "$line")" >>"$work/spread"
		echo >>"$work/spread"
		unanswered=$((unanswered + count - $(figure_of acknowledged "$line")))
		line=$("$out/tests/rig/contend" --plain -p $count -k 1 "$work/plain$count-$i.db" || :)
		figure_of seconds "$line" >>"$work/plain"
	done
	ours=$(median <"$work/ours") plain=$(median <"$work/plain")
	figure=$(ratio "$plain" "$ours")
	row "$count processes" "$ours" ""
	row "  plain SQLite with a busy timeout" "$plain" ""
	if [ $count = 256 ]; then
		row "  ratio" "$figure" "at least 3" "$(below 3 "$figure")"
	else
		row "  ratio" "$figure" ""
	fi
	row "  not acknowledged" "$unanswered" "0" "$(below "$unanswered" 0)"
	figure=$(median <"$work/spread")
	row "  longest wait / median" "$figure" "3" "$(below "$figure" 3)"
done

# hold_after_notice STORE AGENTS COPIES: milliseconds from a TERM to one agent to hold on all boards.
# {} in STORE is a for one half of the agents, b for the other.
hold_after_notice() {
	local run=notice$RANDOM boards agents=() i held t0 t1 side=(a b)
	boards=$(mktemp -d "$work/boards.XXXXXX")
	mkdir "$boards/train"
	for ((i = 0; i < $2; i++)); do
		preempt-run -q --store "${1//\{\}/${side[i % 2]}}" --run $run --task $i --tasks "$2" -n "$3" --board "$boards" --save-timeout 5s -- \
			"$out/tests/trainers/count" --dir "$boards/train" --steps 1000000 --step-ms 10 >/dev/null 2>&1 &
		agents+=($!)
	done
	until [ "$(find "$boards" -path '*board*/step' -size +0 | wc -l)" = $(($2 * $3)) ]; do sleep 0.05; done
	t0=${EPOCHREALTIME/./}
	kill -TERM "${agents[0]}"
	held=0
	while [ "$held" -lt $(($2 * $3)) ] && kill -0 "${agents[0]}" 2>/dev/null; do
		held=$(find "$boards" -name hold | wc -l)
	done
	t1=${EPOCHREALTIME/./}
	wait "${agents[@]}" || :
	ratio $((t1 - t0)) 1000
}

title "notice on one task to hold on all, this machine (milliseconds)"
figure=$(hold_after_notice "$PREEMPT_STORE" 1 64)
row "one agent with 64 tasks" "$figure" "100" "$(below "$figure" 100)"
figure=$(hold_after_notice "$PREEMPT_STORE" 64 1)
row "64 agents" "$figure" "100" "$(below "$figure" 100)"
figure=$(hold_after_notice "$work/polled.db?assume=shared" 4 1)
row "4 agents, a store on an assumed shared filesystem" "$figure" "1500" "$(below "$figure" 1500)"
for kind in gluster bindfs; do
	if ! why=$("$here/tests/rig/mounts" usable $kind 2>&1); then
		unmeasured "4 agents on two $kind mounts" "$why"
		continue
	fi
	"$here/tests/rig/mounts" start "$work/mounts" --owner $$ $kind
	worst=0
	for ((i = 0; i < 5; i++)); do
		figure=$(hold_after_notice "$work/mounts/$kind/{}/store.db" 4 1)
		[ "$(below "$figure" "$worst")" = 1 ] || worst=$figure
	done
	row "4 agents on two $kind mounts, the longest of five" "$worst" "1500" "$(below "$worst" 1500)"
	"$here/tests/rig/mounts" stop "$work/mounts"
done

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
percent_of() { awk -v u="$1" -v s="$2" 'BEGIN { printf "%.2f", u / s / 1e4 }'; }

title "256 agents that beat every second (percent of a core, of all)"
agents=() loads=()
for ((i = 0; i < 256; i++)); do
	preempt-run -q --run hearts --period 1s --join-timeout 2m --task $i --tasks 256 -- sleep 1000 >/dev/null 2>&1 &
	agents+=($!)
done
until [ "$(preempt-store list run/hearts/000001/TASK/ | wc -l)" = 256 ]; do sleep 0.2; done
sleep 3
before=$(cpu_of "" "${agents[@]}")
sleep 20
percent=$(percent_of $(($(cpu_of "" "${agents[@]}") - before)) 20)
row "the agents with all they do" "$percent" ""
for i in 1 2 3 4; do
	(while :; do :; done) &
	loads+=($!)
done
before=$(cpu_of pulse "${agents[@]}")
sleep 20
percent=$(percent_of $(($(cpu_of pulse "${agents[@]}") - before)) 20)
kill "${loads[@]}"
row "their heartbeats, for 20 s under load" "$percent" "5" "$(below "$percent" 5)"
count=$(preempt-store list run/hearts/000001/DEAD/ | wc -l)
row "called dead in that time" "$count" "0" "$(below "$count" 0)"
kill -INT "${agents[@]}"
wait "${agents[@]}" "${loads[@]}" || :

title "an idle agent"
preempt-run -q --run idle -- sleep 100 &
agent=$!
sleep 2 # past its start
before=$(awk '{ print $14 + $15 }' /proc/$agent/stat)
sleep 20
after=$(awk '{ print $14 + $15 }' /proc/$agent/stat)
percent=$(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.3f", t / hz / 20 * 100 }')
row "processor, percent of a core" "$percent" "0.1" "$(below "$percent" 0.1)"
rss=$(awk '/VmRSS/ { printf "%.1f", $2 / 1024 }' /proc/$agent/status)
row "memory, MiB" "$rss" "8" "$(below "$rss" 8)"
kill -INT $agent
wait $agent 2>/dev/null || :

# Five rounds, each after its peer in the same round.
seconds() { local from=${EPOCHREALTIME/./}; "$@" >/dev/null; ratio $((${EPOCHREALTIME/./} - from)) 1000000; echo; }
bare=$out/tests/bench/bare_files
bytes_at_once=$((512 << 20))

# out_of_memory DIR: the next read of its files comes from the disk.
out_of_memory() {
	local file
	sync "$1"/*
	for file in "$1"/*; do dd if="$file" iflag=nocache count=0 status=none; done
}

title "ckpt-rotate verify, from the disk (seconds, median of five rounds)"
d=$(ckpt-rotate begin "$work/verify" 1)
for i in 1 2; do head -c $((bytes_at_once / 2)) /dev/urandom >"$d/$i"; done
ckpt-rotate commit "$work/verify" 1 >/dev/null
d=$work/verify/step-00000001
for i in 1 2 3 4 5; do
	out_of_memory "$d"
	"$bare" read "$d" >>"$work/read"
	"$bare" hash "$d" >>"$work/hash"
	out_of_memory "$d"
	seconds ckpt-rotate verify "$work/verify" >>"$work/verified"
done
disk=$(median <"$work/read") hash=$(median <"$work/hash") verified=$(median <"$work/verified")
slower=$(printf '%s\n' "$disk" "$hash" | sort -g | tail -n 1)
row "512 MiB in two files: only reading" "$disk" ""
row "  only the checksum" "$hash" ""
row "  verify" "$verified" ""
row "  speed, in those of the slower of the two" "$(ratio "$slower" "$verified")" "at least 0.8" \
	"$(below 0.8 "$(ratio "$slower" "$verified")")"
rm -r "$work/verify"

title "ckpt-rotate with many (seconds)"
d=$(ckpt-rotate begin "$work/one" 10000)
echo x >"$d/model"
ckpt-rotate commit "$work/one" 10000 >/dev/null
mkdir "$work/ten"
manifest=$(<"$work/one/step-00010000/.ckpt-manifest.json")
for ((step = 1; step <= 10000; step++)); do
	printf -v d '%s/step-%08d' "$work/ten" $step
	mkdir "$d"
	echo x >"$d/model"
	echo "${manifest/'"step": 10000'/"\"step\": $step"}" >"$d/.ckpt-manifest.json"
done
# Best of three: what it costs, not who else is on this machine.
for i in 1 2 3; do
	seconds ckpt-rotate list "$work/ten" >>"$work/listed"
	for peer in rm prune; do
		cp -r "$work/ten" "$work/peer"
		sync
		if [ $peer = rm ]; then
			seconds rm -r "$work/peer" >>"$work/removed"
		else
			seconds ckpt-rotate prune -q --keep-last 1 "$work/peer" >>"$work/pruned"
			rm -r "$work/peer"
		fi
	done
done
figure=$(sort -g "$work/listed" | head -n 1)
row "list of 10,000" "$figure" "0.5" "$(below "$figure" 0.5)"
peer=$(sort -g "$work/removed" | head -n 1) figure=$(sort -g "$work/pruned" | head -n 1)
row "rm -r of 10,000" "$peer" ""
row "prune of 10,000" "$figure" "2" "$(below "$figure" 2)"
row "  ratio" "$(ratio "$figure" "$peer")" ""
rm -r "$work/one" "$work/ten"
for i in 1 2 3 4 5; do
	d=$(ckpt-rotate begin "$work/many" $i)
	mkdir "$work/peer"
	for ((k = 0; k < 10000; k++)); do printf '%100d' $k >"$d/$k"; done
	for ((k = 0; k < 10000; k++)); do printf '%100d' $k >"$work/peer/$k"; done
	"$bare" sync "$work/peer" >>"$work/synced"
	seconds ckpt-rotate commit "$work/many" $i >>"$work/committed"
	rm -r "$work/peer"
done
peer=$(median <"$work/synced") figure=$(median <"$work/committed")
row "10,000 files: only their fsyncs" "$peer" ""
row "  commit" "$figure" ""
row "  ratio" "$(ratio "$figure" "$peer")" "1.3" "$(below "$(ratio "$figure" "$peer")" 1.3)"
rm -r "$work/many"

# shellcheck source-path=SCRIPTDIR source=queue.sh
. "$here/tests/bench/queue.sh"

# What a section of its own measures three times, and with more jobs, once.
AGENTS=${AGENTS-64 128 256} TIMES=${TIMES:-1} ON_ETCD=${ON_ETCD-12}
# shellcheck source-path=SCRIPTDIR source=scale.sh
. "$here/tests/bench/scale.sh"

title "a program that speaks no HTTP"
row "loads libcurl" "$(ldd "$here"/bin/* | grep -c libcurl || :)" "0" "$(ldd "$here"/bin/* | grep -q libcurl && echo 0 || echo 1)"

title "build"
t0=${EPOCHREALTIME/./}
make -C "$here" -s -B -j2 OUT="$work/build" BIN="$work/bin" all >/dev/null
t1=${EPOCHREALTIME/./}
row "make from scratch, two jobs (seconds)" "$(ratio $((t1 - t0)) 1000000)" "60" "$(below $((t1 - t0)) 60000000)"

python3 "$here/tests/bench/page.py" "$work/machine" "$rows" >"$here/build/bench/bench.svg"
echo
echo "build/bench/bench.txt and build/bench/bench.svg have this."
