/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
	"kill", "error", "space", "late", "int", "stop", "once", "gone"};

unsigned fault_named(const char *name)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name))
			return 1U << i;
	return 0;
}

/* Of FAULT_ERROR and of FAULT_SPACE. */
static const struct {
	const char *call;
	int numbers[12];
} errors[] = {
	{"open", {EIO, ESTALE, EACCES, EINTR, ETIMEDOUT, EMFILE, ENOSPC, EDQUOT, EROFS}},
	{"mkostemp", {EIO, ESTALE, EACCES, EINTR, ETIMEDOUT, ENOSPC, EDQUOT, EROFS}},
	{"opendir", {EIO, ESTALE, EACCES}},
	{"close", {EIO, EDQUOT, ENOSPC, EINTR}},
	{"read", {EIO, ESTALE, EINTR, ETIMEDOUT, EACCES}},
	{"pread", {EIO, ESTALE, EINTR, ETIMEDOUT, EACCES}},
	{"write", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EINTR, ETIMEDOUT, EFBIG}},
	{"pwrite", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EINTR, ETIMEDOUT, EFBIG}},
	{"ftruncate", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EINTR, ETIMEDOUT}},
	{"fallocate", {EIO, ENOSPC, EDQUOT, EINTR, EOPNOTSUPP}},
	{"fsync", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EINTR, ETIMEDOUT}},
	{"fdatasync", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EINTR, ETIMEDOUT}},
	{"mmap", {ENOMEM, ENODEV}},
	{"lock", {EIO, ENOLCK, ESTALE, EACCES, EINTR, ENOSYS, EOPNOTSUPP, ETIMEDOUT, EAGAIN}},
	{"unlock", {EIO, ENOLCK, ESTALE, EACCES, EINTR, ENOSYS, ETIMEDOUT}},
	{"getlock", {EIO, ENOLCK, ESTALE, EACCES, EINTR, ENOSYS, ETIMEDOUT}},
	{"link", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EACCES, EINTR, ETIMEDOUT, EPERM}},
	{"rename", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EACCES, EINTR, ETIMEDOUT}},
	{"unlink", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EACCES, EINTR, ETIMEDOUT}},
	{"mkdir", {EIO, ENOSPC, EDQUOT, EROFS, ESTALE, EACCES, EINTR, ETIMEDOUT}},
	{"rmdir", {EIO, EROFS, ESTALE, EACCES}},
	/* stat, statfs, access, realpath, chmod and the rest */
	{NULL, {EIO, ESTALE, EACCES, EINTR, ETIMEDOUT}},
};

static bool is_any(const char *name, const char *const *wanted)
{
	while (*wanted && strcmp(name, *wanted) != 0)
		wanted++;
	return *wanted != NULL;
}

static void add(struct points *points, unsigned at, enum call_act act, int number)
{
	if (points->count % 256 == 0)
		points->list = realloc(points->list, (points->count + 256) * sizeof(*points->list));
	if (!points->list)
		exit(99);
	points->list[points->count++] = (struct point){at, act, number};
}

static void add_errors(unsigned faults, const struct call *call, unsigned at, struct points *points)
{
	size_t i = 0;
	while (errors[i].call && strcmp(errors[i].call, call->name))
		i++;
	for (const int *number = errors[i].numbers; *number; number++) {
		bool space = *number == ENOSPC || *number == EDQUOT || *number == EFBIG;
		if ((space || *number == EROFS) && !call->writes)
			continue;
		if (faults & (space ? FAULT_SPACE : FAULT_ERROR)) {
			add(points, at, ACT_FAIL, *number);
			add(points, at, ACT_FAIL_ALWAYS, *number);
		}
	}
	if ((faults & FAULT_LATE) && call->writes && strcmp(call->name, "open") != 0) {
		add(points, at, ACT_LATE, EIO);
		add(points, at, ACT_LATE, ETIMEDOUT);
	}
	if ((faults & FAULT_SPACE) &&
		is_any(call->name, (const char *const[]){"pwrite", "write", NULL})) {
		add(points, at, ACT_HALF, ENOSPC);
		add(points, at, ACT_HALF_FAIL, ENOSPC);
		add(points, at, ACT_HALF_FAIL, EDQUOT);
	}
	if (faults & FAULT_KILL) {
		add(points, at, ACT_BEFORE, SIGKILL);
		add(points, at, ACT_AFTER, SIGKILL);
	}
	if (faults & FAULT_INT)
		add(points, at, ACT_BEFORE, SIGINT);
	if ((faults & FAULT_STOP) && (call->writes || call->locks))
		add(points, at, ACT_BEFORE, SIGSTOP);
}

