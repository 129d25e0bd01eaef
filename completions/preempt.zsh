#compdef ckpt-rotate -P preempt-*
# SPDX-License-Identifier: MIT
# Completion for zsh, of all the programs. What there is to complete is read from --help at the
# moment it is asked for, so it is always that of the program at hand. Installed as _preempt.

setopt localoptions extendedglob
local program=${~words[1]} before=${words[CURRENT - 1]} command line at
local -a help names long short match mbegin mend

# What follows "--" is another command line.
at=${words[(i)--]}
if (( at < CURRENT )); then
	shift $at words
	(( CURRENT -= at ))
	_normal
	return
fi

help=(${(f)"$($program --help 2>/dev/null </dev/null)"})
if (( ${help[(I)commands:]} )); then
	for line in ${help[${help[(I)commands:]} + 1, -1]}; do
		[[ $line = (#b)'  '([a-z][a-z-]#)' '##(*) ]] || break
		names+=("$match[1]:$match[2]")
	done
	# Options that all have may stand before the command.
	for at in ${words[2, CURRENT - 1]}; do
		(( ${names[(I)${(b)at}:*]} )) && command=$at && break
	done
	if [[ -z $command ]]; then
		_describe -t commands command names
		_describe -o -t options option "(--help --version)"
		return
	fi
	help=(${(f)"$($program $command --help 2>/dev/null </dev/null)"})
fi

# --option=value
if [[ $PREFIX = --*=* ]]; then
	before=${PREFIX%%=*}
	compset -P '*='
fi
for line in $help; do
	[[ $line = (#b)' '##((-[a-zA-Z0-9]), |)(--[a-z][a-z-]#)( ([A-Z]##)|)' '##(*) ]] || continue
	if [[ -n $match[5] && ( $before = $match[3] || $before = $match[2] ) ]]; then
		case $match[5] in
		DIR) _directories ;;
		FILE | PATH) _files ;;
		COMMAND) _command_names -e ;;
		SIGNALS) compadd -- ${signals[2, -3]} ;;
		*)
			if [[ $match[6] = *'(default)'* || $match[6] = [a-z]##' or '[a-z]##:* ]]; then
				# "all (default) or chief: what it means", "min or max: what it means"
				line=${${match[6]%%:*}//(\([^\)]#\)|,| or )/ }
				compadd -- ${=line}
				return
			fi
			# "signal:TERM,USR1, file:PATH or command:TEXT"
			local kind=$match[5]
			for at in ${=match[6]}; do
				[[ $at = [a-z]##:[A-Z]* ]] && compadd -S '' -- ${at%%:*}:
			done
			[[ $kind != URL ]] || _files
			;;
		esac
		return
	fi
	long+=("${match[3]}:${match[6]}")
	[[ -z $match[2] ]] || short+=("${match[2]}:${match[6]}")
done
if [[ $PREFIX = -* ]]; then
	_describe -o -t options option long -- short
else
	_files
fi
