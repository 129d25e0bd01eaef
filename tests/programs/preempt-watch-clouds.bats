#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The metadata servers of clouds as sources of notices, against a simulator on loopback.
# takes: 30

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset PREEMPT_GRACE PREEMPT_PLATFORM GCE_METADATA_HOST GCE_METADATA_IP
	mkdir cloud
	"$BATS_TEST_DIRNAME/../support/metadata" cloud >url 2>server.err 3>&- &
	server=$!
	eventually [ -s url ]
	url=$(<url)
}

teardown() {
	local pid
	for pid in $server ${watch:-}; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
}

# answer NAME TEXT: what the server says from now on.
answer() {
	printf '%s' "$2" >cloud/.new
	mv cloud/.new "cloud/$1"
}

# once CODE SOURCE [OPTION...]: one look. Where the machine stood still for as long as a server is
# waited for, another one.
once() {
	local try
	for ((try = 0; try < 5; try++)); do
		: >cloud/log
		run --separate-stderr timeout 60 preempt-watch --once --source "${@:2}"
		[[ $stderr = *"timed out"* ]] || break
	done
	[ "$status" = "$1" ] || { echo "$status, not $1: $output$stderr"; return 1; }
}

# left_about SECONDS: so much is left, or up to a minute less where the machine was slow.
left_about() {
	echo "$output"
	[[ $output =~ \ left=([0-9]+)s\  ]] && ((BASH_REMATCH[1] <= $1 && BASH_REMATCH[1] > $1 - 60))
}

requests() {
	grep -c "$1" cloud/log
}

@test "without an event every cloud says none" {
	for cloud in gce aws azure alibaba; do
		once 1 "$cloud:$url"
		[ -z "$output" ]
	done
}

@test "--grace: the shorter one of what the user and what the cloud says" {
	answer aws.spot '{"action":"terminate","time":"{IN:100}"}'
	once 0 "aws:$url" --grace 20s
	[[ $output = *" aws:spot left=20s "* ]]
	once 0 "aws:$url" --grace 10m
	[[ $output = *" aws:spot left="* ]]
	left_about 100
}

@test "gce: preempted in 30 s; terminated for maintenance in 60 s; migrated is no end" {
	answer gce.preempted TRUE
	once 0 "gce:$url"
	[[ $output = *" gce:preempted left=30s "* ]]
	rm cloud/gce.preempted
	answer gce.maintenance-event TERMINATE_ON_HOST_MAINTENANCE
	once 0 "gce:$url"
	[[ $output = *" gce:maintenance-event left="* ]]
	answer gce.maintenance-event MIGRATE_ON_HOST_MAINTENANCE
	once 1 "gce:$url"
}

@test "PH-18: a value in other case, with a newline at its end, and an empty one" {
	answer gce.preempted $'tRuE\r\n'
	once 0 "gce:$url"
	answer gce.preempted ''
	once 75 "gce:$url"
	[[ $stderr = *"/instance/preempted: it answered \"\", which is not known"* ]]
}

@test "aws: the time of the end, whatever our own clock says" {
	answer aws.spot '{"action":"terminate","time":"{IN:100}"}'
	once 0 "aws:$url"
	[[ $output =~ \ aws:spot\ left=[0-9]+s\ spot:\ terminate\ at\  ]]
	left_about 100
	[ "$(requests 'PUT /latest/api/token')" = 1 ]
}

@test "aws: a recommendation to rebalance is no notice unless it is asked for" {
	answer aws.rebalance '{"noticeTime":"{IN:0}"}'
	once 1 "aws:$url"
	once 0 "aws:rebalance,$url"
	[[ $output = *" aws:rebalance left=unknown "* ]]
}

@test "aws: an autoscaling group that takes the machine away" {
	answer aws.autoscaling Terminated
	once 0 "aws:$url"
	[[ $output = *" aws:autoscaling "* ]]
}

@test "aws: a target of the warm pool is a notice, but not while the machine is set up for it" {
	answer aws.autoscaling Warmed:Stopped
	preempt-watch --period 100ms --source "aws:$url" >out 2>err 3>&- &
	watch=$!
	eventually grep -q 'Warmed:Stopped; ignored' err
	answer aws.autoscaling InService
	before=$(requests target-lifecycle-state)
	looked_twice() { [ "$(requests target-lifecycle-state)" -ge $((before + 2)) ]; }
	eventually looked_twice
	answer aws.autoscaling Warmed:Hibernated
	wait "$watch"
	[[ $(<out) = *" aws:autoscaling "*"Warmed:Hibernated"* ]]
}

