/* SPDX-License-Identifier: MIT */
/*
 * schedule: one command, or one for each line of stdin. An id is printed only when its command is
 * durable: a batch is scheduled, then its ids are written and flushed.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/process/ending.h"
#include "base/xalloc.h"
#include "client.h"
#include "queue/resource.h"
#include "queue/spec.h"
#include "queue/template.h"

#define BATCH_BYTES (1024 * 1024) /* about the most that one transaction writes */

/* The batch that is being collected, and what became of the earlier ones. */
struct scheduler {
	struct client client;
	struct queue_schedule how;
	struct parse_numbers after;
	int64_t deadline;
	struct queue_item items[QUEUE_BATCH];
	size_t count, most, bytes;
	uint64_t number; /* scheduled so far */
	/* The ids as ranges: all, on a terminal; else those that could not be written. */
	bool terminal, lost;
	struct text text;
	struct text_ranges ranges;
};

/* ---- The options ---- */

static enum status parse_priority(const char *text, int *priority, struct error *err)
{
	uint64_t size;
	bool negative = *text == '-';
	if (parse_unsigned(text + negative, 0, QUEUE_PRIORITY_MAX, &size, "--priority", NULL) !=
		STATUS_OK)
		return error_set(err, STATUS_USAGE, "--priority: \"%s\" is not from -%d to %d",
			text, QUEUE_PRIORITY_MAX, QUEUE_PRIORITY_MAX);
	*priority = negative ? -(int)size : (int)size;
	return STATUS_OK;
}

