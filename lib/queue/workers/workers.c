/* SPDX-License-Identifier: MIT */
/* The registry: registering, removing, listing. */
#include "queue/workers/workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/builder.h"

#define SPREAD_MOST 64 /* free numbers to choose from */
#define TRIES	    1000

void workers_beats(const struct queue *queue, char group[160])
{
	snprintf(group, 160, "queue/workers/%s", queue->name);
}

uint64_t workers_beat_token(const struct queue_worker *worker)
{
	return strtoull(worker->token, NULL, 16);
}

void workers_key(const struct queue *queue, char key[QUEUE_KEY_MAX], const char *token)
{
	queue_key(queue, key, "worker/%s", token);
}

static void beat_key_of(const struct queue *queue, char key[QUEUE_KEY_MAX], uint64_t beat)
{
	queue_key(queue, key, "beat/%06" PRIu64, beat);
}

#define PROCESS(member) JSON_MEMBER(struct process_identity, member)
static const struct json_field process_fields[] = {
	{"host", JSON_TEXT, JSON_REQUIRED, PROCESS(host)},
	{"boot", JSON_TEXT, JSON_REQUIRED, PROCESS(boot)},
	{"pid_namespace", JSON_UNSIGNED, JSON_REQUIRED, PROCESS(pid_namespace)},
	{"pid", JSON_SIGNED, JSON_REQUIRED, PROCESS(pid), 1, INT32_MAX},
	{"start", JSON_UNSIGNED, JSON_REQUIRED, PROCESS(start)},
	{"time_namespace", JSON_UNSIGNED, JSON_REQUIRED, PROCESS(time_namespace)},
	{0},
};

#define WORKER(member) JSON_MEMBER(struct queue_worker, member)
static const struct json_field worker_fields[] = {
	{"name", JSON_TEXT, JSON_REQUIRED, WORKER(name)},
	{"beat", JSON_UNSIGNED, JSON_REQUIRED, WORKER(beat)},
	{"index", JSON_UNSIGNED, JSON_REQUIRED, WORKER(index)},
	{"slots", JSON_UNSIGNED, JSON_REQUIRED, WORKER(slots)},
	{"period", JSON_SIGNED, JSON_REQUIRED, WORKER(period), 1, JSON_TIME_MAX},
	{"limit", JSON_UNSIGNED, JSON_REQUIRED, WORKER(limit), 1, INT64_MAX},
	{"started", JSON_TIME, JSON_REQUIRED, WORKER(started)},
	{NULL, JSON_PART, 0, WORKER(process), .more = process_fields},
	{"fenced", JSON_BOOL, 0, WORKER(fenced)},
	{0},
};

/* Take the token from the key. */
static bool check_worker(void *record, const struct store_entry *entry)
{
	struct queue_worker *worker = record;
	const char *token = strrchr(entry->key, '/');
	worker->revision = entry->revision;
	if (!token || strlen(token + 1) != sizeof(worker->token) - 1)
		return false;
	memcpy(worker->token, token + 1, sizeof(worker->token));
	return true;
}

const struct queue_record queue_worker_record = {
	worker_fields, sizeof(struct queue_worker), check_worker};

static int by_beat(const void *a, const void *b)
{
	const struct queue_worker *one = a, *other = b;
	return (one->beat > other->beat) - (one->beat < other->beat);
}

enum status workers_list(struct queue *queue, struct queue_worker **workers, size_t *count,
	store_revision *revision, struct error *err)
{
	struct store_answer answer = {0};
	enum status status = queue_list(queue, "worker", (struct store_range){0}, &answer, err);
	if (status != STATUS_OK)
		return status;
	struct queue_worker *list = xcalloc(answer.count + 1, sizeof(*list));
	for (size_t i = 0; status == STATUS_OK && i < answer.count; i++)
		status = queue_read(&queue_worker_record, &answer.entries[i], &list[i], err);
	if (status == STATUS_OK) {
		qsort(list, answer.count, sizeof(*list), by_beat);
		*workers = list;
		*count = answer.count;
		if (revision)
			*revision = answer.revision;
		list = NULL;
	}
	free(list);
	store_answer_release(&answer);
	return status;
}

/* ---- Registering ---- */

/* A free beat number: the lowest, or one of the lowest few. */
static enum status choose_beat(
	struct queue *queue, int64_t spread, uint64_t *beat, struct error *err)
{
	struct queue_worker *workers;
	size_t count, at = 0;
	enum status status = workers_list(queue, &workers, &count, NULL, err);
	if (status != STATUS_OK)
		return status;
	int64_t left = clock_jitter(spread);
	for (uint64_t number = 0;; number++) {
		while (at < count && workers[at].beat < number)
			at++;
		if ((at == count || workers[at].beat != number) && --left == 0) {
			*beat = number;
			break;
		}
	}
	free(workers);
	return STATUS_OK;
}

/* Beat before registering: a worker that sees the registration must find our beat. */
static enum status beat_first(
	struct queue *queue, const struct queue_worker *worker, struct error *err)
{
	char group[160];
	struct store_beat beat = {.token = workers_beat_token(worker), .sequence = 1};
	workers_beats(queue, group);
	enum status status = store_beats_prepare(queue->store, group, worker->beat + 1, err);
	return status == STATUS_OK ? store_beat(queue->store, group, worker->beat, &beat, err)
				   : status;
}

