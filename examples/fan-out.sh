#!/bin/bash
# SPDX-License-Identifier: MIT
# A preprocessing fan-out: each file of a directory is a command in a queue, and the tasks of a Slurm
# array (fan-out.sbatch) run them, although they may be preempted at any time.
#
#   examples/fan-out.sh IN OUT 'TEXT FOR sh, WITH $1: THE FILE, $2: ITS RESULT' [OPTION OF sbatch...]
#   examples/fan-out.sh raw clean 'tr A-Z a-z <"$1" >"$2"' --partition=low
#
# It may be started again: the same set of files is not scheduled again, and the commands of another
# set skip files that have their results. Exits with 0 when every file has its result.
set -euo pipefail

[ $# -ge 3 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
in=$(realpath "$1") text=$3
mkdir -p "$2"
out=$(realpath "$2")
shift 3
export PREEMPT_STORE=${PREEMPT_STORE:-$PWD/queue.db} PREEMPT_QUEUE=${PREEMPT_QUEUE:-fan-out}

files() { find "$in" -maxdepth 1 -type f -print0 | sort -z; }

# A result appears whole or not at all. Neither a preemption nor a lost machine costs an attempt.
# shellcheck disable=SC2016 # expanded by the shell that the worker starts
files | preempt-queue schedule --lines -0 --once "files-$(files | cksum | tr ' ' -)" --max-attempts 3 --shell -- \
	'set -e; to=$2/${1##*/} part=$2/.${1##*/}.$$; [ ! -e "$to" ] || exit 0
	sh -euc "$3" sh "$1" "$part"; mv "$part" "$to"' \
	{} "$out" "$text" >/dev/null

job=$(sbatch --parsable "$@" "$here/fan-out.sbatch")
code=0
preempt-queue join || code=$?
# End the workers that wait for more commands, and those that Slurm would start again.
scancel --quiet "$job" || :
exit "$code"
