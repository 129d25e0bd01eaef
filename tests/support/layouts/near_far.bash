# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Two tiers of checkpoints, near and far, for the tests of copy and drain.

# save STEP [ATTEMPT]: in the near tier.
save() {
	local d
	d=$(ckpt-rotate begin near "$1" --attempt "${2:-1}") &&
		echo "model of $1" >"$d/model" && mkdir -p "$d/sub" &&
		head -c 20000 /dev/urandom >"$d/sub/state" &&
		[ "$(ckpt-rotate commit near "$1" --attempt "${2:-1}")" = complete ]
}

same() {
	diff -r "near/step-000000$1" "far/step-000000$1" &&
		[ "$(ckpt-rotate verify far "$1" | cut -d: -f1)" = "step-000000$1 verified" ]
}

nothing_left() {
	[ "$(find far near -name '.tmp*' -o -name '.gone*' -o -name '.latest*' \
		-o -name '.ckpt-writer*' -o -name '.ckpt-copy*' -o -name '.ckpt-part*' \
		-o -name '*.json.*')" = "" ]
}
