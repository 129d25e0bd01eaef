/* SPDX-License-Identifier: MIT */
/*
 * What fstab, systemd, the automounter and mountinfo say about mount points, as text; and the way
 * to a path. Whether programs obey is shown in tests/mounts.bats.
 */
#include "base/mounts/mount_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mounts/mounts.h"
#include "base/mounts/path.h"
#include "scratch.h"
#include "unit.h"

static char found[1024], path_list[160];

static void collect(void *context, const char *point)
{
	size_t used = strlen(found);
	(void)context;
	snprintf(found + used, sizeof(found) - used, "[%s]", point);
}

static void collect_autofs(void *context, enum autofs_kind kind, const char *name)
{
	static const char *const kinds[] = {"point", "direct", "include", "directory"};
	size_t used = strlen(found);
	(void)context;
	snprintf(found + used, sizeof(found) - used, "[%s %s]", kinds[kind], name);
}

static const char *of(void (*read)(const char *, mount_point_found *, void *), const char *text)
{
	*found = '\0';
	read(text, collect, NULL);
	return found;
}

static void test_fstab(void)
{
	TEST("fstab: every directory, whatever its options")
	{
		CHECK_TEXT(of(mount_tables_fstab, "/dev/sda1 / ext4 defaults 0 1\n"
						  "server:/x /shared nfs rw,hard 0 0\n"
						  "/a /b none bind 0 0\n"
						  "/dev/sdb /mnt/usb ext4 noauto 0 0\n"
						  "tmpfs\t/tmp\ttmpfs\n"
						  "server:/y   /shared/scratch/ nfs4"),
			"[/shared][/b][/mnt/usb][/tmp][/shared/scratch]");
	}
	TEST("fstab: comments, swap, none and short lines are nothing to look for")
	{
		CHECK_TEXT(of(mount_tables_fstab, "# /dev/sda /commented ext4\n"
						  "   # /dev/sda /indented ext4\n"
						  "\n \n/dev/sda\n"
						  "/dev/sdb none swap sw 0 0\n"
						  "/swap/file /swap swap sw 0 0\n"
						  "/dev/sdc relative ext4 rw 0 0\n"
						  "/dev/sdd /kept ext4 rw 0 0 # as a comment\r\n"),
			"[/kept]");
		CHECK_TEXT(of(mount_tables_fstab, ""), "");
	}
	TEST("fstab: octal escapes, also of a backslash, and what only looks like one")
	{
		CHECK_TEXT(of(mount_tables_fstab, "a /with\\040blank ext4\n"
						  "a /tab\\011and\\134slash ext4\n"
						  "a /hash\\043 ext4\n"
						  "a /odd\\09x ext4\n"
						  "a /end\\04 ext4\n"),
			"[/with blank][/tab\tand\\slash][/hash#][/odd\\09x][/end\\04]");
	}
}

static void test_list(void)
{
	TEST("the list of marked directories: one a line, blanks inside belong to it")
	{
		CHECK_TEXT(of(mount_tables_list, "# the cluster's\n/shared\n\n  /home/my data  \r\n"
						 "not/absolute\n/last/"),
			"[/shared][/home/my data][/last]");
	}
}

static void test_units(void)
{
	static const struct {
		const char *name, *point; /* NULL: no unit of a mount */
	} cases[] = {
		{"shared.mount", "/shared"},
		{"mnt-scratch-a.automount", "/mnt/scratch/a"},
		{"mnt-my\\x2ddata.mount", "/mnt/my-data"},
		{"mnt-a\\x20b\\x5cc.mount", "/mnt/a b\\c"},
		{"mnt-\\x2ehidden.mount", "/mnt/.hidden"},
		{"mnt-v1.2.mount", "/mnt/v1.2"},
		{"-.mount", NULL},
		{".mount", NULL},
		{"mount", NULL},
		{"shared.service", NULL},
		{"shared.mount.d", NULL},
		{"shared.mount~", NULL},
	};
	TEST("systemd: the name of a unit is the name of its directory")
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char point[PATH_MAX];
		bool is = mount_tables_unit(cases[i].name, point);
		CHECK(is == (cases[i].point != NULL));
		if (is && cases[i].point)
			CHECK_TEXT(point, cases[i].point);
	}
}

