# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# preempt.sh: stop together, at one step, with a complete checkpoint. Training scripts source this file.
#
# A script that runs under an agent (preempt-run, for example) finds its board in $PREEMPT_DIR and asks it
# at every step boundary whether it should save. All that a script needs, also with set -euo pipefail:
#
#	. preempt.sh
#	for ((s = start; s < total; s++)); do          # s steps are finished
#	    preempt_step $s || { save $s && preempt_saved $s; } || exit
#	    train $s
#	done
#
# save: your function. It returns 0 if the checkpoint is complete and durable, else another code. The shell
#	ignores set -e in a function that is called before && or ||: join the commands of save with &&.
# preempt_step N [NEXT]: N steps are finished, the next one has not begun. 0: run the next step; 10: save
#	this state, call preempt_saved, act on its answer. NEXT: the step at which the script will ask
#	again, if that is not N+1. Waits while the group agrees on a step, which is rare and short. Calling it
#	again with the same N is allowed, and is answered with 10 only once. But if the save is the final
#	one, the call then waits, and answers 10 again if no save is reported for 2 s.
# preempt_saved N: report that the checkpoint of N is complete and durable. 0: run on; else the code to
#	leave with. After the final save it first waits until every other task has saved. Report periodic
#	saves too: the agent measures how long a save takes.
# N is the number of finished steps: 0 to 999999999999999999, no leading zeros. In one shell it never falls.
#
# Shells: POSIX sh; bash runs only builtins and forks nothing. Call the functions in the shell itself: a
#	subshell (...) forgets what was answered. Options, IFS, positional parameters and your variables
#	stay as they are; everything private is named _preempt_*.
# Signals: the first call ignores the notice signals ($PREEMPT_SIGNALS, default TERM) where no trap is set:
#	schedulers signal whole process trees, and a script or a command of it that dies of the notice cannot
#	save. Your traps are never replaced, and a trap that you set later takes effect.
# preempt_bg COMMAND [ARGUMENT]... &: a background command that `kill $!` ends, such as a monitor: it gets
#	the default of these signals back. Commands from before the first call have it anyway.
# Errors leave the shell (exit) after one line on stderr, but preempt_saved may return 43 instead. (A script
# that must not exit calls preempt-step(1), whose exit code is the answer.) Codes:
#	2	wrong use: two writers on one board, a falling or impossible step number, a board or an
#		agent that cannot be seen from here (a container, say); the line says what to do
#	43	the agent or the board is gone: no save can be reported
#   preempt_step also exits, with the agent's code, if the agent tells this task to leave.
# Without $PREEMPT_DIR every call does nothing and returns 0; the first one says so on stderr.
#
# The rules are those of lib/client/board.h; the same tests run through all clients.

# $$ shows whether these variables are of this shell, or of a parent that exported them (set -a).
if [ "${_preempt_process-}" != "$$" ]; then
	_preempt_process=$$
	_preempt_state=new    # new, none (no PREEMPT_DIR), board
	_preempt_board=       # its directory
	_preempt_last=0       # finished steps as last written
	_preempt_answered=-1  # the greatest step that the caller was asked to save
	_preempt_final=-1     # the same, of `exit` only
	_preempt_final_at=-1  # the boundary of that answer: the first one at or after _preempt_final
	_preempt_agent=       # process of the agent, and its start time
	_preempt_agent_started=
	_preempt_line=        # these three: for intermediate results
	_preempt_a=
	_preempt_b=
fi

