/* SPDX-License-Identifier: MIT */
/* preempt-queue list: print commands, and those that end from then on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "client.h"
#include "queue/output/joblog.h"
#include "rows.h"

static const char *state_words, *tag;
static uint64_t most;
static bool follow, joblog;

const struct args_option list_options[] = {
	{"state", "S", "any (default), waiting, running, blocked, succeeded, failed or cancelled",
		ARGS_TEXT, .target = &state_words},
	{"tag", "T", "only commands with this tag", ARGS_TEXT, .target = &tag},
	{"limit", "N", "print at most N", ARGS_UNSIGNED, .target = &most, .min = 1,
		.max = QUEUE_ID_MAX},
	{"follow", NULL, "then print each command that ends", ARGS_FLAG, .target = &follow,
		.letter = 'f'},
	{"joblog", NULL, "commands that have run, in the columns of GNU parallel", ARGS_FLAG,
		.target = &joblog},
	{0},
};

/* The end of a command. */
struct end {
	uint64_t id;
	store_revision revision;
};

struct lister {
	bool any, states[QUEUE_CANCELLED + 1]; /* which states to print */
	uint64_t rows;
	store_revision since; /* with --follow: ends after this revision are followed */
	struct end *listed;   /* those of them that were among the first rows */
	size_t count, room;
	int wake;
	struct error *err;
};

static bool is_full(const struct lister *lister)
{
	return most && lister->rows >= most;
}

static enum status print_row(void *context, const struct queue_view *view)
{
	struct lister *lister = context;
	struct text row = {0};
	bool over = view->state >= QUEUE_SUCCEEDED;
	if ((!lister->any && !lister->states[view->state]) ||
		(tag && (!view->item.tag || strcmp(view->item.tag, tag) != 0)) ||
		(joblog && (!over || !view->result.started)))
		return STATUS_OK;
	if (joblog)
		joblog_row(&row, &view->item, &view->result);
	else if (client_options.json)
		rows_add_json(&row, view);
	else
		rows_add(&row, view, clock_utc());
	fputs(text_string(&row), stdout);
	text_release(&row);
	if (++lister->rows % 256 == 0 && client_stdout_lost())
		return error_set(lister->err, STATUS_TEMPORARY, "cannot write to stdout");
	return is_full(lister) || client_interrupted() ? STATUS_NO : STATUS_OK;
}

/* One of the first rows. */
static enum status print_first(void *context, const struct queue_view *view)
{
	struct lister *lister = context;
	if (follow && view->state >= QUEUE_SUCCEEDED && view->revision > lister->since) {
		lister->listed = xgrow(
			lister->listed, lister->count, &lister->room, sizeof(*lister->listed));
		lister->listed[lister->count++] = (struct end){view->item.id, view->revision};
	}
	return print_row(context, view);
}

/* A command that has ended, if this end was not among the first rows. */
static enum status print_end(void *context, const struct queue_view *view)
{
	const struct lister *lister = context;
	for (size_t i = 0; i < lister->count; i++)
		if (lister->listed[i].id == view->item.id &&
			lister->listed[i].revision == view->revision)
			return STATUS_OK;
	return print_row(context, view);
}

/* Print each command that ends from now on. STATUS_TIMEOUT: --timeout has passed. */
static enum status follow_ends(struct queue *queue, struct lister *lister, store_revision since)
{
	char prefix[QUEUE_KEY_MAX];
	int64_t deadline = client_deadline();
	struct error *err = lister->err;
	enum status status = STATUS_OK;
	queue_key(queue, prefix, "done/");
	while (status == STATUS_OK && !client_interrupted()) {
		store_revision changed = since;
		if (client_stdout_lost())
			return error_set(err, STATUS_TEMPORARY, "cannot write to stdout");
		status = store_wait(queue->store, prefix, &changed, deadline, lister->wake, err);
		if (status == STATUS_TIMEOUT)
			return error_set(
				err, status, "queue %s: --timeout has passed", queue->name);
		if (status == STATUS_OK)
			status = queue_visit_done(queue, &since, NULL, print_end, lister, err);
	}
	return status;
}

static enum status list(struct queue *queue, void *context, struct error *err)
{
	struct lister *lister = context;
	struct queue_count count = {0};
	struct text heading = {0};
	lister->err = err;
	enum status status = queue_count(queue, &count, err);
	if (status != STATUS_OK)
		return status;
	if (joblog)
		text_add(&heading, JOBLOG_HEADING);
	else if (!client_options.json)
		rows_heading(&heading);
	fputs(text_string(&heading), stdout);
	text_release(&heading);
	lister->since = count.revision;
	status = queue_visit(queue, 0, print_first, lister, err);
	if (status == STATUS_OK && follow)
		status = follow_ends(queue, lister, lister->since);
	free(lister->listed);
	return status == STATUS_NO && is_full(lister) ? STATUS_OK : status;
}

/* Parse names of states, separated by commas. */
static enum status parse_states(struct lister *lister, struct error *err)
{
	char *copy = xstrdup(state_words), *rest = copy;
	enum status status = STATUS_OK;
	for (char *word; status == STATUS_OK && (word = strsep(&rest, ","));) {
		enum queue_state state;
		if (!strcmp(word, "any"))
			lister->any = true;
		else if (queue_state_parse(word, &state))
			lister->states[state] = true;
		else
			status = error_set(err, STATUS_USAGE,
				"--state: \"%s\" is not waiting, running, blocked, succeeded, failed or "
				"cancelled; see preempt-queue list --help",
				word);
	}
	free(copy);
	return status;
}

int run_list(const struct args_rest *rest)
{
	struct error err;
	struct lister lister = {.wake = follow ? client_catch() : -1, .any = !state_words};
	(void)rest;
	if (state_words && parse_states(&lister, &err) != STATUS_OK)
		return message_fail(&err);
	if (joblog && client_options.json)
		return client_refuse("--joblog and --json exclude each other");
	return client_run(0, list, &lister);
}