/* STATUS_NO: another worker took the number first. */
static enum status put_registration(
	struct queue *queue, struct queue_worker *worker, struct error *err)
{
	char key[QUEUE_KEY_MAX], beat_key[QUEUE_KEY_MAX];
	struct transaction t = {0};
	struct store_answer answer = {0};
	struct json_object *beat = json_object_new_object();
	workers_key(queue, key, worker->token);
	beat_key_of(queue, beat_key, worker->beat);
	json_put_text(beat, "worker", worker->token);
	transaction_put_new(
		&t, transaction_own(&t, key), queue_write(&queue_worker_record, worker));
	transaction_put_new(&t, transaction_own(&t, beat_key), beat);
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	if (status == STATUS_OK && answer.held)
		worker->revision = answer.revision;
	else if (status == STATUS_OK)
		status = STATUS_NO;
	transaction_release(&t);
	store_answer_release(&answer);
	return status;
}

enum status workers_join(struct queue *queue, struct queue_worker *worker, struct error *err)
{
	struct queue_worker made = *worker;
	enum status status = process_identify(0, &made.process, err);
	int64_t spread = 1;
	made.fenced = false;
	for (int tries = 0; status == STATUS_OK; tries++) {
		/* Use a new token at each try: if the answer was lost, the old registration may
		 * exist, and no thread beats for it. */
		queue_draw_token(made.token);
		status = choose_beat(queue, spread, &made.beat, err);
		made.index = worker->index == UINT64_MAX ? made.beat : worker->index;
		made.started = clock_utc();
		if (status == STATUS_OK)
			status = beat_first(queue, &made, err);
		if (status == STATUS_OK)
			status = put_registration(queue, &made, err);
		if (status == STATUS_OK)
			break;
		if (status == STATUS_NO && tries < TRIES)
			status = STATUS_OK;
		else if (status == STATUS_NO)
			status = error_set(err, STATUS_TEMPORARY,
				"queue %s: cannot register: other workers took each free number "
				"first",
				queue->name);
		if (spread < SPREAD_MOST)
			spread *= 2;
	}
	if (status != STATUS_OK)
		return status;
	*worker = made;
	snprintf(queue->who, sizeof(queue->who), "%s", made.token);
	queue->tally = (struct queue_tally){0};
	queue->tallied = 0;
	return STATUS_OK;
}

/* ---- Removing ---- */

/* Read both tallies; *gone is the new count/@gone. */
static enum status add_tallies(struct queue *queue, const char *own, const char *all,
	store_revision revisions[2], struct queue_tally *gone, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	*gone = (struct queue_tally){0};
	transaction_get(&t, own);
	transaction_get(&t, all);
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	for (size_t i = 0; status == STATUS_OK && i < answer.count; i++) {
		struct queue_tally one;
		const struct store_entry *entry = &answer.entries[i];
		revisions[i] = entry->revision;
		if (!entry->revision)
			continue;
		status = queue_read(&queue_tally_record, entry, &one, err);
		if (status == STATUS_OK)
			queue_tally_add(gone, &one);
	}
	transaction_release(&t);
	store_answer_release(&answer);
	return status;
}

/* One try. STATUS_NO: one of the keys has changed since it was read. */
static enum status remove_once(
	struct queue *queue, const struct queue_worker *worker, struct error *err)
{
	char own[QUEUE_KEY_MAX], all[QUEUE_KEY_MAX], key[QUEUE_KEY_MAX], beat[QUEUE_KEY_MAX];
	store_revision revisions[2] = {0};
	struct queue_tally gone;
	struct transaction t = {0};
	queue_key(queue, own, "count/%s", worker->token);
	queue_key(queue, all, "count/@gone");
	workers_key(queue, key, worker->token);
	beat_key_of(queue, beat, worker->beat);
	enum status status = add_tallies(queue, own, all, revisions, &gone, err);
	if (status != STATUS_OK)
		return status;
	transaction_require(&t, key, worker->revision);
	transaction_require(&t, own, revisions[0]);
	transaction_require(&t, all, revisions[1]);
	transaction_delete(&t, key);
	transaction_delete(&t, beat);
	if (revisions[0]) {
		transaction_delete(&t, own);
		transaction_put(&t, all, queue_write(&queue_tally_record, &gone));
	}
	status = transaction_run(&t, queue->store, err);
	transaction_release(&t);
	return status;
}

enum status workers_revision(struct queue *queue, const struct queue_worker *worker,
	store_revision *revision, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct store_entry entry = {0};
	workers_key(queue, key, worker->token);
	enum status status = store_get(queue->store, key, &entry, err);
	*revision = status == STATUS_OK ? entry.revision : 0;
	store_entry_release(&entry);
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status workers_remove(
	struct queue *queue, const struct queue_worker *worker, struct error *err)
{
	for (;;) {
		store_revision revision;
		enum status status = remove_once(queue, worker, err);
		if (status != STATUS_NO)
			return status;
		/* Did the registration change, or only one of the tallies? */
		status = workers_revision(queue, worker, &revision, err);
		if (status != STATUS_OK || !revision)
			return status;
		if (revision != worker->revision)
			return STATUS_NO;
		clock_sleep_until(clock_after(clock_jitter(5)));
	}
}
