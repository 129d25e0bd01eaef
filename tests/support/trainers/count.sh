#!/bin/bash
# SPDX-License-Identifier: MIT
# count.sh DIR STEPS STEP_SECONDS: what count.c does, with the client for shells.
set -euo pipefail
cd "$1"
# shellcheck source=../../lib/client/preempt.sh
. "$CLIENTS/preempt.sh"
steps=$2 pause=$3 task=$PREEMPT_TASK log=log/$PREEMPT_ATTEMPT.$PREEMPT_TASK
mkdir -p log ckpt end

complete() {
	local i
	for ((i = 0; i < PREEMPT_TASKS; i++)); do [[ -e ckpt/$1/$i ]] || return; done
}

save() {
	echo "save $1" >>"$log"
	mkdir -p "ckpt/$1" && echo "$counter" >"ckpt/.$task" && mv "ckpt/.$task" "ckpt/$1/$task" &&
		echo "saved $1" >>"$log"
}

start=0 counter=0
for s in ckpt/*; do
	s=${s#ckpt/}
	if [[ $s != "*" ]] && complete "$s" && ((s > start)); then start=$s; fi
done
((start == 0)) || read -r counter <"ckpt/$start/$task"
echo "start $start" >>"$log"
exec 9<> <(:)

for ((s = start; s < steps; s++)); do
	echo "ask $s" >>"$log"
	preempt_step $s || { save $s && preempt_saved $s; } || exit
	echo "begin $s" >>"$log"
	read -r -t "$pause" -u 9 || :
	counter=$((counter + 1))
done
echo "$counter" >"end/$task"
echo "end $s" >>"$log"
