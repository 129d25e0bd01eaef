#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# make dist, make static and make deb, in a copy of the source; the packages are examined, tested from where they
# install, and installed in a clean root.
# takes: 240
# asan: no (it links what is built)
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0

setup_file() {
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
	# The flags of the objects: nothing is compiled twice.
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

@test "make dist: the same archive from git and from an unpacked one, with all that make and make check need" {
	make -s -C "$SOURCE" dist
	cmp "$ROOT/$ARCHIVE" "$SOURCE/$ARCHIVE"
	[ "$(tar -tvzf "$ROOT/$ARCHIVE" | awk '{ print $2 }' | sort -u)" = 0/0 ]
	[ ! -d "$ROOT/.git" ] || diff <(git -C "$ROOT" -c safe.directory='*' ls-files | sort) \
		<(tar -tzf "$ROOT/$ARCHIVE" | sed 's|^[^/]*/||' | sort)
}

@test "make static: runs where there is nothing else, and says that it has no libcurl" {
	local root=$BATS_TEST_TMPDIR/root busybox
	make -s -C "$SOURCE" static
	mkdir -p "$root/bin" "$root/home" "$root/tmp" "$root/dev" "$root/proc"
	tar -C "$root/home" --strip-components=1 -xzf "$SOURCE/build/static/preempt-tools-$VERSION-$(uname -m)-static.tar.gz"
	[ "$(PKG_CONFIG_PATH=$root/home/lib/pkgconfig pkg-config --variable=includedir preempt)" -ef "$root/home/include" ]
	run ! grep -rlF -e "$ROOT" -e "$SOURCE" "$root/home"
	[ "$(id -u)" = 0 ] || skip "needs root for a root directory of its own"
	busybox=$(command -v busybox) && ! ldd "$busybox" >&2 || skip "no static busybox: tests/support/packages deb trial"
	cp "$busybox" "$root/bin/busybox"
	trial >"$root/trial"
	unshare -mpf true || skip "needs namespaces"
	run -0 --separate-stderr timeout 120 unshare --kill-child -mpf sh -c 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" &&
		exec chroot "$0" /bin/busybox sh -c "busybox --install -s /bin
			export PATH=/home/bin:/bin HOME=/tmp CLIENT=/home/share/preempt/preempt.sh && sh /trial"' "$root"
	tried "$output"
	run -127 --separate-stderr chroot "$root" /home/bin/preempt-watch --source aws --timeout 5s
	[[ $stderr = *"cannot load libcurl (static programs load no library"* ]]
}

@test "make deb: four packages, each file in one of them, and lintian finds no error" {
	needs_debs
	cd "$DEBS"
	[ "$(printf '%s\n' *.deb | cut -d _ -f 1 | sort | tr '\n' ' ')" = "libpreempt-dev libpreempt0 preempt-tools python3-preempt " ]
	[ "$(printf '%s\n' *.deb | cut -d _ -f 2 | sort -u)" = "$VERSION-1" ]
	local deb
	for deb in *.deb; do dpkg-deb -c "$deb"; done | awk '{ print $6 }' | grep -v '/$' >"$BATS_TEST_TMPDIR/files"
	[ -z "$(sort "$BATS_TEST_TMPDIR/files" | uniq -d)" ]
	for deb in *.deb; do dpkg-deb -x "$deb" "$BATS_TEST_TMPDIR/root"; done
	run ! grep -rlF -e "$ROOT" -e "$SOURCE" "$BATS_TEST_TMPDIR/root"
	[[ $(dpkg-deb -f preempt-tools_*.deb Depends) = *"libsqlite3-0 "* ]]
	[ "$(dpkg-deb -f preempt-tools_*.deb Recommends)" = "$(sed -n 's|.*dlopen("libcurl\.so\.\([0-9]*\)".*|libcurl\1|p' "$ROOT"/lib/base/http/curl.c)" ]
	lintian --allow-root --fail-on error ./*.deb
}

@test "tests pass with the programs from where the packages install them" {
	needs_debs
	local root=$BATS_TEST_TMPDIR/root deb
	for deb in "$DEBS"/*.deb; do dpkg-deb -x "$deb" "$root"; done
	env -u BATS_TMPDIR -u BATS_RUN_TMPDIR BIN="$root/usr/bin" OUT="$ROOT/build/plain" \
		bats -f 'PH-1: |PH-7|PH-10' "$ROOT/tests/programs/preempt-run.bats" | tee "$BATS_TEST_TMPDIR/log"
	[ "$(grep -c '^ok' "$BATS_TEST_TMPDIR/log")" -ge 3 ]
	PYTHONPATH=$root/usr/lib/python3/dist-packages python3 -B -c 'import preempt; preempt.step(0)'
}

@test "the packages install in a clean root, and a script is preempted and resumed there" {
	needs_debs
	[ "$(id -u)" = 0 ] || skip "needs root for a root directory of its own"
	cd "$BATS_TEST_TMPDIR"
	{
		echo 'export CLIENT=/usr/share/preempt/preempt.sh'
		trial
		echo 'python3 -c "import preempt; preempt.step(0)"'
	} >script
	. /etc/os-release
	# It is thrown away: its format is null.
	cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null | timeout 600 mmdebstrap --quiet --mode=root \
		--variant=apt --format=null --customize-hook="touch '$PWD/clean'" \
		--customize-hook="cp '$PWD/script' '$DEBS'/*.deb \"\$1/root\"" \
		--customize-hook='chroot "$1" sh -c "apt-get install -yqq --no-install-recommends /root/*.deb"' \
		--customize-hook='chroot "$1" env HOME=/root sh /root/script >'"'$PWD/tried'" "$VERSION_CODENAME" - - >log 2>&1 || {
		tail -n 30 log
		[ -e clean ] || skip "no clean root can be made here: $(grep '^E: ' log | head -n 1)"
		return 1
	}
	tried "$(cat tried)"
}
