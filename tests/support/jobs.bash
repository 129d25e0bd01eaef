# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# One job of tests/run: start a test program in a room of its own (home, temporary directory, mark of its
# processes), then count its results, and check what it has left behind.
# The caller is in the root of the project and sets ends (seconds since its start after which jobs are ended, or '').

root=$PWD log=$PWD/build/check.log
rooms=$(mktemp -d "${TMPDIR:-/tmp}/preempt-check.XXXXXX")
chmod 755 "$rooms"
passed=0 failed=0 skipped=0 jobs=0 left_out=()
declare -A name_of=() room_of=() began_at=()
mkdir -p build
: >"$log"
: >build/skipped
: >build/failed

# ---- Messages ----

progress() {
	[ -t 1 ] || return 0
	printf '\r\033[K%s' "$*"
}

say() {
	progress
	printf '%s\n' "$*" | tee -a "$log"
}

# say_line NAME WHAT SECONDS
say_line() {
	say "$(printf '  %-28s %-44s %5.1f s' "$@")"
}

seconds_since() {
	awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'
}

# Print the failures again, for readers who look only at the end of the output.
summary() {
	awk 'NR <= 60; END { if (NR > 60) print "  ... " NR - 60 " more lines in build/failed" }' build/failed
}
# ---- One test file ----

# marked MARK: print the processes whose mark begins with MARK; every process of a test inherits a mark.
marked() {
	grep -lzs "^CHECK_MARK=$1" /proc/[0-9]*/environ | sed 's|/proc/||; s|/environ||' || :
}

end_marked() {
	local pid left=100
	while [ -n "$(marked "$1")" ] && [ $((left--)) -gt 0 ]; do
		for pid in $(marked "$1"); do
			kill -KILL "$pid" 2>/dev/null || :
		done
		sleep 0.1
	done
}

# start NAME LIMIT BUILD COMMAND...: start COMMAND in the background, in a room of its own.
start() {
	local name=$1 limit=$2 build=$3 room=$rooms/$((++jobs))
	shift 3
	mkdir -p "$room/home" "$room/reports"
	mkdir -m 1777 "$room/tmp"
	mkdir -m 700 "$room/runtime"
	chmod 1777 "$room/reports"
	local bin=$root/bin path=$PATH
	[ "$build" = plain ] || bin=$root/build/$build/bin path=$root/tests/support/$build:$PATH
	local report="log_path=$room/reports/report:abort_on_error=1" kill=(timeout -k 10 "$limit")
	if [ -n "$ends" ] && [ $((SECONDS + limit)) -gt "$ends" ]; then
		kill=(timeout -s KILL $((ends - SECONDS)))
		touch "$room/cut"
	fi
	(
		export CHECK_MARK="$room/" HOME="$room/home" TMPDIR="$room/tmp" XDG_RUNTIME_DIR="$room/runtime"
		export BIN="$bin" OUT="$root/build/$build" PATH="$path"
		export ASAN_OPTIONS="$report:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1"
		export UBSAN_OPTIONS="$report:print_stacktrace=1"
		unset XDG_STATE_HOME
		code=0
		ulimit -c 0
		# A shell makes its background commands ignore INT and QUIT; a test must not ignore them.
		env --default-signal=INT,QUIT,PIPE "${kill[@]}" "$@" </dev/null >"$room/out" 2>"$room/err" || code=$?
		echo "$code" >"$room/code"
	) 2>/dev/null &
	name_of[$!]=$name room_of[$!]=$room began_at[$!]=$EPOCHREALTIME
	echo "$limit" >"$room/limit"
}

