/* SPDX-License-Identifier: MIT */
/*
 * The drawing of attempts: ticks, times, any bytes in names, and pages of 4 and 512 tasks. With a
 * file's name and a number of tasks it writes such a page, to look at in a browser.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "status/timeline.h"
#include "unit.h"

#define START INT64_C(1700000000000)
#define HOURS INT64_C(36000000)
#define NASTY "n<script>alert('1')</script>&\"\xff\x01\xef\xbf\xbe"

static size_t count_of(const struct text *text, const char *what)
{
	size_t count = 0;
	for (const char *at = text_string(text); (at = strstr(at, what)); at++)
		count++;
	return count;
}

static char hosts[64][72];

/* A run of 10 h, preempted for 5 s at its end. */
static void make(struct timeline_attempt *attempt, uint64_t tasks)
{
	static const struct timeline_line lines[] = {{START + HOURS, "claim"},
		{START + HOURS + 900, "agreed: step 72004"}, {START + HOURS + 4500, "all saved"}};
	*attempt = (struct timeline_attempt){.run = "r",
		.word = "preempted",
		.number = 2,
		.why = "task 1 on " NASTY ": signal:TERM",
		.tasks = tasks,
		.agreed = true,
		.step = 72004,
		.began = START,
		.ended = START + HOURS + 5000,
		.zoom_from = START + HOURS,
		.zoom_to = START + HOURS + 5000,
		.called = START + HOURS,
		.deadline = START + HOURS + 9000,
		.lines = xcalloc(3, sizeof(lines[0])),
		.line_count = 3,
		.lanes = xcalloc(tasks, sizeof(struct timeline_lane)),
		.spans = xcalloc(5 * tasks, sizeof(struct timeline_span)),
		.marks = xcalloc(4 * tasks, sizeof(struct timeline_mark))};
	memcpy(attempt->lines, lines, sizeof(lines));
	for (uint64_t i = 0; i < tasks; i++) {
		char *host = hosts[i / 8 % 64];
		const int64_t zero = START + HOURS;
		const int64_t at[] = {START + (int64_t)i % 70, zero + 100 + (int64_t)(i * 37 % 600),
			zero + 900, zero + 1400 + (int64_t)(i * 13 % 200),
			zero + 2600 + (int64_t)(i * 101 % 1900),
			zero + 4600 + (int64_t)(i * 7 % 300)};
		snprintf(host, sizeof(hosts[0]), i / 8 == 1 || tasks == 3 ? NASTY : "gpu-node-%03d",
			(int)(i / 8));
		attempt->lanes[i] = (struct timeline_lane){host, "left", i == 2};
		for (int phase = 0; phase < PHASE_KINDS; phase++)
			attempt->spans[attempt->span_count++] = (struct timeline_span){
				(enum timeline_phase)phase, i, at[phase], at[phase + 1]};
		attempt->marks[attempt->mark_count++] =
			(struct timeline_mark){EVENT_REPORT, i, at[1], 72001, true};
		attempt->marks[attempt->mark_count++] =
			(struct timeline_mark){EVENT_ACK, i, at[3] - 200, 0, false};
		attempt->marks[attempt->mark_count++] =
			(struct timeline_mark){EVENT_SAVED, i, at[4], 72004, true};
		attempt->marks[attempt->mark_count++] = (struct timeline_mark){
			i == 2 ? EVENT_DEAD : EVENT_EXIT, i, at[5], 0, false};
	}
}

static void release(struct timeline_attempt *attempt)
{
	free(attempt->lanes);
	free(attempt->spans);
	free(attempt->marks);
	free(attempt->lines);
}

static int write_page(const char *path, uint64_t tasks)
{
	struct error err;
	struct text text = {0};
	struct timeline_attempt attempts[2];
	make(&attempts[0], tasks);
	make(&attempts[1], tasks);
	attempts[1].zoom_to = attempts[1].zoom_from;
	attempts[1].number = 1;
	timeline_add_html(&text, attempts, tasks < 9 ? 2 : 1);
	return file_write_whole(path, text.data, text.length, 0644, false, &err) == STATUS_OK ? 0
											      : 1;
}

static void check_ticks(void)
{
	CHECK(timeline_tick(0, 10) == 1 && timeline_tick(10, 10) == 1, "never 0");
	CHECK(timeline_tick(5000, 10) == 500, "5 s: each half second");
	CHECK(timeline_tick(HOURS, 10) == 3600000, "10 h: each hour");
	bool few = true;
	for (int64_t length = 1; length < INT64_C(1) << 50; length += length / 3 + 1)
		few &= length / timeline_tick(length, 10) <= 10;
	CHECK(few, "never more than were asked for");
}

static void check_time(int64_t time, const char *wanted)
{
	struct text text = {0};
	timeline_add_time(&text, time);
	CHECK(strcmp(text_string(&text), wanted) == 0, "%s", wanted);
	text_release(&text);
}

static void check_page(uint64_t tasks, size_t limit)
{
	struct text text = {0};
	struct timeline_attempt attempt;
	make(&attempt, tasks);
	timeline_add_html(&text, &attempt, 1);
	CHECK(!text.too_long && text.length < limit, "%d tasks: %zu bytes", (int)tasks,
		text.length);
	CHECK(count_of(&text, "<g class=\"lane\">") == tasks, "a lane per task");
	CHECK(count_of(&text, "\nsaved +") == tasks && count_of(&text, "\nreported +") == tasks,
		"with its times");
	CHECK(count_of(&text, "http") == 1 && count_of(&text, "url(") == 0,
		"nothing from elsewhere");
	CHECK(count_of(&text, "<script") == 0 && count_of(&text, "n&lt;script&gt;"),
		"names are escaped");
	CHECK(count_of(&text, "<tr><th scope=\"row\">") == PHASE_KINDS, "a row for each phase");
	CHECK(text_is_utf8(text.data, text.length) && count_of(&text, "\xef\xbf\xbe") == 0,
		"only characters of XML");
	CHECK(count_of(&text, "class=\"grace\"") == 2 && count_of(&text, "\"part\"") == 1,
		"the grace period, and the whole attempt");
	text_release(&text);
	release(&attempt);
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return write_page(argv[1], strtoull(argv[2], NULL, 10));
	check_ticks();
	check_time(0, "0");
	check_time(250, "250 ms");
	check_time(1500, "1.5 s");
	check_time(125000, "2 min 5 s");
	check_time(12000000, "3 h 20 min");
	check_time(-2000, "\xe2\x88\x92"
			  "2 s");
	check_page(3, 20000);
	check_page(512, 500000);
	return unit_end();
}
