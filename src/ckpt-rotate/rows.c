/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"

const char *directory_at(const struct args_rest *rest, size_t index)
{
	char *directory = rest->words[index];
	for (size_t n = strlen(directory); n > 1 && directory[n - 1] == '/'; n--)
		directory[n - 1] = '\0';
	return directory;
}

void print(struct text *text)
{
	fputs(text_string(text), stdout);
	text_release(text);
}

void warn(struct text *lines)
{
	for (char *at = lines->data, *end; at && (end = strchr(at, '\n')); at = end + 1)
		message_error("%.*s", (int)(end - at), at);
	text_release(lines);
}

int worse(int a, int b)
{
	return a > b ? a : b;
}

void show_heading(const struct args_rest *rest, size_t index)
{
	struct text line = {0};
	if (rest->count > 1) {
		text_add_escaped(&line, directory_at(rest, index));
		printf("%s%s:\n", index ? "\n" : "", text_string(&line));
	}
	text_release(&line);
}

void show_row(struct text *line, bool native, int64_t now, const struct checkpoint *item,
	const char *what, const char *why)
{
	char name[sizeof(item->name) * 4];
	struct text both = {0};
	text_escape(name, sizeof(name), item->name, strlen(item->name));
	text_addf(&both, native ? "%s" : "%s %s", what, name);
	show_line(line, item, now, text_string(&both), why);
	text_release(&both);
}

void print_report(const char *directory, bool native, bool json,
	const struct prune_request *request, const struct prune_report *report, size_t *shown)
{
	struct text line = {0};
	if (!json)
		show_head(&line, report->count, "WHAT");
	for (size_t i = 0; i < report->count; i++) {
		const struct prune_item *item = &report->items[i];
		const char *action = prune_action(item, request->dry_run);
		if (json)
			show_element(&line, (*shown)++, directory, &item->checkpoint,
				&item->decision, action);
		else
			show_row(&line, native, request->now, &item->checkpoint, action,
				item->decision.why);
		print(&line);
	}
	text_release(&line);
}

static struct {
	uint64_t bytes, total;
	int64_t began;
	int64_t next; /* milliseconds after began */
	bool shown;
} progress;

void progress_add(uint64_t bytes)
{
	struct text done = {0}, total = {0}, rate = {0};
	int64_t passed = clock_now() - progress.began;
	progress.bytes += bytes;
	/* Start after a moment, and do not show more than a user can read. */
	if (passed < progress.next)
		return;
	progress.next = passed + 200;
	show_size(&done, progress.bytes);
	show_size(&total, progress.total);
	show_size(&rate, passed > 0 ? progress.bytes / (uint64_t)passed * 1000 : 0);
	fputs("\r\033[K", stderr);
	if (progress.total)
		fprintf(stderr, "%d%%, %s of %s, %s/s",
			(int)(100 * ((double)progress.bytes / (double)progress.total)),
			text_string(&done), text_string(&total), text_string(&rate));
	else
		fprintf(stderr, "%s, %s/s", text_string(&done), text_string(&rate));
	progress.shown = true;
	text_release(&done);
	text_release(&total);
	text_release(&rate);
}

void progress_end(void)
{
	if (progress.shown)
		fputs("\r\033[K", stderr);
	progress.shown = false;
}

bool progress_begin(uint64_t total)
{
	progress.bytes = 0;
	progress.total = total;
	progress.began = clock_now();
	progress.next = 300;
	return !message_is_quiet() && isatty(STDERR_FILENO);
}
