/* SPDX-License-Identifier: MIT */
/* The deadline arithmetic, case by case. All times are milliseconds. */
#include "proto/agreement/grace.h"

#include "base/clock.h"
#include "unit.h"

static const struct {
	const char *what;
	struct grace_measure measure;
	int64_t needed;
} needs[] = {
	{"nothing is known: to agree, and to spare", {0}, 2500 + 1000},
	{"few saves: half as long again", {.longest_save = 10000, .longest_step = 100},
		15000 + 2500 + 100 + 1000},
	{"saves that differ little: a sixth", {.longest_save = 12000, .usual_save = 11900},
		14000 + 2500 + 1000},
	{"saves that differ: twice the difference", {.longest_save = 12000, .usual_save = 9000},
		18000 + 2500 + 1000},
	{"saves that differ much: no more than half", {.longest_save = 12000, .usual_save = 2000},
		18000 + 2500 + 1000},
	{"long steps: the longest and a usual one", {.longest_step = 30000, .usual_step = 10000},
		30000 + 10000 + 1000},
	{"tasks apart: for each step between them one longest step more",
		{.longest_step = 1000, .usual_step = 500, .skew = 7}, 2500 + 500 + 7 * 1000 + 1000},
	{"a skew beyond all reason is bounded", {.longest_step = 1, .skew = UINT64_MAX},
		2500 + 1 + 1000000 + 1000},
};

static const struct {
	const char *what;
	int64_t left; /* until the deadline; negative: none is known */
	struct grace_measure measure;
	bool trains;
} firsts[] = {
	{"no deadline: the first save is the final one", -1, {0}, false},
	{"no time left", 0, {0}, false},
	{"time for one save only", 20000, {.longest_save = 10000, .longest_step = 100}, false},
	{"time for two, and to train between", 60000, {.longest_save = 10000, .longest_step = 100},
		true},
	{"a long grace", 3600000, {.longest_save = 600000, .longest_step = 30000}, true},
	{"nothing known: a few seconds are enough", 7000, {0}, true},
	{"nothing known, and hardly a second", 3000, {0}, false},
};

static const struct {
	const char *what;
	int64_t left;
	struct grace_measure measure;
	bool fits;
} saves[] = {
	{"as long as before", 10100, {.longest_save = 10000, .longest_step = 100}, true},
	{"a millisecond too long", 10099, {.longest_save = 10000, .longest_step = 100}, false},
	{"no deadline", -1, {.longest_save = 10000}, true},
};

static int64_t deadline_in(int64_t now, int64_t left)
{
	return left < 0 ? CLOCK_NEVER : now + left;
}

int main(void)
{
	const int64_t now = 1000000;
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		int64_t needed = grace_needed(&needs[i].measure);
		CHECK(needed == needs[i].needed &&
				grace_final_time(now, &needs[i].measure) == now - needed,
			"%s: %lld", needs[i].what, (long long)needed);
	}
	CHECK(grace_final_time(CLOCK_NEVER, &needs[0].measure) == CLOCK_NEVER,
		"without a deadline no final time");
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++)
		CHECK(grace_allows_training(now, deadline_in(now, firsts[i].left),
			      &firsts[i].measure) == firsts[i].trains,
			"may train on: %s", firsts[i].what);
	for (size_t i = 0; i < sizeof(saves) / sizeof(saves[0]); i++)
		CHECK(grace_fits(now, deadline_in(now, saves[i].left), &saves[i].measure) ==
				saves[i].fits,
			"fits: %s", saves[i].what);
	TEST("the last call leaves time to save, and to agree where there never was enough")
	{
		struct grace_measure measure = {.longest_save = 4000, .longest_step = 500};
		CHECK_EQ(grace_last_call(now, now + 60000, &measure),
			now + 60000 - 4000 - 2000 - 1000);
		CHECK_EQ(grace_last_call(now, now + 1000, &measure), now + 500);
		measure = (struct grace_measure){.longest_save = 20, .longest_step = 5};
		CHECK_EQ(grace_last_call(now, now + 60000, &measure), now + 60000 - 1000);
		measure = (struct grace_measure){.longest_save = 1000, .longest_step = 10000};
		CHECK_EQ(grace_last_call(now, now + 19000, &measure), now + 4000);
	}
	TEST("the last call keeps a quarter of the time for a save that was never measured")
	{
		struct grace_measure nothing = {0}, slow = {.longest_step = 20000};
		CHECK_EQ(grace_last_call(now, now + 10000, &nothing), now + 7500);
		CHECK_EQ(grace_last_call(now, now + 2000, &nothing), now + 1000);
		CHECK_EQ(grace_last_call(now, now + 120000, &slow), now + 120000 - 40000);
	}
	TEST("a silent task is waited for, but not into the time of the save")
	{
		struct grace_measure measure = {.longest_save = 4000};
		CHECK_EQ(grace_report_patience(now, CLOCK_NEVER, 10000, &measure), 10000);
		CHECK_EQ(grace_report_patience(now, now + 100000, 10000, &measure), 10000);
		CHECK_EQ(grace_report_patience(now, now + 8000, 10000, &measure), 1000);
		CHECK_EQ(grace_report_patience(now, now + 1000, 10000, &measure), 250);
	}
	return unit_end();
}
