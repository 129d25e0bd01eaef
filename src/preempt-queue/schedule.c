/* SPDX-License-Identifier: MIT */
/*
 * schedule: one command, or one for each line of stdin. An id is printed when its command is
 * durable, and not before: a batch is scheduled, then its ids are written and flushed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ending.h"
#include "base/message.h"
#include "base/parse.h"
#include "client.h"
#include "commands.h"
#include "queue/rules.h"
#include "queue/template.h"

/* What is scheduled at once: the bytes bound what one transaction has to carry. */
enum { BATCH = QUEUE_SCHEDULE_BATCH, BATCH_BYTES = 256 * 1024 };

static const char *tag, *priority_text, *directory, *input, *once;
static uint64_t max_attempts, max_transient = QUEUE_TRANSIENT_MAX, limit = QUEUE_LIMIT;
static int64_t start_timeout, patience;
static bool patience_given, shell, keep_going, lines, null_lines;
static struct args_list environment, resources;

/* clang-format off */
const struct args_option schedule_options[] = {
	{0, "tag", "T", "a word that list, cancel and messages know it by", ARGS_TEXT, &tag, NULL, 0,
		0, NULL},
	{0, "priority", "N", "-4999 to 4999, the higher the sooner (0)", ARGS_TEXT, &priority_text,
		NULL, 0, 0, NULL},
	{0, "max-attempts", "N", "failures and lost workers until it has failed (1 and 3)",
		ARGS_UNSIGNED, &max_attempts, NULL, 1, 1000000, NULL},
	{0, "max-transient", "N", "exit codes 75 in a row that are forgiven (3)", ARGS_UNSIGNED,
		&max_transient, NULL, 0, 1000000, NULL},
	{0, "timeout", "D", "how long one start of it may run (for ever)", ARGS_DURATION,
		&start_timeout, NULL, 0, 0, NULL},
	{0, "env", "ENTRY", "NAME=VALUE for it, or NAME as it is here; may be repeated", ARGS_LIST,
		&environment, NULL, 0, 0, NULL},
	{0, "stdin", "FILE", "what it reads (nothing)", ARGS_TEXT, &input, NULL, 0, 0, NULL},
	{0, "directory", "DIR", "where it runs (here; '': where its worker is)", ARGS_ANY_TEXT,
		&directory, NULL, 0, 0, NULL},
	{0, "resource", "NAME", "a resource that it uses; may be repeated", ARGS_LIST, &resources,
		NULL, 0, 0, NULL},
	{0, "shell", NULL, "the first word is text for sh -c, the others its $1 ...", ARGS_FLAG,
		&shell, NULL, 0, 0, NULL},
	{0, "keep-going", NULL, "its failure cancels nothing", ARGS_FLAG, &keep_going, NULL, 0, 0,
		NULL},
	{0, "lines", NULL, "one for each line of stdin, in place of {}; without COMMAND: sh text",
		ARGS_FLAG, &lines, NULL, 0, 0, NULL},
	{'0', "null", NULL, "the lines of --lines end with a NUL", ARGS_FLAG, &null_lines, NULL, 0, 0,
		NULL},
	{0, "once", "KEY", "what was scheduled under KEY before is not again", ARGS_NAME, &once, NULL,
		0, 0, NULL},
	{0, "limit", "N", "wait while so many wait (262144; 0: no limit)", ARGS_UNSIGNED, &limit, NULL,
		0, QUEUE_ID_MAX, NULL},
	{0, "wait", "D", "how long to wait for room, or the end of others (for ever)", ARGS_DURATION,
		&patience, NULL, 0, 0, &patience_given},
	{0},
};
/* clang-format on */

/* A batch of items to come, and how they are scheduled. */
struct scheduler {
	struct client client;
	struct queue_item spec; /* what all have in common */
	struct queue_item items[BATCH];
	size_t count, most, bytes;
	uint64_t number; /* scheduled so far */
	struct queue_schedule how;
};

/* ---- The options ---- */

