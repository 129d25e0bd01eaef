/* SPDX-License-Identifier: MIT */
/* preempt-claim: be the first to announce a notice. See preempt-claim(1). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/message.h"
#include "group/attempt.h"
#include "group/claim.h"
#include "group/options.h"

static const char *reason = "", *from, *then_word = "exit";
static int64_t grace = -1;
static bool outside;

static const struct args_option options[] = {
	{0, "then", "WHAT", "exit (default), stop (93), or continue: a checkpoint on demand",
		ARGS_TEXT, &then_word, NULL, 0, 0, NULL},
	{0, "reason", "TEXT", "why, for people", ARGS_TEXT, &reason, NULL, 0, 0, NULL},
	{0, "grace", "D", "time until the end", ARGS_DURATION, &grace, "PREEMPT_GRACE", 0, 0, NULL},
	{0, "from", "FILE", "claim for the first event preempt-watch wrote there; - is stdin",
		ARGS_TEXT, &from, NULL, 0, 0, NULL},
	{0, "outside", NULL, "claim from outside even where we seem to be a task", ARGS_FLAG,
		&outside, NULL, 0, 0, NULL},
	{0},
};

/* The first line of preempt-watch's output. STATUS_NO: it ended without one. */
static enum status read_event(struct notice *notice, struct error *err)
{
	FILE *stream = strcmp(from, "-") ? fopen(from, "re") : stdin;
	char *line = NULL;
	size_t size = 0;
	if (!stream)
		return error_set(err, error_status_of_errno(errno), "cannot open %s: %s", from,
			strerror(errno));
	ssize_t length = getline(&line, &size, stream);
	enum status status;
	if (length < 0)
		status = error_set(err, STATUS_NO, "%s: no notice came", from);
	else {
		line[strcspn(line, "\n")] = '\0';
		status = notice_read(line, notice, err);
	}
	free(line);
	if (stream != stdin)
		fclose(stream);
	return status;
}

static void print_claim(const struct view *view)
{
	const struct view_claim *claim = &view->claim;
	char host[4 * sizeof(claim->host)];
	text_escape(host, sizeof(host), claim->host, strlen(claim->host));
	if (group_options.json) {
		struct json_object *json = json_object_new_object();
		json_put_text(json, "run", view->attempt.run);
		json_put_unsigned(json, "attempt", view->attempt.number);
		json_put_bool(json, "claimed", view->agreement.claimed);
		if (view->agreement.claimed) {
			if (!claim->outside)
				json_put_unsigned(json, "task", claim->task);
			json_put_text(json, "host", claim->host);
			json_put_text(json, "source", claim->source);
			json_put_text(json, "reason", claim->reason);
			json_put_signed(json, "utc", claim->utc);
		}
		json_put_unsigned(json, "round", view->agreement.round);
		printf("%s\n", json_line(json));
		json_object_put(json);
	} else if (!view->agreement.claimed) {
		printf("round %llu\n", (unsigned long long)view->agreement.round);
	} else if (claim->outside) {
		printf("outside %s\n", host);
	} else {
		printf("task %llu %s\n", (unsigned long long)claim->task, host);
	}
}

static int run(const struct args_rest *rest)
{
	struct error err;
	struct identity identity;
	struct view view = {0};
	struct store *store = NULL;
	char url[4096];
	int64_t deadline = clock_after(group_options.timeout_given ? group_options.timeout : 30000);
	struct claim claim = {0};
	(void)rest;
	if (!keys_then_parse(then_word, &claim.then)) {
		message_error(
			"--then: \"%s\" is not exit, stop or continue; see preempt-claim --help",
			then_word);
		return STATUS_USAGE;
	}
	notice_set(&claim.notice, "command", reason, notice_time(), grace);
	enum status status = group_identify(IDENTITY_RUN, 0, &identity, &err);
	if (status == STATUS_OK && from) {
		status = read_event(&claim.notice, &err);
		deadline = clock_after(group_options.timeout_given ? group_options.timeout : 30000);
	}
	if (status == STATUS_OK)
		status = group_store_url(identity.run, false, url, sizeof(url), &err);
	if (status == STATUS_OK)
		status = store_open(&store, url, 0, deadline, &err);
	if (status == STATUS_OK)
		status = attempt_view(store, identity.run,
			group_options.attempt_given ? group_options.attempt : 0, &view, &err);
	if (status == STATUS_OK) {
		claim.outside = outside || !identity.is_task || identity.task >= view.attempt.tasks;
		claim.task = identity.task;
		claim.pid = from ? 0 : (uint64_t)getpid();
		status = claim_make(store, &view, &claim, deadline, &err);
		if (status == STATUS_OK || (status == STATUS_NO && view.agreement.claimed))
			print_claim(&view);
	}
	if (status == STATUS_NO)
		message_info("%s", err.text);
	else if (status != STATUS_OK)
		message_fail(&err);
	view_release(&view);
	store_close(store);
	return status;
}

static const struct args_command commands[] = {
	{NULL, "[OPTION...]", NULL, options, group_option_table, 0, 0, false, false, run},
	{0},
};

int main(int argc, char **argv)
{
	return args_main(
		&(struct args_program){"preempt-claim",
			"Announce to all tasks of a run that one of them goes away.", commands,
			"exit codes: 0 claimed (also if it was already ours), 1 somebody else "
			"holds it or the run\nis over, 75 could not ask\n"},
		argc, argv);
}
