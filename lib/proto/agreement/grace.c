/* SPDX-License-Identifier: MIT */
#include "proto/agreement/grace.h"

#include "base/clock.h"

#define AGREE_TIME	  2500	  /* ms to agree over a polled store, at least */
#define SPARE		  1000	  /* ms of reserve */
#define SHORTEST_PATIENCE 250	  /* ms */
#define AGREE_LEAST	  500	  /* ms to agree where time is short */
#define MOST_SKEW	  1000000 /* keeps the product from overflowing */

int64_t grace_save_time(const struct grace_measure *measure)
{
	return measure->longest_save + measure->longest_save / 2 + 2 * measure->longest_step;
}

/*
 * By how much a save may take longer than the longest so far: half of that, or, where the usual
 * time is known, twice the difference between the longest and the usual one, at least a sixth and
 * at most half of the longest.
 */
static int64_t save_margin(const struct grace_measure *measure)
{
	int64_t half = measure->longest_save / 2, sixth = measure->longest_save / 6;
	int64_t twice = 2 * (measure->longest_save - measure->usual_save);
	if (measure->usual_save <= 0 || twice > half)
		return half;
	return twice > sixth ? twice : sixth;
}

int64_t grace_needed(const struct grace_measure *measure)
{
	int64_t skew = measure->skew > MOST_SKEW ? MOST_SKEW : (int64_t)measure->skew;
	int64_t longest = measure->longest_step;
	int64_t usual = measure->usual_step ? measure->usual_step : longest;
	int64_t arrive = longest > AGREE_TIME ? longest : AGREE_TIME;
	return measure->longest_save + save_margin(measure) + arrive + usual + skew * longest +
	       SPARE;
}

int64_t grace_final_time(int64_t deadline, const struct grace_measure *measure)
{
	return deadline == CLOCK_NEVER ? CLOCK_NEVER : deadline - grace_needed(measure);
}

bool grace_allows_training(int64_t now, int64_t deadline, const struct grace_measure *measure)
{
	if (deadline == CLOCK_NEVER)
		return false;
	int64_t save_now = measure->longest_save + 2 * measure->longest_step + AGREE_LEAST;
	return grace_final_time(deadline, measure) > now + save_now;
}

bool grace_fits(int64_t now, int64_t deadline, const struct grace_measure *measure)
{
	return deadline == CLOCK_NEVER ||
	       now + measure->longest_save + measure->longest_step <= deadline;
}

int64_t grace_last_call(int64_t known, int64_t deadline, const struct grace_measure *measure)
{
	int64_t save = grace_save_time(measure), quarter = (deadline - known) / 4;
	int64_t least = measure->longest_save <= 0 && quarter > SPARE ? quarter : SPARE;
	int64_t last = deadline - (save > least ? save : least);
	int64_t spare = deadline - known - measure->longest_save - measure->longest_step;
	int64_t agree = known + (spare / 2 > AGREE_LEAST ? spare / 2 : AGREE_LEAST);
	return last > agree ? last : agree;
}

int64_t grace_report_patience(int64_t opened, int64_t deadline, int64_t report_timeout,
	const struct grace_measure *measure)
{
	if (deadline == CLOCK_NEVER)
		return report_timeout;
	int64_t room = (deadline - grace_save_time(measure) - opened) / 2;
	if (room < SHORTEST_PATIENCE)
		room = SHORTEST_PATIENCE;
	return room < report_timeout ? room : report_timeout;
}
