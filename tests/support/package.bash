# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Packages to try, and a script that is preempted with what they install.
# shellcheck disable=SC2016 # text for another shell

# source_to_pack: $SOURCE is a copy of the source and of what is built of it, $ARCHIVE what make dist has made of it in $ROOT.
source_to_pack() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	SOURCE=$BATS_FILE_TMPDIR/source
	unset MAKEFLAGS CPPFLAGS CFLAGS LDFLAGS CC PKG_CONFIG LINK PREFIX LIBDIR DESTDIR SOURCE_DATE_EPOCH
	export ROOT SOURCE VERSION DEBS="$BATS_FILE_TMPDIR/source/build/deb"
	VERSION=$(cat "$ROOT/VERSION")
	export ARCHIVE=build/dist/preempt-tools-$VERSION.tar.gz
	make -s -C "$ROOT" dist all build/plain/tests/support/trainers/count >&2
	mkdir "$SOURCE"
	tar -C "$SOURCE" --strip-components=1 -xzf "$ROOT/$ARCHIVE"
	# Objects that are newer than the source are not made again.
	(cd "$ROOT" && tar -cf - bin build/plain/flags build/plain/lib* build/plain/src) | tar -C "$SOURCE" -xf -
}

# packages_are_built: in $DEBS, where packages can be built. The flags are those of the objects: nothing is compiled twice.
packages_are_built() {
	"$ROOT/tests/support/packages" deb trial >&2 || return 0
	make -C "$SOURCE" deb OUT=build/plain CC=cc CFLAGS='-O2 -g' CPPFLAGS= LDFLAGS= >"$BATS_FILE_TMPDIR/packages.log" 2>&1 || {
		tail -n 30 "$BATS_FILE_TMPDIR/packages.log" >&2
		return 1
	}
}

needs_debs() {
	[ -d "$DEBS" ] || skip "no packages to build packages: tests/support/packages deb trial"
}

# trial: a training script in sh, started with two tasks, preempted, and started again. Prints the codes and
# where the second start began.
trial() {
	cat <<-'END'
		set -eu
		cd "$(mktemp -d)"
		cat >train.sh <<-'EOT'
			#!/bin/sh
			. "$CLIENT"
			step=$(ckpt-rotate latest ck --step --or 0 2>/dev/null) || exit
			[ ! -f begun ] || echo "resumed at $step"
			while [ ! -f enough ]; do
				preempt_step "$step" || {
					to=$(ckpt-rotate begin --sharded ck "$step") && echo "$step" >"$to/state-$PREEMPT_TASK" &&
						ckpt-rotate commit --sharded ck "$step" >/dev/null && preempt_saved "$step"
				} || exit
				[ "$step" != 20 ] || touch begun.$PREEMPT_TASK
				sleep 0.02
				step=$((step + 1))
			done
		EOT
		chmod 755 train.sh
		mkdir ck
		preempt-run --run trial -n 2 -- ./train.sh &
		until [ -f begun.0 ] && [ -f begun.1 ]; do sleep 0.1; done
		touch begun
		kill -TERM $!
		code=0
		wait $! || code=$?
		echo "code $code"
		code=0
		touch enough
		preempt-run --run trial -n 2 -- ./train.sh || code=$?
		echo "code $code"
		echo "saved at $(ckpt-rotate latest ck --step)"
	END
}

# tried TEXT: what the trial has printed is as it should be.
tried() {
	local step
	step=$(sed -n 's/^saved at //p' <<<"$1")
	[ "$step" -ge 20 ]
	[ "$(grep -cx "resumed at $step" <<<"$1")" = 2 ]
	[ "$(grep '^code ' <<<"$1")" = $'code 42\ncode 0' ]
}
