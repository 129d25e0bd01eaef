/* SPDX-License-Identifier: MIT */
/* What the end of a start means for its command, case by case. */
#include "queue/rules.h"

#include "unit.h"

int main(void)
{
	static const struct {
		const char *what;
		struct rules_start start; /* without ending */
		struct queue_history before;
		struct queue_ending ending;
		enum queue_state state;
		uint64_t attempts, transients, preempted, lost, lost_early;
	} rows[] = {
		{"0 succeeds", {.max_transient = 3}, {.starts = 1}, {ENDING_EXITED, 0, 0, ""},
			QUEUE_SUCCEEDED, 0, 0, 0, 0, 0},
		{"0 succeeds, also if it was told to end", {.told = true}, {.starts = 1},
			{ENDING_EXITED, 0, 0, ""}, QUEUE_SUCCEEDED, 0, 0, 0, 0, 0},
		{"a failure is final where nothing was said", {.max_transient = 3}, {.starts = 1},
			{ENDING_EXITED, 1, 0, ""}, QUEUE_FAILED, 1, 0, 0, 0, 0},
		{"a failure uses up one of three", {.max_attempts = 3}, {.starts = 1},
			{ENDING_EXITED, 1, 0, ""}, QUEUE_WAITING, 1, 0, 0, 0, 0},
		{"the third is the last", {.max_attempts = 3}, {.starts = 7, .attempts = 2},
			{ENDING_EXITED, 1, 0, ""}, QUEUE_FAILED, 3, 0, 0, 0, 0},
		{"a signal is a failure", {0}, {.starts = 1}, {ENDING_SIGNALLED, 0, 11, ""},
			QUEUE_FAILED, 1, 0, 0, 0, 0},
		{"too long is a failure", {.max_attempts = 2}, {.starts = 1},
			{ENDING_TIMED_OUT, 0, 15, ""}, QUEUE_WAITING, 1, 0, 0, 0, 0},
		{"preempted never counts", {.max_attempts = 1}, {.starts = 9, .preempted = 8},
			{ENDING_PREEMPTED, 143, 15, ""}, QUEUE_WAITING, 0, 0, 9, 0, 0},
		{"WQ-13: first transient", {.max_transient = 3}, {.starts = 1},
			{ENDING_EXITED, 75, 0, ""}, QUEUE_WAITING, 0, 1, 0, 0, 0},
		{"WQ-13: third transient", {.max_transient = 3}, {.starts = 3, .transients = 2},
			{ENDING_EXITED, 75, 0, ""}, QUEUE_WAITING, 0, 3, 0, 0, 0},
		{"WQ-13: the fourth in a row is a failure", {.max_transient = 3},
			{.starts = 4, .transients = 3}, {ENDING_EXITED, 75, 0, ""}, QUEUE_FAILED, 0,
			4, 0, 0, 0},
		{"another end in between begins the row again", {.max_attempts = 5},
			{.starts = 4, .transients = 3}, {ENDING_EXITED, 1, 0, ""}, QUEUE_WAITING, 1,
			0, 0, 0, 0},
		{"no transient is forgiven", {.max_transient = 0}, {.starts = 1},
			{ENDING_EXITED, 75, 0, ""}, QUEUE_FAILED, 0, 1, 0, 0, 0},
		{"a run inside was preempted, with a checkpoint", {0}, {.starts = 1},
			{ENDING_EXITED, 42, 0, ""}, QUEUE_WAITING, 0, 0, 1, 0, 0},
		{"a run inside was preempted, without", {0}, {.starts = 1},
			{ENDING_EXITED, 43, 0, ""}, QUEUE_WAITING, 0, 0, 1, 0, 0},
		{"a run inside has decided: permanently", {.max_attempts = 9}, {.starts = 1},
			{ENDING_EXITED, 93, 0, ""}, QUEUE_FAILED, 1, 0, 0, 0, 0},
		{"a lost worker uses up nothing", {.max_attempts = 1}, {.starts = 99, .lost = 98},
			{ENDING_LOST, 0, 0, ""}, QUEUE_WAITING, 0, 0, 0, 99, 0},
		{"two lost in the first minute, one after the other", {.early = true},
			{.starts = 2, .lost = 1, .lost_early = 1}, {ENDING_LOST, 0, 0, ""},
			QUEUE_WAITING, 0, 0, 0, 2, 2},
		{"the third of these is a failure", {.early = true, .max_attempts = 2},
			{.starts = 3, .lost = 2, .lost_early = 2}, {ENDING_LOST, 0, 0, ""},
			QUEUE_FAILED, 0, 0, 0, 3, 3},
		{"... but not if it may fail more often", {.early = true, .max_attempts = 9},
			{.starts = 8, .lost = 7, .lost_early = 7}, {ENDING_LOST, 0, 0, ""},
			QUEUE_WAITING, 0, 0, 0, 8, 8},
		{"... but then", {.early = true, .max_attempts = 9},
			{.starts = 9, .lost = 8, .lost_early = 8}, {ENDING_LOST, 0, 0, ""},
			QUEUE_FAILED, 0, 0, 0, 9, 9},
		{"a later loss begins the row again", {0},
			{.starts = 3, .lost = 2, .lost_early = 2}, {ENDING_LOST, 0, 0, ""},
			QUEUE_WAITING, 0, 0, 0, 3, 0},
		{"so does another end", {0}, {.starts = 3, .lost = 2, .lost_early = 2},
			{ENDING_PREEMPTED, 0, 15, ""}, QUEUE_WAITING, 0, 0, 1, 2, 0},
		{"what cannot start here may start elsewhere", {0}, {.starts = 1},
			{ENDING_CANNOT, 1, 0, ""}, QUEUE_WAITING, 0, 0, 0, 0, 0},
		{"what cannot start elsewhere either is final",
			{.confirmed = true, .max_attempts = 9}, {.starts = 2},
			{ENDING_CANNOT, 1, 0, ""}, QUEUE_FAILED, 1, 0, 0, 0, 0},
		{"127 may be the machine's", {0}, {.starts = 1}, {ENDING_EXITED, 127, 0, ""},
			QUEUE_WAITING, 0, 0, 0, 0, 0},
		{"126 on a second machine is final", {.confirmed = true}, {.starts = 2},
			{ENDING_EXITED, 126, 0, ""}, QUEUE_FAILED, 1, 0, 0, 0, 0},
		{"a full disk is the machine's", {0}, {.starts = 1}, {ENDING_MACHINE, 1, 0, ""},
			QUEUE_WAITING, 0, 0, 0, 0, 0},
		{"full disks everywhere pass, too", {.confirmed = true, .max_transient = 3},
			{.starts = 2}, {ENDING_MACHINE, 1, 0, ""}, QUEUE_WAITING, 0, 1, 0, 0, 0},
		{"... but not for ever", {.confirmed = true, .max_transient = 3},
			{.starts = 9, .transients = 3}, {ENDING_MACHINE, 1, 0, ""}, QUEUE_FAILED, 0,
			4, 0, 0, 0},
		{"cancelled", {.max_attempts = 9}, {.starts = 1}, {ENDING_CANCELLED, 0, 15, ""},
			QUEUE_CANCELLED, 0, 0, 0, 0, 0},
		{"what would wait, and was told to end, is cancelled", {.told = true},
			{.starts = 1}, {ENDING_PREEMPTED, 0, 15, ""}, QUEUE_CANCELLED, 0, 0, 1, 0,
			0},
		{"also if its worker vanished", {.told = true}, {.starts = 1},
			{ENDING_LOST, 0, 0, ""}, QUEUE_CANCELLED, 0, 0, 0, 1, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct queue_history history = rows[i].before;
		struct rules_start start = rows[i].start;
		start.ending = &rows[i].ending;
		TEST(rows[i].what)
		{
			CHECK_EQ(rules_decide(&start, &history), rows[i].state);
			CHECK_EQ(history.starts, rows[i].before.starts);
			CHECK_EQ(history.attempts, rows[i].attempts);
			CHECK_EQ(history.transients, rows[i].transients);
			CHECK_EQ(history.preempted, rows[i].preempted);
			CHECK_EQ(history.lost, rows[i].lost);
			CHECK_EQ(history.lost_early, rows[i].lost_early);
		}
	}
	TEST("the pause grows with each start, and has an end")
	{
		struct queue_history history = {.starts = 1};
		int64_t last = 0;
		for (; history.starts < 100; history.starts++) {
			CHECK(rules_pause(&history) >= last);
			last = rules_pause(&history);
		}
		CHECK_EQ(last, 300000);
	}
	return unit_end();
}
