/* SPDX-License-Identifier: MIT */
#include "agent/task/step_interval.h"

#define FADE 64 /* each new interval takes 1/FADE off the remembered longest */

void step_interval_saw(
	struct step_interval *interval, uint64_t step, uint64_t next, bool held, int64_t now)
{
	if (interval->seen && step > interval->step) {
		uint64_t stride = next > step ? next - step : 1;
		int64_t boundaries = (int64_t)((step - interval->step + stride - 1) / stride);
		int64_t each = (now - interval->since + boundaries - 1) / boundaries;
		interval->recent[interval->next++ % STEP_INTERVAL_RECENT] = each;
		interval->longest -= interval->longest / FADE;
		if (each > interval->longest)
			interval->longest = each;
	}
	/* The time for which a task is held is no part of an interval. */
	if (held || !interval->seen || step > interval->step)
		interval->since = now;
	interval->step = step;
	interval->held = held;
	interval->seen = true;
}

void step_interval_told(struct step_interval *interval, bool held, int64_t now)
{
	if (interval->held)
		interval->since = now;
	interval->held &= held;
}

void step_interval_saved(struct step_interval *interval, uint64_t step, int64_t time, int64_t now)
{
	if (!interval->seen || interval->step > step)
		return;
	interval->since = now - interval->since < time ? now : interval->since + time;
}

int64_t step_interval_longest(const struct step_interval *interval, int64_t now)
{
	int64_t longest = interval->seen && !interval->held ? now - interval->since : 0;
	for (size_t i = 0; i < STEP_INTERVAL_RECENT; i++)
		if (interval->recent[i] > longest)
			longest = interval->recent[i];
	return interval->longest > longest ? interval->longest : longest;
}

int64_t step_interval_usual(const struct step_interval *interval)
{
	size_t known =
		interval->next < STEP_INTERVAL_RECENT ? interval->next : STEP_INTERVAL_RECENT;
	int64_t sum = 0;
	for (size_t i = 0; i < known; i++)
		sum += interval->recent[i];
	return known ? sum / (int64_t)known : 0;
}