/* "NAME=VALUE" as it is; "NAME" with its value in our environment. */
static enum status make_variable(const char *entry, char **made, struct error *err)
{
	static const char letters[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	size_t length = strspn(entry, letters);
	bool is_digit = *entry >= '0' && *entry <= '9';
	if (!length || is_digit || (entry[length] && entry[length] != '='))
		return error_set(
			err, STATUS_USAGE, "--env: \"%s\" is neither NAME=VALUE nor NAME", entry);
	const char *value = entry[length] ? "" : getenv(entry);
	if (!value)
		return error_set(err, STATUS_USAGE, "--env: there is no variable %s here", entry);
	*made = xprintf("%s%s%s", entry, entry[length] ? "" : "=", value);
	return STATUS_OK;
}

static enum status make_resource(const char *name, char **made, struct error *err)
{
	enum status status = resource_check_name(name, err);
	if (status != STATUS_OK)
		return status;
	*made = xstrdup(name);
	return STATUS_OK;
}

/* Call make for each item of list; *made: the results, NULL-terminated; NULL for an empty list. */
static enum status make_list(const struct args_list *list,
	enum status (*make)(const char *, char **, struct error *), char ***made, struct error *err)
{
	enum status status = STATUS_OK;
	if (!list->count)
		return STATUS_OK;
	*made = xcalloc(list->count + 1, sizeof(**made));
	for (size_t i = 0; i < list->count && status == STATUS_OK; i++)
		status = make(list->items[i], &(*made)[i], err);
	return status;
}

/* Whether text has this placeholder. With a brace before it, as in {{id}, it is plain text. */
static bool has_placeholder(const char *text, const char *placeholder)
{
	const char *at = strstr(text, placeholder);
	while (at && at > text && at[-1] == '{')
		at = strstr(at + 1, placeholder);
	return at;
}

/* A whole command line as one word: no program has such a name, but a shell would run it. */
static bool is_for_shell(const char *word)
{
	return strpbrk(word, ";|&<>") || (strpbrk(word, " \t\n") && !strchr(word, '/'));
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
	bool shell = options.item.shell;
	if (!words && !options.lines)
		return error_set(err, STATUS_USAGE,
			"a command is missing: write -- COMMAND [ARG...], or --lines; see "
			"preempt-queue schedule --help");
	if (!words)
		return STATUS_OK;
	if (!*words[0])
		return error_set(err, STATUS_USAGE,
			"the command is empty: write -- COMMAND [ARG...]; see preempt-queue "
			"schedule --help");
	if (!shell && is_for_shell(words[0]))
		return error_set(err, STATUS_USAGE,
			"\"%s\" is one word, and no program has such a name: for a shell, add "
			"--shell; for a program with arguments, leave the quotes away",
			words[0]);
	if (options.lines && shell && template_uses_line(words[0]))
		return error_set(err, STATUS_USAGE,
			"--shell with --lines: {} in the shell's text would be run as a part of it; "
			"write \"$1\" instead");
	return check_placeholders(words, err);
}

static enum status check_output(const char *output, struct error *err)
{
	if (has_placeholder(output, "{per-worker:"))
		return error_set(err, STATUS_USAGE,
			"--stdout: {per-worker:...} is for commands: use {worker} or {id}");
	if (options.lines && !template_uses_line(output) && !has_placeholder(output, "{id}"))
		return error_set(err, STATUS_USAGE,
			"--stdout with --lines: all commands would write to %s: put {id} or {} "
			"into its name",
			output);
	return STATUS_OK;
}

/* Complete options.item. */
static enum status make_item(char *const *words, struct error *err)
{
	struct queue_item *item = &options.item;
	const char *directory = options.directory ? options.directory : ".";
	enum status status = check_words(words, err);
	if (status != STATUS_OK)
		return status;
	if (options.null && !options.lines)
		return error_set(err, STATUS_USAGE, "-0 is for --lines");
	if (options.halt && !queue_halt_parse(options.halt, &item->halt))
		return error_set(err, STATUS_USAGE, "--halt: \"%s\" is none of now, soon and never",
			options.halt);
	/* Without COMMAND each line is text for a shell. */
	item->shell |= !words;
	if (options.tag)
		item->tag = xstrdup(options.tag);
	if (options.priority)
		status = parse_priority(options.priority, &item->priority, err);
	if (status == STATUS_OK && *directory)
		status = client_path(directory, "--directory", &item->directory, err);
	if (status == STATUS_OK && options.input)
		status = client_path(options.input, "--stdin", &item->input, err);
	if (status == STATUS_OK && options.output)
		status = check_output(options.output, err);
	if (status == STATUS_OK)
		status = make_list(&options.environment, make_variable, &item->environment, err);
	if (status == STATUS_OK)
		status = make_list(&options.resources, make_resource, &item->resources, err);
	return status;
}

static enum status find_after(struct scheduler *s, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < options.after.count && status == STATUS_OK; i++)
		status = parse_numbers(
			options.after.items[i], QUEUE_ID_MAX, &s->after, "--after", err);
	parse_numbers_sort(&s->after);
	s->how.after = s->after.items;
	s->how.after_count = s->after.count;
	/* A batch is scheduled as a whole, so it must be much smaller than --limit. */
	s->most = QUEUE_BATCH;
	if (options.limit && options.limit / 4 < s->most)
		s->most = (size_t)options.limit / 4;
	s->most = s->most ? s->most : 1;
	if (s->after.count > QUEUE_AFTER_MAX / s->most && s->after.count <= QUEUE_AFTER_MAX)
		s->most = QUEUE_AFTER_MAX / s->after.count;
	return status;
}

/* ---- Batches ---- */

/* Release what each item owns; the other members belong to options.item. */
static void drop_batch(struct scheduler *s)
{
	for (size_t i = 0; i < s->count; i++) {
		template_free(s->items[i].argv);
		free(s->items[i].output);
	}
	s->count = s->bytes = 0;
}

static void print_ids(struct scheduler *s)
{
	for (size_t i = 0; i < s->count && !s->terminal && !s->lost; i++)
		printf("%" PRIu64 "\n", s->items[i].id);
	s->lost |= client_stdout_lost();
	for (size_t i = 0; i < s->count && (s->terminal || s->lost); i++)
		text_range(&s->ranges, s->items[i].id);
}

