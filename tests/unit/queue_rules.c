/* SPDX-License-Identifier: MIT */
/* Where a command goes when a start of it has ended, case by case. */
#include "queue/rules.h"

#include "unit.h"

int main(void)
{
	static const struct {
		const char *what;
		struct queue_item item;
		struct queue_history before;
		struct queue_ending ending;
		enum queue_state state;
		uint64_t attempts, transients, preempted, lost;
	} rows[] = {
		{"0 succeeds", {.max_transient = 3}, {.starts = 1}, {ENDING_EXITED, 0, 0, ""},
			QUEUE_SUCCEEDED, 0, 0, 0, 0},
		{"a failure is final where nothing was said", {.max_transient = 3}, {.starts = 1},
			{ENDING_EXITED, 1, 0, ""}, QUEUE_FAILED, 1, 0, 0, 0},
		{"a failure uses up one of three", {.max_attempts = 3}, {.starts = 1},
			{ENDING_EXITED, 1, 0, ""}, QUEUE_WAITING, 1, 0, 0, 0},
		{"the third is the last", {.max_attempts = 3}, {.starts = 7, .attempts = 2},
			{ENDING_EXITED, 1, 0, ""}, QUEUE_FAILED, 3, 0, 0, 0},
		{"a signal is a failure", {0}, {.starts = 1}, {ENDING_SIGNALLED, 0, 11, ""},
			QUEUE_FAILED, 1, 0, 0, 0},
		{"too long is a failure", {.max_attempts = 2}, {.starts = 1},
			{ENDING_TIMED_OUT, 0, 15, ""}, QUEUE_WAITING, 1, 0, 0, 0},
		{"preempted never counts", {.max_attempts = 1}, {.starts = 9, .preempted = 8},
			{ENDING_PREEMPTED, 143, 15, ""}, QUEUE_WAITING, 0, 0, 9, 0},
		{"WQ-13: first transient", {.max_transient = 3}, {.starts = 1},
			{ENDING_EXITED, 75, 0, ""}, QUEUE_WAITING, 0, 1, 0, 0},
		{"WQ-13: third transient", {.max_transient = 3}, {.starts = 3, .transients = 2},
			{ENDING_EXITED, 75, 0, ""}, QUEUE_WAITING, 0, 3, 0, 0},
		{"WQ-13: the fourth in a row is a failure", {.max_transient = 3},
			{.starts = 4, .transients = 3}, {ENDING_EXITED, 75, 0, ""}, QUEUE_FAILED, 0,
			4, 0, 0},
		{"another end in between begins the row again", {.max_attempts = 5},
			{.starts = 4, .transients = 3}, {ENDING_EXITED, 1, 0, ""}, QUEUE_WAITING, 1,
			0, 0, 0},
		{"no transient is forgiven", {.max_transient = 0}, {.starts = 1},
			{ENDING_EXITED, 75, 0, ""}, QUEUE_FAILED, 0, 1, 0, 0},
		{"a run inside was preempted, with a checkpoint", {0}, {.starts = 1},
			{ENDING_EXITED, 42, 0, ""}, QUEUE_WAITING, 0, 0, 1, 0},
		{"a run inside was preempted, without", {0}, {.starts = 1},
			{ENDING_EXITED, 43, 0, ""}, QUEUE_WAITING, 0, 0, 1, 0},
		{"a run inside has decided: permanently", {.max_attempts = 9}, {.starts = 1},
			{ENDING_EXITED, 93, 0, ""}, QUEUE_FAILED, 1, 0, 0, 0},
		{"the first lost worker is forgiven", {0}, {.starts = 1}, {ENDING_LOST, 0, 0, ""},
			QUEUE_WAITING, 1, 0, 0, 1},
		{"the third is not", {0}, {.starts = 3, .attempts = 2, .lost = 2},
			{ENDING_LOST, 0, 0, ""}, QUEUE_FAILED, 3, 0, 0, 3},
		{"a lost worker counts as an attempt", {.max_attempts = 1}, {.starts = 1},
			{ENDING_LOST, 0, 0, ""}, QUEUE_FAILED, 1, 0, 0, 1},
		{"what cannot be started is final", {.max_attempts = 9}, {.starts = 1},
			{ENDING_CANNOT, 127, 0, ""}, QUEUE_FAILED, 1, 0, 0, 0},
		{"cancelled", {.max_attempts = 9}, {.starts = 1}, {ENDING_CANCELLED, 0, 15, ""},
			QUEUE_CANCELLED, 0, 0, 0, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct queue_history after;
		TEST(rows[i].what)
		{
			CHECK_EQ(rules_decide(
					 &rows[i].item, &rows[i].before, &rows[i].ending, &after),
				rows[i].state);
			CHECK_EQ(after.starts, rows[i].before.starts);
			CHECK_EQ(after.attempts, rows[i].attempts);
			CHECK_EQ(after.transients, rows[i].transients);
			CHECK_EQ(after.preempted, rows[i].preempted);
			CHECK_EQ(after.lost, rows[i].lost);
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
