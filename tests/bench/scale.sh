# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# A run with many agents, one task each, on this one machine: sourced by bench.sh.
#
#   make bench SECTION=scale AGENTS=64 ON_GLUSTER= ON_ETCD= TIMES=1 LIMIT=60
#
# AGENTS: how many, "64 256". ON_GLUSTER: how many over two mounts of GlusterFS, 128. An empty one leaves out its part.
# TIMES: the median of so many (3). LIMIT: seconds that each phase may take (120).
# ON_ETCD: how many with eight tasks each on one etcd, "12 125 1250", as threads of one process (crowd.c).
# shellcheck disable=SC2154 # what bench.sh has set: here, work, out, quiet, etcd

scale=$here/tests/bench/scale
agents=${AGENTS-64 256}
times=${TIMES:-3}
limit=${LIMIT:-120}
on_gluster=${ON_GLUSTER-128}
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

# measure COUNT PLACE [OPTION...]: got[NAME] is the median of each figure that scale prints. {} in
# PLACE, where the store is, becomes the side of a pair of mounts. got[lost]: as saved_lost says it.
# $parameters: of the store's address. $copies: tasks of each agent.
parameters='' copies=1
measure() {
	local count=$1 place=$2 try line dir name i fields stores lost wrong=0 codes
	shift 2
	got=([lost]='')
	: >"$work/scaled"
	for ((try = 0; try < times; try++)); do
		dir=$(mktemp -d "${place//\{\}/a}/scale.XXXXXX")
		stores=("$dir/store.db$parameters")
		[[ $place != *'{}'* ]] || stores+=("${place//\{\}/b}/${dir##*/}/store.db$parameters")
		line=$("$scale" -n "$count" --copies $copies --limit "$limit" --trainer "$out/tests/support/trainers/count" "$@" \
			"$quiet" "${stores[@]}") || line="codes - wrong $count late start missing $count"
		read -ra fields <<<"$line"
		for ((i = 0; i < ${#fields[@]}; i += 2)); do
			[ "${fields[i + 1]}" = - ] || echo "${fields[i]} ${fields[i + 1]}" >>"$work/scaled"
			got[${fields[i]}]=${fields[i + 1]}
		done
		wrong=$((wrong + got[wrong]))
		[ "${got[wrong]}" = 0 ] || codes=${got[codes]}
		if [ "${got[wrong]}" != 0 ] && [ "${got[late]}" = - ]; then
			# What the most of them have said.
			sed 's/task [0-9]*/task N/' "$quiet"/said.* | sort | uniq -c | sort -rn | head -n 3 >&2
		fi
		if [ "${got[late]}" = - ]; then
			lost=$(saved_lost $((count * copies)) "${stores[@]}")
			got[lost]=${lost:-${got[lost]}}
		fi
		find "$quiet" -mindepth 1 -delete
		"$here/tests/support/forget-stores" "$dir"
		rm -rf "$dir"
		# It will not be faster the next time.
		[ "${got[late]}" = - ] || break
	done
	while read -r name; do
		case $name in
		codes | late | missing | wrong) continue ;;
		esac
		got[$name]=$(sed -n "s/^$name //p" "$work/scaled" | median)
	done < <(cut -d ' ' -f 1 "$work/scaled" | sort -u)
	got[wrong]=$wrong
	got[codes]=${codes:-${got[codes]}}
}

# codes: says it where not all left with 42, or a save is not in the store.
codes() {
	[ "${got[wrong]}" = 0 ] || wrong "exit codes, expected 42" "${got[codes]}"
	[ "${got[late]}" = - ] || wrong "not over after $limit s: ${got[late]}" "${got[missing]} missing"
	[ -z "${got[lost]}" ] || wrong "acknowledged and not in the store" "${got[lost]}"
}

title "from a TERM to one to hold on all boards, this machine (milliseconds)"
copies=64
measure 1 "$work"
copies=1
codes
budget hold-copies "${got[hold]:--}"
parameters='?assume=shared'
measure 4 "$work"
parameters=''
codes
budget hold-polled "${got[hold]:--}"
for kind in gluster bindfs; do
	if ! why=$("$here/tests/support/mounts" usable $kind 2>&1); then
		missing hold-$kind "$why"
		continue
	fi
	"$here/tests/support/mounts" start "$work/mounts" --owner $$ $kind
	measure 4 "$work/mounts/$kind/{}"
	codes
	budget "hold-$kind" "${got[hold]:--}"
	"$here/tests/support/mounts" stop "$work/mounts"
done

: >"$work/after"
for count in $agents; do
	title "$count agents on this machine, local disk (milliseconds, median of $times)"
	measure "$count" "$work" --option=--no-heartbeat
	budget "hold-$count" "${got[hold]:--}"
	budget "gone-$count" "${got[gone]:--}"
	codes
	[ "${got[after]:--}" = - ] || echo "${got[after]}" >>"$work/after"
done
title "one preemption, the most with $agents agents"
budget writes "$(most <"$work/after")"

if [ -n "$on_gluster" ]; then
	title "$on_gluster agents, half on each of two mounts of GlusterFS (milliseconds, median of $times)"
	if ! why=$("$here/tests/support/mounts" usable gluster 2>&1); then
		missing gone-gluster "$why"
	else
		"$here/tests/support/mounts" start "$work/mounts" --owner $$ gluster
		measure "$on_gluster" "$work/mounts/gluster/{}" --option=--no-heartbeat
		budget gone-gluster "${got[gone]:--}"
		codes
		"$here/tests/support/mounts" stop "$work/mounts"
	fi
fi

# etcd_metric NAME: the sum of a figure of etcd's own, over all its labels.
etcd_metric() {
	curl -s "http://$etcd_at/metrics" | awk -v n="$1" '$1 ~ "^" n "($|[{])" { s += $2 } END { printf "%.6f", s }'
}

if has etcd && has etcdctl && has curl; then
	start_etcd
	for count in ${ON_ETCD-12 125 1250}; do
		title "$count agents with 8 tasks each on one etcd on this machine (milliseconds)"
		before=$(etcd_metric etcd_network_client_grpc_sent_bytes_total)
		got=()
		# (They have their machines to themselves in real life: here a silence may last.)
		read -ra fields < <("$out/tests/bench/crowd" -n "$count" --limit "$limit" --patience 60000 \
			"etcd://$etcd_at/crowd$count" 2>/dev/null)
		for ((i = 0; i + 1 < ${#fields[@]}; i += 2)); do
			got[${fields[i]}]=${fields[i + 1]}
		done
		budget etcd-gone "${got[gone]:--}"
		[ "${got[late]:-} ${got[wrong]:-}" = '- 0' ] || wrong "in time, and with the right end" "${got[late]:--}, ${got[wrong]:--} wrong"
		budget etcd-bytes "$(calc "($(etcd_metric etcd_network_client_grpc_sent_bytes_total) - $before) / $count" %.0f)"
	done
	kill "$etcd"
else
	missing etcd-gone "etcd is not installed"
	missing etcd-bytes "etcd is not installed"
fi
