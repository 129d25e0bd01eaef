/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/process/ending.h"
#include "store/url.h"

struct client_options client_options = {.queue = "default"};
static bool caught;

/* clang-format off */
#define PLACE \
	{"store", "URL", "where the keys are: PATH or etcd://HOST:PORT/PREFIX", ARGS_TEXT, \
		.target = &client_options.store, .environment = "PREEMPT_STORE"}, \
	{"queue", "NAME", "which queue (\"default\")", ARGS_NAME, \
		.target = &client_options.queue, .environment = "PREEMPT_QUEUE"}, \
	{"files", "DIR", "for long outputs (default: beside the store)", ARGS_TEXT, \
		.target = &client_options.files, .environment = "PREEMPT_QUEUE_FILES"}
#define TIMEOUT \
	{"timeout", "D", "how long to wait (default: for ever)", ARGS_DURATION, \
		.target = &client_options.timeout, .given = &client_options.timeout_given}
#define JSON \
	{"json", NULL, "answer in JSON, one object per line", ARGS_FLAG, \
		.target = &client_options.json}
/* clang-format on */

const struct args_option client_place[] = {PLACE, {0}};
const struct args_option client_wait[] = {PLACE, TIMEOUT, {0}};
const struct args_option client_json[] = {PLACE, JSON, {0}};
const struct args_option client_common[] = {PLACE, TIMEOUT, JSON, {0}};

static enum status find_store(struct text *url, struct error *err)
{
	char name[160];
	if (client_options.store) {
		text_add(url, client_options.store);
		return STATUS_OK;
	}
	enum status status = parse_name(client_options.queue, "--queue", err);
	if (status != STATUS_OK)
		return status;
	snprintf(name, sizeof(name), "queue-%s", client_options.queue);
	return strlen(name) > 128
		       ? error_set(err, STATUS_USAGE,
				 "--queue: \"%s\" is too long for a store's name; give --store",
				 client_options.queue)
		       : store_default_url(name, true, url, err);
}

enum status client_open(struct client *client, unsigned flags, struct error *err)
{
	enum status status = find_store(&client->url, err);
	int64_t patience = client_patience(client_deadline());
	if (status == STATUS_OK)
		status = store_open(&client->store, text_string(&client->url), flags,
			clock_after(patience), err);
	if (status == STATUS_OK) {
		store_set_patience(client->store, patience);
		status = queue_open(&client->queue, client->store, client_options.queue,
			client_options.files, err);
	}
	return status;
}

int client_end(struct client *client, enum status status, const struct error *err)
{
	queue_release(&client->queue);
	store_close(client->store);
	text_release(&client->url);
	*client = (struct client){0};
	if (client_interrupted()) {
		fflush(stdout);
		return ending_die(ending_signal());
	}
	if (status == STATUS_NO)
		message_info("%s", err->text);
	return status == STATUS_OK || status == STATUS_NO ? (int)status : message_fail(err);
}

int client_end_asked(struct client *client, enum status status, const struct error *err)
{
	if (status != STATUS_NO || client->store)
		return client_end(client, status, err);
	message_error("%s: nothing was ever scheduled there; see --store and --queue", err->text);
	(void)client_end(client, STATUS_OK, err);
	return CODE_NO;
}

int client_run(unsigned flags,
	enum status (*command)(struct queue *queue, void *context, struct error *err),
	void *context)
{
	struct error err = {0};
	struct client client = {0};
	enum status status = client_open(&client, flags, &err);
	if (status == STATUS_OK)
		status = command(&client.queue, context, &err);
	return client_end(&client, status, &err);
}

int client_refuse(const char *text)
{
	message_error("%s", text);
	return STATUS_USAGE;
}

int64_t client_deadline(void)
{
	return client_options.timeout_given ? clock_after(client_options.timeout) : CLOCK_NEVER;
}

int64_t client_patience(int64_t deadline)
{
	int64_t least = clock_after(5000);
	return clock_earlier(clock_after(30000), deadline > least ? deadline : least) - clock_now();
}

int client_catch(void)
{
	ending_catch();
	caught = true;
	return ending_descriptor();
}

bool client_interrupted(void)
{
	if (caught)
		ending_wait(NULL, 0, clock_now());
	return caught && ending_signal();
}

enum status client_report_failure(
	struct queue *queue, int64_t deadline, int wake, struct error *err)
{
	struct queue_failure failure;
	enum status status = queue_raise(queue, deadline, wake, &failure, err);
	if (status != STATUS_OK)
		return status;
	queue_failure_say(queue, &failure, err);
	message_error("%s", err->text);
	return STATUS_OK;
}

enum status client_parse_ids(
	const struct args_rest *rest, struct parse_numbers *ids, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < rest->count && status == STATUS_OK; i++)
		status = parse_numbers(rest->words[i], QUEUE_ID_MAX, ids, "ID", err);
	return status;
}

enum status client_select(const struct args_rest *rest, const char *tag, struct parse_numbers *ids,
	struct queue_selection *set, struct error *err)
{
	if (rest->count && tag)
		return error_set(
			err, STATUS_USAGE, "name either IDs or --tag; see preempt-queue --help");
	enum status status = client_parse_ids(rest, ids, err);
	parse_numbers_sort(ids);
	*set = (struct queue_selection){.ids = ids->items, .count = ids->count, .tag = tag};
	return status;
}

bool client_stdout_lost(void)
{
	return fflush(stdout) == EOF || ferror(stdout);
}