/* A program that is killed leaves what the last call that writes has left. */
static void add_few(
	unsigned faults, const struct call *call, unsigned at, bool last, struct points *points)
{
	static const char *const need_no_space[] = {
		"unlink", "rmdir", "chmod", "utimes", "rename", NULL};
	static const char *const bytes[] = {"pwrite", "write", "copy", NULL};
	if (faults & FAULT_ONCE)
		add(points, at, ACT_FAIL, EIO);
	if (faults & FAULT_ERROR) {
		add(points, at, ACT_FAIL_ALWAYS, EIO);
		if (call->writes)
			add(points, at, ACT_FAIL_ALWAYS, EROFS);
	}
	if ((faults & FAULT_SPACE) && call->writes && !is_any(call->name, need_no_space))
		add(points, at, ACT_FAIL_ALWAYS, ENOSPC);
	if ((faults & FAULT_SPACE) && is_any(call->name, bytes)) {
		add(points, at, ACT_HALF, ENOSPC);
		add(points, at, ACT_HALF_FAIL, EDQUOT);
	}
	if ((faults & FAULT_LATE) && call->writes && strcmp(call->name, "open") != 0)
		add(points, at, ACT_LATE, EIO);
	if ((faults & FAULT_GONE) && call->writes && strcmp(call->name, "open") != 0)
		add(points, at, ACT_LATE_GONE, EIO);
	if ((faults & FAULT_KILL) && call->writes)
		add(points, at, ACT_BEFORE, SIGKILL);
	if ((faults & FAULT_KILL) && last)
		add(points, at, ACT_AFTER, SIGKILL);
	if ((faults & FAULT_INT) && call->writes)
		add(points, at, ACT_BEFORE, SIGINT);
}

void points_of(
	unsigned faults, bool few, const struct call *calls, unsigned count, struct points *points)
{
	*points = (struct points){0};
	for (unsigned at = 1; at <= count; at++)
		if (few)
			add_few(faults, &calls[at - 1], at, at == count, points);
		else
			add_errors(faults, &calls[at - 1], at, points);
}

/* By a generator of our own, so that a seed means the same everywhere. */
static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

void points_thin(struct points *points, size_t most, uint64_t *seed)
{
	if (!most || points->count <= most)
		return;
	for (size_t i = 0; i < most; i++) {
		size_t from = i * points->count / most, to = (i + 1) * points->count / most;
		points->list[i] = points->list[from + draw(seed) % (to - from)];
	}
	points->count = most;
}

void points_release(struct points *points)
{
	free(points->list);
}

const char *fault_told(const struct plan *plan)
{
	static const char *const does[] = {"counting", "fails with", "fails from then on with",
		"is cut short", "is cut short, then fails with", "is done, but answers",
		"is done, but answers, as all later calls do,", "is killed before with",
		"is killed after with"};
	static char told[256];
	snprintf(told, sizeof(told), "call %u, %s of \"%s\" %s %s", plan->at, plan->hit.name,
		plan->hit.file, does[plan->act],
		plan->act >= ACT_BEFORE ? sigabbrev_np(plan->number)
					: strerrorname_np(plan->number));
	return told;
}
