/* SPDX-License-Identifier: MIT */
#include "store/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/line.h"

#define MAGIC	"preempt page 4" /* and in the name: machine.h */
#define SIZE	sizeof(struct machine_page)
#define POSTS	offsetof(struct machine_page, posts)
#define ROOMS	(POSTS + offsetof(struct posts, rooms)) /* from here on it is sparse */
#define KEEP_MS 3600000

struct machine_page {
	char magic[16];
	uint64_t size; /* of this struct: programs of another word size have other mutexes */
	_Atomic int32_t holder;
	_Atomic int64_t held_since;
	struct silence silence;
	struct turn turn;
	struct line line;
	struct posts posts;
};

/* The directory, if it is or can be made one that only we can write. */
static bool find_directory(char *path, size_t size)
{
	struct stat st;
	snprintf(path, size, "/dev/shm/preempt-%u", (unsigned)geteuid());
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

static struct machine_page *map(int descriptor)
{
	void *page = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	return page == MAP_FAILED ? NULL : page;
}

/*
 * Remove pages that nobody used for an hour: an agent that waits reads its store every 15 s.
 * Whoever makes a page pays for it.
 */
static void sweep(const char *directory)
{
	DIR *entries = opendir(directory);
	if (!entries)
		return;
	for (struct dirent *entry; (entry = readdir(entries));) {
		int64_t used;
		off_t at = offsetof(struct machine_page, held_since);
		if (!strstr(entry->d_name, "-page"))
			continue;
		int descriptor =
			openat(dirfd(entries), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (descriptor < 0)
			continue;
		if (pread(descriptor, &used, sizeof(used), at) == sizeof(used) &&
			clock_now() - used > KEEP_MS)
			unlinkat(dirfd(entries), entry->d_name, 0);
		close(descriptor);
	}
	closedir(entries);
}

/* Make the page whole beside its name, then give it the name, if nobody else has. */
static void make_page(const char *directory, const char *path)
{
	char temporary[160];
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	int descriptor = mkostemp(temporary, O_CLOEXEC);
	if (descriptor < 0)
		return;
	/* Allocated now: a full /dev/shm must be an error here, not a SIGBUS later. */
	bool made = posix_fallocate(descriptor, 0, ROOMS) == 0 && ftruncate(descriptor, SIZE) == 0;
	struct machine_page *page = made ? map(descriptor) : NULL;
	if (page) {
		line_init(&page->line);
		page->size = sizeof(*page);
		page->held_since = clock_now();
		memcpy(page->magic, MAGIC, sizeof(MAGIC));
		munmap(page, SIZE);
		(void)!link(temporary, path);
		sweep(directory);
	}
	unlink(temporary);
	close(descriptor);
}

bool machine_open(struct machine *machine, dev_t device, ino_t inode)
{
	char directory[64];
	struct stat st;
	*machine = (struct machine){.descriptor = -1};
	if (!find_directory(directory, sizeof(directory)))
		return false;
	snprintf(machine->path, sizeof(machine->path), "%s/%llx-%llx-page4", directory,
		(unsigned long long)device, (unsigned long long)inode);
	machine->descriptor = open(machine->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (machine->descriptor < 0 && errno == ENOENT) {
		make_page(directory, machine->path);
		machine->descriptor = open(machine->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	}
	if (machine->descriptor < 0)
		return false;
	if (fstat(machine->descriptor, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		st.st_size == SIZE)
		machine->page = map(machine->descriptor);
	if (machine->page && memcmp(machine->page->magic, MAGIC, sizeof(MAGIC)) == 0 &&
		machine->page->size == sizeof(*machine->page))
		return true;
	machine_close(machine);
	return false;
}

void machine_close(struct machine *machine)
{
	if (machine->page) {
		munmap(machine->page, SIZE);
	}
	if (machine->descriptor >= 0)
		close(machine->descriptor);
	*machine = (struct machine){.descriptor = -1};
}

/* Wait in the line, and have others carry out what we post meanwhile. */
static int wait_in_line(struct machine *machine, struct post *post, int64_t deadline)
{
	struct machine_page *page = machine->page;
	struct line_ticket *ticket = &machine->ticket;
	int result = line_draw(&page->line, ticket, deadline);
	if (result != 0 || !ticket->place)
		return result;
	/* Mostly nobody is before us: then nothing is posted. */
	result = line_wait(&page->line, ticket, LINE_AT_ONCE);
	bool waits = result == ETIMEDOUT;
	if (!waits || !post ||
		!posts_post(&page->posts, machine->descriptor, POSTS, ticket->number, post))
		post = NULL;
	if (waits)
		result = line_wait(&page->line, ticket, deadline);
	if (post)
		posts_end(&page->posts, ticket->number, result == 0, post);
	bool over = post && (post->fate == FATE_ANSWERED || post->fate == FATE_UNKNOWN);
	if (over && (result == 0 || result == ETIMEDOUT))
		result = EALREADY;
	if (result != 0)
		line_leave(ticket);
	return result;
}

int machine_enter(
	struct machine *machine, struct post *post, int64_t deadline, pid_t *holder, int64_t *since)
{
	*holder = 0;
	if (!machine->page)
		return 0;
	int result = wait_in_line(machine, post, deadline);
	if (result == 0) {
		machine->page->holder = getpid();
		machine->page->held_since = clock_now();
	} else if (result == ETIMEDOUT) {
		*holder = machine->page->holder;
		*since = machine->page->held_since;
	} else if (result != EALREADY) {
		/* A page that somebody scribbled on: do without. */
		machine_close(machine);
		result = post && post->posted && post->fate != FATE_OURS ? EALREADY : 0;
	}
	return result;
}

void machine_leave(struct machine *machine)
{
	if (!machine->page)
		return;
	machine->page->holder = 0;
	line_leave(&machine->ticket);
}

struct posts *machine_posts(struct machine *machine, uint64_t *first, uint64_t *end)
{
	if (!machine->page || !machine->ticket.place)
		return NULL;
	*first = machine->ticket.number + 1;
	*end = machine->page->line.next;
	return &machine->page->posts;
}

struct silence *machine_silence(struct machine *machine)
{
	return machine->page ? &machine->page->silence : NULL;
}

struct turn *machine_turn(struct machine *machine)
{
	return machine->page ? &machine->page->turn : NULL;
}
