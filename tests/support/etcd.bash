# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154 # etcd_options is the caller's
# For bats files that need an etcd cluster of one or three members on this machine:
#
#   load ../support/etcd
#   setup_file() { etcd_needed; }      skips the file if there is no etcd
#   setup()      { etcd_start 3; }     sets $etcd_endpoints: HOST:PORT,HOST:PORT,HOST:PORT
#   teardown()   { etcd_stop; }        prints the members' logs after a failure
#
# A member ends with the shell that started it: a test can restart only members of a cluster that it has
# started itself. Members are numbered from 1. Options of etcd for all members are in
# $etcd_options, an array; etcd_tls=yes makes certificates, in $etcd_directory/tls, and serves TLS.

etcd_needed() {
	"$(dirname "${BASH_SOURCE[0]}")/packages" etcd || skip "cannot install etcd"
	command -v etcd etcdctl >/dev/null || skip "there is no etcd"
}

# free_ports COUNT: set $ports. Another program may take one of them before etcd does.
free_ports() {
	mapfile -t ports < <(python3 -c '
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for i in range(int(sys.argv[1]))]
for s in sockets: print(s.getsockname()[1])' "$1")
}

# etcd_setup_file, etcd_teardown_file: one cluster of three members for all tests of a file, for etcd_runs.
etcd_setup_file() {
	etcd_needed
	etcd_options=()
	etcd_start 3
	export etcd_endpoints
}
etcd_teardown_file() { BATS_TEST_COMPLETED=1 etcd_stop; }

# Make the server ask for a user; it knows root, with the password "secret".
etcd_enable_users() {
	etcd_control user add root:secret >/dev/null
	etcd_control user grant-role root root >/dev/null
	etcd_control auth enable >/dev/null
}

# etcd_start [MEMBERS]
etcd_start() {
	local i members=${1:-1}
	etcd_directory=$(mktemp -d "${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/etcd.XXXXXX")
	etcd_pids=() etcd_client=() etcd_peer=() etcd_scheme=http etcd_tls_options=() etcd_new=new
	[ -z "${etcd_tls:-}" ] || etcd_make_certificates
	free_ports $((2 * members))
	for ((i = 1; i <= members; i++)); do
		etcd_client[i]=127.0.0.1:${ports[2 * i - 2]} etcd_peer[i]=127.0.0.1:${ports[2 * i - 1]}
	done
	etcd_endpoints=$(IFS=, && echo "${etcd_client[*]}")
	for i in "${!etcd_client[@]}"; do
		etcd_run_member "$i"
	done
	etcd_await
}

# Print the members with which the cluster begins: "m1=http://HOST:PORT,..."
etcd_cluster() {
	local i list=''
	for i in "${!etcd_peer[@]}"; do
		list+=${list:+,}m$i=http://${etcd_peer[i]}
	done
	printf '%s' "$list"
}

# Heartbeats and elections are short, so that another member becomes leader soon.
etcd_run_member() {
	local i=$1
	setpriv --pdeathsig KILL etcd --name "m$i" --data-dir "$etcd_directory/m$i" \
		--listen-client-urls "$etcd_scheme://${etcd_client[i]}" \
		--advertise-client-urls "$etcd_scheme://${etcd_client[i]}" \
		--listen-peer-urls "http://${etcd_peer[i]}" \
		--initial-advertise-peer-urls "http://${etcd_peer[i]}" \
		--initial-cluster "$(etcd_cluster)" --initial-cluster-state "$etcd_new" \
		--heartbeat-interval 50 --election-timeout 500 "${etcd_tls_options[@]}" "${etcd_options[@]}" \
		>>"$etcd_directory/m$i.log" 2>&1 3>&- </dev/null &
	etcd_pids[i]=$!
}

# etcd_control COMMAND...: run etcdctl on this cluster.
etcd_control() {
	local tls=()
	[ -z "${etcd_tls:-}" ] ||
		tls=(--cacert "$etcd_directory/tls/ca.pem" --cert "$etcd_directory/tls/client.pem" --key "$etcd_directory/tls/client.key")
	ETCDCTL_API=3 etcdctl --endpoints "$etcd_endpoints" --command-timeout 10s "${tls[@]}" "$@"
}

# Wait until a majority answers, for a minute at most.
etcd_await() {
	local end=$((SECONDS + 60)) pid
	until etcd_control get x >/dev/null 2>&1; do
		for pid in "${etcd_pids[@]}"; do
			kill -0 "$pid" 2>/dev/null || { etcd_show_logs; return 1; }
		done
		((SECONDS < end)) || { etcd_show_logs; return 1; }
		sleep 0.05
	done
}

