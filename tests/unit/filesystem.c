/* SPDX-License-Identifier: MIT */
/* Which lock mode on which filesystem: the table of cases. No such filesystem is needed. */
#include "store/filesystem.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/cache.h"
#include "store/lock/lock.h"
#include "store/sqlite/options.h"
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

static struct filesystem_traits of(enum filesystem_reach reach)
{
	return (struct filesystem_traits){.reach = reach, .name = "testfs", .why = "it is so"};
}

/* The mode chosen, or -1 where it is refused. */
static int chosen(enum lock_mode asked, enum filesystem_reach reach)
{
	struct filesystem_traits traits = of(reach);
	enum lock_mode mode;
	struct error err;
	enum status status = lock_mode_choose(asked, &traits, &mode, &err);
	return status == STATUS_OK ? (int)mode : status == STATUS_USAGE ? -1 : -2;
}

static int followed(enum lock_mode recorded, enum lock_mode asked, enum filesystem_reach reach)
{
	struct filesystem_traits traits = of(reach);
	struct error err;
	return lock_mode_follow(recorded, asked, &traits, &err);
}

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
	TEST("auto picks fcntl where its locks reach every process, else link: it is no matter of guessing")
	{
		CHECK_EQ(chosen(LOCK_AUTO, FILESYSTEM_LOCAL), LOCK_FCNTL);
		CHECK_EQ(chosen(LOCK_AUTO, FILESYSTEM_SHARED), LOCK_FCNTL);
		CHECK_EQ(chosen(LOCK_AUTO, FILESYSTEM_NODE), LOCK_LINK);
		CHECK_EQ(chosen(LOCK_AUTO, FILESYSTEM_UNKNOWN), LOCK_LINK);
	}
	TEST("where a machine that died keeps its locks, and no names, auto picks link")
	{
		static const struct {
			struct filesystem filesystem;
			enum lock_mode mode;
			int outlived;
		} rows[] = {
			{{0x6969, "nfs", "rw,vers=3,hard"}, LOCK_LINK, FILESYSTEM_FOR_EVER},
			{{0x6969, "nfs", "rw,vers=3,nolock"}, LOCK_LINK, 0},
			{{0x6969, "nfs4", "rw,vers=4.2,hard"}, LOCK_LINK, 90},
			{{0x00c36400, "ceph", "rw"}, LOCK_FCNTL, 300},
			{{0x65735546, "fuse.glusterfs", "rw"}, LOCK_FCNTL, 42},
			{{0x0bd00bd0, "lustre", "rw,flock"}, LOCK_FCNTL, 0},
			{{0xef53, "", ""}, LOCK_FCNTL, 0},
		};
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct filesystem_traits traits = filesystem_classify(&rows[i].filesystem);
			enum lock_mode mode;
			struct error err;
			CHECK_EQ(lock_mode_choose(LOCK_AUTO, &traits, &mode, &err), STATUS_OK);
			CHECK_EQ(mode, rows[i].mode);
			CHECK_EQ(traits.outlived, rows[i].outlived);
			/* A store that is there keeps the mode that it has. */
			CHECK_EQ(lock_mode_follow(LOCK_LINK, LOCK_AUTO, &traits, &err), STATUS_OK);
			if (traits.reach != FILESYSTEM_NODE)
				CHECK_EQ(lock_mode_follow(LOCK_FCNTL, LOCK_AUTO, &traits, &err),
					STATUS_OK);
		}
	}
	TEST("fcntl by name is refused where its locks may not reach every process")
	{
		CHECK_EQ(chosen(LOCK_FCNTL, FILESYSTEM_LOCAL), LOCK_FCNTL);
		CHECK_EQ(chosen(LOCK_FCNTL, FILESYSTEM_SHARED), LOCK_FCNTL);
		CHECK_EQ(chosen(LOCK_FCNTL, FILESYSTEM_UNKNOWN), -1);
		CHECK_EQ(chosen(LOCK_FCNTL, FILESYSTEM_NODE), -1);
	}
	TEST("link by name may be had anywhere")
	{
		for (enum filesystem_reach reach = LOCAL; reach <= UNKNOWN; reach++)
			CHECK_EQ(chosen(LOCK_LINK, reach), LOCK_LINK);
	}
	TEST("every process follows the recorded mode, unless its own mount would break it")
	{
		for (enum filesystem_reach reach = LOCAL; reach <= UNKNOWN; reach++) {
			bool reaches = reach == LOCAL || reach == SHARED;
			enum status fcntl = reaches ? STATUS_OK : STATUS_USAGE;
			CHECK_EQ(followed(LOCK_FCNTL, LOCK_AUTO, reach), fcntl);
			CHECK_EQ(followed(LOCK_FCNTL, LOCK_FCNTL, reach), fcntl);
			CHECK_EQ(followed(LOCK_FCNTL, LOCK_LINK, reach), STATUS_USAGE);
			CHECK_EQ(followed(LOCK_LINK, LOCK_AUTO, reach), STATUS_OK);
			CHECK_EQ(followed(LOCK_LINK, LOCK_LINK, reach), STATUS_OK);
			CHECK_EQ(followed(LOCK_LINK, LOCK_FCNTL, reach), STATUS_USAGE);
		}
	}
	return unit_end();
}
