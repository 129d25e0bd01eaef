#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# make dist, make static and make deb, in a copy of the source; the packages are examined, and tested from where they
# install.
# takes: 120
# asan: no (it links what is built)
# shellcheck disable=SC2016,SC2153 # text for another shell; ROOT is of package.bash

bats_require_minimum_version 1.5.0

load ../support/package.bash

setup_file() {
	source_to_pack
	packages_are_built
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
	[[ $stderr = *"this build has no etcd and asks no cloud: static programs load no library"* ]]
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
	[ "$(dpkg-deb -f preempt-tools_*.deb Recommends)" = "$(sed -n 's|.*dlopen("libcurl\.so\.\([0-9]*\)".*|libcurl\1|p' "$ROOT"/lib/base/http.c)" ]
	lintian --allow-root --fail-on error ./*.deb
}

@test "a training is preempted and resumed with the programs from where the packages install them" {
	needs_debs
	local root=$BATS_TEST_TMPDIR/root deb
	for deb in "$DEBS"/*.deb; do dpkg-deb -x "$deb" "$root"; done
	trial >"$BATS_TEST_TMPDIR/trial"
	run -0 --separate-stderr env PATH="$root/usr/bin:$PATH" HOME="$BATS_TEST_TMPDIR" CLIENT="$root/usr/share/preempt/preempt.sh" \
		sh "$BATS_TEST_TMPDIR/trial"
	tried "$output"
	PYTHONPATH=$root/usr/lib/python3/dist-packages python3 -B -c 'import preempt; preempt.step(0)'
}