static enum status parse_priority(int *priority, struct error *err)
{
	uint64_t size;
	bool negative = *priority_text == '-';
	if (parse_unsigned(priority_text + negative, 0, QUEUE_PRIORITY_MAX, &size, "--priority",
		    NULL) != STATUS_OK)
		return error_set(err, STATUS_USAGE, "--priority: \"%s\" is not from -%d to %d",
			priority_text, QUEUE_PRIORITY_MAX, QUEUE_PRIORITY_MAX);
	*priority = negative ? -(int)size : (int)size;
	return STATUS_OK;
}

/* path as it is seen from everywhere; malloc'd. */
static enum status make_absolute(
	const char *path, const char *what, char **absolute, struct error *err)
{
	char *here = *path == '/' ? NULL : getcwd(NULL, 0);
	if (*path != '/' && !here)
		return error_set(err, STATUS_USAGE, "%s: this directory has no name: %s", what,
			strerror(errno));
	bool is_here = !strcmp(path, ".");
	if (asprintf(absolute, "%s%s%s", here ? here : "", here && !is_here ? "/" : "",
		    is_here ? "" : path) < 0)
		*absolute = NULL;
	free(here);
	return *absolute ? STATUS_OK : error_set(err, STATUS_TEMPORARY, "out of memory");
}

static bool is_variable(const char *name, size_t length)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	size_t good = 0;
	while (good < length &&
		(strchr(letters, name[good]) || (good && name[good] >= '0' && name[good] <= '9')))
		good++;
	return length && good == length;
}

static enum status add_variable(const char *entry, char **made, struct error *err)
{
	const char *equals = strchrnul(entry, '=');
	if (!is_variable(entry, (size_t)(equals - entry)))
		return error_set(
			err, STATUS_USAGE, "--env: \"%s\" is neither NAME=VALUE nor NAME", entry);
	const char *value = *equals ? "" : getenv(entry);
	if (!value)
		return error_set(err, STATUS_USAGE, "--env: there is no variable %s here", entry);
	if (asprintf(made, "%s%s%s", entry, *equals ? "" : "=", value) < 0) {
		*made = NULL;
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	}
	return STATUS_OK;
}

static enum status add_resource(const char *name, char **made, struct error *err)
{
	size_t length =
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	if (name[length] || length < 1 || length > 64)
		return error_set(err, STATUS_USAGE,
			"--resource: \"%s\" is not 1 to 64 letters, digits and _", name);
	*made = strdup(name);
	return *made ? STATUS_OK : error_set(err, STATUS_TEMPORARY, "out of memory");
}

static enum status make_list(const struct args_list *list,
	enum status (*add)(const char *, char **, struct error *), char ***made, struct error *err)
{
	if (!list->count)
		return STATUS_OK;
	*made = calloc(list->count + 1, sizeof(**made));
	if (!*made)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	enum status status = STATUS_OK;
	for (size_t i = 0; i < list->count && status == STATUS_OK; i++)
		status = add(list->items[i], &(*made)[i], err);
	return status;
}

/* {} in text for a shell would be run as a part of it, whatever the line says. */
static bool pastes_lines(const char *text)
{
	for (const char *at = strstr(text, "{}"); at; at = strstr(at + 2, "{}"))
		if (at == text || at[-1] != '{' || at[2] != '}')
			return true;
	return false;
}

/* What a worker could not fill in is refused here. */
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
	if (lines && shell && words && pastes_lines(words[0]))
		return error_set(err, STATUS_USAGE,
			"--shell with --lines: {} in the shell's text would be run as a part of it; "
			"write \"$1\" instead");
	return words ? check_placeholders(words, err) : STATUS_OK;
}