# Print the number of the member that says that it is the leader.
etcd_leader() {
	local i end=$((SECONDS + 60))
	while ((SECONDS < end)); do
		for i in "${!etcd_client[@]}"; do
			! etcd_endpoints=${etcd_client[i]} etcd_control --command-timeout 1s endpoint status 2>/dev/null |
				grep -q ', true, ' || { echo "$i" && return; }
		done
		sleep 0.1
	done
	return 1
}

etcd_kill() {
	kill -9 "${etcd_pids[$1]}"
	wait "${etcd_pids[$1]}" 2>/dev/null || :
}
etcd_pause() { kill -STOP "${etcd_pids[$1]}"; }
etcd_continue() { kill -CONT "${etcd_pids[$1]}"; }
# etcd_restart MEMBER: with its data. etcd_replace MEMBER: as an administrator does if the data are lost.
etcd_restart() { etcd_run_member "$1"; }
etcd_replace() {
	local id
	id=$(etcd_control member list | awk -F', ' -v name="m$1" '$3 == name { print $1 }')
	# A cluster refuses both commands until its members have been connected for a while.
	until etcd_control member remove "$id" >/dev/null 2>&1; do
		sleep 0.2
	done
	until etcd_control member add "m$1" --peer-urls "http://${etcd_peer[$1]}" >/dev/null 2>&1; do
		sleep 0.2
	done
	rm -rf "$etcd_directory/m$1"
	etcd_new=existing
	etcd_run_member "$1"
}
etcd_revision() { etcd_control get x -w json | sed 's/.*"revision":\([0-9]*\).*/\1/'; }
etcd_compact() { etcd_control compact "$(etcd_revision)" >/dev/null; }
# etcd_restore FILE: put the whole cluster back to that snapshot.
etcd_restore() {
	local i
	for i in "${!etcd_pids[@]}"; do
		etcd_kill "$i"
		rm -rf "$etcd_directory/m$i"
		ETCDCTL_API=3 etcdctl snapshot restore "$1" --name "m$i" --data-dir "$etcd_directory/m$i" \
			--initial-cluster "$(etcd_cluster)" --initial-advertise-peer-urls "http://${etcd_peer[i]}" >/dev/null 2>&1
	done
	for i in "${!etcd_client[@]}"; do
		etcd_run_member "$i"
	done
	etcd_await
}

# etcd_runs FILE...: run the tests of these bats files of tests/, unchanged, each with a store in this etcd. Do not pass on
# our PATH: bats has put other commands named bats into it.
etcd_runs() {
	local files=("${@/#tests/$BATS_TEST_DIRNAME/..}")
	run env -i HOME="$HOME" PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin BIN="${BIN:-}" OUT="${OUT:-}" \
		LC_ALL=C.UTF-8 PREEMPT_TEST_STORE="etcd://$etcd_endpoints/%s" \
		bats --tap "${files[@]}"
	grep -A20 '^not ok' <<<"$output" || :
	[ "$status" = 0 ]
	# Most of these tests must not be skipped.
	(($(grep -c '^ok .* # skip' <<<"$output") < $(grep -c '^ok ' <<<"$output") / 2))
}

# Makes ca.pem, other.pem, server.pem for 127.0.0.1, client.pem without a name, and expired.pem, with .key files.
etcd_make_certificates() {
	local directory=$etcd_directory/tls name
	mkdir -m 700 "$directory"
	for name in ca other; do
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$name" \
			-keyout "$directory/$name.key" -out "$directory/$name.pem" 2>/dev/null
	done
	etcd_sign server '/CN=server' 2 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth'
	etcd_sign client '/O=preempt' 2 'extendedKeyUsage=clientAuth'
	etcd_sign expired '/O=preempt' -1 'extendedKeyUsage=clientAuth'
	etcd_scheme=https
	etcd_tls_options=(--cert-file "$directory/server.pem" --key-file "$directory/server.key" --client-cert-auth
		--trusted-ca-file "$directory/ca.pem")
}
# etcd_sign NAME SUBJECT DAYS EXTENSIONS
etcd_sign() {
	local directory=$etcd_directory/tls
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" -keyout "$directory/$1.key" \
		-out "$directory/$1.csr" 2>/dev/null
	# shellcheck disable=SC2059 # the extensions contain \n
	openssl x509 -req -in "$directory/$1.csr" -CA "$directory/ca.pem" -CAkey "$directory/ca.key" -CAcreateserial -days "$3" \
		-extfile <(printf "$4\n") -out "$directory/$1.pem" 2>/dev/null
}

etcd_show_logs() {
	local log
	for log in "$etcd_directory"/m*.log; do
		echo "==> $log <==" && tail -n 20 "$log"
	done >&2
}

etcd_stop() {
	local pid
	[ -n "${etcd_directory:-}" ] || return 0
	[ -n "${BATS_TEST_COMPLETED:-}" ] || etcd_show_logs
	for pid in "${etcd_pids[@]}"; do
		kill -9 "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	rm -rf "$etcd_directory"
	etcd_directory=''
}