@test "aws: where the request for a token gets no answer, the others go without; if they are refused, it says why" {
	answer aws.token @cut
	answer aws.spot '{"action":"terminate","time":"{IN:100}"}'
	once 75 "aws:$url"
	[[ $stderr = *"HttpPutResponseHopLimit"* ]]
	: >cloud/aws.v1
	once 0 "aws:$url"
	[[ $stderr = *"/latest/api/token does not answer"*"HttpPutResponseHopLimit"* ]]
	left_about 100
	# A token that is demanded later, or has come back.
	preempt-watch --period 100ms --follow --source "aws:$url" >out 2>err 3>&- &
	watch=$!
	eventually [ -s out ]
	rm cloud/aws.v1 cloud/aws.token
	answer aws.spot '{"action":"terminate","time":"{IN:50}"}'
	again() { [ "$(wc -l <out)" = 2 ]; }
	eventually again
}

@test "a notice that is long over when a program starts was for another start, in every cloud" {
	answer aws.spot '{"action":"stop","time":"{IN:-600}"}'
	once 1 "aws:$url"
	[[ $stderr = *"spot: stop at "*"; ignored, because it was so before this start"* ]]
	answer alibaba.spot '{IN:-600}'
	once 1 "alibaba:$url"
	answer azure.event '{"Events":[{"EventType":"Preempt","Resources":["vm1"],"NotBefore":"{RFC:-600}"}]}'
	once 1 "azure:$url"
	answer aws.rebalance '{"noticeTime":"{IN:-600}"}'
	once 1 "aws:rebalance,$url"
	# Just over, or new: a notice.
	answer alibaba.spot '{IN:-30}'
	once 0 "alibaba:$url"
	preempt-watch --period 100ms --source "aws:$url" >out 2>err 3>&- &
	watch=$!
	eventually grep -q ignored err
	answer aws.spot '{"action":"stop","time":"{IN:60}"}'
	wait "$watch"
	[[ $(<out) = *"spot: stop at"* ]]
}

@test "gce: GKE's metadata server has no such pages, and the error says what to do" {
	answer gce.preempted @404
	once 75 "gce:$url"
	[[ $stderr = *"GKE"*"hostNetwork"*"k8s"* ]]
}

@test "aws: a token that is refused is fetched again, with no output" {
	preempt-watch --period 100ms --source "aws:$url" >out 2>err 3>&- &
	watch=$!
	looked() { [ "$(requests spot/instance-action)" -ge "$1" ]; }
	eventually looked 6
	answer aws.token second
	answer aws.spot '{"action":"stop","time":"{IN:60}"}'
	wait "$watch"
	[ ! -s err ]
	# One more where the machine stood still while it was fetched; never one for each look.
	[[ $(requests 'PUT /latest/api/token') = [23] ]]
	[[ $(<out) = *"spot: stop at"* ]]
}

@test "aws: a token that is refused after a failure is not mistaken for the new one" {
	answer aws.spot @503
	preempt-watch -v --period 100ms --source "aws:$url" >out 2>err 3>&- &
	watch=$!
	eventually grep -q 'code 503' err
	answer aws.token second
	answer aws.spot '{"action":"stop","time":"{IN:60}"}'
	wait "$watch"
	[[ $(<out) = *"spot: stop at"* ]]
	run -1 grep 'new token' err
}

@test "azure: only events that concern this machine, and only ends" {
	event='{"EventId":"A1","EventType":"TYPE","Resources":["NAME"],"NotBefore":"{RFC:300}"}'
	say() {
		local one=${event/TYPE/$1}
		answer azure.event "{\"DocumentIncarnation\":2,\"Events\":[${one/NAME/$2}]}"
	}
	say Preempt VM1
	once 0 "azure:$url"
	[[ $output =~ \ azure:event\ left=[0-9]+s\ Preempt\ not\ before\  ]]
	left_about 300
	say Preempt vm2
	once 1 "azure:$url"
	say Reboot vm1
	once 1 "azure:$url"
	once 0 "azure:reboot,freeze,$url"
}

@test "alibaba: the time of release" {
	answer alibaba.spot '{IN:250}'
	once 0 "alibaba:$url"
	[[ $output = *" alibaba:spot left="* ]]
	left_about 250
	answer alibaba.spot ''
	once 1 "alibaba:$url"
}

@test "what is no answer is never none: codes, half an answer, garbage, too much, elsewhere" {
	for trouble in @500 @503 @404 @302 @cut @big 'garbage' "@redirect $url/computeMetadata/v1/instance/preempted"; do
		answer gce.preempted "$trouble"
		once 75 "gce:$url"
		[[ $stderr = *"cannot ask gce:$url: /computeMetadata/v1/instance/preempted: "* ]]
	done
	for trouble in @500 @cut @big garbage '{"action":"terminate"}'; do
		answer aws.spot "$trouble"
		once 75 "aws:$url"
		answer azure.event "$trouble"
		once 75 "azure:$url"
		answer alibaba.spot "$trouble"
		once 75 "alibaba:$url"
	done
	rm cloud/aws.spot
	answer aws.token @403
	once 75 "aws:$url"
	answer azure.name @404
	once 75 "azure:$url"
	once 75 gce:http://127.0.0.1:1
}

@test "a server that takes the question and does not answer is given 5 s" {
	answer alibaba.spot @silent
	SECONDS=0
	run -75 --separate-stderr timeout 60 preempt-watch --once --source "alibaba:$url"
	((SECONDS >= 4))
	[[ $stderr = *"timed out"* ]]
}

