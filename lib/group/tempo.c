/* SPDX-License-Identifier: MIT */
#include "group/tempo.h"

#define FADE 64 /* a look takes one part in so many away */

void tempo_saw(struct tempo *tempo, uint64_t step, uint64_t next, bool held, int64_t now)
{
	if (tempo->seen && step > tempo->step) {
		uint64_t stride = next > step ? next - step : 1;
		int64_t boundaries = (int64_t)((step - tempo->step + stride - 1) / stride);
		int64_t each = (now - tempo->since + boundaries - 1) / boundaries;
		tempo->recent[tempo->next++ % TEMPO_RECENT] = each;
		tempo->longest -= tempo->longest / FADE;
		if (each > tempo->longest)
			tempo->longest = each;
	}
	/* While it is held, standing still is no measure of its speed. */
	if (held || !tempo->seen || step > tempo->step)
		tempo->since = now;
	tempo->step = step;
	tempo->held = held;
	tempo->seen = true;
}

void tempo_told(struct tempo *tempo, bool held, int64_t now)
{
	if (tempo->held)
		tempo->since = now;
	tempo->held &= held;
}

void tempo_saved(struct tempo *tempo, uint64_t step, int64_t time, int64_t now)
{
	if (!tempo->seen || tempo->step > step)
		return;
	tempo->since = now - tempo->since < time ? now : tempo->since + time;
}

int64_t tempo_longest(const struct tempo *tempo, int64_t now)
{
	int64_t longest = tempo->seen && !tempo->held ? now - tempo->since : 0;
	for (size_t i = 0; i < TEMPO_RECENT; i++)
		if (tempo->recent[i] > longest)
			longest = tempo->recent[i];
	return tempo->longest > longest ? tempo->longest : longest;
}

int64_t tempo_usual(const struct tempo *tempo)
{
	size_t known = tempo->next < TEMPO_RECENT ? tempo->next : TEMPO_RECENT;
	int64_t sum = 0;
	for (size_t i = 0; i < known; i++)
		sum += tempo->recent[i];
	return known ? sum / (int64_t)known : 0;
}