# count_tap CODE TAP: print "passed failed skipped", then what is wrong with the whole file, if anything.
count_tap() {
	awk -v code="$1" '
	/^1\.\.[0-9]+/ { planned = 1; plan = substr($1, 4) + 0; if (/# *[Ss][Kk][Ii][Pp]/) skipped++ }
	/^ok( |$)/ { seen++; if (/ # *[Ss][Kk][Ii][Pp]/) skipped++; else passed++ }
	/^not ok( |$)/ { seen++; failed++ }
	END {
		if (!planned) why = "ended without a plan"
		else if (plan > seen) why = plan - seen " of " plan " tests did not run"
		else if (plan < seen) why = seen " tests ran, not " plan
		else if (plan == 0 && !skipped) why = "has no tests"
		if (code != 0 && (why || !failed)) why = why (why ? ", " : "") "exit code " code
		if (why) failed += planned && plan > seen ? plan - seen : 1
		print passed + 0, failed + 0, skipped + 0, why
	}' "$2"
}

# failures_in TAP N: print the failures, each with the first N of its comments (unit tests print comments
# before the failure, bats after it).
failures_in() {
	awk -v most="$2" '
	/^#/ && ++count <= most { comments = comments "    " $0 "\n" }
	/^#/ && count == most + 1 && most > 9 { comments = comments "    # ... more in build/check.log\n" }
	/^(not )?ok( |$)/ {
		fails = /^not/
		if (fails || failed) printf "%s", comments
		if (fails) print "    " $0
		failed = fails
		comments = ""
		count = 0
	}
	END { if (failed) printf "%s", comments }' "$1"
}

# finished PID: count and show the results of that job.
finished() {
	local name=${name_of[$1]} room=${room_of[$1]} seconds code p f s why left report what late=0
	seconds=$(seconds_since "${began_at[$1]}")
	unset "name_of[$1]" "room_of[$1]" "began_at[$1]"
	code=$(cat "$room/code" 2>/dev/null || echo unknown)
	read -r p f s why < <(count_tap "$code" "$room/out")

	if [[ $code = 124 || $code = 137 ]] && [ "${seconds%.*}" -ge "$(cat "$room/limit")" ]; then
		why="did not end within $(cat "$room/limit") s${why:+; $why}"
		late=1
	fi
	if [ -f "$room/cut" ] && [ "$code" = 137 ] && [ $SECONDS -ge "$ends" ]; then
		left_out+=("$name (not finished)")
		f=$(grep -c '^not ok' "$room/out") || :
		why=''
		end_marked "$room/"
	fi
	left=$(still_there "$room/")
	if [ -n "$left" ]; then
		why="${why:+$why; }left processes behind:"$'\n'"$left"
		[ $late = 1 ] || f=$((f + 1))
		end_marked "$room/"
	fi
	for report in "$room"/reports/*; do
		# Ignore reports that are only remarks, for instance about a thread that has ended.
		grep -qs 'ERROR\|runtime error\|fatal error' "$report" || continue
		why="${why:+$why; }a sanitizer's report:"$'\n'"$(grep -v '^=*$' "$report" | head -n 30)"
		f=$((f + 1))
	done

	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	sed -n 's/^\(ok\|1\.\.0\) .*# *[Ss][Kk][Ii][Pp] *//p' "$room/out" >>build/skipped
	what="$p passed"
	[ "$s" = 0 ] || what+=", $s skipped"
	[ "$f" = 0 ] || what+=", $f FAILED"
	say_line "$name" "$what" "$seconds"
	if [ "$f" != 0 ]; then
		failures_in "$room/out" 60
		{
			echo "  $name"
			failures_in "$room/out" 5
			[ -z "$why" ] || printf '    %s\n' "$(head -n 5 <<<"$why" | cut -c 1-200)"
		} >>build/failed
		[ -z "$why" ] || printf '%s\n' "$why" | sed 's/^/    /'
		[ -z "$why" ] || tail -n 20 "$room/err" | sed 's/^/    | /'
	fi
	{
		[ -z "$why" ] || printf '%s\n' "$why"
		echo "---- $name, stdout:"
		cat "$room/out"
		echo "---- $name, stderr:"
		cat "$room/err"
	} >>"$log"
	rm -rf --one-file-system "$room" || :
}

# still_there MARK: print the processes of a test that have not ended in time. (A slow disk can delay the end of
# a killed process.)
still_there() {
	local pids until=$((SECONDS + ${CHECK_PATIENCE:-30}))
	while pids=$(marked "$1") && [ -n "$pids" ]; do
		if ((SECONDS >= until)); then
			# shellcheck disable=SC2086 # several numbers
			ps -o pid=,stat=,args= -p "$(paste -sd, <<<"$pids")" || :
			return
		fi
		sleep 0.05
	done
}

# room_for N: wait until fewer than N tests run.
room_for() {
	local pid
	while [ "${#name_of[@]}" -ge "$1" ]; do
		progress "  ... ${name_of[*]}"
		wait -n -p pid "${!name_of[@]}" || :
		finished "$pid"
	done
}

