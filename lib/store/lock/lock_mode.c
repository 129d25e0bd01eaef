/* SPDX-License-Identifier: MIT */
#include "store/lock/lock_mode.h"

#include <stddef.h>

#include "base/parse.h"

static const char *const names[] = {
	[LOCK_AUTO] = "auto",
	[LOCK_FCNTL] = "fcntl",
	[LOCK_LINK] = "link",
};
#define MODES (sizeof(names) / sizeof(names[0]))

bool lock_mode_parse(const char *name, enum lock_mode *mode)
{
	size_t index;
	if (!parse_word(names, MODES, name, &index))
		return false;
	*mode = (enum lock_mode)index;
	return true;
}

const char *lock_mode_name(enum lock_mode mode)
{
	return names[mode];
}

static bool reaches(const struct filesystem_traits *traits)
{
	return traits->reach == FILESYSTEM_LOCAL || traits->reach == FILESYSTEM_SHARED;
}

/* Advice for a filesystem that is not known. */
static const char *vouch(const struct filesystem_traits *traits)
{
	return traits->reach == FILESYSTEM_UNKNOWN
		       ? ", or ?assume=shared if you know that its locks reach all machines"
		       : "";
}

/* Seconds: the longest time for which a machine that dies with the lock may block the others. */
#define OUTLIVED_MOST 10

/*
 * Whether byte-range locks stay longer than OUTLIVED_MOST after their machine died, and changing
 * names in a directory does not have to wait for that.
 */
static bool outlives(const struct filesystem_traits *traits)
{
	return traits->reach == FILESYSTEM_SHARED && traits->by_name &&
	       (traits->outlived == FILESYSTEM_FOR_EVER || traits->outlived > OUTLIVED_MOST);
}

enum status lock_mode_choose(enum lock_mode asked, const struct filesystem_traits *traits,
	enum lock_mode *mode, struct error *err)
{
	if (asked == LOCK_FCNTL && !reaches(traits))
		return error_set(err, STATUS_USAGE,
			"it is on %s, and %s: with lock=fcntl two machines could hold the lock "
			"at once; leave lock=fcntl out, or add ?assume=local to the store's URL "
			"if only one machine uses it%s",
			traits->name, traits->why, vouch(traits));
	if (asked == LOCK_AUTO)
		asked = reaches(traits) && !outlives(traits) ? LOCK_FCNTL : LOCK_LINK;
	*mode = asked;
	return STATUS_OK;
}

enum status lock_mode_follow(enum lock_mode recorded, enum lock_mode asked,
	const struct filesystem_traits *traits, struct error *err)
{
	if (asked != LOCK_AUTO && asked != recorded)
		return error_set(err, STATUS_USAGE,
			"it was made with lock=%s, and all must use the same: leave lock=%s out",
			names[recorded], names[asked]);
	if (recorded == LOCK_FCNTL && !reaches(traits))
		return error_set(err, STATUS_USAGE,
			"it was made with lock=fcntl; here it is on %s, and %s: two machines "
			"could hold the lock at once; use a mount whose locks reach all "
			"machines, make a new store with lock=link, or add ?assume=local to the "
			"store's URL if only one machine uses it%s",
			traits->name, traits->why, vouch(traits));
	return STATUS_OK;
}
