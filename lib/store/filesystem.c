/* SPDX-License-Identifier: MIT */
#include "store/filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "store/failure.h"

#define MOUNTINFO_LIMIT ((size_t)8 << 20)

enum {
	MAGIC_NFS = 0x6969,
	MAGIC_BEEGFS = 0x19830326,
	MAGIC_FUSE = 0x65735546,
	MAGIC_9P = 0x01021997,
};

/* Filesystems of one machine. One that is not NFS and in none of the three tables is unknown. */
static const struct {
	uint64_t magic;
	const char *name;
} locals[] = {
	{0xef53, "ext4"},
	{0x58465342, "xfs"},
	{0x9123683e, "btrfs"},
	{0x01021994, "tmpfs"},
	{0x858458f6, "ramfs"},
	{0x794c7630, "overlay"},
	{0x2fc12fc1, "zfs"},
	{0xf2f52010, "f2fs"},
	{0xca451a4e, "bcachefs"},
	{0x3153464a, "jfs"},
	{0x52654973, "reiserfs"},
	{0x3434, "nilfs2"},
	{0x4d44, "vfat"},
	{0x2011bab0, "exfat"},
	{0x7366746e, "ntfs3"},
};

static const char nobrl[] =
	"it is mounted with nobrl here, so that its locks stay on this machine; mount it without";

/*
 * Filesystems that other machines see. With `why`, locks stay on each machine if the mount has
 * `option` (with `without`: if it does not have it; option NULL: always).
 */
static const struct {
	uint64_t magic;
	const char *name;
	int outlived;
	const char *option;
	bool without;
	const char *why;
} clusters[] = {
	{0x47504653, "GPFS", 0, NULL, false, NULL},
	{0x00c36400, "CephFS", 300 /* mds_session_autoclose */, NULL, false, NULL},
	{0x01161970, "GFS2", 0, "localflocks", false,
		"it is mounted with localflocks here; mount it without"},
	{0x01161970, "GFS2", 0, "localcaching", false,
		"it is mounted with localcaching here; mount it without"},
	/* With noflock, the default of old clients, locking fails with ENOSYS. */
	{0x0bd00bd0, "Lustre", 0, "localflock", false,
		"it is mounted with localflock here, so that its locks stay on this machine; mount it "
		"with flock"},
	{MAGIC_BEEGFS, "BeeGFS", 0, "tuneUseGlobalFileLocks", true,
		"its locks stay on this machine unless tuneUseGlobalFileLocks is set in "
		"beegfs-client.conf"},
	{0xff534d42, "CIFS", 0, "nobrl", false, nobrl},
	{0xfe534d42, "CIFS", 0, "nobrl", false, nobrl},
	{0x5346414f, "AFS", 0, NULL, false, "its byte-range locks stay on each machine"},
};

/* Known filesystems in user space, by their type in mountinfo. */
static const struct {
	const char *type;
	enum filesystem_reach reach;
	int outlived;
} in_user_space[] = {
	{"fuse.glusterfs", FILESYSTEM_SHARED, 42}, /* server.tcp-user-timeout */
	{"fuse.mfs", FILESYSTEM_SHARED, 0},
	{"fuse.moosefs", FILESYSTEM_SHARED, 0},
	{"fuse.ceph", FILESYSTEM_SHARED, 300},
	{"fuse.ceph-fuse", FILESYSTEM_SHARED, 300},
	{"fuse.fuse-overlayfs", FILESYSTEM_LOCAL, 0},
	{"fuseblk", FILESYSTEM_LOCAL, 0},
	{"fuse.sshfs", FILESYSTEM_NODE, 0},
	{"fuse.bindfs", FILESYSTEM_NODE, 0},
};

/* Whether the comma-separated options hold exactly this one, "name" or "name=value". */
static bool has(const struct filesystem *filesystem, const char *option)
{
	size_t length = strlen(option);
	for (const char *at = filesystem->options; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && !strncmp(at, option, length))
			return true;
	return false;
}

static struct filesystem_traits classify_in_user_space(const struct filesystem *filesystem)
{
	size_t count = sizeof(in_user_space) / sizeof(in_user_space[0]);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(in_user_space[i].type, filesystem->type))
			continue;
		struct filesystem_traits traits = {.reach = in_user_space[i].reach,
			.client = true,
			.outlived = in_user_space[i].outlived,
			.name = in_user_space[i].type};
		if (traits.reach == FILESYSTEM_NODE)
			traits.why = "its locks are kept by each mount for itself";
		return traits;
	}
	return (struct filesystem_traits){
		.reach = FILESYSTEM_UNKNOWN,
		.client = true,
		.name = "an unknown FUSE filesystem",
		.why = "it is not known whether its locks reach other machines",
	};
}

/*
 * An NFS 3 server releases the locks of a client that died when that client has booted again and
 * says so; an NFS 4 server when the lease has run out.
 */