@test "an answer that comes late but comes is one" {
	answer gce.preempted '@slow 1'
	once 1 "gce:$url"
}

@test "PH-16: the server down, flapping, then a notice: said once, and given" {
	answer gce.preempted @503
	preempt-watch --period 100ms --source "gce:$url" >out 2>err 3>&- &
	watch=$!
	eventually grep -q 'three times in a row' err
	answer gce.preempted @flap
	eventually grep -q 'answers again' err
	answer gce.preempted TRUE
	wait "$watch"
	[[ $(<out) = *" gce:preempted left=30s "* ]]
	[ "$(grep -c 'three times in a row' err)" -le 2 ]
}

@test "a cloud that cannot be asked stops no other source" {
	preempt-watch --source gce:http://127.0.0.1:1 --source "aws:$url" --source "file:$PWD/drain" \
		>out 2>err 3>&- &
	watch=$!
	eventually grep -q 'three times in a row' err
	echo maintenance >drain.new
	mv drain.new drain
	wait "$watch"
	[[ $(<out) = *"file:"*"maintenance"* ]]
}

@test "gce: a long poll is one request until something changes, and tells at once" {
	preempt-watch --source "gce:$url" >out 2>err 3>&- &
	watch=$!
	eventually grep -q 'preempted?wait_for_change' cloud/log
	before=$(requests 'instance/preempted')
	sleep 3 # long enough for three looks, were it polling
	[ "$(requests 'instance/preempted')" = "$before" ]
	answer gce.preempted TRUE
	wait "$watch"
	[[ $(<out) = *" gce:preempted "* ]]
}

@test "a notice is given once, another event again" {
	answer aws.spot '{"action":"terminate","time":"2099-01-01T00:00:00Z"}'
	preempt-watch --period 100ms --follow --source "aws:$url" >out 2>err 3>&- &
	watch=$!
	eventually grep -q 2099-01-01 out
	before=$(requests spot/instance-action)
	asked_again() { [ "$(requests spot/instance-action)" -gt "$before" ]; }
	eventually asked_again
	answer aws.spot '{"action":"terminate","time":"2098-01-01T00:00:00Z"}'
	eventually grep -q 2098-01-01 out
	[ "$(wc -l <out)" = 2 ]
}

@test "another address: by the specification, and by the variables of the cloud's own tools" {
	answer gce.preempted TRUE
	GCE_METADATA_HOST=${url#http://} once 0 gce
	PREEMPT_GCE_METADATA=$url/ once 0 gce
	answer alibaba.spot '{IN:60}'
	PREEMPT_ALIBABA_METADATA=$url once 0 alibaba
	http_proxy=http://127.0.0.1:1 once 0 "gce:$url"
}

@test "words that a cloud does not know are refused, and the known ones named" {
	once 2 "aws:rebalanced,$url"
	[[ $stderr = *'known are rebalance, http://HOST'* ]]
	once 2 'gce:'
	once 2 'gce:metadata.google.internal'
}

@test "a program that asks no cloud does not load libcurl" {
	strace -f -o trace preempt-watch --once --source file:drain || :
	run -1 grep -q libcurl trace
	# With every answer of the server.
	strace -f -o trace preempt-watch --once --source "gce:$url" || :
	grep -q libcurl trace
}

# train_with SOURCE: preempt-run with a training that runs, $watch.
train_with() {
	cat >train <<'END'
. "$CLIENT/preempt.sh"
set -eu
for ((s = 0; s < 100000; s++)); do
	preempt_step $s || { echo $s >saved && preempt_saved $s; } || exit
	: >running
	sleep 0.01
done
END
	CLIENT=$BATS_TEST_DIRNAME/../../lib/client preempt-run --store "$PWD/s.db" --run r --notice "$1" \
		-- bash train >out 2>err 3>&- &
	watch=$!
	eventually [ -e running ]
}

@test "preempt-run: a notice of a cloud stops the command, saved" {
	train_with "aws:rebalance,$url"
	# It names no time: at once, and as long as the save takes.
	answer aws.rebalance '{"noticeTime":"{IN:0}"}'
	code=0
	wait "$watch" || code=$?
	[ "$code" = 42 ]
	[ -s saved ]
}

@test "preempt-run: the time that a cloud names is the deadline of the group" {
	local deadline
	train_with "aws:$url"
	answer aws.spot '{"action":"terminate","time":"{IN:600}"}'
	eventually preempt-store get --store s.db run/r/000001/DEADLINE
	deadline=$(preempt-store get --store s.db run/r/000001/DEADLINE | sed 's/.*"utc":\([0-9]*\)[0-9]\{3\}[,}].*/\1/')
	# Whole seconds on the way; and it may be long ago that the cloud said so.
	((deadline <= $(date +%s) + 601 && deadline > $(date +%s) + 300))
	# There is time: saved, and trained on.
	eventually [ -s saved ]
	kill -0 "$watch"
}
