/* SPDX-License-Identifier: MIT */
#include "store/lock_mode.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {
	[LOCK_AUTO] = "auto",
	[LOCK_FCNTL] = "fcntl",
	[LOCK_LINK] = "link",
};
#define MODES (sizeof(names) / sizeof(names[0]))

bool lock_mode_parse(const char *name, enum lock_mode *mode)
{
	for (size_t i = 0; i < MODES; i++)
		if (!strcmp(names[i], name)) {
			*mode = (enum lock_mode)i;
			return true;
		}
	return false;
}

const char *lock_mode_name(enum lock_mode mode)
{
	return names[mode];
}

/* Where it is not known that locks reach everybody, they are not relied on. */
static enum status check_reach(
	enum lock_mode mode, const struct filesystem_verdict *verdict, struct error *err)
{
	if (mode == LOCK_LINK)
		return error_set(err, STATUS_USAGE, "lock=%s is not built yet", names[mode]);
	if (mode != LOCK_FCNTL || verdict->reach == FILESYSTEM_LOCAL ||
		verdict->reach == FILESYSTEM_SHARED)
		return STATUS_OK;
	return error_set(err, STATUS_USAGE,
		"it is on %s, and %s: two machines could both win; put it on NFSv4, Lustre with flock or "
		"CephFS, or add to the store's URL ?assume=local if one machine alone uses it%s",
		verdict->name, verdict->why,
		verdict->reach == FILESYSTEM_UNKNOWN
			? ", ?assume=shared if you know that its locks reach all"
			: "");
}

enum status lock_mode_choose(enum lock_mode asked, const struct filesystem_verdict *verdict,
	enum lock_mode *mode, struct error *err)
{
	enum lock_mode chosen = asked == LOCK_AUTO ? LOCK_FCNTL : asked;
	enum status status = check_reach(chosen, verdict, err);
	if (status == STATUS_OK)
		*mode = chosen;
	return status;
}

enum status lock_mode_follow(enum lock_mode recorded, enum lock_mode asked,
	const struct filesystem_verdict *verdict, struct error *err)
{
	if (asked != LOCK_AUTO && asked != recorded)
		return error_set(err, STATUS_USAGE,
			"it was made with lock=%s, and all must use the same: leave lock=%s out",
			names[recorded], names[asked]);
	return check_reach(recorded, verdict, err);
}