static enum status make_spec(char *const *words, struct queue_item *spec, struct error *err)
{
	enum status status = STATUS_OK;
	if (!words && !lines)
		return error_set(err, STATUS_USAGE,
			"a command is missing: write -- COMMAND [ARG...], or --lines; see "
			"preempt-queue schedule --help");
	if (null_lines && !lines)
		return error_set(err, STATUS_USAGE, "-0 is for --lines");
	spec->max_attempts = max_attempts;
	spec->max_transient = max_transient;
	spec->timeout = start_timeout;
	spec->keep_going = keep_going;
	/* A line that is a command is what one would type. */
	spec->shell = shell || !words;
	if (priority_text)
		status = parse_priority(&spec->priority, err);
	if (status == STATUS_OK)
		status = check_words(words, err);
	if (status == STATUS_OK && (!directory || *directory))
		status = make_absolute(
			directory ? directory : ".", "--directory", &spec->directory, err);
	if (status == STATUS_OK && input)
		status = make_absolute(input, "--stdin", &spec->input, err);
	if (status == STATUS_OK)
		status = make_list(&environment, add_variable, &spec->environment, err);
	if (status == STATUS_OK)
		status = make_list(&resources, add_resource, &spec->resources, err);
	if (status == STATUS_OK && tag && !(spec->tag = strdup(tag)))
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	return status;
}

/* ---- Batches ---- */

/* What an item has of its own goes; what it has in common with the others is the spec's. */
static void drop_batch(struct scheduler *s)
{
	for (size_t i = 0; i < s->count; i++) {
		template_free(s->items[i].argv);
		free(s->items[i].batch);
	}
	s->count = s->bytes = 0;
}

static enum status flush(struct scheduler *s, struct error *err)
{
	if (!s->count)
		return STATUS_OK;
	enum status status =
		queue_schedule(&s->client.queue, s->items, s->count, s->number, &s->how, err);
	for (size_t i = 0; i < s->count && status == STATUS_OK; i++)
		printf("%" PRIu64 "\n", s->items[i].id);
	s->number += status == STATUS_OK ? s->count : 0;
	drop_batch(s);
	/* Nobody learns of the ids: no more commands. */
	if (status == STATUS_OK && client_stdout_lost())
		return error_set(err, STATUS_TEMPORARY,
			"cannot write the ids to stdout: %" PRIu64 " commands are scheduled, "
			"and no more will be",
			s->number);
	return status;
}

/* argv (NULL: no memory) is taken over. */
static enum status add(struct scheduler *s, char **argv, struct error *err)
{
	if (!argv)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	struct queue_item *item = &s->items[s->count++];
	*item = s->spec;
	item->argv = argv;
	item->scheduled = clock_utc();
	bool has_placeholders = false;
	for (char *const *word = argv; *word; word++) {
		s->bytes += strlen(*word) + 4;
		has_placeholders |= strstr(*word, "{per-worker:") != NULL;
	}
	enum status status = has_placeholders ? check_placeholders(argv, err) : STATUS_OK;
	if (status != STATUS_OK) {
		s->count--;
		template_free(argv);
		return status;
	}
	return s->count < s->most && s->bytes < BATCH_BYTES ? STATUS_OK : flush(s, err);
}

/* ---- Lines ---- */

struct reader {
	char bytes[2 * QUEUE_ITEM_MAX];
	size_t begin, end; /* what is read and not used */
	bool over;
	uint64_t line;
};

/* STATUS_OK: more was read, or it is over. STATUS_NO: nothing is there yet, or a signal. */
static enum status read_more(struct reader *r, bool wait, struct error *err)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	ending_wait(&in, 1, wait ? CLOCK_NEVER : clock_now());
	if (!in.revents)
		return STATUS_NO;
	memmove(r->bytes, r->bytes + r->begin, r->end - r->begin);
	r->end -= r->begin;
	r->begin = 0;
	ssize_t got = read(STDIN_FILENO, r->bytes + r->end, sizeof(r->bytes) - r->end);
	if (got < 0 && errno != EINTR && errno != EAGAIN)
		return error_set(err, error_status_of_errno(errno), "cannot read stdin: %s",
			strerror(errno));
	if (got < 0)
		return STATUS_NO;
	r->end += (size_t)got;
	r->over = got == 0;
	return STATUS_OK;
}

