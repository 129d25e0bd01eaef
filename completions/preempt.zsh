#compdef ckpt-rotate -P preempt-*
# SPDX-License-Identifier: MIT
# Completion for zsh, for all the programs: candidates.sh prints the candidates. Installed as _preempt.

setopt localoptions extendedglob
local line word from=${${(%):-%x}:A:h}
local -a found files closed open own
files=($from/candidates.sh(N) $from/../../preempt/candidates.sh(N))
(( $#files )) || return

found=(${(f)"$(sh $files[1] ${(Q)words[1, CURRENT - 1]} "$PREFIX" 2>/dev/null)"})
for line in $found; do
	word=${line%%$'\t'*}
	case $line in
	:line\ *)
		shift ${line#* } words
		(( CURRENT -= ${line#* } ))
		_normal
		return
		;;
	:*\ *) own+=($line) ;;
	*)
		# _describe wants a colon between word and description.
		line=${word//:/\\:}${${line#$word}/$'\t'/:}
		[[ $word = *[:=@,/] ]] && open+=($line) || closed+=($line)
		;;
	esac
done
(( ! $#closed )) || _describe -o -t values value closed
(( ! $#open )) || _describe -o -t values value open -S ''
for line in $own; do
	[[ $line = *' ' ]] || compset -P "${(b)line#* }" || continue
	case $line in
	:files*) _files ;;
	:directories*) _directories ;;
	:commands*) _command_names -e ;;
	esac
done
