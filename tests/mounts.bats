#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A filesystem that is not mounted: no program takes its empty mount point for an answer, and none
# makes anything there. Each test has a mount namespace and an /etc of its own.
# mounts: private
# asan: no (preloaded libraries)

# shellcheck disable=SC2016,SC2154 # inner shells expand; bats sets stderr
bats_require_minimum_version 1.5.0

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../bin}:$PATH
	faults=${OUT:-$BATS_TEST_DIRNAME/../build/plain}/tests/faults
	dir=$BATS_TEST_TMPDIR/dir
	mkdir -m 700 "$dir"
	cd "$dir" || return
	mkdir -m 700 disk mnt home
	export HOME=$dir/home faults dir BATS_TEST_DIRNAME
	unset PREEMPT_RUN PREEMPT_STORE PREEMPT_MOUNTS PREEMPT_NEW XDG_STATE_HOME XDG_CONFIG_HOME
	unset PREEMPT_ATTEMPT SLURM_RESTART_COUNT
}

teardown() {
	"$BATS_TEST_DIRNAME/rig/forget-stores" "$BATS_TEST_TMPDIR"
}

# inside SCRIPT [ARG...]: run it with bash -eu as root of a mount namespace, with a copy of /etc
# without any mount points. There mounted and unmounted change what is on mnt.
inside() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	unshare --mount true 2>/dev/null || skip "cannot make a mount namespace"
	mkdir etc
	cp -a /etc/. etc/
	: >etc/fstab
	rm -rf etc/preempt etc/auto.* etc/autofs etc/systemd/system/*.mount etc/systemd/system/*.automount
	unshare --mount bash -euo pipefail -c '
		mounted() { mount --bind "$dir/disk" "$dir/mnt"; }
		unmounted() { umount "$dir/mnt"; }
		# answers CODE COMMAND...
		answers() {
			local code=0 wanted=$1
			shift
			timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || code=$?
			[ $code = "$wanted" ] || { echo "$*: $code, not $wanted: $(cat "$dir/out" "$dir/err")"; exit 1; }
		}
		# refused COMMAND...: 75, since it is not mounted.
		refused() {
			answers 75 "$@"
			grep -q "not mounted\|is not there" "$dir/err" || { echo "$*: $(cat "$dir/err")"; exit 1; }
			[ -z "$(ls -A "$dir/mnt")" ] || { echo "$* made $(ls -A "$dir/mnt")"; exit 1; }
		}
		mount --bind etc /etc
		eval "$1"' inside "$@"
}

# bats test_tags=smoke
@test "a filesystem of fstab that is not mounted: every program says 75, and makes nothing" {
	inside '
		echo "server:/x $dir/mnt nfs rw,noauto 0 0" >/etc/fstab
		export PREEMPT_STORE=$dir/mnt/q.db
		mounted
		preempt-queue schedule -q -- echo first
		preempt-store put k v
		at=$(ckpt-rotate begin mnt/ck 5)
		echo x >"$at/f"
		ckpt-rotate commit -q mnt/ck 5
		unmounted
		for command in latest list verify; do
			refused ckpt-rotate $command mnt/ck
			refused ckpt-rotate $command mnt
		done
		refused ckpt-rotate latest mnt/ck --or 0
		refused ckpt-rotate begin mnt/ck 6
		refused ckpt-rotate begin mnt 6
		refused ckpt-rotate commit mnt/ck 5
		refused ckpt-rotate prune --keep-last 1 mnt/ck
		refused ckpt-rotate pin mnt/ck 5
		mkdir local
		refused ckpt-rotate copy local mnt/ck 5
		refused ckpt-rotate copy mnt/ck local 5
		refused preempt-store get k
		refused preempt-store put k w
		refused preempt-store list
		refused preempt-store rm k
		refused preempt-store runs
		refused preempt-store gc --older-than 1h
		refused preempt-store wait k --timeout 1s
		refused preempt-queue schedule -q -- echo second
		refused preempt-queue done
		refused preempt-queue join
		refused preempt-queue list
		refused preempt-claim --run r --outside
		refused preempt-run -q --run r -- true
		refused preempt-heartbeat --list --run r
		refused preempt-requeue --dry-run --run r
		# A store that was made there in spite of it is no answer, either.
		mkdir shadow
		PREEMPT_STORE=$dir/shadow/q.db preempt-store put k shadow
		mount --bind shadow disk
		cp -a shadow/. mnt
		answers 75 preempt-store get k
		rm mnt/*
		umount disk
		mounted
		[ "$(preempt-queue list --json | wc -l)" = 1 ]
		[ "$(preempt-store get k)" = v ]
		[ "$(ckpt-rotate latest mnt/ck --step)" = 5 ]'
}

@test "noticed behind symbolic links, in nested mounts, and not where the path does not go" {
	inside '
		mkdir -p disk/sub other
		ln -s mnt/sub link
		printf "%s\n" "a $dir/link ext4" "swap none swap" "b $dir/mnt/sub/deep\\040er nfs" >/etc/fstab
		mounted
		refused2() { answers 75 "$@"; grep -q "not mounted" err; }
		refused2 ckpt-rotate latest mnt/sub
		refused2 ckpt-rotate latest link/ck
		mount --bind other mnt/sub
		answers 0 ckpt-rotate latest mnt/sub --or 0
		answers 0 ckpt-rotate latest link --or 0
		mkdir -p "mnt/sub/deep er"
		refused2 ckpt-rotate latest "link/deep er"
		# What is mounted below a mount point that is empty is where it should be.
		umount mnt/sub
		mkdir -p "mnt/sub/deep er"
		mount --bind other "mnt/sub/deep er"
		answers 0 ckpt-rotate latest "mnt/sub/deep er" --or 0
		answers 0 ckpt-rotate latest other --or 0'
}

@test "systemd's mount units and the automounter's maps say it, too" {
	inside '
		unit=$(systemd-escape -p --suffix=mount "$dir/mnt" 2>/dev/null) ||
			unit=$(printf %s "${dir#/}/mnt" | sed "s/-/\\\\x2d/g; s,/,-,g").mount
		mkdir -p /etc/systemd/system /etc/auto.master.d
		echo "[Mount]" >"/etc/systemd/system/$unit"
		refused preempt-store put --store mnt/s.db k v
		mounted; answers 0 preempt-store put --store mnt/s.db k v; unmounted
		# A masked unit names no mount.
		ln -sf /dev/null "/etc/systemd/system/$unit"
		answers 0 ckpt-rotate latest mnt --or 0
		echo "[Automount]" >"/etc/systemd/system/${unit%.mount}.automount"
		refused ckpt-rotate latest mnt --or 0
		rm "/etc/systemd/system/${unit%.mount}.automount"
		answers 0 ckpt-rotate latest mnt --or 0
		echo "+dir:/etc/auto.master.d" >/etc/auto.master
		echo "/- auto.ours --timeout 60" >/etc/auto.master.d/ours.autofs
		echo "$dir/mnt -rw server:/x" >/etc/auto.ours
		refused ckpt-rotate latest mnt --or 0
		rm /etc/auto.ours
		answers 0 ckpt-rotate latest mnt --or 0
		echo "$dir/mnt /etc/auto.keys" >/etc/auto.master.d/ours.autofs
		refused ckpt-rotate latest mnt/key --or 0'
}

@test "a marked filesystem is noticed without any table, for root and for a user" {
	inside '
		answers 75 preempt-store doctor --mark mnt
		grep -q "nothing is mounted" err
		[ -z "$(ls -A mnt)" ] && [ ! -e /etc/preempt ]
		mounted
		answers 0 preempt-store doctor --mark mnt
		[ "$(cat /etc/preempt/mounts)" = "$dir/mnt" ]
		answers 0 preempt-store doctor --mark "$dir/mnt/"
		[ "$(cat /etc/preempt/mounts)" = "$dir/mnt" ]
		answers 0 preempt-store put --store mnt/s.db k v
		unmounted
		refused preempt-store get --store mnt/s.db k
		refused preempt-store put --store mnt/s.db k v
		refused ckpt-rotate begin mnt/ck 1
		mounted
		answers 0 preempt-store get --store mnt/s.db k
		rm mnt/.preempt-mounted
		answers 75 preempt-store get --store mnt/s.db k
		answers 0 preempt-store doctor --mark mnt
		answers 0 preempt-store get --store mnt/s.db k
		# By a user, whose home must not be on it.
		rm -r /etc/preempt mnt/.preempt-mounted
		chmod 711 . "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR" 2>/dev/null || :
		chown 65534 disk home
		as_user="setpriv --reuid 65534 --clear-groups"
		$as_user test -x "$(command -v preempt-store)" -a -w disk || exit 0
		answers 0 $as_user preempt-store doctor --mark "$dir/mnt"
		[ "$(cat home/.config/preempt/mounts)" = "$dir/mnt" ]
		unmounted
		chmod 755 mnt
		answers 75 $as_user ckpt-rotate latest "$dir/mnt" --or 0
		answers 0 ckpt-rotate latest "$dir/other" --or 0
		HOME=$dir/none PREEMPT_MOUNTS=/x:$dir/mnt answers 75 $as_user ckpt-rotate latest "$dir/mnt/ck"
		mounted
		mkdir -m 700 mnt/home
		chown 65534 mnt/home
		HOME=$dir/mnt/home answers 1 $as_user preempt-store doctor --mark "$dir/mnt"
		grep -q "PREEMPT_MOUNTS=$dir/mnt" err'
}

@test "root marks for all users, whatever its umask; a list that cannot be read is no answer" {
	inside '
		chmod 711 . "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR" 2>/dev/null || :
		chmod 755 . disk mnt
		as_user="setpriv --reuid 65534 --clear-groups"
		$as_user test -x "$(command -v preempt-store)" -a -x mnt || exit 0
		mounted
		umask 077
		answers 0 preempt-store doctor --mark mnt
		[ "$(stat -c %a /etc/preempt /etc/preempt/mounts mnt/.preempt-mounted | xargs)" = "755 644 644" ]
		unmounted
		refused $as_user ckpt-rotate latest "$dir/mnt" --or 0
		answers 0 $as_user ckpt-rotate latest "$dir/other" --or 0
		for closed in /etc/preempt /etc/preempt/mounts; do
			chmod go-rwx $closed
			answers 75 $as_user ckpt-rotate latest "$dir/mnt" --or 0
			grep -q "cannot read /etc/preempt/mounts: Permission denied.*chmod a+rX" err
			mounted
			answers 0 preempt-store doctor --mark mnt
			unmounted
			refused $as_user ckpt-rotate latest "$dir/mnt" --or 0
		done'
}

@test "a joblog below a mount point is not made while nothing is mounted there" {
	inside '
		export PREEMPT_STORE=$dir/home/q.db PREEMPT_MOUNTS=$dir/mnt
		mounted
		touch mnt/.preempt-mounted
		preempt-queue schedule -q -- true
		unmounted
		refused preempt-queue work --idle-exit 0 --joblog mnt/log
		mounted
		answers 0 preempt-queue work --idle-exit 0 --joblog mnt/log
		[ "$(wc -l <mnt/log)" = 2 ]
		preempt-queue schedule -q -- true
		preempt-queue work --idle-exit 0 --joblog /dev/stdout 2>/dev/null | grep -q Seq'
}

@test "--files of a queue that are not mounted: a worker takes nothing, and no command fails" {
	inside '
		export PREEMPT_STORE=$dir/home/q.db PREEMPT_MOUNTS=$dir/mnt
		mounted
		touch mnt/.preempt-mounted
		preempt-queue schedule -q --files mnt/f -- true
		unmounted
		for start in 1 2 3 4 5; do
			refused preempt-queue work --files mnt/f --idle-exit 0
		done
		mounted
		answers 0 preempt-queue work --files mnt/f --idle-exit 0
		[ "$(preempt-queue list --state succeeded --json | grep -c "\"transients\":0")" = 1 ]'
}

@test "a home that is not there is not made, by root neither" {
	inside '
		export HOME=$dir/none
		for command in "preempt-run --run r -- true" "preempt-store get --run r k" "preempt-queue schedule -- true"; do
			answers 75 $command
			grep -q "there is no directory $dir/none" err || { cat err; exit 1; }
		done
		[ ! -e none ]
		HOME=$dir/home XDG_STATE_HOME=$dir/none/state answers 75 preempt-store put --run r k v
		[ ! -e none ]
		HOME=$dir/home answers 0 preempt-run --run r -- true
		HOME=$dir/home XDG_STATE_HOME=$dir/state answers 0 preempt-store put --run r k v
		[ -f state/preempt/r.db ] && [ -f home/.local/state/preempt/r.db ]
		# The home is a mount point, and empty.
		echo "a $dir/mnt nfs" >/etc/fstab
		HOME=$dir/mnt refused preempt-run --run r -- true'
}

# bats test_tags=smoke
@test "a restart makes neither a store nor a checkpoint directory, unless it is meant" {
	local variable
	mkdir -m 700 one
	preempt-store put --store one/old.db k v
	echo x >"$(ckpt-rotate begin from 2)/f"
	ckpt-rotate commit -q from 2
	for variable in SLURM_RESTART_COUNT=1 PREEMPT_ATTEMPT=2; do
		run -75 --separate-stderr env "$variable" preempt-store put --store one/new.db k v
		[[ $stderr == *"${variable%=*}"*'PREEMPT_NEW=1'* ]]
		run -75 --separate-stderr env "$variable" preempt-run --store one/new.db --run r -- true
		run -75 --separate-stderr env "$variable" preempt-queue schedule --store one/new.db -- true
		run -1 env "$variable" preempt-store get --store one/new.db k
		run -75 --separate-stderr env "$variable" ckpt-rotate begin one/ck 1
		[[ $stderr == *"${variable%=*}"*'PREEMPT_NEW=1'* ]]
		run -0 --separate-stderr env "$variable" ckpt-rotate latest one/ck --or 0
		[ "$output" = 0 ]
		[[ $stderr == *'"ckpt-rotate begin" does not make it'* ]]
		run -75 --separate-stderr env "$variable" ckpt-rotate copy from one/ck --all
		[[ $stderr == *"${variable%=*}"*'PREEMPT_NEW=1'* ]]
		[ ! -e one/new.db.lock ]
		[ ! -e one/new.db ]
		[ ! -e one/ck ]
		run -0 env "$variable" preempt-store put --store one/old.db k w
		run -0 env "$variable" preempt-store doctor one --quick --timeout 60s
	done
	for variable in SLURM_RESTART_COUNT=0 PREEMPT_ATTEMPT=1; do
		run -0 env "$variable" preempt-store put --store "one/${variable%=*}.db" k v
	done
	export SLURM_RESTART_COUNT=1
	run -0 env PREEMPT_NEW=1 preempt-store put --store one/new.db k v
	run -0 env PREEMPT_NEW=1 ckpt-rotate begin one/ck 1
	run -0 ckpt-rotate copy from one/ck --all
	run -0 env PREEMPT_NEW=1 ckpt-rotate copy from one/copies --all
}

# bats test_tags=smoke
@test "?must-exist: a store that is missing is 75, and not made" {
	mkdir -m 700 one
	run -75 --separate-stderr preempt-store get --store 'one/s.db?must-exist' k
	[[ $stderr == *must-exist* ]]
	run -75 preempt-store put --store 'one/s.db?must-exist' k v
	run -75 preempt-run -q --store 'one/s.db?must-exist' --run r -- true
	run -75 preempt-claim --store 'one/s.db?must-exist' --run r --outside
	[ -z "$(ls -A one)" ]
	preempt-store put --store one/s.db k v
	run -0 preempt-store get --store 'one/s.db?must-exist&lock=fcntl' k
	run -1 preempt-store get --store 'one/s.db?must-exist' none
	run -2 preempt-store get --store 'one/s.db?must-exist=no' k
}

@test "the doctor: unsafe where it is not mounted; for several machines only with --shared or --nodes" {
	inside '
		echo "a $dir/mnt nfs" >/etc/fstab
		answers 1 preempt-store doctor mnt --quick --timeout 60s
		grep -q "unsafe.*not mounted" out
		export PREEMPT_PROLOG_PROGRAM=$dir/patient
		printf "#!/bin/sh\nexec \"%s\" \"\$@\" --timeout 60s\n" "$(command -v preempt-store)" >patient
		chmod +x patient
		prolog=$BATS_TEST_DIRNAME/../examples/prolog.sh
		PREEMPT_PROLOG_STORE=$dir/mnt/any.db answers 1 "$prolog"
		# No table says it: but no other machine sees what is present, or nothing is.
		: >/etc/fstab
		PREEMPT_PROLOG_STORE=$dir/mnt/any.db answers 1 "$prolog"
		grep -q "this machine only" out
		PREEMPT_PROLOG_STORE=$dir/mnt/none/any.db answers 1 "$prolog"
		PREEMPT_PROLOG_STORE="$dir/mnt/any.db?assume=shared" answers 0 "$prolog"
		grep -q "safe: lock=fcntl, for several machines" out
		answers 0 preempt-store doctor --store "mnt/any.db?assume=shared" --quick --timeout 60s
		grep -q "safe: lock=fcntl, for the processes of this machine" out
		! grep -q "several machines" out
		answers 1 preempt-store doctor mnt --shared --quick --timeout 60s'
}

# The filesystem goes at each call on it, and comes back SPAN calls later (0: never): the answer is the normal one or
# 75, what was acknowledged is there when it is mounted, and below the mount point is nothing. STEP=1: at every call.
@test "a mount that goes away and comes back at every call leaves nothing behind, and no second store" {
	inside '
		echo "a $dir/mnt nfs" >/etc/fstab
		export PREEMPT_STORE=$dir/mnt/q.db
		# sweep PREPARE JUDGE COMMAND...: judge has the code in $code.
		sweep() {
			local prepare=$1 judge=$2 calls at span
			shift 2
			mounted; find disk -mindepth 1 -delete; $prepare
			calls=$("$faults/inject" "$dir/mnt" 0 count -- "$@" 2>/dev/null)
			umount -l mnt
			[ "$calls" -gt 5 ]
			for span in 0 1 3; do
				for ((at = 1 + span; at <= calls; at += ${STEP:-$step})); do
					mounted; find disk -mindepth 1 -delete; $prepare
					code=0
					timeout 60 "$faults/inject" "$dir/mnt" "$at" away $span disk -- "$@" >out 2>err || code=$?
					while umount -l mnt 2>/dev/null; do :; done
					[ -z "$(ls -A mnt)" ] || { echo "$*, call $at of $calls, $span: left $(find mnt)"; exit 1; }
					mounted
					$judge || { echo "$*, call $at of $calls, $span: $code $(cat out err)"; ls -lR disk; exit 1; }
					umount mnt
					case $code in 0 | 75 | 99) ;; *) echo "$*, call $at of $calls, $span: $code $(cat err)"; exit 1 ;; esac
				done
			done
		}
		none() { :; }
		stored() { preempt-store put k v; }
		put_is_there() { [ $code = 75 ] || [ "$(preempt-store get k)" = v ]; preempt-store put after v && preempt-store get after >out; }
		got() { [ $code != 0 ] || [ "$(cat out)" = v ]; }
		begun() { [ $code != 0 ] || [ -d "$(cat out)" ]; }
		committed() { [ $code = 75 ] || [ "$(ckpt-rotate latest mnt/ck --step)" = 1 ]; }
		fill() { ckpt-rotate begin mnt/ck 1 >at && echo x >"$(cat at)/f"; }
		full() { fill; ckpt-rotate commit -q mnt/ck 1; }
		found() { [ $code != 0 ] || [ "$(cat out)" = 1 ]; }
		step=13
		sweep none put_is_there preempt-store put k v
		sweep stored got preempt-store get k
		sweep stored put_is_there preempt-store put k v
		step=4
		sweep none begun ckpt-rotate begin mnt/ck 1
		sweep none begun ckpt-rotate begin mnt 1
		sweep fill committed ckpt-rotate commit -q mnt/ck 1
		sweep full found ckpt-rotate latest mnt/ck --step --or 0'
}
