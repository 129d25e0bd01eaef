/* SPDX-License-Identifier: MIT */
/*
 * schedule: one command, or one for each line of stdin. An id is printed only when its command is
 * durable: a batch is scheduled, then its ids are written and flushed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "client.h"
#include "lines.h"
#include "queue/after.h"
#include "queue/rules.h"
#include "queue/template.h"
#include "spec.h"

/* The most to schedule at once; the bytes limit the size of a transaction. */
enum { BATCH = QUEUE_SCHEDULE_BATCH, BATCH_BYTES = 256 * 1024 };

static const char *tag, *priority_text, *directory, *input, *output, *halt;
static int64_t patience;
static bool patience_given, keep_going, lines, null_lines;
static struct args_list environment, resources, after;
/* What all commands of this call have in common, and how to schedule them. */
static struct queue_item spec = {.max_transient = QUEUE_TRANSIENT_MAX};
static struct queue_schedule how = {.limit = QUEUE_LIMIT};

const struct args_option schedule_options[] = {
	{"tag", "T", "a word for the command in list, cancel and messages", ARGS_TEXT,
		.target = &tag},
	{"priority", "N", "-4999 to 4999; a higher one runs sooner (0)", ARGS_TEXT,
		.target = &priority_text},
	{"max-attempts", "N", "failures and lost workers after which it has failed (1 and 3)",
		ARGS_UNSIGNED, .target = &spec.max_attempts, .min = 1, .max = 1000000},
	{"max-transient", "N", "how many times in a row it may exit with 75 (3)", ARGS_UNSIGNED,
		.target = &spec.max_transient, .max = 1000000},
	{"after", "ID", "run it after these have succeeded: 3-7,9; may be repeated", ARGS_LIST,
		.target = &after},
	{"timeout", "D", "how long one start may run (for ever)", ARGS_DURATION,
		.target = &spec.timeout},
	{"env", "ENTRY", "NAME=VALUE, or NAME with its present value; may be repeated", ARGS_LIST,
		.target = &environment},
	{"stdin", "FILE", "its stdin (empty)", ARGS_TEXT, .target = &input},
	{"stdout", "FILE", "write its stdout there, emptied at each start; {}, {id}, {worker}",
		ARGS_TEXT, .target = &output},
	{"directory", "DIR", "its directory (this one; '': that of its worker)", ARGS_ANY_TEXT,
		.target = &directory},
	{"resource", "NAME", "a resource that it needs; may be repeated", ARGS_LIST,
		.target = &resources},
	{"shell", NULL, "the first word is text for sh -c, the others its $1 ...", ARGS_FLAG,
		.target = &spec.shell},
	{"halt", "WHEN",
		"now, soon (let running ones end) or never: stop others if it fails (now, or as set)",
		ARGS_TEXT, .target = &halt},
	{"keep-going", NULL, "the same as --halt never: its failure cancels nothing", ARGS_FLAG,
		.target = &keep_going},
	{"lines", NULL,
		"one for each line of stdin, which replaces {}; without COMMAND: text for sh",
		ARGS_FLAG, .target = &lines},
	{"null", NULL, "the lines of --lines end with a NUL", ARGS_FLAG, .target = &null_lines,
		.letter = '0'},
	{"once", "KEY", "do not schedule again what was scheduled under KEY", ARGS_NAME,
		.target = &how.once},
	{"limit", "N", "wait while N commands are waiting (262144; 0: no limit)", ARGS_UNSIGNED,
		.target = &how.limit, .max = QUEUE_ID_MAX},
	{"wait", "D", "how long to wait for room, or for running commands (for ever)",
		ARGS_DURATION, .target = &patience, .given = &patience_given},
	{0},
};

/* The batch that is being collected. */
struct scheduler {
	struct client client;
	struct queue_item items[BATCH];
	size_t count, most, bytes;
	uint64_t number; /* scheduled so far */
};

/* ---- The options ---- */

/* Whether {} is in text for a shell: a shell would run the line's text as commands. */
static bool pastes_lines(const char *text)
{
	for (const char *at = strstr(text, "{}"); at; at = strstr(at + 2, "{}"))
		if (at == text || at[-1] != '{')
			return true;
	return false;
}

/* Refuse placeholders that a worker cannot fill in. */
static enum status check_placeholders(char *const *words, struct error *err)
{
	char **filled;
	enum status status = template_fill_worker(words, "worker", 0, &filled, err);
	if (status == STATUS_OK)
		template_free(filled);
	return status;
}

static enum status check_words(char *const *words, struct error *err)
{
	if (lines && spec.shell && words && pastes_lines(words[0]))
		return error_set(err, STATUS_USAGE,
			"--shell with --lines: {} in the shell's text would be run as a part of it; "
			"write \"$1\" instead");
	return words ? check_placeholders(words, err) : STATUS_OK;
}