static void test_autofs(void)
{
	TEST("autofs: the master map")
	{
		*found = '\0';
		mount_tables_autofs_master("# comment\n"
					   "/home /etc/auto.home --timeout=60\n"
					   "/net -hosts\n"
					   "/off -null\n"
					   "/- /etc/auto.direct\n"
					   "/- file:/etc/auto.more ro\n"
					   "/data \\\n  ldap:ou=data\n"
					   "+dir:/etc/auto.master.d\n"
					   "+auto.master\n"
					   "/alone\n",
			collect_autofs, NULL);
		CHECK_TEXT(found,
			"[point /home][point /net][direct /etc/auto.direct][direct /etc/auto.more]"
			"[point /data][directory /etc/auto.master.d][include auto.master]");
	}
	TEST("autofs: the keys of a direct map")
	{
		CHECK_TEXT(of(mount_tables_autofs_direct,
				   "/shared -rw,hard server:/shared\n"
				   "# /none server:/none\n"
				   "\"/with blank\" server:/x\n"
				   "/with\\ another server:/y\n"
				   "/many \\\n  /sub server:/a \\\n  /other server:/b\n"
				   "* server:/&\n"
				   "+auto.more\n"),
			"[/shared][/with blank][/with another][/many]");
	}
}

#define MOUNTINFO                                                                                  \
	"21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw,discard\n"                          \
	"30 21 0:40 / /shared rw,noatime - nfs4 server:/x rw,vers=4.2,hard\n"                      \
	"31 21 8:1 /srv/a\\040b /mnt/my\\040data ro - ext4 /dev/root rw\n"                         \
	"32 30 0:41 / /shared/sub rw shared:7 master:1 - fuse.sshfs me@x:/#y rw\n"                 \
	"33 30 0:42 / /shared rw - tmpfs none rw\n"

static void test_mountinfo(void)
{
	struct mount_entry entry;
	TEST("mountinfo: a mount by its number")
	{
		CHECK(mount_tables_find(MOUNTINFO, 30, &entry));
		CHECK_TEXT(entry.point, "/shared");
		CHECK_TEXT(entry.type, "nfs4");
		CHECK_TEXT(entry.options, "rw,noatime,rw,vers=4.2,hard");
		CHECK(mount_tables_find(MOUNTINFO, 31, &entry));
		CHECK_TEXT(entry.point, "/mnt/my data");
		CHECK(mount_tables_find(MOUNTINFO, 32, &entry));
		CHECK_TEXT(entry.type, "fuse.sshfs");
		CHECK(!mount_tables_find(MOUNTINFO, 3, &entry));
		CHECK(!mount_tables_find("", 30, &entry));
		CHECK(!mount_tables_find("30 21 0:40 / /shared rw\n", 30, &entry));
	}
	TEST("mountinfo: whether something is mounted there")
	{
		CHECK(mount_tables_has(MOUNTINFO, "/shared"));
		CHECK(mount_tables_has(MOUNTINFO, "/mnt/my data"));
		CHECK(!mount_tables_has(MOUNTINFO, "/shared/su"));
		CHECK(!mount_tables_has(MOUNTINFO, "/srv/a b"));
	}
}

static void test_paths(void)
{
	TEST("a path below a directory")
	{
		CHECK(mount_tables_is_below("/shared/x", "/shared"));
		CHECK(mount_tables_is_below("/shared", "/shared/"));
		CHECK(mount_tables_is_below("/x", "/"));
		CHECK(!mount_tables_is_below("/sharedx", "/shared"));
		CHECK(!mount_tables_is_below("/share", "/shared"));
		CHECK(!mount_tables_is_below("/", "/shared"));
	}
	TEST("a path is resolved as far as it is there, and beyond as it is written")
	{
		char real[PATH_MAX], wanted[PATH_MAX], path[256];
		size_t length;
		CHECK(mkdir("top", 0700) == 0 && mkdir("top/in", 0700) == 0);
		CHECK(symlink("top/in", "link") == 0 && symlink("gone/far", "dangling") == 0);
		CHECK(symlink("loop", "loop") == 0);
		snprintf(wanted, sizeof(wanted), "%s/top/in/none/x", scratch);
		CHECK(path_resolve("link/./none//y/../x", real));
		CHECK_TEXT(real, wanted);
		snprintf(path, sizeof(path), "%s/top/../dangling/x", scratch);
		snprintf(wanted, sizeof(wanted), "%s/gone/far/x", scratch);
		CHECK(path_resolve(path, real));
		CHECK_TEXT(real, wanted);
		int descriptor = path_open_deepest(real, &length);
		CHECK(descriptor >= 0);
		CHECK_EQ(length, strlen(scratch));
		close(descriptor);
		CHECK(path_resolve("/../..", real));
		CHECK_TEXT(real, "/");
		CHECK(!path_resolve("loop/x", real));
	}
}

