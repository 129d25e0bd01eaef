/* SPDX-License-Identifier: MIT */
#include "ckpt/keep.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 4))) static void decide(
	struct keep_verdict *verdict, bool keep, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(verdict->why, sizeof(verdict->why), format, arguments);
	va_end(arguments);
	verdict->keep = keep;
}

/* The place of the complete one committed last; on equal times of the highest step. */
static size_t committed_last(const struct checkpoint *items, size_t count)
{
	size_t last = count;
	for (size_t i = 0; i < count; i++)
		if (items[i].state == CHECKPOINT_COMPLETE &&
			(last == count || items[i].utc >= items[last].utc))
			last = i;
	return last;
}

void keep_decide(const struct keep_policy *policy, const struct checkpoint *items, size_t count,
	struct keep_verdict *verdicts)
{
	uint64_t newer = 0; /* complete ones of a higher step */
	size_t last = committed_last(items, count);
	for (size_t i = count; i-- > 0;) {
		struct keep_verdict *verdict = &verdicts[i];
		switch (items[i].state) {
		case CHECKPOINT_COMPLETE:
			if (newer == 0)
				decide(verdict, true, "the newest complete one");
			else if (newer < policy->last)
				decide(verdict, true, "one of the last %" PRIu64, policy->last);
			else if (i == last)
				decide(verdict, true, "the one committed last");
			else
				decide(verdict, false, "%" PRIu64 " complete newer", newer);
			newer++;
			break;
		case CHECKPOINT_DAMAGED:
			if (newer >= policy->last && newer > 0)
				decide(verdict, false, "damaged, and %" PRIu64 " complete newer",
					newer);
			else if (newer == 0)
				decide(verdict, true, "damaged, and no complete one is newer");
			else
				decide(verdict, true,
					"damaged, but only %" PRIu64 " complete newer", newer);
			break;
		case CHECKPOINT_FOREIGN: decide(verdict, true, "not ours"); break;
		default: decide(verdict, true, "could not be read"); break;
		}
	}
}

void keep_decide_incomplete(
	const struct checkpoint *item, uint64_t newest_attempt, struct keep_verdict *verdict)
{
	if (item->state != CHECKPOINT_INCOMPLETE)
		decide(verdict, true, "could not be read");
	else if (item->writer == WRITER_ALIVE)
		decide(verdict, true, "being written");
	else if (item->writer == WRITER_GONE)
		decide(verdict, false, "not committed, and its writer is gone");
	else if (item->attempt > 0 && item->attempt < newest_attempt)
		decide(verdict, false, "not committed, and attempt %" PRIu64 " has saved since",
			newest_attempt);
	else if (item->writer == WRITER_UNKNOWN && item->vacant)
		decide(verdict, false, "nothing is in it");
	else if (item->writer == WRITER_ELSEWHERE)
		decide(verdict, true, "not committed; its writer cannot be asked from here");
	else
		decide(verdict, true, "not committed; nobody knows who writes it");
}
