# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the sections share: how a figure is handed to page.py, and how it is taken. Sourced by bench.sh.
# shellcheck disable=SC2154 # what bench.sh has set: work

# Lines of figures, with tabs: "title WHAT", "row WHAT FIGURE", "budget NAME FIGURE" (of tests/bench/budgets), and
# "missing NAME WHY" for a budget that cannot be measured here, "wrong WHAT FIGURE".
figure_line() {
	local IFS=$'\t'
	echo "$*" >>"$work/figures"
}
title() {
	figure_line title "$1"
	[ ! -t 2 ] || printf '\r\033[K%s' "$1" >&2
}
row() { figure_line row "$@"; }
budget() { figure_line budget "$@"; }
missing() { figure_line missing "$@"; }
# wrong WHAT FIGURE: what no speed excuses.
wrong() { figure_line wrong "$@"; }

has() { command -v "$1" >/dev/null; }
# calc EXPRESSION [FORMAT]
calc() { awk "BEGIN { printf \"${2:-%.2f}\", $1 }"; }
ratio() { calc "$1 / $2"; }
# Of the numbers on stdin.
median() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
least() { sort -g | head -n 1; }
most() { sort -g | tail -n 1; }
# seconds COMMAND...: that it takes; fails as it does.
seconds() {
	local from=${EPOCHREALTIME/./}
	"$@" >/dev/null 2>&1 || return
	calc "$((${EPOCHREALTIME/./} - from)) / 1000000" '%.2f\n'
}
# await COMMAND...: until it succeeds.
await() { until "$@" >/dev/null 2>&1; do sleep 0.1; done; }

# One member; its address is $etcd_at, its process $etcd.
start_etcd() {
	local port=$((20000 + RANDOM % 10000))
	etcd_at=127.0.0.1:$port
	etcd --data-dir "$work/etcd$port" --listen-client-urls "http://$etcd_at" --advertise-client-urls "http://$etcd_at" \
		--listen-peer-urls "http://127.0.0.1:$((port + 1))" >/dev/null 2>&1 &
	# shellcheck disable=SC2034 # for the sections
	etcd=$!
	await etcdctl --endpoints "$etcd_at" endpoint health
}
