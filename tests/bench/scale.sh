# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# A run with many agents, one task each, on this one machine: sourced by bench.sh.
#
#   make bench SECTION=scale AGENTS="4 64" TIMES=1 LIMIT=60
#
# AGENTS: how many, "4 16 64 128 256"; with 128 also over two mounts of GlusterFS, with 256 also with 16
# agents killed. TIMES: the median of so many (3). LIMIT: seconds that each phase may take (120).
# ON_ETCD: how many with eight tasks each on one etcd, "12 125 1250", as threads of one process (crowd.c).
# shellcheck disable=SC2154 # what bench.sh has set: here, work, out, etcd

scale=$out/tests/bench/scale
agents=${AGENTS-4 16 64 128 256}
times=${TIMES:-3}
limit=${LIMIT:-120}
# Where boards are in real life, too: in memory.
quiet=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "$work")/preempt-bench.XXXXXX")
declare -A got=()

# saved_lost COUNT STORE...: what is not in the store, through any mount, of what was acknowledged.
saved_lost() {
	local count=$1 store tasks
	shift
	for store; do
		tasks=$(preempt-store list --store "$store" run/scale/000001/SAVED/ |
			awk -F / '$5 > last { last = $5; n = 0 } $5 == last { n++ } END { print n + 0 }')
		[ "$tasks" = "$count" ] || echo "$tasks of $count saves"
		[[ $(preempt-store get --store "$store" run/scale/000001/CLOSED) == *'"preempted"'* ]] ||
			echo "not closed as preempted"
	done | sort -u | paste -sd ';'
}

