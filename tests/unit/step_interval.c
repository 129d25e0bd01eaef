/* SPDX-License-Identifier: MIT */
/* How long a step takes, from looks once a second. */
#include "agent/task/step_interval.h"

#include "proto/agreement/agreement.h"

#include "unit.h"

/* Looks at times and steps until { 0, 0 }. */
static struct step_interval seen(const int64_t (*looks)[2])
{
	struct step_interval interval = {0};
	for (; looks[0][0]; looks++)
		step_interval_saw(&interval, (uint64_t)looks[0][1], (uint64_t)looks[0][1] + 1,
			false, looks[0][0]);
	return interval;
}

int main(void)
{
	TEST("fast steps are counted by the look, slow ones from their first look on")
	{
		struct step_interval fast =
			seen((int64_t[][2]){{1000, 10}, {2000, 20}, {3000, 30}, {0}});
		CHECK_EQ(step_interval_usual(&fast), 100);
		CHECK_EQ(step_interval_longest(&fast, 3000), 100);
		struct step_interval slow = seen(
			(int64_t[][2]){{1000, 1}, {2000, 1}, {3000, 1}, {4000, 2}, {5000, 2}, {0}});
		CHECK_EQ(step_interval_usual(&slow), 3000);
		CHECK_EQ(step_interval_longest(&slow, 5000), 3000);
	}
	TEST("a step that takes longer than any before is known to while it does")
	{
		struct step_interval interval = seen((int64_t[][2]){{1000, 1}, {2000, 2}, {0}});
		CHECK_EQ(step_interval_longest(&interval, 9000), 7000);
	}
	TEST("nothing is known before two looks")
	{
		struct step_interval interval = {0};
		CHECK_EQ(step_interval_longest(&interval, 5000), 0);
		CHECK_EQ(step_interval_usual(&interval), 0);
	}
	TEST("a long one is remembered, and fades")
	{
		struct step_interval interval = {0};
		step_interval_saw(&interval, 1, 2, false, 1000);
		step_interval_saw(&interval, 2, 3, false, 11000);
		int64_t now = 11000, before = 10000;
		for (uint64_t step = 3; step < 60; step++) {
			step_interval_saw(&interval, step, step + 1, false, now += 1000);
			CHECK(step_interval_longest(&interval, now) <= before);
			before = step_interval_longest(&interval, now);
		}
		CHECK(before > 3000 && before < 6000);
		for (uint64_t step = 60; step < 1000; step++)
			step_interval_saw(&interval, step, step + 1, false, now += 1000);
		CHECK_EQ(step_interval_longest(&interval, now), 1000);
	}
	TEST("standing still because it was told to is no measure")
	{
		struct step_interval interval = seen((int64_t[][2]){{1000, 1}, {2000, 2}, {0}});
		step_interval_saw(&interval, 2, 3, true, 50000);
		step_interval_saw(&interval, 3, 4, false, 51000);
		CHECK_EQ(step_interval_longest(&interval, 51000), 1000);
	}
	TEST("nor is it until it is asked to go on, whether a process looks in that time or not")
	{
		struct step_interval interval = seen((int64_t[][2]){{1000, 1}, {1100, 2}, {0}});
		step_interval_saw(&interval, 2, 3, true, 1200);
		CHECK_EQ(step_interval_longest(&interval, 60000), 100);
		step_interval_told(&interval, true, 60000); /* another order to stand still */
		CHECK_EQ(step_interval_longest(&interval, 90000), 100);
		step_interval_told(&interval, false, 90000);
		step_interval_saw(&interval, 3, 4, false, 90150);
		CHECK_EQ(step_interval_longest(&interval, 90150), 150);
	}
	TEST("it is asked to wait, to save where it is, or to leave; on its way to a save it trains")
	{
		struct agreement_hold run = {.order = ORDER_RUN}, wait = {.order = ORDER_WAIT},
				      save = {.order = ORDER_SAVE, .step = 7},
				      final = {.order = ORDER_EXIT, .step = 7},
				      leave = {.order = ORDER_LEAVE, .code = 42};
		CHECK(!agreement_stands_still(&run, 6));
		CHECK(agreement_stands_still(&wait, 6));
		CHECK(!agreement_stands_still(&save, 6));
		CHECK(agreement_stands_still(&save, 7));
		CHECK(!agreement_stands_still(&final, 6));
		CHECK(agreement_stands_still(&final, 8));
		CHECK(agreement_stands_still(&leave, 6));
	}
	TEST("nor is a save; one that runs beside the training takes nothing away")
	{
		struct step_interval interval = seen((int64_t[][2]){{1000, 1}, {2000, 2}, {0}});
		step_interval_saved(&interval, 2, 30000, 32500);
		step_interval_saw(&interval, 3, 4, false, 33000);
		CHECK_EQ(step_interval_longest(&interval, 33000), 1000);
		step_interval_saved(&interval, 2, 900, 33500);
		step_interval_saw(&interval, 4, 5, false, 34000);
		CHECK_EQ(interval.recent[2], 1000);
	}
	TEST("a boundary every so many steps")
	{
		struct step_interval interval = {0};
		step_interval_saw(&interval, 100, 150, false, 1000);
		step_interval_saw(&interval, 200, 250, false, 5000);
		CHECK_EQ(step_interval_usual(&interval), 2000);
	}
	return unit_end();
}
