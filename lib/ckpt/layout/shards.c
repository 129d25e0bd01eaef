/* SPDX-License-Identifier: MIT */
#include "ckpt/layout/shards.h"

#include <inttypes.h>

void shards_see(struct shard_set *set, uint64_t first, uint64_t second, uint64_t third)
{
	const uint64_t numbers[SHARD_DIMENSIONS] = {first, second, third};
	set->seen++;
	for (int k = 0; k < SHARD_DIMENSIONS; k++)
		if (numbers[k] >= set->extent[k])
			set->extent[k] = numbers[k] + 1;
}

bool shards_any(const struct shards *shards)
{
	for (size_t i = 0; i < SHARD_SETS; i++)
		if (shards->sets[i].what)
			return true;
	return false;
}

static uint64_t grid(const uint64_t extent[SHARD_DIMENSIONS])
{
	uint64_t all = 1;
	for (int k = 0; k < SHARD_DIMENSIONS; k++)
		if (__builtin_mul_overflow(all, extent[k], &all))
			return UINT64_MAX;
	return all;
}

static enum shards_answer miss(
	const struct shard_set *set, uint64_t all, const char *source, struct error *why)
{
	error_set(why, STATUS_NO, "%" PRIu64 " of %" PRIu64 " %s are missing%s", all - set->seen,
		all, set->what, source);
	return SHARDS_MISSING;
}

/* What the set shows by itself. SHARDS_UNKNOWN with *said: its own files do not say how many. */
static enum shards_answer decide_alone(const struct shard_set *set, bool *said, struct error *why)
{
	uint64_t all = grid(set->extent), must[SHARD_DIMENSIONS];
	bool more = set->seen > all;
	*said = true;
	for (int k = 0; k < SHARD_DIMENSIONS; k++) {
		*said = *said && set->said[k];
		more |= set->said[k] && set->extent[k] > set->said[k];
		must[k] = set->said[k] > set->extent[k] ? set->said[k] : set->extent[k];
	}
	if (set->seen < all)
		return miss(set, all, "", why);
	if (grid(must) > all)
		return miss(set, grid(must), ", as its own files say how many there are", why);
	if (more) {
		*said = true; /* siblings cannot help */
		error_set(why, STATUS_NO,
			"there are more %s than its own files say: perhaps of two saves",
			set->what);
		return SHARDS_UNKNOWN;
	}
	return *said ? SHARDS_ALL : SHARDS_UNKNOWN;
}

/* Whether a sibling has more, where the set's own files do not say how many there are. */
static bool is_larger(const struct shard_set *sibling, const struct shard_set *set)
{
	for (int k = 0; k < SHARD_DIMENSIONS; k++)
		if (!set->said[k] &&
			(sibling->extent[k] > set->extent[k] || sibling->said[k] > set->extent[k]))
			return true;
	return false;
}

static bool is_same(const struct shard_set *sibling, const struct shard_set *set)
{
	for (int k = 0; k < SHARD_DIMENSIONS; k++)
		if (sibling->extent[k] != set->extent[k])
			return false;
	return true;
}

static enum shards_answer compare(const struct shard_set *set, size_t place,
	const struct shards_sibling *siblings, size_t count, struct error *why)
{
	const struct shards_sibling *larger = NULL;
	bool same = false, older = false;
	for (size_t i = 0; i < count; i++) {
		const struct shard_set *other = &siblings[i].shards->sets[place];
		if (is_larger(other, set)) {
			larger = &siblings[i];
			older |= siblings[i].older;
		}
		same |= siblings[i].whole && is_same(other, set);
	}
	if (same ? !older : !larger && set->witnessed)
		return SHARDS_ALL;
	if (larger) {
		error_set(why, STATUS_NO,
			"%s has more %s than the %" PRIu64 " here, and nothing says how many "
			"belong to it",
			larger->name, set->what, set->seen);
		return SHARDS_FEWER;
	}
	if (set->seen)
		error_set(why, STATUS_NO,
			"nothing says whether the %" PRIu64 " %s are all that belong to it",
			set->seen, set->what);
	else
		error_set(why, STATUS_NO, "nothing says whether %s belong to it", set->what);
	return SHARDS_UNKNOWN;
}

enum shards_answer shards_decide(const struct shards *own, const struct shards_sibling *siblings,
	size_t count, struct error *why)
{
	enum shards_answer answer = SHARDS_ALL;
	for (size_t i = 0; i < SHARD_SETS && answer != SHARDS_MISSING; i++) {
		const struct shard_set *set = &own->sets[i];
		struct error one;
		bool said;
		if (!set->what)
			continue;
		enum shards_answer found = decide_alone(set, &said, &one);
		if (found == SHARDS_UNKNOWN && !said)
			found = compare(set, i, siblings, count, &one);
		/* What is missing outweighs what is not known. */
		if (found != SHARDS_ALL && (found == SHARDS_MISSING || found > answer)) {
			answer = found;
			if (why)
				*why = one;
		}
	}
	return answer;
}
