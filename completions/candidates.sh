#!/bin/sh
# SPDX-License-Identifier: MIT
# candidates.sh PROGRAM [WORD...] CURRENT: print candidates for CURRENT, the word on this command line
# that contains the cursor (may be ''). The completions of bash, zsh and fish call this script.
# Prints one line for each candidate, "WORD" or "WORD<tab>DESCRIPTION". A line that begins with a colon
# asks the shell to complete, in its own way, the part of CURRENT after PREFIX (may be empty):
#   :files PREFIX   :directories PREFIX   :commands PREFIX
#   :line N         word N (PROGRAM is word 0) begins another command line
# The shell drops candidates that do not fit CURRENT. There is no list here: options and words come
# from --help, everything else from the programs and the system. Prints nothing if a program cannot
# answer. Exit code 3: --help names a kind of value that is unknown here (see tests/docs/completions.bats).
set -u

# expand WORD: print WORD with ~/ expanded, as the shell will do.
expand() {
	case $1 in
	\~/*) printf '%s\n' "$HOME/${1#??}" ;;
	*) printf '%s\n' "$1" ;;
	esac
}

# ask PROGRAM [WORD...]: run PROGRAM from the directory of the completed program, for a second at most.
ask() {
	asked=$1
	shift
	timeout 1 "$directory$asked" "$@" 2>/dev/null </dev/null
}

# Print the options in --help, one per line: LETTER|OPTION|VALUE|TEXT
options() {
	printf '%s\n' "$help" |
		sed -nE 's/^ +((-[a-zA-Z0-9]), )?(--[a-z][a-z-]*)( ([][A-Z@=]+))? +(.*)$/\2|\3|\5|\6/p'
}

# find_option WORD: set option, value and text. Fails if there is no option WORD.
find_option() {
	while IFS='|' read -r letter option value text; do
		[ "$1" != "$option" ] || return 0
		[ -z "$letter" ] || [ "$1" != "$letter" ] || return 0
	done <<-EOF
		$table
	EOF
	return 1
}

# Print each line of stdin after $prefix, the part of CURRENT that it continues.
offer() {
	while IFS= read -r line; do
		printf '%s%s\n' "$prefix" "$line"
	done
}

own() { printf ':%s %s\n' "$1" "$prefix"; }

# In a list with commas only the last word is being typed.
after_comma() {
	case $current in
	*,*)
		prefix=$prefix${current%,*},
		current=${current##*,}
		;;
	esac
}

signals() {
	kill -l | awk '{ gsub(/SIG|\)/, " ")
		for (i = 1; i <= NF; i++) if ($i ~ /^[A-Z]+[12]?$/ && $i !~ /^(KILL|STOP)$/) print $i }'
}

# words TEXT: print all and chief of "all (default) or chief: what it means". Fails if TEXT has no "or".
words() {
	printf '%s\n' "$1" | awk '{ sub(/[:;].*/, ""); gsub(/\([^)]*\)/, "") }
		!/ or / { exit 1 }
		{ gsub(/,| or /, " "); for (i = 1; i <= NF; i++) print $i }'
}

# forms FORM...: candidates for a form such as signal:TERM, file:PATH or gce: its name, then its value.
forms() {
	for form; do
		case $form in
		*:*) ;;
		*) continue ;;
		esac
		case $current in
		"${form%%:*}:"*)
			prefix=$prefix${form%%:*}:
			current=${current#*:}
			case ${form#*:} in
			PATH*) own files ;;
			TEXT*) own commands ;;
			TERM* | USR1*) after_comma && signals | offer ;;
			esac
			return
			;;
		esac
	done
	printf '%s\n' "$@" | sed 's/:.*/:/' | offer
}

steps() {
	[ -z "$first" ] || ask ckpt-rotate list "$(expand "$first")" ${layout:+--layout "$layout"} \
		${pattern:+--pattern "$pattern"} | awk '$1 ~ /^[0-9]+$/ { print $1 "\t" $NF }'
}

store() { ask preempt-store "$@" ${store:+--store "$store"} ${run:+--run "$run"}; }

queue() { ask preempt-queue "$@" ${store:+--store "$store"} ${queue:+--queue "$queue"}; }

# Print the keys that begin with CURRENT, each up to the next slash.
keys() {
	store list "$current" | awk -v typed="${#current}" '{
		rest = substr($0, typed + 1)
		at = index(rest, "/")
		print substr($0, 1, at ? typed + at : length($0))
	}' | uniq
}

