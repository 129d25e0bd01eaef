/* SPDX-License-Identifier: MIT */
/*
 * file:PATH. inotify on the directory reports the file at once. PATH is looked up every period,
 * too: some filesystems send no events (network, overlay), and the directory may not exist yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "notice/source.h"

/* How long (ms) to wait for the rest of a first line. */
static const int64_t settling = 500;

/* Identifies a file. The inode number is not enough: the next new file may get the same. */
struct file_identity {
	uint32_t major, minor;
	uint64_t inode;
	int64_t born_seconds;
	uint32_t born_nanoseconds;
};

struct file_source {
	struct source source;
	char *path, *directory;
	const char *base;	 /* in path */
	int descriptor, watched; /* inotify and its watch; -1: none */
	int64_t grace, period, next;
	bool there, given, closed; /* closed: its writer has finished */
	struct file_identity identity;
	struct notice_time seen;
};

static void file_close(struct source *source)
{
	struct file_source *self = (struct file_source *)source;
	if (self->descriptor >= 0)
		close(self->descriptor);
	free(self->path);
	free(self->directory);
	free(self);
}

static enum status file_open(struct source **source, const char *rest,
	const struct source_options *options, struct error *err)
{
	struct file_source *self = xcalloc(1, sizeof(*self));
	(void)err;
	self->path = xstrdup(rest);
	self->directory = file_directory_of(rest);
	self->watched = -1;
	self->grace = options->grace;
	self->period = options->period ? options->period : 1000;
	/* Without inotify (a user has a limited number of watches) the next look finds the file. */
	self->descriptor = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	const char *slash = strrchr(self->path, '/');
	self->base = slash ? slash + 1 : self->path;
	*source = &self->source;
	return STATUS_OK;
}

static int file_descriptor(const struct source *source)
{
	return ((const struct file_source *)source)->descriptor;
}

static int64_t file_due(const struct source *source)
{
	return ((const struct file_source *)source)->next;
}

/* Read all events. A directory that was removed or moved away has no watch any more. */
static void read_events(struct file_source *self)
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;
	while (self->descriptor >= 0 && (n = read(self->descriptor, buffer, sizeof(buffer))) > 0) {
		const struct inotify_event *event;
		for (char *at = buffer; at < buffer + n; at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)at;
			if (event->wd != self->watched)
				continue;
			if (event->mask & IN_MOVE_SELF)
				inotify_rm_watch(self->descriptor, self->watched);
			if (event->mask & (IN_IGNORED | IN_MOVE_SELF | IN_DELETE_SELF))
				self->watched = -1;
			if (event->len && !strcmp(event->name, self->base))
				self->closed = event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO);
		}
	}
}

static void watch_directory(struct file_source *self)
{
	if (self->descriptor >= 0 && self->watched < 0)
		self->watched = inotify_add_watch(self->descriptor, self->directory,
			IN_ONLYDIR | IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM |
				IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF);
}

/* Read the first line of a regular file. False: the line has no end yet. */
static bool read_reason(const char *path, char reason[256])
{
	*reason = '\0';
	int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (descriptor < 0)
		return true;
	ssize_t n = read(descriptor, reason, 255);
	close(descriptor);
	if (n < 0)
		return true;
	reason[n] = '\0';
	bool whole = n == 255 || strchr(reason, '\n');
	reason[strcspn(reason, "\r\n")] = '\0';
	return whole;
}

static enum source_answer file_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct file_source *self = (struct file_source *)source;
	struct statx st;
	char reason[256] = "";

	read_events(self);
	watch_directory(self); /* before statx: a later event wakes us */
	self->next = now + self->period;
	if (statx(AT_FDCWD, self->path, 0, STATX_BASIC_STATS | STATX_BTIME, &st) < 0) {
		if (errno != ENOENT && errno != ENOTDIR) {
			error_errno(err, errno, "look for %s", self->path);
			return SOURCE_CANNOT_ASK;
		}
		self->there = self->given = self->closed = false;
		return SOURCE_NONE;
	}
	struct file_identity identity = {.major = st.stx_dev_major,
		.minor = st.stx_dev_minor,
		.inode = st.stx_ino,
		.born_seconds = st.stx_mask & STATX_BTIME ? st.stx_btime.tv_sec : 0,
		.born_nanoseconds = st.stx_mask & STATX_BTIME ? st.stx_btime.tv_nsec : 0};
	bool same = self->there && identity.major == self->identity.major &&
		    identity.minor == self->identity.minor &&
		    identity.inode == self->identity.inode &&
		    identity.born_seconds == self->identity.born_seconds &&
		    identity.born_nanoseconds == self->identity.born_nanoseconds;
	if (!same) {
		self->identity = identity;
		self->seen = notice_time();
		self->given = false;
	}
	self->there = true;
	if (self->given)
		return SOURCE_NONE;
	/*
	 * "echo reason >PATH" makes an empty file first: wait a short time for its line, but not
	 * if the file is older.
	 */
	bool fresh = now < self->seen.now + settling &&
		     self->seen.utc - (int64_t)st.stx_mtime.tv_sec * 1000 < settling + 1000;
	if (S_ISREG(st.stx_mode) && !read_reason(self->path, reason) && !self->closed && fresh) {
		self->next = self->seen.now + settling;
		return SOURCE_PENDING;
	}
	self->given = true;
	notice_set(notice, self->source.name, reason, self->seen, self->grace);
	return SOURCE_NOTICE;
}

const struct source_kind source_file = {.name = "file",
	.example = "file:PATH",
	.open = file_open,
	.close = file_close,
	.descriptor = file_descriptor,
	.due = file_due,
	.check = file_check};
