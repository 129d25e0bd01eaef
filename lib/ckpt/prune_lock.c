/* SPDX-License-Identifier: MIT */
#include "ckpt/prune_lock.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include "base/clock.h"

enum status prune_unmet(const char *directory, const struct keep_policy *policy, struct error *err)
{
	const char *limit = policy->max_bytes && policy->min_free ? "--max-bytes and --min-free"
			    : policy->max_bytes			  ? "--max-bytes"
								  : "--min-free";
	return error_set(err, STATUS_NO,
		"%s: %s cannot be met: what is left must be kept (see the reasons)", directory,
		limit);
}

enum status prune_lock(const char *directory, int descriptor, int64_t wait, struct error *err)
{
	int64_t deadline = clock_after(wait);
	while (flock(descriptor, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return STATUS_OK;
		if (clock_now() >= deadline)
			return error_set(err, STATUS_TEMPORARY,
				"another prune of %s is still at work; try again later", directory);
		clock_sleep_until(clock_now() + clock_jitter(50));
	}
	return STATUS_OK;
}

enum status prune_measure_free(
	const char *directory, int descriptor, uint64_t *free_bytes, struct error *err)
{
	struct statvfs about;
	if (fstatvfs(descriptor, &about) < 0)
		return error_errno(err, errno, "ask for the free space of %s", directory);
	*free_bytes = (uint64_t)about.f_bavail * about.f_frsize;
	return STATUS_OK;
}
