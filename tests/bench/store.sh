#!/bin/bash
# SPDX-License-Identifier: MIT
# What the store costs, beside its peers in the same run. Prints one row per line: what, time, ratio.
# Compare ratios, not times: disks and machines differ, and so does the load on them.
set -euo pipefail
cd "$(dirname "$0")/../.."
built=build/plain/tests/bench
dir=$(mktemp -d "${TMPDIR:-/tmp}/preempt-bench.XXXXXX")
trap 'tests/rig/forget-stores "$dir"; rm -rf "$dir"' EXIT
store=$dir/store.db
bare=$dir/bare.db
each=${1:-100}

row() { # NAME MILLISECONDS BASE
	awk -v name="$1" -v ms="$2" -v base="$3" \
		'BEGIN { printf "%-58s %8.2f ms %6.2f x\n", name, ms, ms / base }'
}

bin/preempt-store put --store "$store" first v
"$built/bare_put" "$bare" first v

echo "one put if absent, as a whole process (median of $each)"
base=$("$built/repeat" "$each" "$built/bare_put" "$bare" 'k{}' v)
row "bare C program, the same synced transaction" "$base" "$base"
row "preempt-store put --if-absent (budget 2 x)" \
	"$("$built/repeat" "$each" bin/preempt-store put --if-absent --store "$store" 'k{}' v)" "$base"
if command -v sqlite3 > /dev/null; then
	row "sqlite3 shell, the same transaction" "$("$built/repeat" "$each" sqlite3 "$bare" \
		"PRAGMA journal_mode=PERSIST; PRAGMA synchronous=FULL;
		 INSERT OR IGNORE INTO keys VALUES('s{}', 'v', 1)")" "$base"
fi
row "preempt-store put --if-absent, lost" \
	"$("$built/repeat" "$each" bin/preempt-store put --if-absent --store "$store" k1 v)" "$base"
row "preempt-store get" "$("$built/repeat" "$each" bin/preempt-store get --store "$store" k1)" "$base"
row "preempt-store --version (nothing but starting)" \
	"$("$built/repeat" "$each" bin/preempt-store --version)" "$base"
if command -v flock > /dev/null; then
	row "flock FILE true (locks, writes nothing)" \
		"$("$built/repeat" "$each" flock "$dir/flock" true)" "$base"
fi

echo "256 processes at once"
all=$(awk -v base="$base" 'BEGIN { print 256 * base }')
row "256 x the bare transaction" "$all" "$all"
row "preempt-store put --if-absent, one key (budget 1.5 x)" \
	"$("$built/repeat" -256 bin/preempt-store put --if-absent --store "$store" claim v)" "$all"
row "bare C program with SQLite's own busy timeout, one key" \
	"$("$built/repeat" -256 "$built/bare_put" "$bare" claim v)" "$all"
row "preempt-store put, 256 keys" \
	"$("$built/repeat" -256 bin/preempt-store put --store "$store" 'all{}' v)" "$all"
row "bare C program with SQLite's own busy timeout, 256 keys" \
	"$("$built/repeat" -256 "$built/bare_put" "$bare" 'all{}' v)" "$all"

echo "one uncontended transaction within a process (median of 300, in turns)"
mkdir -m 700 "$dir/recipe"
declare -A took
while read -r name microseconds; do
	took[$name]=$(awk -v us="$microseconds" 'BEGIN { print us / 1000 }')
done < <("$built/recipe" "$dir/recipe" 300)
row "bare SQLite, opened for it, as the recipe does" "${took[bare]}" "${took[bare]}"
row "bare SQLite, open all the time" "${took[kept]}" "${took[bare]}"
row "store with lock=fcntl (budget 1.15 x)" "${took[fcntl]}" "${took[bare]}"
row "store with lock=link" "${took[link]}" "${took[bare]}"
