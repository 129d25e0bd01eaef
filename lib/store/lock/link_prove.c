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

/* Below a directory of our own: two files, two directories with a name in each, a third name. */
enum { ROOT, FILE_A, FILE_B, FIRST, FIRST_NAME, SECOND, SECOND_NAME, THIRD, THIRD_NAME, PATHS };
static const char *const names[PATHS] = {
	"", "/a", "/b", "/first", "/first/x", "/second", "/second/y", "/third", "/third/x"};

static bool touch(const char *path)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (descriptor >= 0)
		close(descriptor);
	return descriptor >= 0;
}

/* It did what it should have refused: there is no reason to tell. */
static const char *done_instead(const char *what)
{
	errno = 0;
	return what;
}

/* NULL: it does. Else what it does not do; errno 0: it did something else instead. */
static const char *wrong(char path[PATHS][PATH_MAX])
{
	if (!touch(path[FILE_A]) || mkdir(path[FIRST], 0700) < 0 || mkdir(path[SECOND], 0700) < 0 ||
		!touch(path[FIRST_NAME]) || !touch(path[SECOND_NAME]))
		return "make names";
	if (link(path[FILE_A], path[FILE_B]) < 0)
		return "make hard links";
	if (link(path[FILE_A], path[FILE_B]) == 0)
		return done_instead("refuse a link over a file");
	if (rename(path[FIRST], path[SECOND]) == 0)
		return done_instead("refuse to move a directory over another that is not empty");
	if (rename(path[FIRST], path[THIRD]) < 0 || access(path[THIRD_NAME], F_OK) < 0)
		return "move a directory";
	if (rmdir(path[THIRD]) == 0)
		return done_instead("refuse to remove a directory that is not empty");
	return NULL;
}

/* Whether an errno says that this filesystem will never do it; others say that it failed now. */
static bool is_refusal(int number)
{
	return number == ENOSYS || number == EOPNOTSUPP || number == EPERM || number == EINVAL ||
	       number == EXDEV || number == EMLINK;
}

enum status link_prove(const char *lock, struct error *err)
{
	char root[PATH_MAX], path[PATHS][PATH_MAX];
	snprintf(root, sizeof(root), "%s.new-XXXXXX", lock);
	/* So that SQLite can open what lies in the workspace of a takeover (takeover.c). */
	bool long_path = strlen(root) > LONGEST_PATH;
	if (long_path || !mkdtemp(root)) {
		int number = long_path ? ENAMETOOLONG : errno;
		return error_cured(err, number, store_cure(number), "make %s", root);
	}
	for (int i = 0; i < PATHS; i++)
		snprintf(path[i], PATH_MAX, "%.*s%s", PATH_MAX - 32, root, names[i]);
	const char *what = wrong(path);
	int number = errno;
	/* Once more; what stays is swept away when it is old (link_sweep.h). */
	if (file_remove_tree(root, NULL) != STATUS_OK)
		(void)file_remove_tree(root, NULL);
	if (!what)
		return STATUS_OK;
	if (number && !is_refusal(number))
		return error_cured(err, number, store_cure(number), "try names in %s", root);
	return error_set(err, STATUS_USAGE,
		"its filesystem does not %s%s%s, and its locks are not known to reach all machines: no "
		"store is safe there; choose another place with --store or PREEMPT_STORE, or add to the "
		"store's URL ?assume=local if one machine alone uses it",
		what, number ? ": " : "", number ? strerror(number) : "");
}
