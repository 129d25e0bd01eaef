/* SPDX-License-Identifier: MIT */
/* Which workers are called dead, and which are not: the rules case by case, then worlds that stall.
 */
#include "queue/workers/judge.h"

#include "unit.h"

#define PERIOD 1000

/*
 * What happens in one period. other: + it beats, . silence, 0 nothing there, ! cannot be read, g
 * its process is gone, m marked as dead. own: + in order, x our beat was not written, s slow
 * reading, p we were stopped, h only half a period has passed.
 */
struct row {
	char other, own;
	const char *verdict;
};

static const char *const words[] = {"alive", "late", "dead"};

static void play(const char *name, const struct row *rows, size_t count)
{
	struct judged judged = {0};
	struct judge_reading reading = {
		.token = 7, .sequence = 1, .period = PERIOD, .limit = 3, .now = 1000000};
	TEST(name)
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		reading.now += row->own == 'h' ? PERIOD / 2 : row->own == 'p' ? 3600000 : PERIOD;
		reading.written += row->own != 'x';
		reading.paused = row->own == 'p';
		reading.took = row->own == 's' ? PERIOD + 1 : 1;
		reading.sequence += row->other == '+';
		reading.gone = row->other == 'g';
		reading.fenced = row->other == 'm';
		reading.seen = row->other == '0'   ? JUDGE_NOTHING
			       : row->other == '!' ? JUDGE_ERROR
						   : JUDGE_BEAT;
		if (!CHECK_TEXT(words[judge_observe(&judged, &reading)], row->verdict))
			printf("# at row %zu\n", i);
	}
}

#define PLAY(name, ...)                                                                            \
	do {                                                                                       \
		static const struct row rows_[] = {__VA_ARGS__};                                   \
		play(name, rows_, sizeof(rows_) / sizeof(rows_[0]));                               \
	} while (0)

static void rules(void)
{
	PLAY("one that beats is alive", {'+', '+', "alive"}, {'+', '+', "alive"},
		{'+', '+', "alive"}, {'+', '+', "alive"});
	PLAY("stopped for less than its limit: nothing", {'+', '+', "alive"}, {'.', '+', "late"},
		{'.', '+', "late"}, {'+', '+', "alive"}, {'.', '+', "late"}, {'.', '+', "late"},
		{'+', '+', "alive"});
	PLAY("silent for its limit: dead", {'+', '+', "alive"}, {'.', '+', "late"},
		{'.', '+', "late"}, {'.', '+', "dead"});
	PLAY("registered, and never seen to beat: dead", {'0', '+', "alive"}, {'0', '+', "late"},
		{'0', '+', "late"}, {'0', '+', "dead"});
	PLAY("its process is gone from this machine: dead at once", {'+', '+', "alive"},
		{'g', '+', "dead"});
	PLAY("another worker has marked it: dead at once", {'m', '+', "dead"});
	PLAY("the filesystem stalls for a minute, our own beats are not written: no worker is dead",
		{'+', '+', "alive"}, {'.', 'x', "alive"}, {'.', 'x', "alive"}, {'.', 'x', "alive"},
		{'.', 'x', "alive"}, {'.', 'x', "alive"}, {'.', 'x', "alive"}, {'.', '+', "late"},
		{'+', '+', "alive"});
	PLAY("a reading that took longer than a period does not count", {'+', '+', "alive"},
		{'.', 's', "alive"}, {'.', 's', "alive"}, {'.', 's', "alive"}, {'.', 's', "alive"});
	PLAY("one that cannot be read does not count", {'+', '+', "alive"}, {'!', '+', "alive"},
		{'!', '+', "alive"}, {'!', '+', "alive"}, {'!', '+', "alive"});
	PLAY("dead, but it cannot be read any more: not acted on", {'+', '+', "alive"},
		{'.', '+', "late"}, {'.', '+', "late"}, {'.', '+', "dead"}, {'!', '+', "late"},
		{'.', '+', "dead"});
	PLAY("we were stopped, and it with us: it has its time", {'+', '+', "alive"},
		{'.', 'p', "alive"}, {'.', 'p', "alive"}, {'.', 'p', "alive"}, {'.', 'p', "alive"},
		{'.', '+', "late"}, {'+', '+', "alive"});
	PLAY("looked at more often than every period: not sooner dead", {'+', '+', "alive"},
		{'.', 'h', "alive"}, {'.', 'h', "late"}, {'.', 'h', "late"}, {'.', 'h', "late"},
		{'.', 'h', "late"}, {'.', 'h', "dead"});
	PLAY("called dead, and back before any worker acted: alive", {'+', '+', "alive"},
		{'.', '+', "late"}, {'.', '+', "late"}, {'.', '+', "dead"}, {'+', '+', "alive"});
}

static void details(void)
{
	TEST("its own period counts where that is longer, and its own limit")
	{
		struct judged judged = {0};
		struct judge_reading reading = {
			.token = 7, .sequence = 1, .period = 10 * PERIOD, .limit = 2};
		for (int i = 0; i < 20; i++) {
			reading.written++;
			CHECK(judge_observe(&judged, &reading) != JUDGE_DEAD);
			reading.now += PERIOD;
		}
		reading.written++;
		CHECK_EQ(judge_observe(&judged, &reading), JUDGE_DEAD);
	}
	TEST("a change proves life only from one look to the next")
	{
		static const struct {
			int64_t after;
			bool proved;
		} looks[] = {{PERIOD, false}, {PERIOD, true}, {60 * PERIOD, false}, {PERIOD, true}};
		struct judged judged = {0};
		struct judge_reading reading = {.token = 7, .period = PERIOD, .limit = 3};
		for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
			reading.now += looks[i].after;
			reading.sequence++;
			(void)judge_observe(&judged, &reading);
			CHECK_EQ(judged.proved, looks[i].proved);
		}
	}
	TEST("the monitor fences; others one whose process is gone, or when no worker does it")
	{
		struct judged judged = {.silent = 3};
		struct judge_reading reading = {.limit = 3};
		CHECK(judge_may_fence(&judged, &reading, true));
		CHECK(!judge_may_fence(&judged, &reading, false));
		judged.silent = 3 + JUDGE_DEPUTY;
		CHECK(judge_may_fence(&judged, &reading, false));
		judged.silent = 0;
		reading.gone = true;
		CHECK(judge_may_fence(&judged, &reading, false));
	}
}

int main(void)
{
	rules();
	details();
	return unit_end();
}
