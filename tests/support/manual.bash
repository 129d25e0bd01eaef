# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The examples of the manual, as their reader types them.

# example PAGE N [SECTION]: the Nth example of this page, without prompts. A line of its own is one, and a block is one.
# N 0: how many there are.
example() {
	awk -v n="$2" -v section="${3-EXAMPLES}" '
		/^\.S[hs] / { inside = substr($0, 5) == section }
		!inside { next }
		/^\.Dl / { found++; if (found == n) print substr($0, 5) }
		/^\.Ed/ { block = 0 }
		block && found == n
		/^\.Bd/ { block = 1; found++ }
		END { if (n == 0) print found + 0 }
	' "$REPO/man/$1" | sed 's/^\$ //; s/^\\&//; s/\\(dq/"/g; s/\\(aq/'\''/g; s/\\-/-/g; s/\\e/\\/g'
}

# examples PAGE: how many the page has.
examples() {
	example "$1" 0
}
