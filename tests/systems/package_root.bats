#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The Debian packages, installed in a clean root.
# takes: 120
# asan: no (it links what is built)
# soak (it needs the network)
# shellcheck disable=SC2016,SC2153 # text for another shell; ROOT is of package.bash

bats_require_minimum_version 1.5.0

load ../support/package.bash

setup_file() {
	source_to_pack
	packages_are_built
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
