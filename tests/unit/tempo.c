/* SPDX-License-Identifier: MIT */
/* How long a step takes, from looks once a second. */
#include "group/tempo.h"

#include "group/agreement.h"

#include "unit.h"

/* Looks at times and steps until { 0, 0 }. */
static struct tempo seen(const int64_t (*looks)[2])
{
	struct tempo tempo = {0};
	for (; looks[0][0]; looks++)
		tempo_saw(&tempo, (uint64_t)looks[0][1], (uint64_t)looks[0][1] + 1, false,
			looks[0][0]);
	return tempo;
}

int main(void)
{
	TEST("fast steps are counted by the look, slow ones from their first look on")
	{
		struct tempo fast = seen((int64_t[][2]){{1000, 10}, {2000, 20}, {3000, 30}, {0}});
		CHECK_EQ(tempo_usual(&fast), 100);
		CHECK_EQ(tempo_longest(&fast, 3000), 100);
		struct tempo slow = seen(
			(int64_t[][2]){{1000, 1}, {2000, 1}, {3000, 1}, {4000, 2}, {5000, 2}, {0}});
		CHECK_EQ(tempo_usual(&slow), 3000);
		CHECK_EQ(tempo_longest(&slow, 5000), 3000);
	}
	TEST("a step that takes longer than any before is known to while it does")
	{
		struct tempo tempo = seen((int64_t[][2]){{1000, 1}, {2000, 2}, {0}});
		CHECK_EQ(tempo_longest(&tempo, 9000), 7000);
	}
	TEST("nothing is known before two looks")
	{
		struct tempo tempo = {0};
		CHECK_EQ(tempo_longest(&tempo, 5000), 0);
		CHECK_EQ(tempo_usual(&tempo), 0);
	}
	TEST("a long one is remembered, and fades")
	{
		struct tempo tempo = {0};
		tempo_saw(&tempo, 1, 2, false, 1000);
		tempo_saw(&tempo, 2, 3, false, 11000);
		int64_t now = 11000, before = 10000;
		for (uint64_t step = 3; step < 60; step++) {
			tempo_saw(&tempo, step, step + 1, false, now += 1000);
			CHECK(tempo_longest(&tempo, now) <= before);
			before = tempo_longest(&tempo, now);
		}
		CHECK(before > 3000 && before < 6000);
		for (uint64_t step = 60; step < 1000; step++)
			tempo_saw(&tempo, step, step + 1, false, now += 1000);
		CHECK_EQ(tempo_longest(&tempo, now), 1000);
	}
	TEST("standing still because it was told to is no measure")
	{
		struct tempo tempo = seen((int64_t[][2]){{1000, 1}, {2000, 2}, {0}});
		tempo_saw(&tempo, 2, 3, true, 50000);
		tempo_saw(&tempo, 3, 4, false, 51000);
		CHECK_EQ(tempo_longest(&tempo, 51000), 1000);
	}
	TEST("nor is it until it is told to go on, whether somebody looks meanwhile or not")
	{
		struct tempo tempo = seen((int64_t[][2]){{1000, 1}, {1100, 2}, {0}});
		tempo_saw(&tempo, 2, 3, true, 1200);
		CHECK_EQ(tempo_longest(&tempo, 60000), 100);
		tempo_told(&tempo, true, 60000); /* another order to stand still */
		CHECK_EQ(tempo_longest(&tempo, 90000), 100);
		tempo_told(&tempo, false, 90000);
		tempo_saw(&tempo, 3, 4, false, 90150);
		CHECK_EQ(tempo_longest(&tempo, 90150), 150);
	}
	TEST("it is told to wait, to save where it is, or to leave; on its way to a save it trains")
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
		struct tempo tempo = seen((int64_t[][2]){{1000, 1}, {2000, 2}, {0}});
		tempo_saved(&tempo, 2, 30000, 32500);
		tempo_saw(&tempo, 3, 4, false, 33000);
		CHECK_EQ(tempo_longest(&tempo, 33000), 1000);
		tempo_saved(&tempo, 2, 900, 33500);
		tempo_saw(&tempo, 4, 5, false, 34000);
		CHECK_EQ(tempo.recent[2], 1000);
	}
	TEST("a boundary every so many steps")
	{
		struct tempo tempo = {0};
		tempo_saw(&tempo, 100, 150, false, 1000);
		tempo_saw(&tempo, 200, 250, false, 5000);
		CHECK_EQ(tempo_usual(&tempo), 2000);
	}
	return unit_end();
}
