/* SPDX-License-Identifier: MIT */
#include "queue/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/message.h"
#include "base/parse.h"

/* ---- Its name ---- */

void say_name(const struct queue_work *options, struct queue_worker *worker)
{
	static const char *const variables[] = {
		"PREEMPT_TASK", "SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"};
	const char *index = NULL;
	worker->index = UINT64_MAX;
	worker->slots = options->slots;
	worker->period = options->period;
	worker->limit = options->limit;
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables) && !index; i++) {
		const char *value = getenv(variables[i]);
		uint64_t number;
		if (value && parse_decimal(value, &number))
			index = value;
	}
	if (options->worker) {
		snprintf(worker->name, sizeof(worker->name), "%s", options->worker);
	} else if (index) {
		snprintf(worker->name, sizeof(worker->name), "%s", index);
	} else {
		char host[65] = "";
		gethostname(host, sizeof(host) - 1);
		snprintf(worker->name, sizeof(worker->name), "%s-%ld", *host ? host : "host",
			(long)getpid());
	}
	/* A name that is a number is also the index. */
	if (!parse_decimal(worker->name, &worker->index) && index)
		(void)parse_decimal(index, &worker->index);
}

/* ---- Width ---- */

size_t say_width(int descriptor)
{
	struct winsize size = {0};
	if (ioctl(descriptor, TIOCGWINSZ, &size) != 0)
		return 0;
	return size.ws_col ? size.ws_col : 80;
}

static bool begins_character(char byte)
{
	return (byte & 0xc0) != 0x80;
}

size_t say_characters(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += begins_character(*text);
	return count;
}

void say_cut(struct text *text, size_t width)
{
	if (!width || !text->length || say_characters(text->data) <= width)
		return;
	size_t end = 0, count = 0;
	for (; end < text->length; end++) {
		count += begins_character(text->data[end]);
		if (count == width)
			break;
	}
	text->data[end] = '\0';
	text->length = end;
	text_add(text, "…");
}

/* ---- The joblog ---- */

void joblog_command(struct text *text, const struct queue_item *item)
{
	struct text raw = {0};
	for (size_t i = 0; item->argv[i]; i++) {
		text_add(&raw, i ? " " : "");
		/* Show text for a shell as the user wrote it. */
		if (item->shell && i == 0)
			text_add(&raw, item->argv[i]);
		else
			text_add_shell_word(&raw, item->argv[i]);
	}
	text_add_escaped(text, text_string(&raw));
	text_release(&raw);
}

void joblog_row(struct text *text, const struct queue_item *item, const struct queue_result *result)
{
	const struct queue_ending *ending = &result->ending;
	int64_t started = result->started;
	int64_t runtime = started && result->ended > started ? result->ended - started : 0;
	int code = ending->number ? 0 : queue_ending_code(ending);
	char host[4 * sizeof(result->host)];
	text_escape(host, sizeof(host), result->host, strlen(result->host));
	text_addf(text,
		"%" PRIu64 "\t%s\t%" PRId64 ".%03d\t%6" PRId64 ".%03d\t0\t%" PRIu64 "\t%d\t%d\t",
		item->id, *host ? host : ":", started / 1000, (int)(started % 1000), runtime / 1000,
		(int)(runtime % 1000), result->out, code, ending->number);
	joblog_command(text, item);
	text_add(text, "\n");
}

/* ---- Progress ---- */

void say_progress(const uint64_t in[QUEUE_STATES], uint64_t over, int64_t took)
{
	enum { CELLS = 20 };
	struct text text = {0};
	uint64_t open = in[QUEUE_BLOCKED] + in[QUEUE_WAITING] + in[QUEUE_RUNNING], done = 0;
	for (size_t i = QUEUE_SUCCEEDED; i < QUEUE_STATES; i++)
		done += in[i];
	uint64_t cells = open + done ? done * CELLS / (open + done) : 0;
	text_add(&text, "[");
	for (uint64_t i = 0; i < CELLS; i++)
		text_add(&text, i < cells ? "#" : "-");
	text_addf(&text, "] %" PRIu64 "/%" PRIu64 ", %" PRIu64 " running", done, open + done,
		in[QUEUE_RUNNING]);
	if (in[QUEUE_FAILED])
		text_addf(&text, ", %" PRIu64 " failed", in[QUEUE_FAILED]);
	/* After some commands, so that the rest can be estimated. */
	if (over >= 3 && took > 500) {
		text_add(&text, ", ");
		text_add_age(&text, (int64_t)((double)took / (double)over * (double)open) + 999);
		text_add(&text, " left");
	}
	say_cut(&text, say_width(STDERR_FILENO));
	message_progress(text_string(&text));
	text_release(&text);
}
