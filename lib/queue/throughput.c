/* SPDX-License-Identifier: MIT */
#include "queue/throughput.h"

#include <inttypes.h>

uint64_t queue_throughput_over(const struct queue_count *count)
{
	return count->succeeded + count->failed + count->cancelled;
}

void queue_throughput_note(
	struct queue_throughput *progress, const struct queue_count *count, int64_t now)
{
	uint64_t over = queue_throughput_over(count);
	size_t last = (progress->next + THROUGHPUT_KEPT - 1) % THROUGHPUT_KEPT;
	/* Fewer are over than before: commands were put back. Start the measurement again. */
	if (progress->count && over < queue_throughput_over(&progress->now))
		progress->count = 0;
	if (!progress->count) {
		progress->began = now;
		progress->at_first = over;
	}
	progress->now = *count;
	if (progress->count && now - progress->kept[last].at < THROUGHPUT_PERIOD)
		return;
	progress->kept[progress->next].at = now;
	progress->kept[progress->next].over = over;
	progress->next = (progress->next + 1) % THROUGHPUT_KEPT;
	if (progress->count < THROUGHPUT_KEPT)
		progress->count++;
}

double queue_throughput_rate(const struct queue_throughput *progress, int64_t now)
{
	uint64_t over = queue_throughput_over(&progress->now);
	if (!progress->count)
		return 0;
	size_t first = (progress->next + THROUGHPUT_KEPT - progress->count) % THROUGHPUT_KEPT;
	int64_t since = progress->kept[first].at;
	uint64_t before = progress->kept[first].over;
	/* If commands end seldom, take the average over the whole time. */
	if (over - before < 3) {
		since = progress->began;
		before = progress->at_first;
	}
	if (over <= before || now - since < 500)
		return 0;
	return (double)(over - before) * 1000 / (double)(now - since);
}

int64_t queue_throughput_left(const struct queue_throughput *progress, int64_t now)
{
	double rate = queue_throughput_rate(progress, now);
	uint64_t left = progress->now.waiting + progress->now.running;
	if (!left)
		return 0;
	double milliseconds = rate > 0 ? (double)left * 1000 / rate : -1;
	return milliseconds > 1e15 ? -1 : (int64_t)milliseconds;
}

static void add_bar(struct text *line, uint64_t over, uint64_t all)
{
	enum { CELLS = 20 };
	size_t full = all ? (size_t)((double)over / (double)all * CELLS) : 0;
	text_add(line, "[");
	for (size_t i = 0; i < CELLS; i++)
		text_add(line, i < full ? "#" : "-");
	text_add(line, "] ");
}

/* Build the line from its parts up to this rank. */
static void build(const struct queue_throughput *progress, int64_t now, int rank, struct text *line)
{
	const struct queue_count *count = &progress->now;
	uint64_t over = queue_throughput_over(count), all = over + count->waiting + count->running;
	double rate = queue_throughput_rate(progress, now);
	int64_t left = queue_throughput_left(progress, now);
	if (rank >= 5)
		add_bar(line, over, all);
	text_addf(line, "%" PRIu64 "/%" PRIu64, over, all);
	if (rank >= 2)
		text_addf(line, ", %" PRIu64 " running", count->running);
	if (rank >= 1 && count->failed)
		text_addf(line, ", %" PRIu64 " failed", count->failed);
	if (rank >= 4 && count->cancelled)
		text_addf(line, ", %" PRIu64 " cancelled", count->cancelled);
	if (rank >= 4 && rate > 0)
		text_addf(line, rate < 10 ? ", %.2f/s" : ", %.0f/s", rate);
	if (rank >= 3 && left > 0) {
		text_add(line, ", ");
		text_add_age(line, left + 999); /* round up to whole seconds */
		text_add(line, " left");
	}
}

void queue_throughput_line(
	const struct queue_throughput *progress, int64_t now, size_t width, struct text *line)
{
	for (int rank = 5; rank >= 0; rank--) {
		struct text tried = {0};
		build(progress, now, rank, &tried);
		bool fits = tried.length <= width;
		if (fits)
			text_add(line, text_string(&tried));
		text_release(&tried);
		if (fits)
			return;
	}
}
