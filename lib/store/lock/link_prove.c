/* SPDX-License-Identifier: MIT */
#include "store/lock/link_prove.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/failure.h"

#define LONGEST_PATH 450 /* bytes; SQLite's is 512 */

static bool touch(int directory, const char *name)
{
	int descriptor = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (descriptor >= 0)
		close(descriptor);
	return descriptor >= 0;
}

/* The filesystem did what it must refuse, so there is no errno to report. */
static const char *not_refused(const char *what)
{
	errno = 0;
	return what;
}

/*
 * NULL: the filesystem does what mode link needs. Otherwise what it does not do, with errno; errno
 * is 0 if it did what it must refuse.
 */
static const char *wrong(int root)
{
	if (!touch(root, "a") || mkdirat(root, "first", 0700) < 0 ||
		mkdirat(root, "second", 0700) < 0 || !touch(root, "first/x") ||
		!touch(root, "second/y"))
		return "make names";
	if (linkat(root, "a", root, "b", 0) < 0)
		return "make hard links";
	if (linkat(root, "a", root, "b", 0) == 0)
		return not_refused("refuse a link over a file");
	if (renameat(root, "first", root, "second") == 0)
		return not_refused("refuse to move a directory over another that is not empty");
	if (renameat(root, "first", root, "third") < 0 || faccessat(root, "third/x", F_OK, 0) < 0)
		return "move a directory";
	if (unlinkat(root, "third", AT_REMOVEDIR) == 0)
		return not_refused("refuse to remove a directory that is not empty");
	return NULL;
}

/* Whether this errno means that the filesystem can never do it, rather than not now. */
static bool is_refusal(int number)
{
	return number == ENOSYS || number == EOPNOTSUPP || number == EPERM || number == EINVAL ||
	       number == EXDEV || number == EMLINK;
}

enum status link_prove(const char *lock, struct error *err)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s.new-XXXXXX", lock);
	/* SQLite must be able to open the files in the workspace of a takeover (takeover.c). */
	bool long_path = strlen(path) > LONGEST_PATH;
	if (long_path || !mkdtemp(path)) {
		int number = long_path ? ENAMETOOLONG : errno;
		return error_cured(err, number, store_cure(number), "make %s", path);
	}
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *what = root < 0 ? "make directories" : wrong(root);
	int number = errno;
	if (root >= 0)
		close(root);
	/* Try twice. link_sweep removes what is left when it is old. */
	if (file_remove_tree(path, NULL) != STATUS_OK)
		(void)file_remove_tree(path, NULL);
	if (!what)
		return STATUS_OK;
	if (number && !is_refusal(number))
		return error_cured(err, number, store_cure(number), "try names in %s", path);
	return error_set(err, STATUS_USAGE,
		"its filesystem does not %s%s%s, and its locks are not known to reach all machines: no "
		"store is safe there; choose another place with --store or PREEMPT_STORE, or add to the "
		"store's URL ?assume=local if one machine alone uses it",
		what, number ? ": " : "", number ? strerror(number) : "");
}
