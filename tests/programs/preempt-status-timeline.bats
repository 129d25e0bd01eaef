#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-status --timeline: the pages of a run that was preempted.
# takes: 5

bats_require_minimum_version 1.5.0

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	PATH=${BIN:-$ROOT/bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	export PREEMPT_STORE=$PWD/run.db ASAN_OPTIONS=detect_leaks=0
	cat >train.sh <<-END
		#!/bin/bash
		. "$ROOT/lib/client/preempt.sh"
		for ((s = 0; s < 100000; s++)); do
			preempt_step \$s || preempt_saved \$s || exit
			sleep 0.01
			[ \$s != 5 ] || preempt-claim --run r --reason '<script>&"' || :
		done
	END
	chmod +x train.sh
}

@test "a preempted run: a lane per task, its phases and events, the claim; nothing from elsewhere" {
	command -v python3 >/dev/null || skip "needs python3"
	run -42 preempt-run --run r -n 3 -- ./train.sh
	run -0 preempt-status --run r --timeline page.html
	[ "$output" = '' ]
	run -42 preempt-status --run r --timeline page.svg --all --exit-code
	[ "$(find . -name 'page*' | sort | tr '\n' ' ')" = './page.html ./page.svg ' ]
	python3 - <<-'END'
		import xml.etree.ElementTree as tree
		svg = "{http://www.w3.org/2000/svg}"
		for name in "page.svg", "page.html":
		    text = open(name).read().replace("<!DOCTYPE html>", "")
		    page = tree.fromstring(text)
		    lanes = [g for g in page.iter(svg + "g") if g.get("class") == "lane"]
		    assert len(lanes) == 3, lanes
		    for number, lane in enumerate(lanes):
		        title = lane.find(svg + "title").text
		        assert title.startswith(f"task {number} on "), title
		        events = [line.split(" +")[0] for line in title.split("\n")[1:]]
		        assert sorted(events) == ["acknowledged", "exited", "reported", "saved"], title
		        assert {"train", "hold"} <= {p.get("class") for p in lane.iter(svg + "path")}
		    words = " ".join(page.itertext())
		    assert "attempt 1: preempted" in words and "agreed: step " in words, words
		    assert '<script>&"' in words and "<script" not in text
		    assert text.count("http") == 1 and "url(" not in text
		    assert "report to agreement" in words or name == "page.svg", words
	END
}

@test "no page: of another kind, of no run, into no directory" {
	run -2 --separate-stderr preempt-status --run r --timeline page.png
	[[ $stderr == *".svg or .html"* ]]
	run -2 --separate-stderr preempt-status --run r --timeline page.svg --json
	preempt-store join --run r --task 0 --tasks 1 --pid $$ --no-board >/dev/null
	run -1 --separate-stderr preempt-status --run other --timeline page.svg
	run -75 --separate-stderr preempt-status --run r --timeline none/page.svg
	[[ $stderr == *"none/page.svg"* ]]
	[ ! -e page.svg ]
	run -0 preempt-status --run r --timeline page.svg
	[ -s page.svg ]
}