preempt_bg() {
	IFS=' ' read -r _preempt_a _preempt_b </proc/self/stat || _preempt_a=
	if [ "$#" -eq 0 ] || [ "$_preempt_a" = "$$" ]; then
		_preempt_say "the call is preempt_bg COMMAND [ARGUMENT]... &"
		exit 2
	fi
	_preempt_notices _preempt_default
	case $(command -v "$1") in
	*/*) exec "$@" ;;
	*) "$@" ;; # a function
	esac
}

_preempt_step() {
	[ "$_preempt_state" = board ] || _preempt_attach || return 0
	_preempt_number "${1-}" || _preempt_refuse "'${1-}'"
	_preempt_next=$(($1 + 1))
	if [ "$#" -gt 1 ]; then
		_preempt_number "$2" || _preempt_refuse "'$2'"
		if [ "$#" -gt 2 ] || [ "$2" -le "$1" ]; then
			_preempt_say "step $1, next $2: the call is preempt_step N [NEXT], and NEXT is greater than N"
			exit 2
		fi
		_preempt_next=$2
	fi
	if [ "$1" -lt "$_preempt_last" ]; then
		_preempt_say "step $1 after step $_preempt_last: the number of finished steps never falls; start the command under its agent again to go back to a checkpoint"
		exit 2
	fi
	# Open the file for reading, too (<>), so that it is not truncated: it is overwritten in place.
	printf '%020d %020d\n' "$1" "$_preempt_next" 1<>"$_preempt_board/step" || _preempt_vanished || exit
	_preempt_last=$1
	[ ! -e "$_preempt_board/hold" ] || _preempt_answer "$1" "$_preempt_next"
}

# The same with features of bash, in two thirds of the time if all is well. [[ -lt evaluates its operands:
# check them first. (Other shells parse [[ as a command, and never run it.)
if [ -n "${BASH_VERSION-}" ]; then
	# shellcheck disable=SC3010
	preempt_step() {
		if [[ $_preempt_state != board || $# -ne 1 || -z $1 || $1 = *[!0123456789]* || $1 = 0?* ||
			${#1} -gt 18 || $1 -lt $_preempt_last ]]; then
			_preempt_step "$@"
			return
		fi
		printf '%020d %020d\n' "$1" "$(($1 + 1))" 1<>"$_preempt_board/step" || _preempt_vanished || exit
		_preempt_last=$1
		[[ ! -e $_preempt_board/hold ]] || _preempt_answer "$1"
	}
else
	preempt_step() {
		_preempt_step "$@"
	}
fi

preempt_saved() {
	[ "$_preempt_state" = board ] || _preempt_attach || return 0
	if [ "$#" -ne 1 ] || ! _preempt_number "$1"; then _preempt_refuse "'$*'"; fi
	printf '%020d\n' "$1" 1<>"$_preempt_board/saved" || _preempt_vanished || return
	[ ! -e "$_preempt_board/hold" ] || _preempt_barrier "$1"
}

# Act on what hold asks for when $1 steps are finished, and the next boundary is $2 ($1 + 1). A task whose
# boundaries pass the step waits at the last one before it, until the agents have found a later step. Once the
# final save was asked for, no further step may start: asking at the same boundary again waits for the report of the save.
_preempt_answer() {
	_preempt_seen='' _preempt_turns=0
	while :; do
		_preempt_look || exit
		case $_preempt_word in
		none) return 0 ;;
		leave) exit "$_preempt_s" ;;
		save)
			[ "$_preempt_s" -gt "$_preempt_answered" ] || return 0
			if [ "$1" -ge "$_preempt_s" ]; then
				_preempt_answered=$_preempt_s
				return 10
			fi
			[ "${2-0}" -gt "$_preempt_s" ] || return 0
			;;
		exit)
			if [ "$_preempt_s" -le "$_preempt_final" ]; then
				if [ "$1" -le "$_preempt_final_at" ] && ! _preempt_reported "$_preempt_s"; then
					_preempt_turns=$((_preempt_turns + 1)) # of 20 ms each
					[ "$_preempt_turns" -le 100 ] || return 10
				fi
			elif [ "$1" -lt "$_preempt_s" ]; then
				[ "${2-0}" -gt "$_preempt_s" ] || return 0
			else
				_preempt_final=$_preempt_s
				_preempt_final_at=$1
				[ "$_preempt_answered" -ge "$_preempt_s" ] || _preempt_answered=$_preempt_s
				return 10
			fi
			;;
		esac
		_preempt_turn || exit 43
	done
}

# True if a save of step $1 or a later one was reported. Keeps the text of hold in _preempt_line.
_preempt_reported() {
	_preempt_a=$_preempt_line
	_preempt_read "$_preempt_board/saved"
	_preempt_b=${_preempt_line#"${_preempt_line%%[!0]*}"}
	_preempt_line=$_preempt_a
	_preempt_number "${_preempt_b:-0}" && [ "${_preempt_b:-0}" -ge "$1" ] && [ -s "$_preempt_board/saved" ]
}

# The exit barrier: wait, after the final save of step $1, until all tasks have saved.
_preempt_barrier() {
	_preempt_seen=
	_preempt_parked=
	while :; do
		_preempt_look || return
		case $_preempt_word in
		leave) return "$_preempt_s" ;;
		exit)
			[ "$1" -ge "$_preempt_s" ] || return 0
			_preempt_parked=yes
			;;
		wait)
			if [ -z "$_preempt_parked" ]; then
				_preempt_tell
				return 0
			fi
			;;
		*) return 0 ;; # hold is gone, or of another round: the next boundary acts on it
		esac
		_preempt_turn || return 43
	done
}

# Read hold: _preempt_word is none, wait, save, exit or leave; _preempt_s the number of the last three;
# _preempt_watch the process of wait, save and exit, or empty. Text that cannot be parsed is treated as a wait.
_preempt_look() {
	_preempt_word=none _preempt_s='' _preempt_watch='' _preempt_garbled=''
	_preempt_read "$_preempt_board/hold" || _preempt_read "$_preempt_board/hold" || {
		if [ -e "$_preempt_board/hold" ]; then
			_preempt_word='wait'
			_preempt_garbled=yes
		elif [ ! -d "$_preempt_board" ]; then
			_preempt_say "the board $_preempt_board has vanished, the agent is gone; leaving with 43"
			return 43
		fi
		return 0
	}
	_preempt_word=${_preempt_line%% *}
	_preempt_s=${_preempt_line#"$_preempt_word"}
	_preempt_s=${_preempt_s# }
	_preempt_watch=${_preempt_s#"${_preempt_s%% *}"}
	_preempt_s=${_preempt_s%% *}
	case $_preempt_word in
	wait)
		[ -z "$_preempt_watch" ] && _preempt_pid "$_preempt_s" && {
			_preempt_watch=$_preempt_s
			return 0
		}
		;;
	save | exit)
		_preempt_number "$_preempt_s" && {
			[ -z "$_preempt_watch" ] || _preempt_pid "${_preempt_watch# }"
		} && {
			_preempt_watch=${_preempt_watch# }
			return 0
		}
		;;
	leave)
		[ -z "$_preempt_watch" ] && case $_preempt_s in
		[123456789] | [123456789][0123456789]) return 0 ;;
		[12][0123456789][0123456789]) [ "$_preempt_s" -gt 255 ] || return 0 ;;
		esac
		;;
	esac
	_preempt_word=wait _preempt_s='' _preempt_watch='' _preempt_garbled=yes
}

# Wait a moment for hold to change. 1: the process that hold names is gone, and hold is the same when read
# again after that. (An agent may write hold a last time and end.)
_preempt_turn() {
	_preempt_tell
	if [ -n "$_preempt_watch" ]; then
		if [ "$_preempt_watch" = "$_preempt_agent" ]; then
			_preempt_a=$_preempt_agent_started
		else
			_preempt_a=
		fi
		_preempt_alive "$_preempt_watch" "$_preempt_a" || {
			if [ "$_preempt_gone" = "$_preempt_watch" ]; then
				_preempt_say "the agent (process $_preempt_watch) is gone while this task waits; leaving with 43"
				return 1
			fi
			_preempt_gone=$_preempt_watch
			return 0
		}
	fi
	_preempt_gone=
	_preempt_sleep
}

# If hold cannot be parsed, report its text, once for each text.
_preempt_tell() {
	[ "$_preempt_seen" != ".$_preempt_line" ] || return 0
	_preempt_seen=.$_preempt_line
	_preempt_gone=
	[ -z "$_preempt_garbled" ] ||
		_preempt_say "cannot understand $_preempt_board/hold: $_preempt_line; waiting here until the agent changes it"
}

# Sleep for 20 ms. Reading a fifo that no process writes to, with a timeout, needs no fork.
_preempt_sleep() {
	if [ -n "${BASH_VERSION-}" ] && [ -p "$_preempt_board/pause" ]; then
		# shellcheck disable=SC3045
		IFS= read -r -t 0.02 _preempt_a <>"$_preempt_board/pause" || :
	else
		sleep 0.02 2>/dev/null || sleep 1
	fi
}

# Read the file $1 into _preempt_line. 1: it is not there, or it is not one whole line.
_preempt_read() {
	_preempt_line='' _preempt_b=''
	{
		{ IFS= read -r _preempt_line && ! IFS= read -r _preempt_b && [ -z "$_preempt_b" ]; } <"$1"
	} 2>/dev/null
}

# True if $1 is a step number.
_preempt_number() {
	case $1 in
	'' | 0?* | *[!0123456789]* | ???????????????????*) return 1 ;;
	esac
}

# True if $1 is the number of a process.
_preempt_pid() {
	case $1 in
	'' | 0* | *[!0123456789]* | ???????????*) return 1 ;;
	esac
}

# Print one line on stderr, control characters replaced.
_preempt_say() {
	while :; do
		case $1 in
		*[![:print:]]*) set -- "${1%%[![:print:]]*}?${1#*[![:print:]]}" ;;
		*) break ;;
		esac
	done
	printf 'preempt: %s\n' "$1" >&2 || :
}

_preempt_refuse() {
	_preempt_say "$1 is not a step number: 0 to 999999999999999999, decimal, no leading zeros"
	exit 2
}

_preempt_vanished() {
	_preempt_say "cannot write on the board $_preempt_board: it has vanished, or its filesystem is full; leaving with 43"
	return 43
}

# Read what /proc shows of process $1: _preempt_a becomes its state, _preempt_b its start time, field 22. The
# name in parentheses may contain anything: count fields after it.
_preempt_stat() {
	_preempt_read "/proc/$1/stat" || return
	_preempt_line=${_preempt_line##*') '}
	_preempt_a=${_preempt_line%% *}
	_preempt_b=${_preempt_line#* * * * * * * * * * * * * * * * * * * }
	_preempt_b=${_preempt_b%% *}
}

# True if process $1, started at $2 (empty: unknown), lives. A zombie does not.
_preempt_alive() {
	if _preempt_stat "$1"; then
		case $_preempt_a in
		Z | X) return 1 ;;
		esac
		[ -z "$2" ] || [ "$2" = "$_preempt_b" ]
	else
		kill -0 "$1" 2>/dev/null
	fi
}

# At the first use find the board, check its agent, become its owner. 1: there is no board.
_preempt_attach() {
	[ "$_preempt_state" = new ] || return 1
	if [ -z "${PREEMPT_DIR-}" ]; then
		_preempt_say "PREEMPT_DIR is not set: no agent, so nothing will ask this task to save"
		_preempt_state=none
		return 1
	fi
	_preempt_find
	_preempt_check_agent
	_preempt_take
	# Read the last step of this shell: a subshell of it may have asked before.
	if _preempt_read "$_preempt_board/step"; then
		_preempt_line=${_preempt_line%% *}
		_preempt_last=${_preempt_line#"${_preempt_line%%[!0]*}"}
		_preempt_last=${_preempt_last:-0}
	elif [ -s "$_preempt_board/step" ]; then
		_preempt_last=
	fi
	_preempt_number "$_preempt_last" || {
		_preempt_say "$_preempt_board/step has no step number in it: damaged; start the command under its agent again"
		exit 2
	}
	_preempt_notices _preempt_ignore
	_preempt_state=board
}

_preempt_find() {
	_preempt_board=$PREEMPT_DIR
	case $_preempt_board in
	/*) ;;
	*) _preempt_board=$PWD/$_preempt_board ;;
	esac
	if [ -n "${PREEMPT_RANKS+set}" ]; then
		_preempt_pid "$PREEMPT_RANKS" || {
			_preempt_say "PREEMPT_RANKS=$PREEMPT_RANKS is not a number of ranks; leave it as the agent set it"
			exit 2
		}
		if ! _preempt_number "${LOCAL_RANK-}" || [ "$LOCAL_RANK" -ge "$PREEMPT_RANKS" ]; then
			_preempt_say "LOCAL_RANK is ${LOCAL_RANK:-not set}, but the agent serves ranks 0 to $((PREEMPT_RANKS - 1)); start the ranks with a launcher that sets LOCAL_RANK (torchrun), or set it"
			exit 2
		fi
		_preempt_board=$_preempt_board/$LOCAL_RANK
	fi
	[ -d "$_preempt_board" ] || {
		_preempt_say "the board $_preempt_board is not visible here: in a container? share the directory and use --board"
		exit 2
	}
}

_preempt_check_agent() {
	[ -e "$_preempt_board/agent" ] || return 0
	_preempt_read "$_preempt_board/agent" || _preempt_line=
	_preempt_agent=${_preempt_line%% *}
	_preempt_pid "$_preempt_agent" || {
		_preempt_say "$_preempt_board/agent does not name the agent's process: not a board, or damaged; start the command under its agent again"
		exit 2
	}
	# If the agent is gone or we may not ask, _preempt_alive finds out.
	# shellcheck disable=SC3013
	if [ -e /proc/self/ns/pid ] && [ -e "/proc/$_preempt_agent/ns/pid" ] &&
		! [ /proc/self/ns/pid -ef "/proc/$_preempt_agent/ns/pid" ]; then
		_preempt_say "the agent (process $_preempt_agent) is in another PID namespace, so its death could not be seen; run the agent inside the container, or share the PID namespace"
		exit 2
	fi
	_preempt_alive "$_preempt_agent" '' || {
		_preempt_say "the agent of the board $_preempt_board (process $_preempt_agent) is gone, or not visible from this container; leaving with 43"
		exit 43
	}
	if _preempt_stat "$_preempt_agent"; then _preempt_agent_started=$_preempt_b; fi
}

# Make this shell the board's writer; board.h says how a second one is kept out. A subshell counts as the
# shell that made it.
_preempt_take() {
	_preempt_started=
	if _preempt_stat "$$"; then _preempt_started=$_preempt_b; fi
	_preempt_path=$_preempt_board/owner
	_preempt_count=0
	until _preempt_create "$_preempt_path"; do
		[ -e "$_preempt_path" ] || {
			_preempt_say "cannot write on the board $_preempt_board: it must belong to the user who trains"
			exit 2
		}
		[ -z "$_preempt_full" ] || {
			_preempt_say "cannot write on the board $_preempt_board: its filesystem may be full"
			exit 2
		}
		_preempt_owner "$_preempt_path"
		if [ "$_preempt_pid" = "$$" ]; then
			case ,$_preempt_since,$_preempt_started, in
			,,* | *,,) return 0 ;;
			esac
			[ "$_preempt_since" != "$_preempt_started" ] || return 0
		elif [ -n "$_preempt_pid" ] && _preempt_alive "$_preempt_pid" "$_preempt_since"; then
			_preempt_say "the board $_preempt_board belongs to process $_preempt_pid, this is process $$; let one process per task call it, and give each task its own board (preempt-run -n L or --ranks L)"
			exit 2
		fi
		_preempt_count=$((_preempt_count + 1))
		_preempt_path=$_preempt_board/owner.$_preempt_count
	done
	[ "$_preempt_count" -eq 0 ] || {
		# Discard the former script's step and answers: this one may have gone back to an earlier
		# checkpoint.
		for _preempt_b in step saved answered; do
			[ ! -e "$_preempt_board/$_preempt_b" ] || printf '' >|"$_preempt_board/$_preempt_b" ||
				_preempt_vanished || exit
		done
		printf '%s\n' "$$${_preempt_started:+ $_preempt_started}" >|"$_preempt_board/owner" || :
	}
}

# Make the owner file $1, which names this shell. 1: it exists (noclobber: O_EXCL), or cannot be made; or it was
# made and cannot be written: then _preempt_full is set.
_preempt_create() {
	_preempt_full=
	case $- in
	*C*) _preempt_a= ;;
	*)
		_preempt_a=yes
		set -C
		;;
	esac
	if {
		{ printf '%s\n' "$$${_preempt_started:+ $_preempt_started}" || {
			_preempt_full=yes
			false
		}; } >"$1"
	} 2>/dev/null; then
		[ -z "$_preempt_a" ] || set +C
	else
		[ -z "$_preempt_a" ] || set +C
		return 1
	fi
}

# Read the owner file $1 into _preempt_pid and its start time _preempt_since; both empty: it names no process.
# The file is created first and filled a moment later.
_preempt_owner() {
	_preempt_tries=0
	while [ "$_preempt_tries" -lt 50 ]; do
		if _preempt_read "$1"; then
			_preempt_pid=${_preempt_line%% *}
			_preempt_since=${_preempt_line#"$_preempt_pid"}
			_preempt_since=${_preempt_since# }
			_preempt_pid "$_preempt_pid" || _preempt_pid=
			return 0
		fi
		_preempt_sleep
		_preempt_tries=$((_preempt_tries + 1))
	done
	_preempt_pid='' _preempt_since=''
}

# Run $1 SIGNAL for each notice signal.
_preempt_notices() {
	_preempt_list=${PREEMPT_SIGNALS-TERM},
	while [ -n "$_preempt_list" ]; do
		_preempt_b=${_preempt_list%%,*}
		_preempt_b=${_preempt_b#SIG}
		_preempt_list=${_preempt_list#*,}
		case $_preempt_b in
		HUP | INT | QUIT | USR1 | USR2 | ALRM | TERM | CONT | TSTP | URG | XCPU | XFSZ | PWR)
			$1 "$_preempt_b"
			;;
		'') ;;
		*) _preempt_say "PREEMPT_SIGNALS: no signal $_preempt_b that could be ignored" ;;
		esac
	done
}

_preempt_default() {
	# shellcheck disable=SC2064
	trap - "$1"
}

# Ignore the signal if it has no trap. List the traps in a file on the board, because $(trap) would fork.
_preempt_ignore() {
	# shellcheck disable=SC2064
	_preempt_trapped "$1" || trap '' "$1"
}

_preempt_trapped() {
	_preempt_path=$PREEMPT_DIR/traps.$$
	if [ -n "${BASH_VERSION-}" ]; then
		# shellcheck disable=SC3045,SC3047
		trap -p "$1" >|"$_preempt_path" || return 0
		[ -s "$_preempt_path" ]
		return
	fi
	trap >|"$_preempt_path" || return 0
	while IFS= read -r _preempt_line; do
		case $_preempt_line in
		*" $1" | *" SIG$1") return 0 ;;
		esac
	done <"$_preempt_path"
	return 1
}
