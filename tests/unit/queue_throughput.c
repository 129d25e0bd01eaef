/* SPDX-License-Identifier: MIT */
/* How far a queue is, in one line; and what is over, as lines of a joblog. */
#include <inttypes.h>

#include "queue/output/joblog.h"
#include "queue/throughput.h"
#include "unit.h"

static char *line_of(const struct queue_throughput *progress, int64_t now, size_t width)
{
	static char line[256];
	struct text text = {0};
	queue_throughput_line(progress, now, width, &text);
	snprintf(line, sizeof(line), "%s", text_string(&text));
	text_release(&text);
	return line;
}

static void rates(void)
{
	struct queue_throughput progress = {0};
	struct queue_count count = {.scheduled = 100, .waiting = 100};
	TEST("the rate is that of the last seconds, and the rest takes as long as it says")
	{
		queue_throughput_note(&progress, &count, 1000);
		CHECK(queue_throughput_rate(&progress, 1000) <= 0);
		CHECK(queue_throughput_left(&progress, 1000) < 0);
		CHECK_TEXT(line_of(&progress, 1000, 80), "[--------------------] 0/100, 0 running");
		/* One in a second for 20 s, then four in a second. */
		for (int i = 1; i <= 20; i++) {
			count = (struct queue_count){.scheduled = 100,
				.waiting = 100 - (uint64_t)i - 4,
				.running = 4,
				.succeeded = (uint64_t)i};
			queue_throughput_note(&progress, &count, 1000 + i * 1000);
		}
		CHECK(queue_throughput_rate(&progress, 21000) > 0.99 &&
			queue_throughput_rate(&progress, 21000) < 1.01);
		CHECK_EQ(queue_throughput_left(&progress, 21000), 80000);
		CHECK_TEXT(line_of(&progress, 21000, 80),
			"[####----------------] 20/100, 4 running, 1.00/s, 1m20s left");
		for (int i = 1; i <= 16; i++) {
			count.succeeded = 20 + 4 * (uint64_t)i;
			count.waiting = 76 - 4 * (uint64_t)i;
			queue_throughput_note(&progress, &count, 21000 + i * 1000);
		}
		CHECK_EQ(queue_throughput_left(&progress, 37000), 4000);
	}
	TEST("what is put back begins the measure again")
	{
		count = (struct queue_count){.scheduled = 100, .waiting = 60, .succeeded = 40};
		queue_throughput_note(&progress, &count, 40000);
		CHECK(queue_throughput_rate(&progress, 41000) <= 0);
	}
	TEST("commands that end seldom: all the time counts")
	{
		progress = (struct queue_throughput){0};
		count = (struct queue_count){.scheduled = 4, .waiting = 3, .running = 1};
		for (int i = 0; i <= 100; i++) {
			count.succeeded = i >= 50;
			count.waiting = i >= 50 ? 2 : 3;
			queue_throughput_note(&progress, &count, i * 1000);
		}
		CHECK_EQ(queue_throughput_left(&progress, 100000), 300000);
	}
}

static void widths(void)
{
	struct queue_throughput progress = {0};
	struct queue_count count = {.waiting = 1000000};
	queue_throughput_note(&progress, &count, 0);
	count = (struct queue_count){.waiting = 500000,
		.running = 16,
		.succeeded = 400000,
		.failed = 12,
		.cancelled = 7};
	queue_throughput_note(&progress, &count, 10000);
	TEST("the line fits, and what matters most stays the longest")
	{
		for (size_t width = 0; width < 120; width++)
			CHECK(strlen(line_of(&progress, 10000, width)) <= width);
		CHECK_TEXT(line_of(&progress, 10000, 120),
			"[########------------] 400019/900035, 16 running, 12 failed, 7 cancelled, "
			"40002/s, 13s left");
		CHECK_TEXT(line_of(&progress, 10000, 30), "400019/900035, 12 failed");
		CHECK_TEXT(line_of(&progress, 10000, 13), "400019/900035");
		CHECK_TEXT(line_of(&progress, 10000, 5), "");
	}
}

static void joblog(void)
{
	char echo[] = "echo", word[] = "it's\na", script[] = "exit \"$1\"", three[] = "3";
	char *words[] = {echo, word, NULL}, *shell[] = {script, three, NULL};
	const struct {
		struct queue_item item;
		struct queue_result result;
		const char *row;
	} rows[] = {
		{{.id = 12, .argv = words},
			{.ending = {.kind = ENDING_EXITED, .code = 3},
				.host = "node7",
				.started = 1700000000123,
				.ended = 1700000012130,
				.out = 42},
			"12\tnode7\t1700000000.123\t    12.007\t0\t42\t3\t0\techo 'it'\\''s\\na'\n"},
		{{.id = 1, .argv = shell, .shell = true},
			{.ending = {.kind = ENDING_SIGNALLED, .number = 9}, .host = "a"},
			"1\ta\t0.000\t     0.000\t0\t0\t0\t9\texit \"$1\" 3\n"},
		{{.id = 1, .argv = shell, .shell = true}, {.ending = {.kind = ENDING_TIMED_OUT}},
			"1\t:\t0.000\t     0.000\t0\t0\t124\t0\texit \"$1\" 3\n"},
	};
	TEST("the columns are those of GNU parallel")
	{
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct text text = {0};
			joblog_row(&text, &rows[i].item, &rows[i].result);
			CHECK_TEXT(text_string(&text), rows[i].row);
			text_release(&text);
		}
		CHECK_EQ(strncmp(JOBLOG_HEADING, "Seq\tHost\t", 9), 0);
	}
}

int main(void)
{
	rates();
	widths();
	joblog();
	return unit_end();
}
