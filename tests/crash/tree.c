/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

struct tree_entry {
	char *path; /* whole */
	struct stat st;
	struct text content; /* of a file; a link's target */
};

static struct tree *walked; /* nftw has no argument for us */

static _Noreturn void give_up(const char *what, const char *path)
{
	printf("Bail out! cannot %s %s: %m\n", what, path);
	exit(99);
}

static int keep(const char *path, const struct stat *st, int type, struct FTW *where)
{
	struct tree_entry entry = {.path = strdup(path), .st = *st};
	struct error err;
	char target[400];
	(void)type;
	(void)where;
	if (S_ISREG(st->st_mode) &&
		file_read_whole(path, TEXT_LIMIT, &entry.content, &err) != STATUS_OK)
		give_up("read", path);
	if (S_ISLNK(st->st_mode)) {
		ssize_t length = readlink(path, target, sizeof(target));
		text_add_bytes(&entry.content, target, length < 0 ? 0 : (size_t)length);
	}
	walked->entries = realloc(walked->entries, (walked->count + 1) * sizeof(*walked->entries));
	if (!walked->entries || !entry.path)
		give_up("keep", path);
	walked->entries[walked->count++] = entry;
	return 0;
}

void tree_keep(struct tree *tree, const char *root)
{
	*tree = (struct tree){.root = root};
	walked = tree;
	if (nftw(root, keep, 16, FTW_PHYS) != 0)
		give_up("walk through", root);
}

static const struct tree_entry *find(const char *path)
{
	for (size_t i = 0; i < walked->count; i++)
		if (!strcmp(walked->entries[i].path, path))
			return &walked->entries[i];
	return NULL;
}

/* What was not there, or was something else. */
static int clear(const char *path, const struct stat *st, int type, struct FTW *where)
{
	const struct tree_entry *entry = find(path);
	(void)type;
	(void)where;
	if (entry && (entry->st.st_mode & S_IFMT) == (st->st_mode & S_IFMT) &&
		!S_ISLNK(st->st_mode))
		return 0;
	if ((S_ISDIR(st->st_mode) ? rmdir(path) : unlink(path)) < 0)
		give_up("remove", path);
	return 0;
}

static void put_back(const struct tree_entry *entry)
{
	const char *path = entry->path;
	mode_t mode = entry->st.st_mode & 07777;
	int result = 0;
	if (S_ISDIR(entry->st.st_mode)) {
		(void)mkdir(path, 0700);
		result = chmod(path, mode);
	} else if (S_ISLNK(entry->st.st_mode)) {
		result = symlink(text_string(&entry->content), path);
	} else if (S_ISFIFO(entry->st.st_mode)) {
		(void)mkfifo(path, mode);
	} else {
		int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (descriptor < 0 || ftruncate(descriptor, (off_t)entry->content.length) < 0 ||
			file_write_all(descriptor, text_string(&entry->content),
				entry->content.length) < 0 ||
			fchmod(descriptor, mode) < 0)
			give_up("put back", path);
		close(descriptor);
	}
	if (result < 0)
		give_up("put back", path);
}

void tree_restore(const struct tree *tree)
{
	struct tree now = *tree;
	walked = &now;
	if (nftw(tree->root, clear, 16, FTW_PHYS | FTW_DEPTH) != 0)
		give_up("walk through", tree->root);
	for (size_t i = 0; i < tree->count; i++)
		put_back(&tree->entries[i]);
	/* Children first: they change the times of their directories. */
	for (size_t i = tree->count; i-- > 0;) {
		const struct stat *st = &tree->entries[i].st;
		struct timespec times[2] = {st->st_atim, st->st_mtim};
		(void)utimensat(AT_FDCWD, tree->entries[i].path, times, AT_SYMLINK_NOFOLLOW);
	}
}

void tree_release(struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		free(tree->entries[i].path);
		text_release(&tree->entries[i].content);
	}
	free(tree->entries);
}
