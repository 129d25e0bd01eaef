#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The page of make bench, from figures that are given: no test measures time.
# takes: 2
# asan: no (it runs none of our programs)

bats_require_minimum_version 1.5.0

setup() {
	page=${BATS_TEST_DIRNAME}/bench/page.py
	cd "$BATS_TEST_TMPDIR" || return
	command -v python3 >/dev/null || skip "needs python3"
	echo "a machine <of this name>" >machine
	printf "title\tclaims (ms)\n" >rows
	printf 'row\t%s\t%s\t%s\t%s\n' \
		ours 4 '' ok peer 8 '' ok '  ratio' 0.5 2 ok speed 1.6 'at least 0.8' ok slow 30 10 OVER \
		'winners & co' 1 1 ok away - 'not measured: no mount' ok >>rows
}

# bats test_tags=smoke
@test "the page is well-formed, shows each figure, and a bar that ends at the budget's line where it is just met" {
	python3 -B "$page" machine rows >page.svg
	python3 - <<-'END'
		import xml.etree.ElementTree as tree
		root = tree.parse("page.svg").getroot()
		name = lambda element: element.tag.split("}")[1]
		texts = ["".join(e.itertext()) for e in root if name(e) == "text"]
		for expected in ("a machine <of this name>", "claims (ms)", "winners & co", "10  OVER", "not measured: no mount"):
		    assert expected in texts, (expected, texts)
		bars = [(e.get("class"), float(e.get("width"))) for e in root if name(e) == "rect"]
		half = bars[1][1]
		assert bars == [("peer-bar", half / 2), ("peer-bar", half), ("ok-bar", half / 4), ("ok-bar", half / 2),
		                ("over-bar", 2 * half), ("ok-bar", half)], bars
		ends = {float(e.get("x1")) for e in root if name(e) == "line"}
		assert ends == {float([e for e in root if name(e) == "rect"][0].get("x")) + half}, ends
	END
}
