#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate: many files, large files, many checkpoints.
# takes: 100
# asan: no (nothing here that is not done small elsewhere)
# shellcheck disable=SC2154
# soak (takes long)
bats_require_minimum_version 1.5.0
load ../support/ckpt

@test "100,000 files in one checkpoint, in many directories, with odd names" {
	d=$(ckpt-rotate begin ck 1)
	python3 - "$d" <<'PYTHON'
import os, sys
for i in range(100):
    below = "%s/dir %d\n" % (sys.argv[1], i)
    os.mkdir(below)
    for k in range(1000):
        with open("%s/file %d\t'\"\\" % (below, k), "w") as f:
            f.write("%d %d\n" % (i, k))
PYTHON
	[ "$(ckpt-rotate commit ck 1)" = complete ]
	run -0 ckpt-rotate verify ck
	[[ $output == "step-00000001 verified: 100000 files, "* ]]
	printf X | dd of="ck/step-00000001/dir 99"$'\n'"/file 999"$'\t'"'\"\\" conv=notrunc status=none
	[ "$(ckpt-rotate latest ck --step)" = 1 ]
	run -65 --separate-stderr ckpt-rotate verify ck
	[[ $stderr == *"the checksum of dir 99\\n/file 999\\t'\"\\ differs"* ]]
	rm "ck/step-00000001/dir 0"$'\n'"/file 0"$'\t'"'\"\\"
	run -1 ckpt-rotate latest ck
	save 2
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls -A ck)" = "$(printf '%s\n' latest step-00000002)" ]
}

@test "a sparse file of 4 GiB and a byte: committed, copied, verified" {
	d=$(ckpt-rotate begin ck 1)
	truncate -s 4294967297 "$d/sparse" || skip "no file of this size here"
	printf X | dd of="$d/sparse" bs=1 seek=4294967296 conv=notrunc status=none
	ckpt-rotate commit ck 1
	[ "$(ckpt-rotate copy ck far)" = "step-00000001 copied and verified: 1 files, 4.0 GiB" ]
	[ "$(tail -c 1 far/step-00000001/sparse)" = X ]
	[ "$(du -k far/step-00000001/sparse | cut -f1)" -lt 1000 ]
	[ "$(du -k ck/step-00000001/sparse | cut -f1)" -lt 1000 ]
	printf Y | dd of=ck/step-00000001/sparse bs=1 seek=4294967296 conv=notrunc status=none
	run -65 --separate-stderr ckpt-rotate verify ck
	truncate -s 1 ck/step-00000001/sparse
	run -65 --separate-stderr ckpt-rotate verify --quick ck
	[[ $stderr == *"sparse has 1 bytes instead of 4294967297"* ]]
}

@test "10,000 checkpoints are listed and pruned; a rule each" {
	echo x >"$(ckpt-rotate begin ck 10000)/model"
	ckpt-rotate commit ck 10000 --time @1700010000 --metric loss=0.5
	python3 - <<'PYTHON'
import os
with open("ck/step-00010000/.ckpt-manifest.json") as f:
    manifest = f.read()
for step in range(1, 10000):
    below = "ck/step-%08d" % step
    os.mkdir(below)
    with open(below + "/model", "w") as f:
        f.write("x\n")
    with open(below + "/.ckpt-manifest.json", "w") as f:
        f.write(manifest.replace('"step": 10000', '"step": %d' % step)
            .replace('"loss": 0.5', '"loss": %d' % (step * 7919 % 10007 + 1))
            .replace('"utc_ms": 1700010000000', '"utc_ms": %d' % (1700000000000 + step * 1000)))
PYTHON
	[ "$(ckpt-rotate list ck | wc -l)" = 10001 ]
	ckpt-rotate prune --keep-last 100 --keep-every-steps 1000 --keep-every 1h --keep-within 150s \
		--keep-best 10 --metric loss --mode min --now @1700010000 ck >table
	[ "$(grep -c ' kept: ' table)" = "$(find ck -maxdepth 1 -name 'step-*' | wc -l)" ]
	[ "$(grep -c ' removed: ' table)" = $((10000 - $(grep -c ' kept: ' table))) ]
	# Of the last 150 s; every 1000 steps; the first and one each hour; the ten best.
	for step in 1 1000 9000 3601 7201 9850 10000; do [ -d "ck/step-$(printf %08d $step)" ]; done
	[ ! -e ck/step-00009849 ]
	[ "$(grep -c 'one of the best 10 by loss' table)" = 10 ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 10000 ]
	[ "$(find ck -name '.gone*')" = "" ]
}
