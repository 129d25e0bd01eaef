/* SPDX-License-Identifier: MIT */
#include "ckpt/layout/shards.h"

#include <inttypes.h>
#include <string.h>

void shards_count(
	struct shard_set *set, uint64_t bytes, uint64_t first, uint64_t second, uint64_t third)
{
	const uint64_t numbers[SHARD_DIMENSIONS] = {first, second, third};
	set->seen++;
	set->bytes += bytes;
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

static bool is_same(const struct shard_set *a, const struct shard_set *b)
{
	return a->seen == b->seen && memcmp(a->extent, b->extent, sizeof(a->extent)) == 0;
}

bool shards_same(const struct shards *a, const struct shards *b)
{
	for (size_t i = 0; i < SHARD_SETS; i++)
		if (!is_same(&a->sets[i], &b->sets[i]))
			return false;
	return true;
}

/* Whether a sibling has more (shards_decide), so that files may be missing here. */
static bool is_larger(const struct shard_set *sibling, const struct shard_set *set)
{
	if (sibling->seen <= set->seen)
		return false;
	/* If files are missing, we have only set->seen of sibling->seen parts of the bytes; if the
	 * same content is in fewer files, we have all bytes. Decide in the middle. */
	double part = (double)(set->seen + sibling->seen) / (2 * (double)sibling->seen);
	return (double)set->bytes <= part * (double)sibling->bytes;
}

/* Look for a gap in the numbers of the files; SHARDS_ALL: there is none. */
static enum shards_answer find_gap(const struct shard_set *set, struct error *why)
{
	uint64_t all = 1;
	for (int k = 0; k < SHARD_DIMENSIONS; k++)
		if (__builtin_mul_overflow(all, set->extent[k], &all))
			all = UINT64_MAX;
	if (set->seen < all) {
		error_set(why, STATUS_NO, "%" PRIu64 " of %" PRIu64 " %s are missing",
			all - set->seen, all, set->what);
		return SHARDS_MISSING;
	}
	if (set->seen > all) {
		error_set(why, STATUS_NO, "two %s have the same number: perhaps of two saves",
			set->what);
		return SHARDS_UNKNOWN;
	}
	return SHARDS_ALL;
}

/* Compare a set without a gap with those of siblings. */
static enum shards_answer compare(const struct shards *own, size_t place,
	const struct shards_sibling *siblings, size_t count, struct error *why)
{
	const struct shard_set *set = &own->sets[place];
	const char *larger = NULL;
	bool older = false;
	int same = 0;
	if (set->told && set->told != set->seen) {
		error_set(why, STATUS_NO,
			"%" PRIu64 " %s are there, but the files say that %" PRIu64 " belong to it",
			set->seen, set->what, set->told);
		return SHARDS_UNKNOWN;
	}
	if (set->told)
		return SHARDS_ALL;
	for (size_t i = 0; i < count; i++) {
		const struct shard_set *other = &siblings[i].shards->sets[place];
		if (is_larger(other, set)) {
			larger = siblings[i].name;
			older |= siblings[i].older;
		}
		same += siblings[i].whole && is_same(other, set);
	}
	if (same >= (older ? 2 : 1) || (own->confirmed && !older))
		return SHARDS_ALL;
	if (larger)
		error_set(why, STATUS_NO,
			"%s has more %s than the %" PRIu64 " here, and nothing says how many "
			"belong to it",
			larger, set->what, set->seen);
	else if (set->seen)
		error_set(why, STATUS_NO,
			"nothing says whether the %" PRIu64 " %s are all that belong to it",
			set->seen, set->what);
	else
		error_set(why, STATUS_NO, "nothing says whether %s belong to it", set->what);
	return larger ? SHARDS_FEWER : SHARDS_UNKNOWN;
}

enum shards_answer shards_decide(const struct shards *own, const struct shards_sibling *siblings,
	size_t count, struct error *why)
{
	enum shards_answer answer = SHARDS_ALL;
	for (size_t i = 0; i < SHARD_SETS; i++) {
		struct error one;
		if (!own->sets[i].what)
			continue;
		enum shards_answer found = find_gap(&own->sets[i], &one);
		if (found == SHARDS_ALL)
			found = compare(own, i, siblings, count, &one);
		if (found > answer) {
			answer = found;
			if (why)
				*why = one;
		}
	}
	return answer;
}
