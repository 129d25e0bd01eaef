# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2011,SC2016,SC2034,SC2154 # tests set and use the variables
# What the tests of ckpt-rotate share. The directory of the checkpoints is ck, or what $in says.
load ../support/programs
load ../support/stop_at

one=0123456789ab0123456789ab # a life

setup() {
	programs
	umask 022
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
}

teardown() {
	local pid
	for pid in $(jobs -p) ${stopped-}; do kill -KILL "$pid" 2>/dev/null || :; done
	if mountpoint -q "$BATS_TEST_TMPDIR/disk"; then umount -l "$BATS_TEST_TMPDIR/disk"; fi
}

needs_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }

# small_disk SIZE: a filesystem on ./disk.
small_disk() {
	needs_root
	mkdir -p disk
	mount -t tmpfs -o "size=$1" ckpt-test disk || skip "cannot mount a tmpfs"
}

# fails CODE TEXT COMMAND...: it exits with CODE, and TEXT is in its stderr.
fails() {
	local text=$2
	run "-$1" --separate-stderr "${@:3}"
	[[ $stderr == *"$text"* ]] || { echo "not in stderr: $text"; return 1; }
}

# json TEST: the document on stdin, c, is as the Python expression says.
json() {
	python3 -c "import json, sys; c = json.load(sys.stdin); assert $1, c"
}

# ---- Our own checkpoints ----

# save STEP [OPTION...]: two files whose content tells the step, committed with these options.
save() {
	local d
	d=$(ckpt-rotate begin "${in-ck}" "$1") && mkdir "$d/sub" &&
		echo "model of $1" >"$d/model" && echo "state of $1" >"$d/sub/state" &&
		[ "$(ckpt-rotate commit "${in-ck}" "$@")" = complete ]
}

# saves STEP...
saves() {
	local step
	for step; do save "$step" || return; done
}

# shard COMMAND STEP TASK TASKS [ATTEMPT [OPTION...]]: of the life $one.
shard() {
	ckpt-rotate "$1" "${in-ck}" "$2" --sharded --task "$3" --tasks "$4" --attempt "${5:-1}" --life $one "${@:6}"
}

# shards STEP TASKS [ATTEMPT]: all of them are written, and none is committed.
shards() {
	local task d
	for ((task = 0; task < $2; task++)); do
		d=$(shard begin "$1" $task "$2" "${3:-1}") && echo "$task" >"$d/part" || return
	done
}

# replica COMMAND STEP TASK TASKS [OPTION...]
replica() {
	ckpt-rotate "$1" ck "$2" --chief-only --task "$3" --tasks "$4" --attempt 1 "${@:5}"
}

# unseen TIME: what is being written has not changed for so long.
unseen() { find "${in-ck}"/.tmp-* -exec touch -d "$1 ago" {} +; }

# given_up FILES COMMAND...: a writer begins, leaves these files and is not seen for two days.
given_up() {
	local d
	d=$("${@:2}") && for file in $1; do echo old >"$d/$file"; done && unseen '2 days'
}

# names [-A] DIRECTORY...: what ls says, on one line.
names() { ls "$@" | xargs; }

# overwrite FILE: the first byte becomes another one.
overwrite() { printf '\1' | dd of="$1" conv=notrunc status=none; }

# steps [STATE [OPTION...]]: the steps that list shows as complete, or in that state.
steps() {
	ckpt-rotate list --json "${@:2}" "${in-ck}" 2>/dev/null |
		sed -n 's/.*"step": \([0-9]*\),.*"state": "'"${1-complete}"'".*/\1/p' | tr '\n' ' '
}

# states: all steps, and what list says of them: "10 complete 20 damaged ".
states() {
	ckpt-rotate list --json "${in-ck}" 2>/dev/null |
		sed -n 's/.*"step": \([0-9]*\),.*"state": "\([a-z ]*\)".*/\1 \2/p' | tr '\n' ' '
}

# reason STEP: what the table of prune in $output says of it.
reason() { sed -n "s/^ *$1 .*  \(kept\|removed\)[^:]*: //p" <<<"$output"; }

# no_debris [STEP]: nothing is left but what is meant to be there; STEP is the latest, and whole.
no_debris() {
	[ -z "$(find ck near far \( -name '.tmp*' -o -name '.gone*' -o -name '.latest*' -o -name '.ckpt-writer*' \
		-o -name '.ckpt-shard*' -o -name '*.json.*' \) 2>/dev/null)" ] || return
	[ "$#" = 0 ] || [ "$(readlink ck/latest) $(ckpt-rotate latest ck --step --verify 2>/dev/null)" = "step-000000$1 $1" ]
}

# same STEP: it is in far as it is in near.
same() {
	diff -r "near/step-000000$1" "far/step-000000$1" && ckpt-rotate verify -q far "$1"
}

# ---- Checkpoints of frameworks ----

# make LAYOUT STEP...: written an hour ago. Each is made once, and then copied.
make() {
	local made
	made=$BATS_FILE_TMPDIR/made${FRAMEWORKS_TORCH-}/$*
	if [ ! -d "$made" ]; then
		mkdir -p "$made"
		python3 "$REPO/tests/support/layouts/frameworks.py" "$1" "$made" "${@:2}" || return
		in=$made age
	fi
	mkdir -p "${in-ck}"
	cp -a "$made/." "${in-ck}"
}

age() { find "${in-ck}" -exec touch -h -d '1 hour ago' {} +; }

# fresh LAYOUT STEP...: these and no others are in ck.
fresh() {
	rm -rf "${in-ck}"
	make "$@"
}

# why STEP: what list says of one.
why() { ckpt-rotate list "${in-ck}" 2>/dev/null | awk -v step="$1" '$1 == step'; }
