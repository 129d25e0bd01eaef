/* SPDX-License-Identifier: MIT */
#include "agent/last_notice.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/task/board_place.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process/process.h"

#define NAME  "preempt-notice-"
#define LINE  4096  /* bytes of a notice, at most */
#define FRESH 60000 /* ms after which a notice was for another command */

/* PLACE/preempt-notice-UID-PID-START, PID and START of our parent. */
static bool make_path(char *path, size_t size)
{
	struct process_identity parent;
	if (process_identify(getppid(), &parent, NULL) != STATUS_OK)
		return false;
	int length = snprintf(path, size, "%s/" NAME "%u-%d-%" PRIu64, board_place(),
		(unsigned)geteuid(), (int)parent.pid, parent.start);
	return length > 0 && (size_t)length < size;
}

/* Remove those of our user whose shell has ended. */
static void sweep(const char *place)
{
	char prefix[64], path[4096];
	int length = snprintf(prefix, sizeof(prefix), NAME "%u-", (unsigned)geteuid());
	DIR *stream = opendir(place);
	for (struct dirent *entry; stream && (entry = readdir(stream));) {
		if (strncmp(entry->d_name, prefix, (size_t)length) != 0)
			continue;
		long pid = strtol(entry->d_name + length, NULL, 10);
		if (pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
			snprintf(path, sizeof(path), "%s/%s", place, entry->d_name) <
				(int)sizeof(path))
			(void)unlink(path);
	}
	if (stream)
		closedir(stream);
}

void last_notice_keep(const struct notice *notice)
{
	char path[4096];
	struct text line = {0};
	sweep(board_place());
	notice_write_json(notice, &line);
	if (make_path(path, sizeof(path)))
		(void)file_write_whole(
			path, text_string(&line), strlen(text_string(&line)), 0600, false, NULL);
	text_release(&line);
}

static bool find_kept(struct notice *notice)
{
	const char *given = getenv("PREEMPT_NOTICE");
	char path[4096];
	struct stat about;
	struct text line = {0};
	if (given && *given)
		return notice_read(given, notice, NULL) == STATUS_OK;
	bool found = make_path(path, sizeof(path)) && lstat(path, &about) == 0 &&
		     about.st_uid == geteuid() &&
		     file_read_whole(path, LINE, &line, NULL) == STATUS_OK &&
		     notice_read(text_string(&line), notice, NULL) == STATUS_OK &&
		     clock_now() - notice->received < FRESH;
	text_release(&line);
	return found;
}

void last_notice_find(struct notice *notice, const char *reason, int64_t grace)
{
	struct notice kept, ours;
	notice_set(&ours, "command", reason, notice_time(), grace);
	bool found = find_kept(&kept) && strcmp(kept.source, "group") != 0;
	*notice = found ? kept : ours;
	notice->deadline = clock_earlier(notice->deadline, ours.deadline);
	if (*reason)
		memcpy(notice->reason, ours.reason, sizeof(ours.reason));
}
