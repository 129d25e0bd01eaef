#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# make, make install and make clean, in a copy of the source whose path has a blank; and what
# installs the packages.
# takes: 15
# asan: no (it builds for itself)
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	SOURCE="$BATS_FILE_TMPDIR/a source"
	unset MAKEFLAGS CPPFLAGS CFLAGS LDFLAGS CC PKG_CONFIG LINK PREFIX LIBDIR DESTDIR
	mkdir "$SOURCE"
	tar -C "$ROOT" --exclude=./.git --exclude=./build --exclude=__pycache__ --exclude='./bin/[!.]*' -cf - . | tar -C "$SOURCE" -xf -
	export ROOT SOURCE
	tree >"$BATS_FILE_TMPDIR/fresh"
	# What make has built for the tests is built there, too.
	(cd "$ROOT" && make -s WERROR=1 >&2 && tar -cf - bin build/plain/flags build/plain/lib* build/plain/src) |
		tar -C "$SOURCE" -xf -
}

# Every path of the copied source.
tree() {
	(cd "$SOURCE" && find . | sort)
}

remake() {
	make -C "$SOURCE" "$@"
}

programs() {
	(cd "$SOURCE/src" && printf '%s\n' *.c | sed 's/\.c$//')
}

@test "the caller's flags: CPPFLAGS and CFLAGS compile, CFLAGS and LDFLAGS link" {
	run -0 remake -n V=1 CPPFLAGS=-DHERS CFLAGS=-Og LDFLAGS=-Wl,-z,now LINK=dynamic
	[[ $(grep -m 1 -- '-c -o build/plain/src/preempt-claim.o' <<<"$output") = *" -DHERS "*" -Og "* ]]
	[[ $(grep -m 1 -- ' -o bin/preempt-claim ' <<<"$output") = *" -Og "*" -Wl,-z,now "*" -lsqlite3 "* ]]
	[[ $output != *-Bstatic* ]]
}

@test "make install: every file where it belongs, and no other" {
	remake install DESTDIR="$BATS_TEST_TMPDIR/a root" PREFIX=/usr LIBDIR=/usr/lib/this-machine
	cd "$BATS_TEST_TMPDIR/a root/usr"
	{
		programs | sed 's|^|bin/|'
		printf '%s\n' include/preempt.h lib/this-machine/libpreempt.a lib/this-machine/libpreempt.so \
			lib/this-machine/libpreempt.so.0 lib/this-machine/pkgconfig/preempt.pc \
			share/zsh/site-functions/_preempt share/doc/preempt-tools/{README.md,CONTRIBUTING.md,NEWS.md,LICENSE}
		(cd "$SOURCE/completions" && find . -name '*.sh' -printf 'share/preempt/%P\n')
		printf '%s\n' share/preempt/preempt.{sh,py}
		(cd "$SOURCE" && find docs examples -type f ! -path '*/training/*' ! -name train.c ! -name demo.sh) |
			sed 's|^|share/doc/preempt-tools/|'
		programs | sed 's|^|share/bash-completion/completions/|'
		programs | sed 's|.*|share/fish/vendor_completions.d/&.fish|'
		find "$SOURCE/man" -name '*.[0-9]' -printf '%f\n' | sed 's|.*\.\(.\)$|share/man/man\1/&|'
		sed -n 's|.*PREEMPT_API int \([a-z_]*\)(.*|share/man/man3/\1.3|p' "$SOURCE/lib/client/preempt.h"
	} | sort >../expected
	find . ! -type d -printf '%P\n' | sort | diff ../expected -
	[ "$(readlink lib/this-machine/libpreempt.so)" = libpreempt.so.0 ]
	[ "$(PKG_CONFIG_PATH=lib/this-machine/pkgconfig pkg-config --variable=libdir preempt)" = /usr/lib/this-machine ]
	[ "$(readlink share/man/man3/preempt_step.3)" = libpreempt.3 ]
	# "man preempt" opens the overview: no section before 7 has a page of this name.
	[ "$(find share/man -name 'preempt.*')" = share/man/man7/preempt.7 ]
	# Nothing is for its owner only, and nothing but programs and examples can be run.
	[ -z "$(find . ! -type l ! -perm -o=r)" ]
	[ "$(find . -type f -perm /111 ! -path '*/examples/*' -printf '%P\n' | sort)" = "$(programs | sed 's|^|bin/|' | sort)" ]
	[ "$(find .. -mindepth 1 -maxdepth 1 -type d)" = ../usr ]
	# What is installed finds the programs where they are.
	run ! grep -r /usr/local share/doc/preempt-tools/examples
	# The examples that the pages name are where preempt(7) says.
	grep -q '^\.It Pa /usr/local/share/doc/preempt-tools$' "$SOURCE/man/preempt.7"
	local example
	while read -r example; do
		[ -f "share/doc/preempt-tools/$example" ]
	done < <(grep -rhoE 'examples/[a-z@.-]+[a-z]' "$SOURCE"/man)
}

