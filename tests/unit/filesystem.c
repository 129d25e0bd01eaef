/* SPDX-License-Identifier: MIT */
/* Which lock on which filesystem: the table of cases. No such filesystem is needed. */
#include "store/filesystem.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/cache.h"
#include "store/lock/lock.h"
#include "unit.h"

#define LOCAL	FILESYSTEM_LOCAL
#define SHARED	FILESYSTEM_SHARED
#define NODE	FILESYSTEM_NODE
#define UNKNOWN FILESYSTEM_UNKNOWN

static const struct {
	struct filesystem filesystem;
	enum filesystem_reach reach;
	bool warned;
} cases[] = {
	{{0xef53, "", ""}, LOCAL, false},
	{{0x58465342, "", ""}, LOCAL, false},
	{{0x9123683e, "", ""}, LOCAL, false},
	{{0x01021994, "", ""}, LOCAL, false},
	{{0x794c7630, "", ""}, LOCAL, false},
	{{0x6969, "nfs4", "rw,relatime,vers=4.2,hard,local_lock=none"}, SHARED, false},
	{{0x6969, "nfs", "rw,vers=3,hard,local_lock=none"}, SHARED, false},
	{{0x6969, "nfs", "rw,vers=3,hard,local_lock=flock"}, SHARED, false},
	{{0x6969, "nfs", "rw,vers=3,nolock,local_lock=all"}, NODE, false},
	{{0x6969, "nfs", "rw,vers=3,nolock"}, NODE, false},
	{{0x6969, "nfs", "rw,vers=3,local_lock=posix"}, NODE, false},
	{{0x6969, "nfs", "rw,vers=3,local_lock=all"}, NODE, false},
	{{0x6969, "nfs", "rw,vers=3,addr=nolock.example"}, SHARED, false},
	{{0x6969, "nfs4", "rw,vers=4.2,soft"}, SHARED, true},
	{{0x6969, "nfs4", "rw,vers=4.2,nocto"}, SHARED, true},
	{{0x0bd00bd0, "lustre", "rw,flock,lazystatfs"}, SHARED, false},
	{{0x0bd00bd0, "lustre", "rw,localflock"}, NODE, false},
	{{0x47504653, "gpfs", "rw"}, SHARED, false},
	{{0x00c36400, "ceph", "rw"}, SHARED, false},
	{{0x19830326, "beegfs", "rw"}, NODE, false},
	{{0x19830326, "beegfs", "rw,tuneUseGlobalFileLocks"}, SHARED, false},
	{{0xff534d42, "cifs", "rw"}, SHARED, false},
	{{0xfe534d42, "cifs", "rw,nobrl"}, NODE, false},
	{{0x5346414f, "afs", "rw"}, NODE, false},
	{{0x65735546, "fuse.glusterfs", "rw"}, SHARED, false},
	{{0x65735546, "fuse.mfs", "rw"}, SHARED, false},
	{{0x65735546, "fuse.sshfs", "rw"}, NODE, false},
	{{0x65735546, "fuse.bindfs", "rw"}, NODE, false},
	{{0x65735546, "fuse.fuse-overlayfs", "rw"}, LOCAL, false},
	{{0x65735546, "fuse.whatever", "rw"}, UNKNOWN, false},
	{{0x65735546, "", ""}, UNKNOWN, false},
	{{0x01021997, "9p", "rw"}, UNKNOWN, false},
	{{0x12345678, "new", "rw"}, UNKNOWN, false},
};

int main(void)
{
	TEST("each filesystem is judged by its number, type and options")
	{
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct filesystem_traits traits = filesystem_classify(&cases[i].filesystem);
			if (traits.reach != cases[i].reach)
				printf("# %s %s\n", cases[i].filesystem.type,
					cases[i].filesystem.options);
			CHECK_EQ(traits.reach, cases[i].reach);
			CHECK(traits.name && *traits.name);
			bool fuse = cases[i].filesystem.magic == 0x65735546;
			bool nfs4 = !strcmp(cases[i].filesystem.type, "nfs4");
			CHECK_EQ(cache_kind(&traits), cases[i].reach == LOCAL ? CACHE_OURS
						      : fuse		      ? CACHE_CLIENT
						      : nfs4		      ? CACHE_LENT
									      : CACHE_KERNEL);
			CHECK_EQ(traits.warning != NULL, cases[i].warned);
			CHECK_EQ(traits.why != NULL, traits.reach == FILESYSTEM_NODE ||
							     traits.reach == FILESYSTEM_UNKNOWN);
		}
	}
	TEST("the lock is the kernel's where that reaches every process, and does not outlive a dead machine for long")
	{
		static const struct {
			struct filesystem filesystem;
			enum lock_kind kind;
			int outlived;
			enum status file; /* of using a store that was made with a lock file */
		} rows[] = {
			{{0x6969, "nfs", "rw,vers=3,hard"}, LOCK_TOKEN, FILESYSTEM_FOR_EVER,
				STATUS_OK},
			{{0x6969, "nfs", "rw,vers=3,nolock"}, LOCK_TOKEN, 0, STATUS_USAGE},
			{{0x6969, "nfs4", "rw,vers=4.2,hard"}, LOCK_TOKEN, 90, STATUS_OK},
			{{0x00c36400, "ceph", "rw"}, LOCK_FILE, 300, STATUS_OK},
			{{0x65735546, "fuse.ceph-fuse", "rw"}, LOCK_FILE, 300, STATUS_OK},
			{{0x65735546, "fuse.glusterfs", "rw"}, LOCK_FILE, 42, STATUS_OK},
			{{0x65735546, "fuse.bindfs", "rw"}, LOCK_TOKEN, 0, STATUS_USAGE},
			{{0x12345678, "new", "rw"}, LOCK_TOKEN, 0, STATUS_USAGE},
			{{0x0bd00bd0, "lustre", "rw,flock"}, LOCK_FILE, 0, STATUS_OK},
			{{0x0bd00bd0, "lustre", "rw,localflock"}, LOCK_TOKEN, 0, STATUS_USAGE},
			{{0xef53, "", ""}, LOCK_FILE, 0, STATUS_OK},
		};
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct filesystem_traits traits = filesystem_classify(&rows[i].filesystem);
			struct error err;
			CHECK_EQ(lock_choose(&traits), rows[i].kind);
			CHECK_EQ(traits.outlived, rows[i].outlived);
			/* What is on the disk says which it is. */
			CHECK_EQ(lock_follow(LOCK_TOKEN, &traits, &err), STATUS_OK);
			CHECK_EQ(lock_follow(LOCK_FILE, &traits, &err), rows[i].file);
		}
	}
	return unit_end();
}
