/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"

bool rows_json;
static size_t shown; /* elements of the array */

const char *directory_at(const struct args_rest *rest, size_t index)
{
	char *directory = rest->words[index];
	for (size_t n = strlen(directory); n > 1 && directory[n - 1] == '/'; n--)
		directory[n - 1] = '\0';
	return directory;
}

static const struct {
	int width;
	const char *title;
} columns[] = {{10, "STEP"}, {7, "ATTEMPT"}, {5, "TASKS"}, {10, "SIZE"}, {7, "AGE"}};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

void rows_begin(const struct args_rest *rest, size_t index, size_t count, const char *what)
{
	struct text line = {0};
	if (rows_json)
		return;
	if (rest->count > 1) {
		text_add(&line, index ? "\n" : "");
		text_add_escaped(&line, directory_at(rest, index));
		text_add(&line, ":\n");
	}
	for (size_t i = 0; i < COLUMNS && count; i++)
		text_addf(&line, "%*s ", columns[i].width, columns[i].title);
	if (count)
		text_addf(&line, " %s\n", what);
	fputs(text_string(&line), stdout);
	text_release(&line);
}

/* Add a row: the columns ("-": not known), then what is said and why, or "loss=0.25 score=-". */
static void add_row(struct text *text, bool named, int64_t now, const struct checkpoint *item,
	const struct keep_decision *decision, const char *done)
{
	struct text cells[COLUMNS] = {0};
	const char *why = decision ? decision->why : item->why;
	text_addf(&cells[0], "%" PRIu64, item->step);
	text_addf(&cells[1], "%" PRIu64, item->attempt);
	if (item->tasks)
		text_addf(&cells[2], "%" PRIu64, item->tasks);
	if (item->utc) {
		text_add_size(&cells[3], item->bytes);
		text_add_age(&cells[4], now - item->utc);
	}
	for (size_t i = 0; i < COLUMNS; i++) {
		text_addf(text, "%*s ", columns[i].width, cells[i].data ? cells[i].data : "-");
		text_release(&cells[i]);
	}
	text_addf(text, " %s%s%s", done ? done : checkpoint_state_name(item->state),
		!done && item->pinned ? ", pinned" : "", named ? " " : "");
	text_add_escaped(text, named ? item->name : "");
	text_addf(text, "%s%s", *why ? ": " : "", why);
	for (size_t i = 0; i < item->metrics.count && !*why; i++) {
		double value;
		const char *name = item->metrics.items[i].name;
		text_addf(text, "%s%s=", i ? " " : ": ", name);
		if (metrics_get(&item->metrics, name, &value))
			text_addf(text, "%.6g", value);
		else
			text_add(text, "-");
	}
	text_add(text, "\n");
}

void rows_json_add(struct text *text, const char *directory, const struct checkpoint *item,
	const struct keep_decision *decision, const char *done)
{
	char utc[32];
	struct text path = {0};
	text_addf(text, "{\"step\": %" PRIu64 ", \"attempt\": %" PRIu64 ", \"state\": \"%s\"",
		item->step, item->attempt, checkpoint_state_name(item->state));
	if (decision) {
		text_addf(text, ", \"keep\": %s, \"done\": \"%s\", \"reason\": ",
			decision->keep ? "true" : "false", done);
		text_add_json_string(text, decision->why);
		text_add(text, ", \"rules\": [");
		for (unsigned rule = 1, some = 0; rule <= decision->rules; rule <<= 1)
			if (decision->rules & rule)
				text_addf(
					text, "%s\"%s\"", some++ ? ", " : "", keep_rule_name(rule));
		text_add(text, "]");
	}
	if (*item->life)
		text_addf(text, ", \"life\": \"%s\"", item->life);
	if (item->tasks)
		text_addf(text, ", \"tasks\": %" PRIu64, item->tasks);
	if (item->utc) {
		clock_format_utc(item->utc, utc);
		text_addf(text, ", \"files\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"utc\": \"%s\"",
			item->files, item->bytes, utc);
	}
	if (item->pinned)
		text_add(text, ", \"pinned\": true");
	if (item->metrics.count) {
		text_add(text, ", \"metrics\": ");
		metrics_write(&item->metrics, text);
	}
	if (*item->why) {
		text_add(text, ", \"why\": ");
		text_add_json_string(text, item->why);
	}
	text_addf(&path, "%s/%s", directory, item->name);
	text_add(text, ", \"path\": ");
	text_add_json_string(text, text_string(&path));
	text_add(text, "}");
	text_release(&path);
}

void rows_add(const char *directory, bool named, int64_t now, const struct checkpoint *item,
	const struct keep_decision *decision, const char *done)
{
	struct text text = {0};
	if (rows_json) {
		text_add(&text, shown++ ? ",\n " : "[\n ");
		rows_json_add(&text, directory, item, decision, done);
	} else {
		add_row(&text, named, now, item, decision, done);
	}
	fputs(text_string(&text), stdout);
	text_release(&text);
}

void rows_end(int code)
{
	if (rows_json && (shown || code == STATUS_OK))
		fputs(shown ? "\n]\n" : "[\n]\n", stdout);
}

static struct {
	bool on, drawn;
	uint64_t bytes, total;
	int64_t began, next; /* ms; next: after began */
} progress;

void progress_begin(uint64_t total)
{
	progress.on = total && !message_is_quiet() && isatty(STDERR_FILENO);
	progress.bytes = 0;
	progress.total = total;
	progress.began = clock_now();
	progress.next = 300;
}

void progress_add(uint64_t bytes)
{
	struct text line = {0};
	int64_t passed = clock_now() - progress.began;
	progress.bytes += bytes;
	/* Start after a moment, and do not show more than a user can read. */
	if (!progress.on || passed < progress.next)
		return;
	progress.next = passed + 200;
	text_addf(&line, "\r\033[K%d%%, ",
		(int)(100 * ((double)progress.bytes / (double)progress.total)));
	text_add_size(&line, progress.bytes);
	text_add(&line, " of ");
	text_add_size(&line, progress.total);
	text_add(&line, ", ");
	text_add_size(&line, progress.bytes / (uint64_t)passed * 1000);
	fprintf(stderr, "%s/s", text_string(&line));
	progress.drawn = true;
	text_release(&line);
}

void progress_end(void)
{
	if (progress.drawn)
		fputs("\r\033[K", stderr);
	progress.drawn = false;
}