# values OPTION VALUE TEXT: candidates for a value as --help names it. For a positional word, OPTION is ''.
values() {
	case "$1 $2" in
	"--run "*) store runs | awk 'NR > 1 { print $1 "\t" $3 }' | offer ;;
	"--tag "*) queue list | awk 'NR > 1 && $6 != "-" { print $6 }' | sort -u | offer ;;
	"--worker "*) queue workers | awk 'NR > 1 { print $1 }' | offer ;;
	*" SIGNALS") after_comma && signals | offer ;;
	*" SIG") signals | offer ;;
	*" SIG@D") signals | sed 's/$/@/' | offer ;;
	*" SOURCE" | *" SPEC")
		known=$(ask preempt-watch --show-platform | sed -n 's/^sources: //p' | sed 's/, / /g')
		case " $3 " in *" group "*) known="$known group" ;; esac
		# shellcheck disable=SC2086 # words
		forms $known
		;;
	*" HOW")
		# shellcheck disable=SC2046 # words
		forms $(printf '%s\n' "$3" | grep -oE '\b[a-z]+:[A-Z0-9]+')
		;;
	*" NAMES")
		after_comma
		{
			[ -n "${prefix#*=}" ] || printf '%s\n' "$3" | grep -oE '^auto|\bnone\b'
			ask preempt-watch --show-platform | awk 'NF == 0 { exit } NR > 1 { print $1 }'
		} | offer
		;;
	"--layout NAME" | "--platform NAME" | *" WHO" | *" WHOM" | *" WHAT" | *" WHICH" | *" WHEN" | *" FORMAT" | "--state S")
		[ "$1" != --state ] || after_comma
		found=$(words "$3") || exit 3
		printf '%s\n' "$found" | offer
		;;
	*" DIR" | *" DEST" | *" DIRECTORY" | "--other PATH") own directories ;;
	*" FILE") own files ;;
	*" COMMAND") own commands ;;
	*" URL" | " FROM" | " TO")
		case $current in sqlite:*) prefix=${prefix}sqlite: ;; esac
		own files
		ask preempt-store runs --help | sed -nE 's|^ *--store .* ([a-z]+://).*|\1|p' | offer
		;;
	*" STEP") steps | offer ;;
	"--keep-step STEPS") after_comma && steps | offer ;;
	*" ID")
		[ "$1" != --after ] || after_comma
		queue list | awk 'NR > 1 { print $1 "\t" $2 }' | offer
		;;
	" KEY" | " PREFIX") keys ;;
	" "[a-z]*"|"[a-z]*) printf '%s\n' "$2" | tr '|' '\n' ;;
	# Values that only the user knows.
	*" D" | *" N" | *" M" | *" K" | *" I" | *" L" | *" R" | *" RC" | *" [N]" | *" SIZE" | *" INSTANT") ;;
	*" PID" | *" PIDS" | *" TEXT" | *" WORD" | *" PATTERN" | *" ENTRY" | "--once KEY") ;;
	"--metric "* | "--session NAME" | "--queue NAME" | "--resource NAME") ;;
	" NAME" | " NEXT" | " VALUE"*) ;;
	*) exit 3 ;;
	esac
}

# Print the positional words that the usage line names, one per line.
positional() {
	skip=no
	# shellcheck disable=SC2046 # words
	set -- $(printf '%s\n' "$help" | sed -n "1s/^usage: [a-z-]*${command:+ $command}//p")
	for word; do
		bare=${word#[}
		bare=${bare%]}
		case $bare in
		--) return ;;
		-*)
			# Skip the value in "--or WORD]"; "--json]" and "--last |" have none.
			skip=yes
			case $word in *]*) skip=no ;; esac
			continue
			;;
		'|' | OPTION...*) ;;
		*)
			case $word in '['*) skip=no ;; esac
			[ $skip = yes ] || printf '%s\n' "${bare%]}"
			;;
		esac
		skip=no
	done
}

# place N: candidates for positional word N, from 0: also those of an earlier word that may be repeated.
place() {
	at=0
	repeated=no
	for kind in $(positional); do
		case $kind in *...) repeated=yes ;; esac
		if [ $at = "$1" ] || [ $repeated = yes ]; then
			values '' "${kind%...}" ''
		fi
		[ $at != "$1" ] || return 0
		at=$((at + 1))
	done
}

program=$(expand "$1")
shift
directory=
case $program in */*) directory=${program%/*}/ ;; esac
first='' store='' run='' queue='' layout='' pattern='' command='' commands='' prefix=''

help=$("$program" --help 2>/dev/null </dev/null) || exit 0
table=
case $help in
*'
commands:
'*) commands=$(printf '%s\n' "$help" | sed -n '/^commands:/,/^$/s/^  \([a-z][a-z-]*\)  *\(.*\)/\1	\2/p') ;;
esac

# Options that all commands have may stand before the command.
count=0
for word; do
	count=$((count + 1))
	if [ $count = $# ] || [ -z "$commands" ] || [ "$word" = -- ]; then
		break
	elif printf '%s\n' "$commands" | grep -q "^$word	"; then
		command=$word
		help=$("$program" "$command" --help 2>/dev/null </dev/null) || exit 0
		break
	fi
done
table=$(options)

# Read the words before CURRENT.
count=0
places=0
pending=
for current; do
	count=$((count + 1))
	[ $count -lt $# ] || break
	if [ -n "$pending" ]; then
		assign=$pending=$current
		pending=
	else
		assign=$current
		case $current in
		--)
			echo ":line $((count + 1))"
			exit
			;;
		-*=*) ;;
		-*)
			! find_option "$current" || case $value in '' | '['*) ;; *) pending=$option ;; esac
			;;
		"$command") ;;
		*)
			[ $places != 0 ] || first=$current
			places=$((places + 1))
			;;
		esac
	fi
	case $assign in
	--store=*) store=$(expand "${assign#*=}") ;;
	--run=*) run=${assign#*=} ;;
	--queue=*) queue=${assign#*=} ;;
	--layout=*) layout=${assign#*=} ;;
	--pattern=*) pattern=${assign#*=} ;;
	esac
done

case $pending$current in
--*=*)
	if [ -z "$pending" ]; then
		pending=${current%%=*}
		prefix=$pending=
		current=${current#*=}
	fi
	;;
esac
if [ -n "$pending" ]; then
	find_option "$pending" && [ -n "$value" ] || exit 0
	values "$option" "$value" "$text"
elif [ -n "$commands" ] && [ -z "$command" ]; then
	printf '%s\n' "$commands" --help --version
else
	case $current in
	-*) printf '%s\n' "$table" | awk -F '|' '{ for (i = 1; i < 3; i++) if ($i != "") print $i "\t" $4 }' ;;
	*) place $places ;;
	esac
fi
