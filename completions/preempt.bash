# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion for bash, of all the programs. What there is to complete is read from --help at the
# moment it is asked for, so it is always that of the program at hand. make install puts this file
# under the name of each program, which is how bash-completion finds it.

# The words a value can be, one a line: _preempt_values VALUE HELP CUR
_preempt_values() {
	local kind=$1 help=$2 cur=$3 word
	case $kind in
	DIR) compgen -d -- "$cur" ;;
	FILE | PATH) compgen -f -- "$cur" ;;
	COMMAND) compgen -c -- "$cur" ;;
	SIGNALS) compgen -W "$(compgen -A signal | sed -n 's/^SIG//p')" -- "$cur" ;;
	*)
		# "all (default) or chief: what it means", "min or max: what it means"
		if [[ $help = *'(default)'* || $help =~ ^[a-z]+' or '[a-z]+: ]]; then
			compgen -W "$(sed 's/:.*//; s/([^)]*)//g; s/ or / /g; s/,//g' <<<"$help")" -- "$cur"
			return
		fi
		# "signal:TERM,USR1, file:PATH or command:TEXT"
		for word in $help; do
			[[ $word =~ ^[a-z]+:[A-Z] ]] && compgen -W "${word%%:*}:" -- "$cur"
		done
		[ "$kind" != URL ] || compgen -f -- "$cur"
		;;
	esac
}

_preempt() {
	local program=${1/#\~/$HOME} cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local help line option command i
	local -a offered=() commands=()
	local entry='^ +((-[a-zA-Z0-9]), )?(--[a-z][a-z-]*)( ([A-Z]+))? +(.*)$'
	COMPREPLY=()

	# What follows "--" is another command line.
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			elif ((i == COMP_CWORD - 1)); then
				mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			fi
			return
		fi
	done

	help=$("$program" --help 2>/dev/null </dev/null) || return
	if [[ $help = *$'\n'commands:* ]]; then
		mapfile -t commands < <(sed -n '/^commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' <<<"$help")
		# Options that all have may stand before the command.
		command=
		for ((i = 1; i < COMP_CWORD && ${#command} == 0; i++)); do
			[[ " ${commands[*]} " != *" ${COMP_WORDS[i]} "* ]] || command=${COMP_WORDS[i]}
		done
		if [ -z "$command" ]; then
			mapfile -t COMPREPLY < <(compgen -W "${commands[*]} --help --version" -- "$cur")
			return
		fi
		help=$("$program" "$command" --help 2>/dev/null </dev/null) || return
	fi

	# readline cuts --option=value into three words.
	if [ "$cur" = = ]; then
		cur=
	elif [ "$before" = = ]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	while IFS= read -r line; do
		[[ $line =~ $entry ]] || continue
		option=${BASH_REMATCH[3]}
		if [ -n "${BASH_REMATCH[5]}" ] && [[ $before = "$option" || $before = "${BASH_REMATCH[2]}" ]]; then
			mapfile -t COMPREPLY < <(_preempt_values "${BASH_REMATCH[5]}" "${BASH_REMATCH[6]}" "$cur")
			case ${BASH_REMATCH[5]} in
			DIR | FILE | PATH | URL) compopt -o filenames 2>/dev/null ;;
			esac
			[[ ${COMPREPLY[*]} != *: ]] || compopt -o nospace 2>/dev/null
			return
		fi
		offered+=("${BASH_REMATCH[2]}" "$option")
	done <<<"$help"
	[[ $cur != -* ]] || mapfile -t COMPREPLY < <(compgen -W "${offered[*]}" -- "$cur")
}

complete -o default -F _preempt "${BASH_SOURCE[0]##*/}"