static struct filesystem_traits classify_nfs(const struct filesystem *filesystem)
{
	bool old = has(filesystem, "vers=3") || has(filesystem, "nfsvers=3") ||
		   has(filesystem, "vers=2");
	struct filesystem_traits traits = {.reach = FILESYSTEM_SHARED,
		.name = "NFS",
		.outlived = old ? FILESYSTEM_FOR_EVER : 90,
		.lends = !old,
		.by_name = true};
	if (has(filesystem, "nolock") || has(filesystem, "local_lock=posix") ||
		has(filesystem, "local_lock=all")) {
		traits.reach = FILESYSTEM_NODE;
		traits.outlived = 0;
		traits.why = "it is mounted with nolock or local_lock here, so that its locks stay "
			     "on this machine; mount it without";
	} else if (has(filesystem, "nocto")) {
		traits.warning =
			"it is mounted with nocto: changes are seen late; mount it without";
	} else if (has(filesystem, "soft")) {
		traits.warning = "it is mounted soft: writes can fail half-way; mount it hard";
	}
	return traits;
}

struct filesystem_traits filesystem_classify(const struct filesystem *filesystem)
{
	struct filesystem_traits traits = {.reach = FILESYSTEM_UNKNOWN,
		.name = filesystem->magic == MAGIC_9P ? "9p" : "an unknown filesystem",
		.why = "it is not known whether its locks reach other machines"};
	for (size_t i = 0; i < sizeof(locals) / sizeof(locals[0]); i++)
		if (locals[i].magic == filesystem->magic)
			return (struct filesystem_traits){
				.reach = FILESYSTEM_LOCAL, .name = locals[i].name};
	if (filesystem->magic == MAGIC_FUSE)
		return classify_in_user_space(filesystem);
	if (filesystem->magic == MAGIC_NFS)
		return classify_nfs(filesystem);
	for (size_t i = 0; i < sizeof(clusters) / sizeof(clusters[0]); i++) {
		if (clusters[i].magic != filesystem->magic)
			continue;
		const char *option = clusters[i].option;
		bool stay = clusters[i].why &&
			    (!option || has(filesystem, option) != clusters[i].without);
		traits = (struct filesystem_traits){
			.reach = stay ? FILESYSTEM_NODE : FILESYSTEM_SHARED,
			.name = clusters[i].name,
			.why = stay ? clusters[i].why : NULL,
			.outlived = clusters[i].outlived};
		if (stay)
			break;
	}
	return traits;
}

static void add_option(struct filesystem *filesystem, const char *options)
{
	size_t used = strlen(filesystem->options);
	snprintf(filesystem->options + used, sizeof(filesystem->options) - used, "%s%s",
		used ? "," : "", options);
}

/* Whether the BeeGFS client is configured to ask the server for locks. */
static bool beegfs_asks_server(void)
{
	glob_t found = {0};
	bool asks = false;
	if (glob("/proc/fs/beegfs/*/config", 0, NULL, &found) == 0) {
		asks = found.gl_pathc > 0;
		for (size_t i = 0; i < found.gl_pathc; i++) {
			struct text text = {0};
			(void)file_read_whole(found.gl_pathv[i], 1 << 16, &text, NULL);
			asks = asks && strstr(text_string(&text), "tuneUseGlobalFileLocks = 1");
			text_release(&text);
		}
	}
	globfree(&found);
	return asks;
}

/*
 * Find type and options of the mount that the descriptor is on. A line of mountinfo:
 * "ID PARENT DEVICE ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS".
 */
static void find_mount(int descriptor, struct filesystem *filesystem)
{
	char path[64], own[1024], common[1024] = "";
	struct text info = {0}, mounts = {.limit = MOUNTINFO_LIMIT};
	long number = -1;
	bool found = false;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", descriptor);
	(void)file_read_whole(path, 4096, &info, NULL);
	const char *id = strstr(text_string(&info), "mnt_id:");
	if (id && sscanf(id, "mnt_id: %ld", &number) == 1)
		(void)file_read_whole("/proc/self/mountinfo", MOUNTINFO_LIMIT - 1, &mounts, NULL);
	for (const char *line = text_string(&mounts); *line && !found;
		line += strcspn(line, "\n"), line += *line == '\n') {
		const char *type = strstr(line, " - ");
		found = strtol(line, NULL, 10) == number && type &&
			sscanf(line, "%*s %*s %*s %*s %*s %1023s", own) == 1 &&
			sscanf(type, " - %63s %*s %1023s", filesystem->type, common) >= 1;
	}
	if (found)
		snprintf(filesystem->options, sizeof(filesystem->options), "%s,%s", own, common);
	text_release(&info);
	text_release(&mounts);
}

enum status filesystem_inspect(
	const char *directory, struct filesystem *filesystem, struct error *err)
{
	struct filesystem seen = {0};
	struct statfs st;
	int descriptor = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0 || fstatfs(descriptor, &st) < 0) {
		int number = errno;
		if (descriptor >= 0)
			close(descriptor);
		return error_cured(
			err, number, store_cure(number), "look at the filesystem of %s", directory);
	}
	seen.magic = (uint32_t)st.f_type;
	/* The list of mounts can be long: read it only if the mount options matter. */
	if (filesystem_classify(&seen).reach != FILESYSTEM_LOCAL) {
		find_mount(descriptor, &seen);
		if (seen.magic == MAGIC_BEEGFS && beegfs_asks_server())
			add_option(&seen, "tuneUseGlobalFileLocks");
	}
	close(descriptor);
	*filesystem = seen;
	return STATUS_OK;
}
