/* SPDX-License-Identifier: MIT */
/* The keep policy against an obvious reference, on random histories. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/keep.h"
#include "unit.h"

#define ITEMS 12

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

static uint64_t complete_above(const struct checkpoint *items, size_t count, uint64_t step)
{
	uint64_t above = 0;
	for (size_t i = 0; i < count; i++)
		above += items[i].state == CHECKPOINT_COMPLETE && items[i].step > step;
	return above;
}

/* Whether item i was committed last of all the complete ones; of equal ones the highest step. */
static bool is_committed_last(const struct checkpoint *items, size_t count, size_t i)
{
	for (size_t k = 0; k < count; k++)
		if (items[k].state == CHECKPOINT_COMPLETE &&
			(items[k].utc > items[i].utc ||
				(items[k].utc == items[i].utc && items[k].step > items[i].step)))
			return false;
	return true;
}

static bool reference(const struct checkpoint *items, size_t count, size_t i, uint64_t last)
{
	uint64_t above = complete_above(items, count, items[i].step);
	switch (items[i].state) {
	case CHECKPOINT_COMPLETE: return above < last || is_committed_last(items, count, i);
	case CHECKPOINT_DAMAGED: return above < last;
	default: return true;
	}
}

static bool agrees(uint64_t number)
{
	struct checkpoint items[ITEMS] = {0};
	struct keep_verdict verdicts[ITEMS];
	static const enum checkpoint_state states[] = {CHECKPOINT_COMPLETE, CHECKPOINT_COMPLETE,
		CHECKPOINT_COMPLETE, CHECKPOINT_DAMAGED, CHECKPOINT_FOREIGN, CHECKPOINT_UNKNOWN};
	seed = number;
	(void)draw(1);
	size_t count = draw(ITEMS + 1);
	uint64_t step = 0, complete = 0, kept = 0;
	for (size_t i = 0; i < count; i++) {
		step += 1 + draw(20);
		items[i].step = step;
		items[i].state = states[draw(6)];
		items[i].utc = (int64_t)draw(10);
		complete += items[i].state == CHECKPOINT_COMPLETE;
	}
	const uint64_t lasts[] = {1, 2, 3, draw(ITEMS) + 1, UINT64_MAX};
	struct keep_policy policy = {.last = lasts[draw(5)]};
	keep_decide(&policy, items, count, verdicts);
	for (size_t i = 0; i < count; i++) {
		kept += verdicts[i].keep && items[i].state == CHECKPOINT_COMPLETE;
		if (verdicts[i].keep != reference(items, count, i, policy.last) ||
			!*verdicts[i].why)
			return false;
	}
	return kept >= (complete < policy.last ? complete : policy.last);
}

static const struct keep_verdict *incomplete(
	enum checkpoint_writer writer, uint64_t attempt, uint64_t newest, bool vacant)
{
	static struct keep_verdict verdict;
	struct checkpoint item = {.state = CHECKPOINT_INCOMPLETE,
		.writer = writer,
		.attempt = attempt,
		.vacant = vacant};
	keep_decide_incomplete(&item, newest, &verdict);
	return &verdict;
}

int main(void)
{
	uint64_t number = 1;
	while (number <= 20000 && agrees(number))
		number++;
	CHECK(number > 20000, "the policy agrees with the reference (history %" PRIu64 ")", number);

	CHECK(incomplete(WRITER_ALIVE, 1, 9, false)->keep, "a living writer keeps its directory");
	CHECK(!incomplete(WRITER_GONE, 3, 0, false)->keep, "a writer that is gone does not");
	CHECK(incomplete(WRITER_ELSEWHERE, 3, 3, false)->keep, "one that cannot be asked does");
	CHECK(!incomplete(WRITER_ELSEWHERE, 3, 4, false)->keep,
		"but not when a later attempt has saved");
	CHECK(incomplete(WRITER_ELSEWHERE, 0, 4, false)->keep, "attempt 0 counts for nothing");
	CHECK(incomplete(WRITER_UNKNOWN, 0, 4, false)->keep, "nobody's, but something is in it");
	CHECK(!incomplete(WRITER_UNKNOWN, 0, 4, true)->keep, "nobody's and empty");
	return unit_end();
}