/* Schedule the batch. While the queue is full, or a failure is to be told, wait. */
static enum status flush(struct scheduler *s, struct error *err)
{
	struct queue *queue = &s->client.queue;
	store_revision since = queue->revision;
	enum status status = STATUS_OK;
	bool again = s->count > 0;
	while (again && !client_interrupted()) {
		s->how.number = s->number;
		status = queue_schedule(queue, s->items, s->count, &s->how, err);
		if (status == STATUS_TEMPORARY && err)
			error_prefix(err,
				"cannot find out whether the last commands (%zu) were scheduled: "
				"look with preempt-queue list",
				s->count);
		again = status == STATUS_NO || status == STATUS_BROKEN;
		if (status == STATUS_BROKEN)
			status = client_raise(queue, s->deadline, NULL, err);
		else if (status == STATUS_NO && clock_now() >= s->deadline)
			status = error_set(err, STATUS_TIMEOUT,
				"queue %s is full: %" PRIu64 " or more commands wait (--limit)",
				queue->name, options.limit);
		else if (status == STATUS_NO)
			status = client_wait(queue, QUEUE_OVER, &since, s->deadline, err);
		/* STATUS_NO: another process has told the failure. */
		again &= status == STATUS_OK || status == STATUS_NO;
	}
	if (status == STATUS_OK && s->count && !client_interrupted()) {
		s->number += s->count;
		print_ids(s);
	}
	drop_batch(s);
	return status;
}

/* Takes over argv and name, the file of its output (NULL: none). */
static enum status add(struct scheduler *s, char **argv, char *name, struct error *err)
{
	struct queue_item *item = &s->items[s->count++];
	*item = options.item;
	item->argv = argv;
	item->output = name;
	item->scheduled = clock_utc();
	s->bytes += spec_bytes(item);
	return s->count < s->most && s->bytes < BATCH_BYTES ? STATUS_OK : flush(s, err);
}

/* ---- Lines ---- */

/* Lines of stdin as they come: those that are there are returned before we wait for more. */
struct lines {
	char end_of_line; /* '\n' or '\0' */
	char bytes[2 * QUEUE_ITEM_MAX];
	size_t begin, end; /* the bytes that were read and not returned */
	bool over;	   /* stdin is at its end */
	uint64_t line;	   /* the number of the last line */
};

/* STATUS_OK: more was read, or stdin is at its end. STATUS_NO: nothing to read yet, or a signal. */
static enum status lines_read(struct lines *lines, bool wait, struct error *err)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	ending_wait(&in, 1, wait ? CLOCK_NEVER : clock_now());
	if (!in.revents)
		return STATUS_NO;
	memmove(lines->bytes, lines->bytes + lines->begin, lines->end - lines->begin);
	lines->end -= lines->begin;
	lines->begin = 0;
	ssize_t got =
		read(STDIN_FILENO, lines->bytes + lines->end, sizeof(lines->bytes) - lines->end);
	if (got < 0 && errno != EINTR && errno != EAGAIN)
		return error_set(err, error_status_of_errno(errno), "cannot read stdin: %s",
			strerror(errno));
	if (got < 0)
		return STATUS_NO;
	lines->end += (size_t)got;
	lines->over = got == 0;
	return STATUS_OK;
}

/*
 * The next line, without its end, NUL-terminated; valid until more is read. STATUS_NO: it has not
 * been read yet, or there is none. STATUS_USAGE: it is too long for a command, or contains a NUL.
 */
static enum status lines_next(struct lines *lines, char **line, size_t *length, struct error *err)
{
	char *start = lines->bytes + lines->begin;
	size_t left = lines->end - lines->begin;
	char *end = memchr(start, lines->end_of_line, left);
	if (!end && lines->over && left && lines->end < sizeof(lines->bytes))
		end = start + left;
	lines->line += end != NULL;
	*length = end ? (size_t)(end - start) : left;
	if (*length > QUEUE_ITEM_MAX)
		return error_set(err, STATUS_USAGE, "line %" PRIu64 " has more than %d bytes",
			lines->line + !end, QUEUE_ITEM_MAX);
	if (!end)
		return STATUS_NO;
	*end = '\0';
	*line = start;
	lines->begin = (size_t)(end - lines->bytes) + 1;
	if (lines->begin > lines->end)
		lines->begin = lines->end;
	if (strlen(start) < *length)
		return error_set(err, STATUS_USAGE,
			"line %" PRIu64 " has a NUL in it: are these lines for -0?", lines->line);
	return STATUS_OK;
}