/* Whether name has this placeholder. With a brace before it, as in {{id}, it is plain text. */
static bool has_placeholder(const char *name, const char *placeholder)
{
	const char *at = strstr(name, placeholder);
	while (at && at > name && at[-1] == '{')
		at = strstr(at + 1, placeholder);
	return at;
}

static enum status check_output(struct error *err)
{
	if (!*output)
		return error_set(err, STATUS_USAGE, "--stdout: the name of the file is empty");
	if (has_placeholder(output, "{per-worker:"))
		return error_set(err, STATUS_USAGE,
			"--stdout: {per-worker:...} is for commands: use {worker} or {id}");
	if (lines && !has_placeholder(output, "{}") && !has_placeholder(output, "{id}"))
		return error_set(err, STATUS_USAGE,
			"--stdout with --lines: all commands would write to %s: put {id} or {} "
			"into its name",
			output);
	return STATUS_OK;
}

static enum status make_spec(char *const *words, struct error *err)
{
	enum status status = STATUS_OK;
	if (!words && !lines)
		return error_set(err, STATUS_USAGE,
			"a command is missing: write -- COMMAND [ARG...], or --lines; see "
			"preempt-queue schedule --help");
	if (words && !*words[0])
		return error_set(err, STATUS_USAGE,
			"the command is empty: write -- COMMAND [ARG...]; see preempt-queue "
			"schedule --help");
	if (null_lines && !lines)
		return error_set(err, STATUS_USAGE, "-0 is for --lines");
	if (halt && keep_going)
		return error_set(err, STATUS_USAGE, "--halt and --keep-going exclude each other");
	if (halt && !queue_halt_parse(halt, &spec.halt))
		return error_set(
			err, STATUS_USAGE, "--halt: \"%s\" is none of now, soon and never", halt);
	if (keep_going)
		spec.halt = HALT_NEVER;
	/* Without COMMAND each line is text for a shell. */
	spec.shell |= !words;
	if (priority_text)
		status = spec_priority(priority_text, &spec.priority, err);
	if (status == STATUS_OK)
		status = check_words(words, err);
	if (status == STATUS_OK && (!directory || *directory))
		status =
			spec_path(directory ? directory : ".", "--directory", &spec.directory, err);
	if (status == STATUS_OK && input)
		status = spec_path(input, "--stdin", &spec.input, err);
	if (status == STATUS_OK && output)
		status = check_output(err);
	if (status == STATUS_OK)
		status = spec_list(&environment, spec_variable, &spec.environment, err);
	if (status == STATUS_OK)
		status = spec_list(&resources, spec_resource, &spec.resources, err);
	if (tag)
		spec.tag = xstrdup(tag);
	return status;
}

/* ---- Batches ---- */

/* Release what each item owns; the other members belong to the spec. */
static void drop_batch(struct scheduler *s)
{
	for (size_t i = 0; i < s->count; i++) {
		template_free(s->items[i].argv);
		free(s->items[i].output);
		free(s->items[i].batch);
	}
	s->count = s->bytes = 0;
}

/* Of the commands in `lists`, note those that the batch and later ones have to wait for. */
static enum status find_after(
	struct scheduler *s, const char *const *lists, size_t count, struct error *err)
{
	struct parse_numbers ids = {0};
	char *left = NULL;
	enum status status = STATUS_OK;
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		status = parse_numbers(lists[i], QUEUE_ID_MAX, &ids, "--after", err);
	parse_numbers_sort(&ids);
	if (status == STATUS_OK && ids.count)
		status = queue_after(&s->client.queue, &ids, false, &left, err);
	if (status == STATUS_USAGE)
		error_prefix(err, "--after");
	parse_numbers_release(&ids);
	if (status != STATUS_OK)
		return status;
	free(spec.after);
	spec.after = left;
	for (size_t i = 0; i < s->count; i++)
		s->items[i].after = left;
	return STATUS_OK;
}

/*
 * Schedule the batch. Look at the commands of --after just before, and each second while the queue
 * is full: what has succeeded by then may be forgotten later.
 */
static enum status schedule_batch(struct scheduler *s, struct error *err)
{
	struct queue_schedule turn = how;
	enum status status;
	do {
		const char *waits_for = spec.after;
		status = waits_for ? find_after(s, &waits_for, 1, err) : STATUS_OK;
		turn.deadline =
			spec.after ? clock_earlier(clock_after(1000), how.deadline) : how.deadline;
		if (status == STATUS_OK)
			status = queue_schedule(
				&s->client.queue, s->items, s->count, s->number, &turn, err);
	} while (status == STATUS_TIMEOUT && turn.deadline != how.deadline);
	return status;
}

