/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/process/ending.h"
#include "base/xalloc.h"
#include "queue/say.h"
#include "store/url.h"

#define PATIENCE 30000 /* ms that a call of the store may take */

static bool caught;

/* ---- The queue ---- */

static enum status find_store(struct text *url, struct error *err)
{
	char name[160];
	if (options.store) {
		text_add(url, options.store);
		/* Said before we ask a server that may not answer. */
		return strncmp(options.store, "etcd:", 5)
			       ? STATUS_OK
			       : error_set(err, STATUS_USAGE,
					 "--store: queues need a store on a filesystem, not %s",
					 options.store);
	}
	enum status status = parse_name(options.queue, "--queue", err);
	if (status != STATUS_OK)
		return status;
	snprintf(name, sizeof(name), "queue-%s", options.queue);
	return strlen(name) > 128
		       ? error_set(err, STATUS_USAGE,
				 "--queue: \"%s\" is too long for a store's name; give --store",
				 options.queue)
		       : store_default_url(name, true, url, err);
}

/* How long a call of the store may take: not much longer than --timeout. */
static int64_t patience(void)
{
	if (!options.timeout_given || options.timeout > PATIENCE)
		return PATIENCE;
	return options.timeout < 5000 ? 5000 : options.timeout;
}

enum status client_open(struct client *client, unsigned flags, struct error *err)
{
	enum status status = find_store(&client->url, err);
	if (status == STATUS_OK)
		status = store_open_patient(
			&client->store, text_string(&client->url), flags, patience(), err);
	if (status == STATUS_OK)
		status = queue_open(
			&client->queue, client->store, options.queue, options.files, err);
	return status;
}

int client_end(struct client *client, enum status status, const struct error *err)
{
	bool missing = status == STATUS_NO && !client->store;
	queue_release(&client->queue);
	store_close(client->store);
	text_release(&client->url);
	*client = (struct client){0};
	if (client_interrupted()) {
		fflush(stdout);
		return ending_die(ending_signal());
	}
	if (missing)
		message_error(
			"%s: nothing was ever scheduled there; see --store and --queue", err->text);
	else if (status == STATUS_NO)
		message_info("%s", err->text);
	return status == STATUS_OK || status == STATUS_NO ? (int)status : message_fail(err);
}

int client_refuse(const char *text)
{
	message_error("%s", text);
	return STATUS_USAGE;
}

enum status client_path(const char *path, const char *what, char **absolute, struct error *err)
{
	char *here = *path == '/' ? NULL : getcwd(NULL, 0);
	if (*path != '/' && !here)
		return error_set(err, STATUS_USAGE, "%s: this directory has no path: %s", what,
			strerror(errno));
	bool is_here = !strcmp(path, ".");
	*absolute = xprintf(
		"%s%s%s", here ? here : "", here && !is_here ? "/" : "", is_here ? "" : path);
	free(here);
	return STATUS_OK;
}

/* Parse all words as ids and ranges of ids. Release ids also after an error. */
static enum status select_commands(
	const struct args_rest *rest, struct parse_numbers *ids, struct error *err)
{
	enum status status = STATUS_OK;
	if (rest->count && options.tag)
		return error_set(
			err, STATUS_USAGE, "name either IDs or --tag; see preempt-queue --help");
	for (size_t i = 0; i < rest->count && status == STATUS_OK; i++)
		status = parse_numbers(rest->words[i], QUEUE_ID_MAX, ids, "ID", err);
	options.set.ids = rest->count ? ids->items : NULL;
	options.set.count = ids->count;
	options.set.tag = options.tag;
	return status;
}

int client_run(const struct args_rest *rest, unsigned flags, client_command *command, void *context)
{
	struct error err = {0};
	struct client client = {0};
	struct parse_numbers ids = {0};
	enum status status = rest ? select_commands(rest, &ids, &err) : STATUS_OK;
	if (status == STATUS_OK)
		status = client_open(&client, flags, &err);
	if (status == STATUS_OK)
		status = command(&client.queue, context, &err);
	int code = client_end(&client, status, &err);
	parse_numbers_release(&ids);
	return code;
}

/* ---- Waiting ---- */

int64_t client_deadline(void)
{
	return options.timeout_given ? clock_after(options.timeout) : CLOCK_NEVER;
}

void client_catch(void)
{
	ending_catch();
	caught = true;
}

bool client_interrupted(void)
{
	if (caught)
		ending_wait(NULL, 0, clock_now());
	return caught && ending_signal();
}

