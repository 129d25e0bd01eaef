#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The page of make bench, from figures that are given: no test measures time.
# takes: 2
# asan: no (it runs none of our programs)

bats_require_minimum_version 1.5.0

setup() {
	bench=${BATS_TEST_DIRNAME}/bench
	cd "$BATS_TEST_TMPDIR" || return
	command -v python3 >/dev/null || skip "needs python3"
	echo "a machine <of this name>" >machine
	printf '%s\t%s\t%s\n' speed 'at least 0.8' 'our speed' wait 'at most 2' 'our wait' slow 'at most 10' 'slow & late' \
		lost 'exactly 0' lost away 'at most 1' away forgotten 'at most 7' forgotten >budgets
	{
		printf 'title\tclaims (ms)\n'
		printf 'row\t%s\t%s\n' ours 4 peer 8 '  in seconds' 99
		printf 'budget\t%s\t%s\n' wait 0.5 speed 1.6 slow 30 lost 0
		printf 'missing\taway\tno mount\n'
		printf 'wrong\texit codes\t3 x 1\n'
	} >figures
}

@test "the text of the page has each figure beside its budget, and a row for each budget that was not measured" {
	python3 -B "$bench/page.py" budgets machine figures page >stdout
	cmp stdout page/bench.txt
	sed 's/  */ /g; s/^ //' stdout >squeezed
	for line in 'a machine <of this name>' 'claims (ms)' 'ours 4' 'our wait 0.5 at most 2' 'our speed 1.6 at least 0.8' \
		'slow & late 30 at most 10 OVER' 'lost 0 exactly 0' 'away: not measured: no mount' 'exit codes 3 x 1 OVER' \
		'forgotten: forgotten: not measured: the bench ended early' \
		'3 budgets are met, 1 are not, 2 were not measured.'; do
		grep -Fx "$line" squeezed || { echo "no: $line" && cat squeezed && false; }
	done
	[ -z "$(awk 'length > 100' stdout)" ]
}

@test "the picture of the page is well-formed, and a bar ends at the budget's line where it is just met" {
	python3 -B "$bench/page.py" budgets machine figures page >/dev/null
	python3 - <<-'END_OF_PYTHON'
		import xml.etree.ElementTree as tree
		root = tree.parse("page/bench.svg").getroot()
		name = lambda element: element.tag.split("}")[1]
		texts = ["".join(e.itertext()) for e in root if name(e) == "text"]
		for expected in ("a machine <of this name>", "claims (ms)", "slow & late", "at most 10  OVER", "not measured: no mount"):
		    assert expected in texts, (expected, texts)
		bars = [(e.get("class"), float(e.get("width"))) for e in root if name(e) == "rect"]
		half = bars[1][1]
		assert bars == [("peer-bar", half / 2), ("peer-bar", half), ("ok-bar", half / 4), ("ok-bar", half / 2),
		                ("over-bar", 2 * half), ("ok-bar", 1)], bars
		ends = {float(e.get("x1")) for e in root if name(e) == "line"}
		assert ends == {float([e for e in root if name(e) == "rect"][0].get("x")) + half}, ends
	END_OF_PYTHON
}

@test "make bench measures each budget of its list, and no other" {
	grep -v '^#' "$bench/budgets" | cut -f 1 | sort >listed
	[ "$(wc -l <listed)" -ge 30 ]
	# What a variable is part of stands for its values.
	sed -nE 's/^[[:space:]]*budget "?([^ "]+)"? .*/\1/p' "$bench"/*.sh |
		while read -r name; do
			case $name in
			hold-\$count) printf '%s\n' hold-64 hold-256 ;;
			gone-\$count) printf '%s\n' gone-64 gone-256 ;;
			hold-\$kind) printf '%s\n' hold-gluster hold-bindfs ;;
			exchange-\$name) printf '%s\n' exchange-waiting exchange-over ;;
			*) echo "$name" ;;
			esac
		done | sort -u >measured
	diff listed measured
}
