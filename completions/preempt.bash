# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion for bash, for all the programs: candidates.sh prints the candidates. "make install"
# installs this file under the name of each program, under which bash-completion looks for it.

_preempt_candidates=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &&
	for file in "$PWD/candidates.sh" "$PWD/../../preempt/candidates.sh"; do
		[ ! -r "$file" ] || printf '%s\n' "$file"
	done)

_preempt() {
	local rest=${COMP_LINE:0:COMP_POINT} cur line word paths i breaks
	local -a words=() found=()
	COMPREPLY=()

	# COMP_WORDS is also cut at : and =. Join its parts: here only a space ends a word.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		word=${rest#"${rest%%[![:space:]]*}"}
		if [ "$i" = 0 ] || [ "$word" != "$rest" ]; then
			words+=("")
		fi
		rest=$word
		word=${COMP_WORDS[i]}
		[[ $i -lt $COMP_CWORD && $rest = "$word"* ]] || word=$rest
		words[-1]+=$word
		rest=${rest#"$word"}
	done
	words=("${words[@]//[\"\'\\]/}")
	cur=${words[-1]}

	while IFS= read -r line; do
		word=${line%%$'\t'*}
		paths=
		case $line in
		:files\ * | :directories\ * | :commands\ *)
			paths=${line%% *}
			word=${line#* }
			;;
		:line\ *)
			if declare -F _command_offset >/dev/null; then
				# _command_offset counts in COMP_WORDS.
				for ((i = 1; i < COMP_CWORD; i++)); do
					[ "${COMP_WORDS[i]}" != -- ] || break
				done
				_command_offset $((i + 1))
				return
			elif [ "${line#* }" = $((${#words[@]} - 1)) ]; then
				paths=:commands word=
			else
				paths=:files word=
			fi
			;;
		esac
		case $paths in
		:files) mapfile -t -O ${#found[@]} found < <(compgen -P "$word" -f -- "${cur#"$word"}") ;;
		:directories) mapfile -t -O ${#found[@]} found < <(compgen -P "$word" -d -- "${cur#"$word"}") ;;
		:commands) mapfile -t -O ${#found[@]} found < <(compgen -P "$word" -c -- "${cur#"$word"}") ;;
		*) [[ $word != "$cur"* ]] || found+=("$word") ;;
		esac
		[[ $paths != :[fd]* ]] || compopt -o filenames 2>/dev/null
	done < <([ -z "$_preempt_candidates" ] || sh "$_preempt_candidates" "${words[@]}" 2>/dev/null)

	# readline replaces only what follows the last : or =.
	breaks=${COMP_WORDBREAKS//[^:=@]/}
	[[ -z $breaks ]] || cur=${cur%"${cur##*["$breaks"]}"}
	[[ $cur != *["$breaks"] ]] || found=("${found[@]#"$cur"}")
	COMPREPLY=("${found[@]}")
	[[ "${COMPREPLY[*]}" != *[:=@] ]] || compopt -o nospace 2>/dev/null
}

complete -F _preempt "${BASH_SOURCE[0]##*/}"
