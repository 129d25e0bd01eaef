# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The agent's side of a board, played by tests/programs/preempt-step.bats, and a training process to play with.

REPO=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
BIN=${BIN:-$REPO/bin}
OUT=${OUT:-$REPO/build/plain}
# PATIENCE is for what must happen, GLANCE for what must not.
PATIENCE=60
GLANCE=0.08

# Every client, and those that trust a directory's time once more where they may not.
# What is no C is the same with sanitizers.
case ${OUT:-} in
*/build/asan) CLIENTS=${CLIENTS:-c program c@disk} ;;
*) CLIENTS=${CLIENTS:-bash dash c python program c@disk python@disk} ;;
esac

# each CASE [CLIENT...]: the same case for all of them.
each() {
	local case=$1
	shift
	# shellcheck disable=SC2086
	[ $# -gt 0 ] || set -- $CLIENTS
	for client; do
		echo "client: $client"
		board_make
		"$case"
		finish
	done
}

# A fresh board with a live agent.
board_make() {
	local place=/dev/shm
	[[ $client != *@disk ]] || place=$BATS_TEST_TMPDIR
	room=$(mktemp -d "$place/clients.XXXXXX")
	board=$room/board
	mkdir -m 700 "$board"
	rooms+=("$room")
	sleep 1000 3>&- &
	agent=$!
	disown "$agent"
	processes+=("$agent")
	echo "$agent" >"$board/agent"
	: >"$board/step"
	: >"$board/saved"
	mkfifo "$board/pause"
	export PREEMPT_DIR=$board
}

# start [NAME=VALUE...]: the client's training process, its commands on fd 7, its answers on fd 8.
start() {
	local -a command=(env CLIENT="$REPO/lib/client" "$@")
	case ${client%@*} in
	bash) command+=(bash "$REPO/tests/support/clients/driver.sh") ;;
	dash) command+=(dash "$REPO/tests/support/clients/driver.sh") ;;
	program) command+=(PROGRAM="$BIN/preempt-step" bash "$REPO/tests/support/clients/driver.sh") ;;
	c) command+=("$OUT/tests/support/clients/driver") ;;
	python) command+=(python3 "$REPO/tests/support/clients/driver.py") ;;
	esac
	rm -f "$room/in" "$room/out"
	mkfifo "$room/in" "$room/out"
	${WRAP-} "${command[@]}" <"$room/in" >"$room/out" 2>"$room/err" 3>&- 7>&- 8<&- &
	training=$!
	processes+=("$training")
	exec 7>"$room/in" 8<"$room/out"
}

# A start to its end: no more commands.
finish() {
	exec 7>&- 8<&-
	processes_end
}

processes_end() {
	local pid
	for pid in "${processes[@]}"; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	processes=()
}

tell() {
	echo "$*" >&7
}

# The next answer is $1.
expect() {
	local line=
	read -r -t "$PATIENCE" line <&8 || echo "no answer; stderr: $(cat "$room/err")"
	[ "$line" = "$*" ] || {
		echo "expected '$*', got '$line'"
		return 1
	}
}

ask() { # COMMAND ANSWER
	tell "$1"
	expect "${1%% *} $2"
}

# No answer comes.
still() {
	local line='' code=0
	read -r -t "$GLANCE" line <&8 || code=$?
	[ "$code" -gt 128 ] || {
		echo "expected to wait, got '$line' ($code); stderr: $(cat "$room/err")"
		return 1
	}
}

# The process leaves with $1 and prints no further line.
ends() {
	local line='' code=0
	read -r -t "$PATIENCE" line <&8 || code=$?
	if [ "$code" != 1 ] || [ -n "$line" ]; then
		echo "expected an end, got '$line' ($code)"
		return 1
	fi
	code=0
	wait "$training" || code=$?
	[ "$code" = "$1" ] || {
		echo "expected exit $1, got $code; stderr: $(cat "$room/err")"
		return 1
	}
}

hold() {
	printf '%s\n' "$*" >"$board/hold.new"
	mv -T "$board/hold.new" "$board/hold"
}

lift() {
	rm "$board/hold"
}

# until CONDITION...: waits for it.
eventually() {
	local end=$((SECONDS + PATIENCE))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || {
			echo "never: $*; stderr: $(cat "$room/err")"
			return 1
		}
		read -r -t 0.01 <>"$board/pause" || :
	done
}

# The client, which waits and has written what it was told to, has also looked at hold since: each of
# its looks ends in a sleep, and what it may have slept on before was less than this.
looked() {
	local process=$training sleeps
	[ "$client" != program ] || process=$(pgrep -P "$training")
	sleeps=$(sleeps_of "$process")
	eventually slept "$process" $((sleeps + 4))
}

slept() {
	[ "$(sleeps_of "$1")" -ge "$2" ]
}

sleeps_of() {
	sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$1/status"
}

# The client has written its step N [NEXT], so it is behind that boundary or waits there.
at_step() {
	[ "$(cat "$board/step")" = "$(printf '%020d %020d' "$1" "${2:-$(($1 + 1))}")" ]
}

# What was said on stderr has N lines with PATTERN.
said() { # N PATTERN
	local count
	count=$(grep -c -e "$2" "$room/err") || :
	[ "$count" = "$1" ] || {
		echo "expected $1 times '$2' in: $(cat "$room/err")"
		return 1
	}
}

agent_kill() {
	kill -KILL "$agent"
	eventually dead "$agent"
}

# (The shell may not have noticed it yet: it is in no hurry while it runs no other command.)
dead() {
	! kill -0 "$1" 2>/dev/null || grep -qs '^State:.*zombie' "/proc/$1/status"
}

# Signal NAME of the training process is default, ignored or caught.
disposition() { # NAME
	local number line mask
	number=$(kill -l "$1")
	for line in SigIgn:ignored SigCgt:caught; do
		mask=$(sed -n "s/^${line%:*}:[[:space:]]*//p" "/proc/$training/status")
		if [ $((0x$mask >> (number - 1) & 1)) = 1 ]; then
			echo "${line#*:}"
			return
		fi
	done
	echo default
}
