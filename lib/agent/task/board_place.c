/* SPDX-License-Identifier: MIT */
#include "agent/task/board_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process/process.h"

#define LOGIND_USERS "/run/user/"
#define BOARD_ROOM   (1 << 20) /* bytes that must be free in memory, for the boards of many tasks */
#define BOARD_FILES  100
#define SYSTEM_USERS 1000 /* systemd's RemoveIPC spares user ids below this */

const char *board_choose_place(const struct board_signs *signs)
{
	bool of_login = signs->runtime && signs->logout &&
			!strncmp(signs->runtime, LOGIND_USERS, strlen(LOGIND_USERS));
	if (signs->runtime && !of_login)
		return signs->runtime;
	if (signs->shared_memory && !signs->logout)
		return "/dev/shm";
	return signs->temporary && *signs->temporary ? signs->temporary : "/tmp";
}

/* Whether systemd-logind runs and removes this user's files at logout (no lingering is enabled). */
static bool logout_removes_files(void)
{
	char path[300] = "/var/lib/systemd/linger/";
	const char *name = getenv("USER");
	if (geteuid() < SYSTEM_USERS || access("/run/systemd/users", F_OK) < 0)
		return false;
	if (!name || !*name || strchr(name, '/') || strlen(name) > 255)
		return true;
	return access(strcat(path, name), F_OK) < 0;
}

/* Whether boards can be made there: it is writable, and not full (both places are in memory). */
static bool takes_boards(const char *directory)
{
	struct statvfs about;
	return access(directory, W_OK | X_OK) == 0 && statvfs(directory, &about) == 0 &&
	       about.f_bavail * about.f_frsize >= BOARD_ROOM &&
	       (about.f_files == 0 || about.f_favail >= BOARD_FILES);
}

const char *board_place(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	bool usable = runtime && *runtime == '/' && stat(runtime, &st) == 0 &&
		      S_ISDIR(st.st_mode) && st.st_uid == geteuid() && takes_boards(runtime);
	return board_choose_place(&(struct board_signs){.runtime = usable ? runtime : NULL,
		.temporary = getenv("TMPDIR"),
		.shared_memory = takes_boards("/dev/shm"),
		.logout = logout_removes_files()});
}

/*
 * Whether the agent of a board runs on this machine, or did since its last boot. Only there does
 * its fifo show whether it lives: machines that share a directory share no fifos in it.
 */
static bool is_of_this_boot(int directory)
{
	struct process_identity self;
	struct text boot = {0};
	int descriptor = openat(directory, "boot", O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (descriptor < 0)
		return false;
	bool same = file_read_descriptor(descriptor, "boot", sizeof(self.boot), &boot, NULL) ==
			    STATUS_OK &&
		    process_identify(0, &self, NULL) == STATUS_OK && *self.boot &&
		    !strcmp(text_string(&boot), self.boot);
	text_release(&boot);
	close(descriptor);
	return same;
}

/* Whether the process that joined by preempt-store join is surely gone. */
static bool has_joined_and_ended(int directory)
{
	struct process_identity self, joined;
	unsigned long long namespace, start, time_namespace;
	int pid;
	struct text line = {0};
	int descriptor =
		openat(directory, "joined", O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (descriptor < 0)
		return false;
	bool right = file_read_descriptor(descriptor, "joined", 256, &line, NULL) == STATUS_OK &&
		     process_identify(0, &self, NULL) == STATUS_OK;
	joined = self;
	right = right && sscanf(text_string(&line), BOARD_JOINED_FIELDS, joined.boot, &namespace,
				 &pid, &start, &time_namespace) == 5;
	text_release(&line);
	close(descriptor);
	if (!right)
		return false;
	joined.pid_namespace = namespace;
	joined.pid = pid;
	joined.start = start;
	joined.time_namespace = time_namespace;
	return process_check(&joined) == PROCESS_GONE;
}

/* Whether this is a board of this user and machine whose agent has ended. */
static bool is_left(int parent, const char *name)
{
	struct stat st;
	int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return false;
	bool left = false;
	if (fstat(directory, &st) == 0 && st.st_uid == geteuid() && is_of_this_boot(directory) &&
		fstatat(directory, "alive", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISFIFO(st.st_mode)) {
		int alive =
			openat(directory, "alive", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
		left = alive < 0 && errno == ENXIO;
		if (alive >= 0)
			close(alive);
	} else if (fstat(directory, &st) == 0 && st.st_uid == geteuid()) {
		left = has_joined_and_ended(directory);
	}
	close(directory);
	return left;
}

void board_sweep(const char *parent)
{
	DIR *stream = opendir(parent);
	for (struct dirent *entry; stream && (entry = readdir(stream));) {
		char path[4096];
		if (strncmp(entry->d_name, BOARD_NAME, strlen(BOARD_NAME)) != 0 ||
			!is_left(dirfd(stream), entry->d_name) ||
			snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) >=
				(int)sizeof(path))
			continue;
		(void)file_remove_tree(path, NULL);
	}
	if (stream)
		closedir(stream);
}