static void test_new(void)
{
	static const struct {
		const char *restarts, *attempt, *meant;
		enum status status;
	} cases[] = {
		{NULL, NULL, NULL, STATUS_OK},
		{"0", NULL, NULL, STATUS_OK},
		{"1", NULL, NULL, STATUS_TEMPORARY},
		{NULL, "1", NULL, STATUS_OK},
		{NULL, "2", NULL, STATUS_TEMPORARY},
		{"3", "2", "1", STATUS_OK},
		{"3", NULL, "0", STATUS_TEMPORARY},
		{"", "garbage", NULL, STATUS_OK},
	};
	TEST("what is new in a restart is refused, unless PREEMPT_NEW allows it")
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const values[] = {cases[i].restarts, cases[i].attempt, cases[i].meant};
		static const char *const names[] = {
			"SLURM_RESTART_COUNT", "PREEMPT_ATTEMPT", "PREEMPT_NEW"};
		for (int k = 0; k < 3; k++) {
			unsetenv(names[k]);
			if (values[k])
				setenv(names[k], values[k], 1);
		}
		CHECK_EQ(mounts_allow_new("/x", NULL), cases[i].status);
	}
}

static void test_making(void)
{
	struct stat st;
	struct error err;
	char base[128], path[160];
	TEST("directories are made below a base that is there, and not without it")
	{
		snprintf(base, sizeof(base), "%s/home", scratch);
		snprintf(path, sizeof(path), "%s/.local/state", base);
		CHECK_EQ(mounts_make_directories(path, base, 0700, &err), STATUS_TEMPORARY);
		CHECK(stat(base, &st) < 0);
		CHECK(mkdir(base, 0700) == 0);
		CHECK_EQ(mounts_make_directories(path, base, 0700, &err), STATUS_OK);
		CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700);
		CHECK_EQ(mounts_make_directories(path, base, 0700, &err), STATUS_OK);
	}
}

static void test_markers(void)
{
	char top[128], below[160], marker[160];
	struct error err;
	TEST("below a listed directory only its marker file shows that it is mounted")
	{
		snprintf(top, sizeof(top), "%s/marked", scratch);
		snprintf(below, sizeof(below), "%s/a/b.db", top);
		snprintf(marker, sizeof(marker), "%s/" MOUNTS_MARKER, top);
		CHECK(mkdir(top, 0700) == 0);
		CHECK_EQ(mounts_confirm(below, -1, &err), STATUS_OK);
		setenv("PREEMPT_MOUNTS", "/other:marked", 1);
		CHECK_EQ(mounts_confirm(below, -1, &err), STATUS_USAGE);
		setenv("PREEMPT_MOUNTS", "/other:", 1);
		CHECK_EQ(mounts_confirm(below, -1, &err), STATUS_OK);
		snprintf(path_list, sizeof(path_list), "/other:%s/", top);
		setenv("PREEMPT_MOUNTS", path_list, 1);
		CHECK_EQ(mounts_confirm(below, -1, &err), STATUS_TEMPORARY);
		CHECK(strstr(err.text, "not mounted") && strstr(err.text, "PREEMPT_MOUNTS"));
		CHECK_EQ(mounts_confirm(scratch, -1, &err), STATUS_OK);
		CHECK(mkdir(marker, 0700) == 0); /* not a file */
		CHECK_EQ(mounts_confirm(below, -1, &err), STATUS_TEMPORARY);
		CHECK(rmdir(marker) == 0);
		fclose(fopen(marker, "w"));
		CHECK_EQ(mounts_confirm(below, -1, &err), STATUS_OK);
		CHECK(rmdir(top) < 0 && unlink(marker) == 0 && rmdir(top) == 0);
		CHECK_EQ(mounts_confirm(below, -1, &err), STATUS_TEMPORARY);
		unsetenv("PREEMPT_MOUNTS");
	}
}

int main(void)
{
	scratch_make();
	char real[PATH_MAX];
	if (!realpath(scratch, real) || chdir(scratch) < 0)
		return 99;
	unsetenv("XDG_CONFIG_HOME");
	setenv("HOME", scratch, 1);
	test_fstab();
	test_list();
	test_units();
	test_autofs();
	test_mountinfo();
	test_paths();
	test_new();
	test_making();
	test_markers();
	(void)!chdir("/");
	scratch_remove();
	return unit_end();
}
