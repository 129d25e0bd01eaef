# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154,SC2086 # the tests use what is set here; etcd.bash sets etcd_*; place_members is several numbers
# One place of a store, seen from two sides. $PLACE:
#
#   disk     a file on a disk of this machine; both sides are the same
#   gluster  a file on GlusterFS, through two mounts, which are two machines for it
#   bindfs   a file through two bindfs mounts, which share no lock: the store has a token
#   cephfs   a file through two ceph-fuse mounts
#   sshfs    a file through two sshfs mounts
#   etcd     a cluster of three members, whose addresses the second side has in another order
#
#   setup_file()    { place_start; }     skips the file where the place cannot be made
#   teardown_file() { place_end; }

PLACE=${PLACE:-disk}

. "$(dirname "${BASH_SOURCE[0]}")/../support/programs.bash"
case $PLACE in
gluster | bindfs | cephfs | sshfs) . "$(dirname "${BASH_SOURCE[0]}")/../support/mounts.bash" ;;
etcd) . "$(dirname "${BASH_SOURCE[0]}")/../support/etcd.bash" ;;
esac

place_start() {
	case $PLACE in
	gluster | bindfs | cephfs | sshfs) mounts_start "$PLACE" ;;
	etcd)
		etcd_setup_file
		place_members=${etcd_pids[*]}
		export place_members etcd_directory
		;;
	disk) ;;
	*) echo "what is PLACE=$PLACE?" >&2 && return 1 ;;
	esac
}

place_end() {
	case $PLACE in
	gluster | bindfs | cephfs | sshfs) mounts_stop ;;
	etcd) etcd_teardown_file ;;
	*) "$REPO/tests/support/forget-stores" "$BATS_FILE_TMPDIR" ;;
	esac
}

# place_store: a new store. $a and $b: its URL from each side. $here and $there: a directory that both sides see, for
# checkpoints and the like. $all: the URL of any store of this place, with %s in place of its name.
place_store() {
	local name
	case $PLACE in
	gluster | bindfs | cephfs | sshfs)
		here=$(mktemp -d "$MOUNTS/$PLACE/a/XXXXXX")
		there=$MOUNTS/$PLACE/b/${here##*/}
		;;
	*) here=$(mktemp -d "$BATS_FILE_TMPDIR/XXXXXX") there=$here ;;
	esac
	a=$here/s.db b=$there/s.db all=$here/%s.db
	case $PLACE in
	etcd)
		name=${here##*/}
		a="etcd://$etcd_endpoints/$name"
		b="etcd://${etcd_endpoints#*,},${etcd_endpoints%%,*}/$name"
		all="etcd://$etcd_endpoints/%s"
		;;
	esac
}

# database_of PATH: the file that has the database of a store (lib/store/lock/token.h).
database_of() {
	local token=("$1".lock/[fhm]-*) file
	[ -d "$1.lock" ] || { echo "$1"; return; }
	file=$(cut -d - -f 5 <<<"${token##*/}")
	[[ $file = *[1-9a-f]* ]] && echo "$1.$file" || echo "$1"
}

is_file() { [ "$PLACE" != etcd ]; }

# files_only: skip this test where a store is no file.
files_only() { is_file || skip "the store is no file"; }

# place_break, place_mend: no side can reach the store, and all can again. (Of a file its directory goes: a mount belongs
# to all tests.)
place_break() {
	case $PLACE in
	etcd) kill -STOP ${place_members% *} ;; # a majority
	*) mv "$here" "$here.away" ;;
	esac
}
place_mend() {
	case $PLACE in
	etcd) kill -CONT ${place_members% *} ;;
	*) mv "$here.away" "$here" ;;
	esac
}
