/* SPDX-License-Identifier: MIT */
#include "group/spent.h"

void spent_turn(struct spent *spent, enum spent_on on, int64_t deadline, int64_t now)
{
	if (!spent->begun)
		*spent = (struct spent){.begun = true, .start = now, .since = now};
	spent->time[spent->on] += now - spent->since;
	spent->on = on;
	spent->since = now;
	spent->deadline = deadline;
}

bool spent_say(const struct spent *spent, struct text *text)
{
	if (!spent->begun)
		return false;
	int64_t grace = spent->deadline - spent->start;
	int64_t left = grace - spent->time[SPENT_TRAINING] - spent->time[SPENT_SAVING];
	text_addf(text, "%.1f s of grace: %.1f s of training, %.1f s to agree and save, ",
		(double)grace / 1000, (double)spent->time[SPENT_TRAINING] / 1000,
		(double)spent->time[SPENT_SAVING] / 1000);
	text_addf(text, left >= 0 ? "%.1f s left" : "%.1f s too long",
		(double)(left >= 0 ? left : -left) / 1000);
	return true;
}
