#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The metadata servers of clouds as sources of notices, against a simulator on loopback: what is asked, and what is
# told of it. (Which answer means what is in tests/unit/cloud.c.)
# takes: 20

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	unset PREEMPT_STORE GCE_METADATA_HOST GCE_METADATA_IP
	mkdir cloud
	"$REPO/tests/support/metadata" cloud >url 2>server.err 3>&- &
	started+=("$!")
	eventually test -s url
	url=$(<url)
}

teardown() { end_started; }

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

# watches [OPTION...]: preempt-watch in the background: out, err, $watch.
watches() {
	preempt-watch "$@" >out 2>err 3>&- &
	watch=$!
	started+=("$watch")
}

# told TEXT: the watch ends with such a notice.
told() {
	wait "$watch"
	[[ $(<out) = *"$1"* ]]
}

# (The simulator's virtual machine is vm1.)
@test "what each cloud says: none, an end, its time; PH-18 in other case, with a newline" {
	local file says source code text left
	for source in gce aws azure alibaba; do once 1 "$source:$url"; done
	# A file of the server and its text, the source, the exit code, what is told, and how much time is left.
	while IFS='|' read -r file says source code text left; do
		rm -f cloud/*.*
		answer "$file" "$(printf '%b' "$says")"
		# shellcheck disable=SC2086 # a source and options
		once "$code" ${source/URL/$url}
		[[ $output =~ $text && ( $code = 0 || -z $output ) ]] || { echo "$file $says: $output"; return 1; }
		[ -z "$left" ] || left_about "$left"
	done <<-'END'
		gce.preempted|tRuE\r\n|gce:URL|0| gce:preempted left=30s |
		gce.maintenance-event|TERMINATE_ON_HOST_MAINTENANCE|gce:URL|0| gce:maintenance-event left=|60
		aws.spot|{"action":"terminate","time":"{IN:100}"}|aws:URL --grace 20s|0| aws:spot left=20s |
		aws.spot|{"action":"terminate","time":"{IN:100}"}|aws:URL --grace 10m|0| aws:spot left=[0-9]+s spot: terminate at |100
		aws.rebalance|{"noticeTime":"{IN:0}"}|aws:URL|1||
		aws.rebalance|{"noticeTime":"{IN:0}"}|aws:rebalance,URL|0| aws:rebalance left=unknown |
		aws.autoscaling|Terminated|aws:URL|0| aws:autoscaling |
		azure.event|{"Events":[{"EventType":"Preempt","Resources":["VM1"],"NotBefore":"{RFC:300}"}]}|azure:URL|0| azure:event left=[0-9]+s Preempt not before |300
		azure.event|{"Events":[{"EventType":"Preempt","Resources":["vm2"],"NotBefore":"{RFC:300}"}]}|azure:URL|1||
		azure.event|{"Events":[{"EventType":"Reboot","Resources":["vm1"],"NotBefore":""}]}|azure:reboot,freeze,URL|0| azure:event |
		alibaba.spot|{IN:250}|alibaba:URL|0| alibaba:spot left=|250
		alibaba.spot||alibaba:URL|1||
	END
	once 1 "aws:$url"
	[ "$(requests 'PUT /latest/api/token')" = 1 ]
}

@test "the guide's lines with curl: none, a notice, and a server that cannot answer" {
	local guide line i file says reason
	mapfile -t guide < <(sed -n "s/^    --notice '\(command:.*\)'$/\1/p" "$REPO/docs/cloud.md")
	while read -r i file says reason; do
		# shellcheck disable=SC2001 # a pattern with a class
		line=$(sed "s|http://[a-z0-9.]*|$url|g" <<<"${guide[i]}")
		once 1 "$line"
		answer "$file" "$says"
		once 0 "$line"
		[[ $output = *"$reason"* ]]
		answer "$file" @503
		once 75 "$line"
	done <<-'END'
		0 gce.preempted TRUE preempted
		1 aws.spot {"action":"terminate"} terminate
		2 azure.event {"Events":[{"EventType":"Preempt","Resources":["VM1"]}]} Preempt
		3 alibaba.spot 2026-11-30T08:00:00Z ends at 2026-11-30T08:00:00Z
	END
}

@test "aws: a target of the warm pool is a notice, but not while the machine is set up for it" {
	answer aws.autoscaling Warmed:Stopped
	watches --period 100ms --source "aws:$url"
	eventually grep -q 'Warmed:Stopped; ignored' err
	answer aws.autoscaling InService
	before=$(requests target-lifecycle-state)
	looked_twice() { [ "$(requests target-lifecycle-state)" -ge $((before + 2)) ]; }
	eventually looked_twice
	answer aws.autoscaling Warmed:Hibernated
	told Warmed:Hibernated
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
	watches --period 100ms --follow --source "aws:$url"
	eventually test -s out
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
	watches --period 100ms --source "aws:$url"
	eventually grep -q ignored err
	answer aws.spot '{"action":"stop","time":"{IN:60}"}'
	told "spot: stop at"
}

@test "what is no answer is never none: codes, half an answer, garbage, too much, elsewhere; late is one, never is given 5 s" {
	# In a directory of its own: never.
	"$REPO/tests/support/metadata" silent >silent.url 2>silent.err 3>&- &
	started+=("$!")
	eventually test -s silent.url
	echo @silent >silent/alibaba.spot
	preempt-watch --once --source "alibaba:$(<silent.url)" 2>err.silent 3>&- &
	silent=$! began=$SECONDS
	started+=("$silent")
	answer gce.preempted '@slow 1'
	once 1 "gce:$url"
	for trouble in @500 @302 @cut @big garbage '' "@redirect $url/computeMetadata/v1/instance/maintenance-event"; do
		answer gce.preempted "$trouble"
		once 75 "gce:$url"
		[[ $stderr = *"cannot ask gce:$url: /computeMetadata/v1/instance/preempted: "* ]]
	done
	answer gce.preempted @404
	once 75 "gce:$url"
	[[ $stderr = *"GKE"*"hostNetwork"*"k8s"* ]]
	for row in aws.spot:@503 aws.token:@403 azure.event:@cut azure.name:@404 alibaba.spot:@big; do
		rm -f cloud/*.*
		answer "${row%%:*}" "${row#*:}"
		once 75 "${row%%.*}:$url"
	done
	[[ $stderr = *"the answer is too long"* ]]
	once 75 gce:http://127.0.0.1:1
	code_of "$silent"
	[ "$code" = 75 ]
	((SECONDS - began >= 4))
	grep -q "timed out" err.silent
}

@test "PH-16: the server down, flapping, then a notice: said once, and given" {
	answer gce.preempted @503
	watches --period 100ms --source "gce:$url"
	eventually grep -q 'three times in a row' err
	answer gce.preempted @flap
	eventually grep -q 'answers again' err
	answer gce.preempted TRUE
	told " gce:preempted left=30s "
	[ "$(grep -c 'three times in a row' err)" -le 2 ]
}

@test "gce: a long poll is one request until something changes, and tells at once" {
	watches --period 300ms --source "gce:$url"
	eventually grep -q 'preempted?wait_for_change' cloud/log
	before=$(requests 'instance/preempted')
	sleep 1 # long enough for three looks, were it polling
	[ "$(requests 'instance/preempted')" = "$before" ]
	answer gce.preempted TRUE
	told " gce:preempted "
}

@test "a notice is given once, another event again" {
	answer aws.spot '{"action":"terminate","time":"2099-01-01T00:00:00Z"}'
	watches --period 100ms --follow --source "aws:$url"
	eventually grep -q 2099-01-01 out
	before=$(requests spot/instance-action)
	asked_again() { [ "$(requests spot/instance-action)" -gt "$before" ]; }
	eventually asked_again
	answer aws.spot '{"action":"terminate","time":"2098-01-01T00:00:00Z"}'
	eventually grep -q 2098-01-01 out
	[ "$(wc -l <out)" = 2 ]
}

@test "another address: by the specification, and by the variables of the cloud's own tools; unknown words are refused" {
	answer gce.preempted TRUE
	GCE_METADATA_HOST=${url#http://} once 0 gce
	PREEMPT_GCE_METADATA=$url/ once 0 gce
	answer alibaba.spot '{IN:60}'
	PREEMPT_ALIBABA_METADATA=$url once 0 alibaba
	http_proxy=http://127.0.0.1:1 once 0 "gce:$url"
	once 2 "aws:rebalanced,$url"
	[[ $stderr = *'known are rebalance, http://HOST'* ]]
	once 2 'gce:'
	once 2 'gce:metadata.google.internal'
}

@test "preempt-run: the time that a cloud names is the deadline of the group" {
	local deadline
	mkdir job
	CLIENTS=$REPO/lib/client preempt-run --store "$PWD/s.db" --run r --notice "aws:$url" -- \
		bash "$REPO/tests/support/trainers/count.sh" job 100000 0.01 >out 2>err 3>&- &
	watch=$!
	started+=("$watch")
	eventually test -s job/log/1.0
	answer aws.spot '{"action":"terminate","time":"{IN:600}"}'
	eventually preempt-store get --store s.db run/r/000001/DEADLINE
	deadline=$(preempt-store get --store s.db run/r/000001/DEADLINE | sed 's/.*"utc":\([0-9]*\)[0-9]\{3\}[,}].*/\1/')
	# Whole seconds on the way; and it may be long ago that the cloud said so.
	((deadline <= $(date +%s) + 601 && deadline > $(date +%s) + 300))
	# There is time: saved, and trained on.
	eventually grep -q saved job/log/1.0
	kill -0 "$watch"
}