/* The next line, with a NUL at its end. STATUS_NO: it is not there yet; or it was the last. */
static enum status next_line(struct reader *r, char **line, size_t *length, struct error *err)
{
	char *start = r->bytes + r->begin;
	size_t left = r->end - r->begin;
	char *end = memchr(start, null_lines ? '\0' : '\n', left);
	if (!end && r->over && left && r->end < sizeof(r->bytes))
		end = start + left;
	r->line += end != NULL;
	*length = end ? (size_t)(end - start) : left;
	if (*length > QUEUE_ITEM_MAX)
		return error_set(err, STATUS_USAGE, "line %" PRIu64 " has more than %d bytes",
			r->line + !end, QUEUE_ITEM_MAX);
	if (!end)
		return STATUS_NO;
	*end = '\0';
	*line = start;
	r->begin = (size_t)(end - r->bytes) + 1;
	if (r->begin > r->end)
		r->begin = r->end;
	if (strlen(start) < *length)
		return error_set(err, STATUS_USAGE,
			"line %" PRIu64 " has a NUL in it: are these lines for -0?", r->line);
	return STATUS_OK;
}

static char **words_of_line(char *const *words, const char *line, size_t length)
{
	if (words)
		return template_fill_line(words, line, length);
	char **made = calloc(2, sizeof(*made));
	if (made && !(made[0] = strdup(line))) {
		free(made);
		return NULL;
	}
	return made;
}

static enum status schedule_lines(struct scheduler *s, char *const *words, struct error *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	if (!r)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	enum status status = STATUS_OK;
	while (status == STATUS_OK && !client_interrupted()) {
		char *line = NULL;
		size_t length = 0;
		status = next_line(r, &line, &length, err);
		if (status == STATUS_OK && length)
			status = add(s, words_of_line(words, line, length), err);
		if (status != STATUS_NO)
			continue;
		if (r->over)
			break;
		/* Who feeds us slowly waits for the ids. With --once, batches must be the same. */
		status = read_more(r, once != NULL || !s->count, err);
		if (status == STATUS_NO && !once)
			status = flush(s, err);
		else if (status == STATUS_NO)
			status = STATUS_OK;
	}
	if (status == STATUS_NO)
		status = STATUS_OK;
	enum status kept = status;
	/* What was read before a line that is refused is scheduled: its ids say so. */
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
	size_t count = 0;
	while (words[count])
		count++;
	char **argv = calloc(count + 1, sizeof(*argv));
	bool whole = argv;
	for (size_t i = 0; i < count && whole; i++)
		whole = (argv[i] = strdup(words[i]));
	if (!whole)
		template_free(argv);
	enum status status = add(s, whole ? argv : NULL, err);
	return status == STATUS_OK ? flush(s, err) : status;
}

/* A batch comes into the queue as a whole: it is smaller than the room there may be. */
static size_t batch_size(const struct queue *queue)
{
	size_t most = queue_schedule_most(queue);
	if (limit && limit / 4 < most)
		most = (size_t)limit / 4;
	return most ? most : 1;
}

int run_schedule(const struct args_rest *rest)
{
	struct error err = {0};
	char *const *words = rest->command && rest->command[0] ? rest->command : NULL;
	struct scheduler *s = calloc(1, sizeof(*s));
	if (!s) {
		message_error("out of memory");
		return STATUS_TEMPORARY;
	}
	s->how = (struct queue_schedule){.limit = limit,
		.deadline = patience_given ? clock_after(patience) : CLOCK_NEVER,
		.once = once,
		.wake = client_catch()};
	if (!limit)
		message_error("warning: without a limit the queue may fill the disk");
	enum status status = make_spec(words, &s->spec, &err);
	if (status == STATUS_OK)
		status = client_open(&s->client, STORE_CREATE, &err);
	if (status == STATUS_OK) {
		s->most = batch_size(&s->client.queue);
		status = schedule(s, words, &err);
	}
	drop_batch(s);
	queue_item_release(&s->spec);
	int code = client_end(&s->client, status, &err);
	free(s);
	return code;
}