enum status client_wait(struct queue *queue, enum queue_topic topic, store_revision *since,
	int64_t deadline, struct error *err)
{
	enum status status =
		queue_wait(queue, topic, since, deadline, caught ? ending_descriptor() : -1, err);
	return status == STATUS_TIMEOUT || status == STATUS_NO ? STATUS_OK : status;
}

bool client_stdout_lost(void)
{
	return fflush(stdout) == EOF || ferror(stdout);
}

/* ---- Failures ---- */

/* Add 'command 7 [sweep] (./train 7) ended with exit code 3 on node4: text' */
static void describe(struct queue *queue, uint64_t id, struct text *text)
{
	struct queue_view view;
	char how[64];
	text_addf(text, "command %" PRIu64, id);
	if (queue_inspect(queue, id, &view, NULL) != STATUS_OK)
		return;
	const struct queue_result *result = &view.result;
	struct text command = {0}, tag = {0};
	joblog_command(&command, &view.item);
	say_cut(&command, 200);
	text_add_escaped(&tag, view.item.tag ? view.item.tag : "");
	text_addf(text, "%s%s%s (%s)", view.item.tag ? " [" : "", text_string(&tag),
		view.item.tag ? "]" : "", text_string(&command));
	if (view.state == QUEUE_FAILED) {
		queue_ending_describe(&result->ending, how);
		text_addf(text, " %s%s%s", how, *result->worker ? " on " : "", result->worker);
		text_addf(text, "%s%s", *result->ending.text ? ": " : "", result->ending.text);
	}
	text_release(&command);
	text_release(&tag);
	queue_view_release(&view);
}

enum status client_raise(struct queue *queue, int64_t deadline, uint64_t *id, struct error *err)
{
	struct queue_failure failure = {0};
	struct text text = {0};
	store_revision since = queue->revision;
	enum status status = queue_raise(queue, &failure, err);
	while (status == STATUS_TIMEOUT && clock_now() < deadline && !client_interrupted()) {
		status = client_wait(queue, QUEUE_OVER, &since, deadline, err);
		if (status == STATUS_OK)
			status = queue_raise(queue, &failure, err);
	}
	if (status != STATUS_BROKEN)
		return status;
	if (id)
		*id = failure.id;
	describe(queue, failure.id, &text);
	if (failure.cancelled)
		text_addf(&text, "; %" PRIu64 " %s cancelled (retry --cancelled puts them back)",
			failure.cancelled, failure.cancelled == 1 ? "other was" : "others were");
	error_set(err, status, "queue %s: %s", queue->name, text_string(&text));
	text_release(&text);
	return status;
}

enum status client_outcome(
	struct queue *queue, uint64_t *told, struct queue_outcome *outcome, struct error *err)
{
	const struct queue_selection *set = &options.set;
	enum status status = queue_outcome(queue, set, outcome, err);
	if (status == STATUS_OK && outcome->failure) {
		status = client_raise(queue, 0, told, err);
		if (status == STATUS_BROKEN)
			message_error("%s", err->text);
		if (status_is_error(status) && status != STATUS_TIMEOUT)
			return status;
		status = queue_outcome(queue, set, outcome, err);
	}
	if (status != STATUS_OK)
		return status;
	if (outcome->absent)
		return error_set(err, STATUS_NO, "queue %s: there is no command %" PRIu64,
			queue->name, outcome->absent);
	if (outcome->open)
		return STATUS_TIMEOUT;
	uint64_t all = 0, first = outcome->failed ? outcome->failed : outcome->because;
	for (size_t i = 0; i < QUEUE_STATES; i++)
		all += outcome->in[i];
	if (!all && set->tag)
		return error_set(err, STATUS_NO, "queue %s: no command has the tag \"%s\"",
			queue->name, set->tag);
	if (!all && !outcome->scheduled)
		return error_set(err, STATUS_NO,
			"queue %s: nothing was ever scheduled there; see --store and --queue",
			queue->name);
	if (!first && !outcome->in[QUEUE_DAMAGED])
		return STATUS_OK;
	struct text text = {0};
	list_totals(&text, outcome->in);
	if (first && first != *told) {
		text_add(&text, outcome->failed ? "; the first: " : "; cancelled because of ");
		describe(queue, first, &text);
		text_addf(&text, "; see preempt-queue fetch --stderr %" PRIu64, first);
	} else if (!first) {
		text_add(&text, "; preempt-queue list --state damaged names them");
	}
	status = error_set(err, first ? STATUS_BROKEN : STATUS_DAMAGED, "queue %s: %s", queue->name,
		text_string(&text));
	text_release(&text);
	return status;
}