@test "make uninstall takes what make install has put there, and nothing else" {
	local to="$BATS_TEST_TMPDIR/a root"
	mkdir -p "$to/usr/share/preempt" "$to/usr/bin"
	touch "$to/usr/share/preempt/mine" "$to/usr/bin/preempt-mine"
	remake install DESTDIR="$to" PREFIX=/usr LIBDIR=/usr/lib/this-machine
	# Whether or not it is built still.
	remake uninstall DESTDIR="$to" PREFIX=/usr LIBDIR=/usr/lib/this-machine OUT=build/none BIN=build/none
	[ "$(find "$to" ! -type d -printf '%P\n' | sort)" = $'usr/bin/preempt-mine\nusr/share/preempt/mine' ]
	[ ! -e "$to/usr/share/doc/preempt-tools" ]
	[ -d "$to/usr/lib/this-machine" ]
	rm "$to/usr/share/preempt/mine"
	remake uninstall DESTDIR="$to" PREFIX=/usr
	[ ! -e "$to/usr/share/preempt" ]
}

@test "the installed programs, libraries and clients work from there" {
	cd "$BATS_TEST_TMPDIR"
	to=$BATS_TEST_TMPDIR/opt
	remake install PREFIX="$to"
	version=$(cat "$SOURCE/VERSION")
	for program in $(programs); do
		[ "$(env -i "$to/bin/$program" --version)" = "$program $version" ]
	done

	cat >use.c <<-'END'
		#include <preempt.h>
		int main(void) { return preempt_step(0) + preempt_saved(0); }
	END
	export PKG_CONFIG_PATH=$to/lib/pkgconfig
	[ "$(pkg-config --modversion preempt)" = "$version" ]
	read -ra flags <<<"$(pkg-config --cflags --libs preempt)"
	cc -o use use.c "${flags[@]}"
	LD_LIBRARY_PATH=$to/lib ./use
	cc -o use use.c -I"$to/include" "$to/lib/libpreempt.a"
	./use

	sh -c '. "$0/share/preempt/preempt.sh" && preempt_step 0' "$to"
	PYTHONPATH=$to/share/preempt python3 -c 'import preempt; preempt.step(0)'
	XDG_STATE_HOME=$PWD "$to/bin/preempt-run" -- python3 -c 'import preempt; preempt.step(0)'
	[[ $(file -bL "$to/lib/libpreempt.so" 2>/dev/null || echo "shared object") = *"shared object"* ]]
}

@test "make prints nothing when there is nothing to do, else a line for each file, and make clean leaves the tree as it was" {
	cp -a "$SOURCE" "$BATS_TEST_TMPDIR/copy of it"
	SOURCE="$BATS_TEST_TMPDIR/copy of it"
	run -0 remake -s --no-print-directory
	[ -z "$output" ]
	remake clean
	diff "$BATS_FILE_TMPDIR/fresh" <(tree)
	run -0 remake WERROR=1 --no-print-directory build/plain/libpreempt.a
	[ "$(grep -cE '^  (CC|AR) build/plain/lib[^ ]+$' <<<"$output")" = "$(wc -l <<<"$output")" ]
	[[ $output = *" AR build/plain/libpreempt.a" ]]
}

# no_packages UID FAILURES: this machine has none of the packages; apt-get only prints what it was asked
# for, and fails FAILURES times because it knows no such package.
no_packages() {
	mkdir -p stubs
	printf '#!/bin/sh\n' >stubs/dpkg-query
	printf '#!/bin/sh\ncd "%s" || exit\necho "$@" >>asked\n[ "$1" = update ] || [ "$(grep -c ^install asked)" -gt %d ]\n' \
		"$PWD" "$2" >stubs/apt-get
	printf '#!/bin/sh\n' >stubs/sleep
	printf '#!/bin/sh\necho %s\n' "$1" >stubs/id
	printf '#!/bin/sh\nexit 1\n' >stubs/sudo
	chmod 755 stubs/*
	PATH=$PWD/stubs:$PATH
}

@test "make without its packages names the command and installs nothing" {
	cd "$BATS_TEST_TMPDIR"
	no_packages 0 0
	printf '#!/bin/sh\nexit 1\n' >stubs/pkg-config
	chmod 755 stubs/pkg-config
	run -2 remake -B all
	[[ $output = *"missing packages; run: make deps, or: sudo apt-get install gcc make pkg-config"* ]]
	[[ $output != *" CC "* ]]
	[ ! -e asked ]
	run -0 remake deps
	[ "$(wc -l <asked)" = 1 ]
	[ "$(grep -c "^install.* gcc make pkg-config" asked)" = 1 ]
}

@test "missing packages: installed where we may, after an update and a second try of the list; else the command is said" {
	local uid failures code asked says
	while read -r uid failures code asked says; do
		mkdir "$BATS_TEST_TMPDIR/$uid.$failures"
		cd "$BATS_TEST_TMPDIR/$uid.$failures"
		touch asked
		no_packages "$uid" "$failures"
		run "-$code" "$ROOT/tests/support/packages" build
		[ "$(sed -n 's/^\([a-z]*\).*/\1/p' asked | paste -sd ,)" = "${asked#-}" ]
		[ "$(grep -c '^install.* gcc make pkg-config.*Acquire::Retries' asked)" = "$(grep -c ^install asked)" ]
		[[ $output = *"$says"*" gcc make pkg-config"* ]]
	done <<-'END'
		0 0 0 install installing
		0 1 0 install,update,install installing
		0 2 0 install,update,install,update,install installing
		0 9 1 install,update,install,update,install could not install them, three times; run: sudo apt-get update
		1000 0 1 - missing packages; run: sudo apt-get install
	END
}