static enum status add_line(struct scheduler *s, char *const *words, const char *line,
	size_t length, uint64_t number, struct error *err)
{
	static char *const none[] = {NULL};
	const struct template_line filled = {.text = line, .length = length, .number = number};
	char **argv = NULL, *name = NULL;
	enum status status = template_fill_line(words ? words : none, &filled, &argv, err);
	if (status == STATUS_OK)
		status = check_placeholders(argv, err);
	if (status == STATUS_OK && options.output)
		status = template_fill_name_line(options.output, &filled, &name, err);
	if (status == STATUS_OK)
		return add(s, argv, name, err);
	template_free(argv);
	return status;
}

static enum status read_lines(struct scheduler *s, char *const *words, struct error *err)
{
	struct lines *r = xcalloc(1, sizeof(*r));
	r->end_of_line = options.null ? '\0' : '\n';
	enum status status = STATUS_OK;
	while (status == STATUS_OK && (s->count || !client_interrupted())) {
		char *line = NULL;
		size_t length = 0;
		status = lines_next(r, &line, &length, err);
		if (status == STATUS_OK && length)
			status = add_line(s, words, line, length, r->line, err);
		if (status != STATUS_NO)
			continue;
		if (r->over)
			break;
		/* Flush before we wait for a slow writer, which may wait for the ids. */
		status = lines_read(r, !s->count, err);
		if (status == STATUS_NO)
			status = flush(s, err);
	}
	free(r);
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status schedule(struct scheduler *s, char *const *words, struct error *err)
{
	enum status status;
	if (!options.lines) {
		status = add(s, template_copy(words),
			options.output ? xstrdup(options.output) : NULL, err);
		return status == STATUS_OK ? flush(s, err) : status;
	}
	status = read_lines(s, words, err);
	if (status == STATUS_OK)
		return flush(s, err);
	/* If a line is refused, schedule those before it, and print their ids. */
	if (status == STATUS_USAGE)
		(void)flush(s, NULL);
	return s->number || status == STATUS_USAGE
		       ? error_prefix(err, "%" PRIu64 " commands are scheduled, the rest is not",
				 s->number)
		       : status;
}

/* On a terminal, print "1-200". Elsewhere, say which ids could not be written. */
static void say_ranges(struct scheduler *s)
{
	text_ranges_end(&s->ranges);
	if (!s->text.length)
		return;
	if (s->terminal && !s->lost)
		printf("%s\n", text_string(&s->text));
	else
		message_error("these commands are scheduled, but their ids could not be written to "
			      "stdout: %s",
			text_string(&s->text));
	if (s->lost && !freopen("/dev/null", "w", stdout)) /* nothing more to say about it */
		return;
}

int run_schedule(const struct args_rest *rest)
{
	struct error err = {0};
	char *const *words = rest->command && rest->command[0] ? rest->command : NULL;
	struct scheduler *s = xcalloc(1, sizeof(*s));
	/* Who reads the ids may go away, as head(1) does: nothing is lost by that. */
	signal(SIGPIPE, SIG_IGN);
	client_catch();
	s->ranges.text = &s->text;
	s->terminal = isatty(STDOUT_FILENO);
	s->deadline = client_deadline();
	s->how.limit = options.limit;
	s->how.once = options.once;
	if (!options.limit)
		message_error("warning: without a limit the queue may fill the disk");
	enum status status = make_item(words, &err);
	if (status == STATUS_OK)
		status = find_after(s, &err);
	if (status == STATUS_OK)
		status = client_open(&s->client, STORE_CREATE, &err);
	if (status == STATUS_OK)
		status = schedule(s, words, &err);
	drop_batch(s);
	say_ranges(s);
	int code = client_end(&s->client, status, &err);
	code = !code && s->lost ? STATUS_TEMPORARY : code;
	parse_numbers_release(&s->after);
	text_release(&s->text);
	queue_item_release(&options.item);
	free(s);
	return code;
}