# measure WHAT COUNT PLACE [OPTION...]: got[NAME] is the median of each figure that scale prints. {} in
# PLACE, where the store is, becomes the side of a pair of mounts. got[lost]: as saved_lost says it.
measure() {
	local what=$1 count=$2 place=$3 try line dir name i fields stores lost wrong=0 codes
	shift 3
	got=([lost]='')
	: >"$work/figures"
	for ((try = 0; try < times; try++)); do
		dir=$(mktemp -d "${place//\{\}/a}/scale.XXXXXX")
		stores=("$dir/store.db")
		[[ $place != *'{}'* ]] || stores+=("${place//\{\}/b}/${dir##*/}/store.db")
		line=$("$scale" -n "$count" --limit "$limit" --trainer "$out/tests/trainers/count" "$@" \
			"$what" "$quiet" "${stores[@]}") || line="codes - wrong $count late start missing $count"
		read -ra fields <<<"$line"
		for ((i = 0; i < ${#fields[@]}; i += 2)); do
			[ "${fields[i + 1]}" = - ] || echo "${fields[i]} ${fields[i + 1]}" >>"$work/figures"
			got[${fields[i]}]=${fields[i + 1]}
		done
		wrong=$((wrong + got[wrong]))
		[ "${got[wrong]}" = 0 ] || codes=${got[codes]}
		if [ "${got[wrong]}" != 0 ] && [ "${got[late]}" = - ]; then
			# What the most of them have said.
			sed 's/task [0-9]*/task N/' "$quiet"/said.* | sort | uniq -c | sort -rn | head -n 3 >&2
		fi
		if [ "$what" = preempt ] && [ "${got[late]}" = - ]; then
			lost=$(saved_lost "$count" "${stores[@]}")
			got[lost]=${lost:-${got[lost]}}
		fi
		find "$quiet" -mindepth 1 -delete
		"$here/tests/rig/forget-stores" "$dir"
		rm -rf "$dir"
		# It will not be faster the next time.
		[ "${got[late]}" = - ] || break
	done
	while read -r name; do
		case $name in
		codes | late | missing | wrong) continue ;;
		esac
		got[$name]=$(sed -n "s/^$name //p" "$work/figures" | median)
	done < <(cut -d ' ' -f 1 "$work/figures" | sort -u)
	got[wrong]=$wrong
	got[codes]=${codes:-${got[codes]}}
}

# figure WHAT NAME [BUDGET]: one of those that measure has found.
figure() {
	local figure=${got[$2]:--} within=1
	[ "$figure" = - ] || [ -z "${3:-}" ] || within=$(below "$figure" "$3")
	[ "$figure" != - ] || [ -z "${3:-}" ] || within=0
	row "$1" "$figure" "${3:-}" "$within"
}
# codes EXPECTED: and whether all came to their end.
codes() {
	row "  exit codes" "${got[codes]}" "$1" "$([ "${got[wrong]}" = 0 ] && echo 1 || echo 0)"
	[ "${got[late]}" = - ] ||
		row "  NOT OVER after $limit s: ${got[late]}" "${got[missing]} missing" "" 0
}
# counted WHAT: the transactions of an agent's whole life.
counted() {
	row "  an agent's reads + writes, $1" "${got[reads]:--} + ${got[writes]:--}" "on average"
	row "    the most of one" "${got[reads_most]:--} + ${got[writes_most]:--}" ""
	row "    bytes answered, on average, most" "${got[bytes]:--}, ${got[bytes_most]:--}" ""
}

declare -A hold_budget=([64]=100 [256]=500) gone_budget=([64]=500 [256]=2500) processor=()

title "runs with many agents"
# Agents that get none look for changes instead of being told.
row "inotify instances that one user may have" "$(cat /proc/sys/fs/inotify/max_user_instances || echo -)" ""

for count in $agents; do
	title "$count agents on this machine, local disk (milliseconds, median of $times)"
	measure end "$count" "$work" --option --no-heartbeat --steps 10
	end_reads=${got[reads]:-0} end_writes=${got[writes]:-0} end_all=${got[all_most]:-0}
	figure "from the first start to the first step of all" join
	figure "from the last training's end until all are gone" gone
	codes "all 0"
	counted "join and normal end"

	measure preempt "$count" "$work" --option --no-heartbeat
	processor[$count]=${got[cpu]:-0}
	figure "processor time until all have joined, seconds" cpu_join
	figure "from a TERM to one to hold on all boards" hold "${hold_budget[$count]:-}"
	figure "  to the step on all boards" decided
	figure "  until all are gone" gone "${gone_budget[$count]:-}"
	figure "  processor time, seconds" cpu
	codes "all 42"
	[ "${got[late]}" != - ] || row "  acknowledged and in the store" "${got[lost]:-all}" "all" \
		"$([ -z "${got[lost]}" ] && echo 1 || echo 0)"
	counted "join and preemption"
	if [ "${got[reads]:--}" != - ]; then
		# Joining and leaving are in both, so what is left is the preemption alone.
		row "    more than with a normal end, on average" "$(awk -v r="${got[reads]}" -v R="$end_reads" \
			-v w="${got[writes]}" -v W="$end_writes" 'BEGIN { printf "%.1f + %.1f", r - R, w - W }')" ""
		more=$((got[all_most] - end_all))
		row "    the same, the most of one, together" "$more" "10" "$(below "$more" 10)"
	fi
	figure "  an agent's writes after the join, on average" after 4

	measure death "$count" "$work" --option --period=1s --settle 2500
	figure "from a kill -9 of one until all others are gone" gone
	figure "  processor time, seconds" cpu
	codes "all others 44"
	counted "join and death"
done

if [ "${processor[64]:-0}" != 0 ] && [ "${processor[256]:-0}" != 0 ]; then
	title "one preemption, as it grows"
	grown=$(ratio "${processor[256]}" "${processor[64]}")
	row "processor time with 256 agents / with 64" "$grown" "5" "$(below "$grown" 5)"
fi

if [[ " $agents " == *' 128 '* ]]; then
	title "128 agents, half on each of two mounts of GlusterFS (milliseconds, median of $times)"
	if ! why=$("$here/tests/rig/mounts" usable gluster 2>&1); then
		unmeasured "128 agents" "$why"
	else
		"$here/tests/rig/mounts" start "$work/mounts" --owner $$ gluster
		measure preempt 128 "$work/mounts/gluster/{}" --option --no-heartbeat
		figure "from the first start to the first step of all" join
		figure "from a TERM to one to hold on all boards" hold
		figure "  until all are gone" gone 5000
		figure "  processor time of the agents, seconds" cpu
		codes "all 42"
		[ "${got[late]}" != - ] || row "  acknowledged and in the store, through both" "${got[lost]:-all}" \
			"all" "$([ -z "${got[lost]}" ] && echo 1 || echo 0)"
		counted "join and preemption"
		"$here/tests/rig/mounts" stop "$work/mounts"
	fi
fi

if [[ " $agents " == *' 256 '* ]]; then
	title "256 agents, 16 killed in the second after the notice (milliseconds, median of $times)"
	# Half a minute of grace: they train on for most of it, and leave before its end.
	measure kills 256 "$work" --option --period=1s --option --grace=30s --kill 16
	figure "from a TERM to one to hold on all boards" hold
	figure "  to the step on all boards" decided
	figure "  until all that live are gone" gone 30000
	figure "  processor time, seconds" cpu
	codes "all others 42 or 43"
fi

# etcd_metric NAME: the sum of a figure of etcd's own, over all its labels.
etcd_metric() {
	curl -s http://127.0.0.1:16379/metrics | awk -v n="$1" '$1 ~ "^" n "($|[{])" { s += $2 } END { printf "%.6f", s }'
}

if has etcd && has etcdctl && has curl; then
	start_etcd
	declare -A metrics=([requests]=grpc_server_handled_total [sent]=etcd_network_client_grpc_sent_bytes_total
		[syncs]=etcd_disk_wal_fsync_duration_seconds_count [cpu]=process_cpu_seconds_total) metrics_before=()
	for count in ${ON_ETCD-12 125 1250}; do
		title "$count agents with 8 tasks each on one etcd on this machine (milliseconds)"
		for name in "${!metrics[@]}"; do
			metrics_before[$name]=$(etcd_metric "${metrics[$name]}")
		done
		got=()
		mkdir "$work/crowd"
		read -ra fields < <("$out/tests/bench/crowd" -n "$count" --limit "$limit" \
			"etcd://127.0.0.1:16379/crowd$count" "$work/crowd" 2>/dev/null)
		for ((i = 0; i + 1 < ${#fields[@]}; i += 2)); do
			got[${fields[i]}]=${fields[i + 1]}
		done
		rm -r "$work/crowd"
		figure "from the first start until all have joined and train" join
		figure "from a notice to one to hold on all boards" hold
		figure "  to the step on all boards" decided
		figure "  to the last save" saved
		figure "  until all are gone" gone 60000
		row "  in time, and with the right end" "${got[late]:--}, ${got[wrong]:--} wrong" "-, 0 wrong" \
			"$([ "${got[late]:-} ${got[wrong]:-}" = '- 0' ] && echo 1 || echo 0)"
		row "  an agent's reads + writes in its life" "${got[reads]:--} + ${got[writes]:--}" "on average"
		row "    the most of one" "${got[reads_most]:--} + ${got[writes_most]:--}" ""
		figure "    bytes answered to one, on average" bytes 50000
		figure "    to the one that was answered most" bytes_most
		for name in requests sent syncs cpu; do
			row "  etcd's own: $name" "$(awk -v a="${metrics_before[$name]}" -v b="$(etcd_metric "${metrics[$name]}")" \
				-v u="$([ $name = cpu ] && echo %.1f || echo %.0f)" 'BEGIN { printf u, b - a }')" ""
		done
		row "  etcd's own: megabytes resident" "$(awk -v b="$(etcd_metric process_resident_memory_bytes)" 'BEGIN { printf "%.0f", b / 1e6 }')" ""
	done
	kill "$etcd"
fi
