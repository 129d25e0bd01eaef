/* SPDX-License-Identifier: MIT */
#include "store/machine/shared_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define KEEP 3600000 /* ms: an agent that waits reads its store every 15 s */

/* Find or make the directory. False: it could not be made, or is not ours and closed to others. */
static bool find_directory(char *path, size_t size)
{
	struct stat st;
	snprintf(path, size, "/dev/shm/preempt-%u", (unsigned)geteuid());
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

static void *map(int descriptor, size_t size)
{
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	return page == MAP_FAILED ? NULL : page;
}

/*
 * Remove pages of this kind that were not used for long. Each process that makes a page does this.
 */
static void sweep(const char *directory, const char *name)
{
	DIR *entries = opendir(directory);
	if (!entries)
		return;
	for (struct dirent *entry; (entry = readdir(entries));) {
		struct shared_page head;
		const char *ending = strrchr(entry->d_name, '-');
		if (!ending || strcmp(ending + 1, name) != 0)
			continue;
		int descriptor =
			openat(dirfd(entries), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (descriptor < 0)
			continue;
		if (pread(descriptor, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
			clock_now() - head.used > KEEP)
			unlinkat(dirfd(entries), entry->d_name, 0);
		close(descriptor);
	}
	closedir(entries);
}

static void write_magic(const struct shared_page_kind *kind, char magic[16])
{
	memset(magic, 0, 16);
	snprintf(magic, 16, "preempt %.7s", kind->name);
}

/* Make the page under a temporary name, then name it path; replace: also if that exists. */
static void make(const struct shared_page_kind *kind, const char *nonce, const char *directory,
	const char *path, bool replace)
{
	char temporary[160];
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	int descriptor = mkostemp(temporary, O_CLOEXEC);
	if (descriptor < 0)
		return;
	/* Allocate it: a full /dev/shm must be an error here, not a SIGBUS later. */
	size_t allocated = kind->sparse_from ? kind->sparse_from : kind->size;
	bool made = posix_fallocate(descriptor, 0, (off_t)allocated) == 0 &&
		    ftruncate(descriptor, (off_t)kind->size) == 0;
	struct shared_page *page = made ? map(descriptor, kind->size) : NULL;
	if (page) {
		if (kind->init)
			kind->init(page);
		page->size = kind->size;
		page->used = clock_now();
		snprintf(page->of, sizeof(page->of), "%s", nonce);
		write_magic(kind, page->magic);
		munmap(page, kind->size);
		(void)!(replace ? rename(temporary, path) : link(temporary, path));
		sweep(directory, kind->name);
	}
	unlink(temporary);
	close(descriptor);
}

/* Map the page at path. NULL with *descriptor open: the file exists, and is not of this kind. */
static struct shared_page *open_named(
	const struct shared_page_kind *kind, int *descriptor, const char *path)
{
	char magic[16];
	struct stat st;
	struct shared_page *page = NULL;
	*descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (*descriptor < 0)
		return NULL;
	if (fstat(*descriptor, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		st.st_size == (off_t)kind->size)
		page = map(*descriptor, kind->size);
	write_magic(kind, magic);
	if (page && memcmp(page->magic, magic, sizeof(magic)) == 0 && page->size == kind->size)
		return page;
	if (page)
		munmap(page, kind->size);
	return NULL;
}

static bool is_of(const struct shared_page *page, const char *nonce)
{
	return strncmp(page->of, nonce, sizeof(page->of)) == 0;
}

void *shared_page_open(const struct shared_page_kind *kind, const struct shared_page_file *file,
	int *descriptor, char path[128])
{
	char directory[64];
	*descriptor = -1;
	if (!find_directory(directory, sizeof(directory)))
		return NULL;
	snprintf(path, 128, "%s/%llx-%llx-%s", directory, (unsigned long long)file->device,
		(unsigned long long)file->inode, kind->name);
	struct shared_page *page = open_named(kind, descriptor, path);
	bool stale = page && !is_of(page, file->nonce);
	if (stale || *descriptor < 0) {
		if (stale)
			munmap(page, kind->size);
		if (stale)
			close(*descriptor);
		make(kind, file->nonce, directory, path, stale);
		page = open_named(kind, descriptor, path);
	}
	if (page && is_of(page, file->nonce))
		return page;
	if (page)
		munmap(page, kind->size);
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
	return NULL;
}