static enum status flush(struct scheduler *s, struct error *err)
{
	if (!s->count)
		return STATUS_OK;
	enum status status = schedule_batch(s, err);
	for (size_t i = 0; i < s->count && status == STATUS_OK; i++)
		printf("%" PRIu64 "\n", s->items[i].id);
	s->number += status == STATUS_OK ? s->count : 0;
	drop_batch(s);
	/* Work off what --after has left pending. If this fails, workers will do it. */
	if (status == STATUS_OK && spec.after)
		(void)queue_carry_on(&s->client.queue, NULL, NULL);
	/* The reader of the ids is gone: schedule no more commands. */
	if (status == STATUS_OK && client_stdout_lost())
		return error_set(err, STATUS_TEMPORARY,
			"cannot write the ids to stdout: %" PRIu64 " commands are scheduled, "
			"and no more will be",
			s->number);
	return status;
}

/* Takes over argv and name, the file of its output (NULL: none). */
static enum status add(struct scheduler *s, char **argv, char *name, struct error *err)
{
	struct queue_item *item = &s->items[s->count++];
	*item = spec;
	item->argv = argv;
	item->output = name;
	item->scheduled = clock_utc();
	s->bytes += spec_bytes(item);
	bool has_placeholders = false;
	for (char *const *word = argv; *word; word++)
		has_placeholders |= strstr(*word, "{per-worker:") != NULL;
	enum status status = has_placeholders ? check_placeholders(argv, err) : STATUS_OK;
	if (status != STATUS_OK) {
		s->count--;
		template_free(argv);
		free(name);
		return status;
	}
	return s->count < s->most && s->bytes < BATCH_BYTES ? STATUS_OK : flush(s, err);
}

/* ---- Lines ---- */

static enum status schedule_lines(struct scheduler *s, char *const *words, struct error *err)
{
	struct lines *r = xcalloc(1, sizeof(*r));
	char *const none[] = {NULL};
	r->end_of_line = null_lines ? '\0' : '\n';
	enum status status = STATUS_OK;
	while (status == STATUS_OK && !client_interrupted()) {
		char *line = NULL;
		size_t length = 0;
		status = lines_next(r, &line, &length, err);
		if (status == STATUS_OK && length)
			status = add(s, template_fill_line(words ? words : none, line, length),
				output ? template_fill_name_line(output, line, length) : NULL, err);
		if (status != STATUS_NO)
			continue;
		if (r->over)
			break;
		/* Flush before we wait for a slow writer, which may wait for the ids. Not with
		 * --once: its batches must be the same in each call. */
		status = lines_read(r, how.once != NULL || !s->count, err);
		if (status == STATUS_NO && !how.once)
			status = flush(s, err);
		else if (status == STATUS_NO)
			status = STATUS_OK;
	}
	if (status == STATUS_NO)
		status = STATUS_OK;
	enum status kept = status;
	/* If a line is refused, schedule those before it, and print their ids. */
	if ((status == STATUS_OK || status == STATUS_USAGE) && !client_interrupted())
		status = flush(s, status == STATUS_OK ? err : NULL);
	if (kept == STATUS_USAGE && r->line)
		error_prefix(err, "%" PRIu64 " commands are scheduled, the rest is not", s->number);
	free(r);
	return kept == STATUS_OK ? status : kept;
}

static enum status schedule(struct scheduler *s, char *const *words, struct error *err)
{
	if (lines)
		return schedule_lines(s, words, err);
	enum status status = add(s, template_copy(words), output ? xstrdup(output) : NULL, err);
	return status == STATUS_OK ? flush(s, err) : status;
}

/* A batch is scheduled as a whole, so it must be much smaller than --limit. */
static size_t batch_size(const struct queue *queue)
{
	size_t most = queue_schedule_most(queue);
	if (how.limit && how.limit / 4 < most)
		most = (size_t)how.limit / 4;
	return most ? most : 1;
}

int run_schedule(const struct args_rest *rest)
{
	struct error err = {0};
	char *const *words = rest->command && rest->command[0] ? rest->command : NULL;
	struct scheduler *s = xcalloc(1, sizeof(*s));
	how.deadline = patience_given ? clock_after(patience) : CLOCK_NEVER;
	how.wake = client_catch();
	how.use_settings = !halt && !keep_going;
	if (!how.limit)
		message_error("warning: without a limit the queue may fill the disk");
	enum status status = make_spec(words, &err);
	if (status == STATUS_OK)
		status = client_open(&s->client, STORE_CREATE, &err);
	if (status == STATUS_OK) {
		s->most = batch_size(&s->client.queue);
		status = find_after(s, after.items, after.count, &err);
	}
	if (status == STATUS_OK)
		status = schedule(s, words, &err);
	drop_batch(s);
	queue_item_release(&spec);
	int code = client_end(&s->client, status, &err);
	free(s);
	return code;
}
