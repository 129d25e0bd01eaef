# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The agent's side of a board, played by tests/programs/preempt-step.bats, a training process to play with, and
# transcripts of what they say to each other:
#
#   == wait, then exit S: runs to S, saves, stays until leave
#   for bash c                 by these clients (bash, C and Python; "all": also dash, and preempt-step, which is libpreempt
#                              as a program; "disk": also where a directory's time is not to be trusted)
#   start; hold wait AGENT     statements; a line has one or more
#   > step 5                   the training is told this
#   < step 0                   its next answer
#   step 6 = 0                 both: "step 6", and the answer "step 0"
#   waits step 7               it is told this, does its part on the board and then gives no answer
#
# Other words are functions below. A line that begins with "! " is one of shell. AGENT, TRAINING and BOARD are put in.

# What must not happen is looked for for so long; what must happen, for a minute.
GLANCE=0.08
CLIENTS=${CLIENTS:-bash dash c python program c@disk python@disk}

# transcript FILE: each of its cases.
transcript() {
	local title='' body=() line
	while IFS= read -r line; do
		case $line in
		'== '*)
			play "$title" "${body[@]}"
			title=${line#== } body=()
			;;
		'' | '#'*) ;;
		*) body+=("$line") ;;
		esac
	done <"$REPO/tests/support/clients/$1"
	play "$title" "${body[@]}"
}

# play TITLE [LINE...]
play() {
	local clients='bash c python' title=$1 client
	shift
	case ${1-} in
	all) clients='bash dash c python program' && shift ;;
	for*) clients=${1#for } && shift ;;
	disk) clients+=' c@disk python@disk' && shift ;;
	esac
	[ $# = 0 ] || for client in $clients; do
		one_client lines "$@"
	done
}

# one_client COMMAND...: with $client, one after the other on boards of their own.
one_client() {
	[[ " $CLIENTS " = *" $client "* ]] || return 0
	echo "== ${title-} ($client)"
	board_make
	"$@"
	finish
}

# each CASE [CLIENT...]: the same case for all of them.
each() {
	local case=$1 client
	shift
	[ $# -gt 0 ] || set -- bash dash c python program
	for client; do
		one_client "$case"
	done
}

lines() {
	local line parts part
	for line; do
		case $line in
		'! '*) statement "$line" ;;
		*)
			IFS=';' read -ra parts <<<"$line"
			for part in "${parts[@]}"; do statement "${part#"${part%%[! ]*}"}"; done
			;;
		esac
	done
}

statement() {
	local words=${1//AGENT/$agent}
	words=${words//TRAINING/${training-}} words=${words//BOARD/$board}
	echo "   $words"
	case $words in
	'! '*) eval "${words#! }" ;;
	'> '*) tell "${words#> }" ;;
	'< '*) expect "${words#< }" ;;
	*' = '*) ask "${words% = *}" "${words##* = }" ;;
	*) $words ;;
	esac
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

# A start to its end: no more commands.
finish() {
	local pid
	exec 7>&- 8<&-
	for pid in "${processes[@]}"; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	processes=()
}

# In a transcript: once more from the beginning.
new() {
	finish
	board_make
}

# ---- The training ----

# start [NAME=VALUE...]: the client's training process, its commands on fd 7, its answers on fd 8.
start() {
	local -a command=(env "$@" CLIENT="$REPO/lib/client")
	case ${client%@*} in
	bash) command+=(bash "$REPO/tests/support/clients/driver.sh") ;;
	dash) command+=(dash "$REPO/tests/support/clients/driver.sh") ;;
	program) command+=(PROGRAM="$(type -P preempt-step)" bash "$REPO/tests/support/clients/driver.sh") ;;
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

tell() {
	echo "$*" >&7
}

# The next answer is $1.
expect() {
	local line=
	read -r -t 60 line <&8 || echo "no answer; stderr: $(cat "$room/err")"
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

waits() { # step N [NEXT], saved N
	tell "$*"
	case $1 in
	step) eventually at "${@:2}" ;;
	saved) eventually reported "$2" ;;
	esac
	still
}

# The process leaves with $1 and prints no further line.
ends() {
	local line='' code=0
	read -r -t 60 line <&8 || code=$?
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

# It is killed.
dies() {
	kill -KILL "$training"
	wait "$training" || :
}

# What was said on stderr has N lines with PATTERN.
said() { # N PATTERN
	local count
	count=$(grep -c -e "${*:2}" "$room/err") || :
	[ "$count" = "$1" ] || {
		echo "expected $1 times '${*:2}' in: $(cat "$room/err")"
		return 1
	}
}

# It says, now and once, that it does not understand hold; what it says has PATTERN.
garbled() { # PATTERN
	eventually grep -q "cannot understand $board/hold.*$*" "$room/err"
	said 1 .
	: >"$room/err"
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

# ---- The board ----

hold() {
	printf '%s\n' "$*" >"$board/hold.new"
	mv -T "$board/hold.new" "$board/hold"
}

lift() {
	rm "$board/hold"
}

# The agent is killed.
killed() {
	kill -KILL "$agent"
	eventually gone "$agent"
}

# The client has written its step N [NEXT], so it is behind that boundary or waits there.
at() {
	local got want
	printf -v want '%020d %020d' "$1" "${2:-$(($1 + 1))}"
	read -r got <"$board/step" && [ "$got" = "$want" ]
}

# It has written that it saved N.
reported() {
	local got want
	printf -v want '%020d' "$1"
	read -r got <"$board/saved" && [ "$got" = "$want" ]
}

# A save of N is reported by another thread of it.
reports() {
	printf '%020d\n' "$1" 1<>"$board/saved"
}

# The training is the owner of the board.
owned() {
	[ "$(cat "$board/owner")" = "$training $(cut -d ' ' -f 22 "/proc/$training/stat")" ]
}

# ignored SIGNAL, survives SIGNAL: by the training. Shells ignore it, so that a foreground command lives on, too;
# other clients have a handler, which a command does not inherit.
ignored() { ignores "$training" "$(kill -l "$1")"; }
survives() {
	case $client in
	bash | dash) ignored "$1" ;;
	*) catches "$training" "$(kill -l "$1")" ;;
	esac
}
