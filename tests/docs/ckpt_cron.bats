#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The crontab and the systemd units of the examples, which prune and verify.
# takes: 5
# shellcheck disable=SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

@test "the crontab and the systemd units of the examples are right, and their commands run" {
	saves 10 20 30 40 50
	grep -v '^#\|^PATH=' "$REPO/examples/ckpt-rotate.crontab" >lines
	[ "$(wc -l <lines)" = 2 ]
	while read -r m h dom mon dow command; do
		[[ "$m $h $dom $mon $dow" =~ ^[0-9*/,-]+(\ [0-9*/,-]+){4}$ ]]
		run -0 --separate-stderr sh -c "${command//\/shared\/run7\/ck/ck}"
		[ "$output$stderr" = "" ]
	done <lines
	# The first of six hours, and the last three.
	[ "$(steps)" = "10 30 40 50 " ]
	for unit in prune verify; do
		grep -q '^OnCalendar=' "$REPO/examples/ckpt-$unit@.timer"
		grep -q '^WantedBy=timers.target' "$REPO/examples/ckpt-$unit@.timer"
		command=$(sed -n 's/^ExecStart=//p' "$REPO/examples/ckpt-$unit@.service" | sed "s|%f|ck|g; s|/usr/local/bin/||g; s|%%|%|g")
		run -0 --separate-stderr sh -c "${command:?}"
		[ "$stderr" = "" ]
	done
	command -v systemd-analyze >/dev/null || skip "systemd-analyze is not here: only parsed by hand"
	mkdir units
	cp "$REPO"/examples/ckpt-*@.* units
	sed -i "s|/usr/local/bin/ckpt-rotate|$(command -v ckpt-rotate)|" units/*.service
	run -0 systemd-analyze verify units/ckpt-prune@x.timer units/ckpt-verify@x.timer
	[[ $output != *ckpt-* ]]
}
