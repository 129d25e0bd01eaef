/* SPDX-License-Identifier: MIT */
/* What the store itself does in the scratch directory: fast, complete, one winner, noticed when. */
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/cache.h"
#include "store/doctor_worker.h"

#define CLAIMS_MAX     400
#define CLAIM_EVERY    40    /* milliseconds */
#define PATIENCE       10000 /* milliseconds for one transaction */
#define PROBE_PATIENCE 1000

enum status doctor_open(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	const char *name, *parameters;
	struct text url = {0};
	(void)answer;
	if (!doctor_name(request, &name) || !json_get_text(request, "parameters", &parameters))
		return error_set(err, STATUS_DAMAGED, "open: not understood");
	store_close(worker->store);
	worker->store = NULL;
	text_addf(&url, "sqlite:%s/%s?%s", worker->scratch, name, parameters);
	enum status status = store_open(&worker->store, text_string(&url),
		STORE_CREATE | STORE_SCRATCH, clock_after(PATIENCE), err);
	if (status == STATUS_OK)
		store_set_patience(worker->store, PATIENCE);
	else
		worker->store = NULL;
	text_release(&url);
	return status;
}

enum status doctor_close(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	(void)request, (void)answer, (void)err;
	store_close(worker->store);
	worker->store = NULL;
	return STATUS_OK;
}

static enum status not_open(struct error *err)
{
	return error_set(err, STATUS_DAMAGED, "no store is open");
}

enum status doctor_alone(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	char key[64];
	uint64_t limit, done = 0;
	enum status status = STATUS_OK;
	if (!worker->store || !doctor_milliseconds(request, &limit))
		return not_open(err);
	int64_t began = clock_now(), end = began + (int64_t)limit;
	while (clock_now() < end) {
		snprintf(key, sizeof(key), "alone/%" PRIu64 "/%" PRIu64, worker->index, done % 100);
		status = store_put(worker->store, key, "x", NULL, err);
		if (status != STATUS_OK)
			break;
		done++;
	}
	json_put_unsigned(answer, "done", done);
	json_put_signed(answer, "ms", clock_now() - began);
	return status;
}

/*
 * One transaction: a row of our own, and the claim (CLAIMS_MAX: none) if nobody has it. '1' and
 * '0': acknowledged, and the claim is ours or not; '?': the answer was lost; 0: certainly nothing
 * happened.
 */
static char contend_once(struct doctor_worker *worker, const char *tag, uint64_t slot,
	uint64_t number, struct error *err)
{
	char claim[80], row[80], self[2] = {(char)('0' + worker->index)};
	snprintf(claim, sizeof(claim), "claim/%s/%06" PRIu64, tag, slot);
	snprintf(row, sizeof(row), "row/%s/%" PRIu64 "/%06" PRIu64, tag, worker->index, number);
	struct store_compare absent = {.key = claim};
	struct store_op both[] = {
		{STORE_PUT, row, "x", 1},
		{STORE_PUT, claim, self, 1},
	};
	struct store_request request = {.compares = &absent,
		.compare_count = slot < CLAIMS_MAX,
		.then = both,
		.then_count = slot < CLAIMS_MAX ? 2 : 1,
		.otherwise = both,
		.otherwise_count = 1};
	struct store_answer answer = {0};
	if (store_txn(worker->store, &request, &answer, err) != STATUS_OK)
		return answer.known ? '\0' : '?';
	char result = answer.held ? '1' : '0';
	store_answer_release(&answer);
	return result;
}

/*
 * As an agent waits, which looks at the file without the lock: that is what fills the caches of a
 * client process with what is old a moment later.
 */
static void wait_a_moment(struct store *store, int64_t milliseconds)
{
	store_revision seen;
	int64_t until = clock_after(milliseconds);
	while (clock_now() < until &&
		store_wait(store, "nothing/", INT64_MAX, until, -1, &seen, NULL) == STATUS_OK)
		;
	clock_sleep_until(until);
}

enum status doctor_contend(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	const char *tag;
	uint64_t limit, rows = 0;
	int64_t longest = 0;
	struct error trouble = {0};
	if (!worker->store || !doctor_milliseconds(request, &limit) ||
		!json_get_text(request, "tag", &tag))
		return not_open(err);
	char *wins = calloc(1, CLAIMS_MAX + 1);
	if (!wins)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	memset(wins, '-', CLAIMS_MAX);
	doctor_gather(worker);
	int64_t began = clock_now(), fast = 0;
	/*
	 * At first as fast as it goes; then each leaves the others a chance after each transaction,
	 * so that the holder changes often. A claim is that of the moment, so that all want the
	 * same.
	 */
	for (int64_t now = began, end = began + (int64_t)limit; now < end; now = clock_now()) {
		uint64_t slot = (uint64_t)(now - began) / CLAIM_EVERY;
		bool wanted = slot < CLAIMS_MAX && wins[slot] == '-';
		char result = contend_once(worker, tag, wanted ? slot : CLAIMS_MAX, rows, &trouble);
		int64_t took = clock_now() - now;
		longest = took > longest ? took : longest;
		if (wanted)
			wins[slot] = result ? result : '-';
		if (result != '0' && result != '1')
			break;
		rows++;
		if (clock_now() - began < (int64_t)limit / 2)
			fast = (int64_t)rows;
		else
			wait_a_moment(worker->store, clock_jitter(2 * (took < 25 ? took : 25)));
	}
	json_put_unsigned(answer, "rows", rows);
	json_put_signed(answer, "fast", fast);
	json_put_text(answer, "wins", wins);
	json_put_signed(answer, "longest", longest);
	json_put_text(answer, "error", trouble.text);
	free(wins);
	return STATUS_OK;
}

/* Call take with every entry below prefix. */
static enum status each(struct doctor_worker *worker, const char *prefix,
	void (*take)(void *to, const struct store_entry *entry), void *to, struct error *err)
{
	struct store_answer found = {0};
	struct store_range range = {.prefix = prefix};
	enum status status = store_list(worker->store, &range, &found, err);
	for (size_t i = 0; status == STATUS_OK && i < found.count; i++)
		take(to, &found.entries[i]);
	if (status == STATUS_OK)
		store_answer_release(&found);
	return status;
}

struct tally {
	const struct json_object *rows; /* how many each was promised */
	uint64_t present;
	char *claims;
};

static void take_row(void *to, const struct store_entry *entry)
{
	struct tally *tally = to;
	uint64_t side, round;
	if (sscanf(entry->key, "row/%*[^/]/%" SCNu64 "/%" SCNu64, &side, &round) != 2 ||
		side >= json_object_array_length(tally->rows))
		return;
	struct json_object *promised = json_object_array_get_idx(tally->rows, side);
	tally->present += round < json_object_get_uint64(promised);
}

static void take_claim(void *to, const struct store_entry *entry)
{
	struct tally *tally = to;
	uint64_t round;
	if (sscanf(entry->key, "claim/%*[^/]/%" SCNu64, &round) == 1 && round < CLAIMS_MAX &&
		entry->length == 1 && entry->value[0] >= '0' && entry->value[0] <= 'o')
		tally->claims[round] = entry->value[0];
}

enum status doctor_count(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	const char *tag;
	char prefix[64];
	struct json_object *rows;
	if (!worker->store || !json_get_text(request, "tag", &tag) ||
		!json_object_object_get_ex(request, "rows", &rows) ||
		!json_object_is_type(rows, json_type_array))
		return not_open(err);
	struct tally tally = {.rows = rows, .claims = calloc(1, CLAIMS_MAX + 1)};
	if (!tally.claims)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	memset(tally.claims, '-', CLAIMS_MAX);
	snprintf(prefix, sizeof(prefix), "row/%s/", tag);
	enum status status = each(worker, prefix, take_row, &tally, err);
	snprintf(prefix, sizeof(prefix), "claim/%s/", tag);
	if (status == STATUS_OK)
		status = each(worker, prefix, take_claim, &tally, err);
	if (status == STATUS_OK) {
		size_t length = CLAIMS_MAX;
		while (length && tally.claims[length - 1] == '-')
			tally.claims[--length] = '\0';
		json_put_unsigned(answer, "present", tally.present);
		json_put_text(answer, "claims", tally.claims);
	}
	free(tally.claims);
	return status;
}

/* Wait for the other's key of this round. */
static enum status wait_key(struct store *store, const char *prefix, const char *key,
	int64_t deadline, struct error *err)
{
	store_revision seen = 0;
	for (;;) {
		struct store_entry entry = {0};
		enum status status = store_get(store, key, &entry, err);
		if (status == STATUS_OK && entry.revision > seen)
			seen = entry.revision;
		store_entry_release(&entry);
		if (status != STATUS_NO)
			return status;
		status = store_wait(store, prefix, seen, deadline, -1, &seen, err);
		if (status != STATUS_OK)
			return status;
	}
}

/* Two play: ping puts and waits for the answer; half of there and back is one notice. */
enum status doctor_notice(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	bool ping = false;
	uint64_t rounds, limit, done = 0;
	int64_t sum = 0, longest = 0;
	char mine[32], other[32];
	if (!worker->store || !json_get_bool(request, "ping", &ping) ||
		!json_get_unsigned(request, "rounds", &rounds) ||
		!doctor_milliseconds(request, &limit))
		return not_open(err);
	int64_t deadline = clock_after((int64_t)limit);
	enum status status = STATUS_OK;
	while (done < rounds && status == STATUS_OK) {
		int64_t began = clock_now();
		snprintf(mine, sizeof(mine), "%s/%" PRIu64, ping ? "ping" : "pong", done);
		snprintf(other, sizeof(other), "%s/%" PRIu64, ping ? "pong" : "ping", done);
		if (ping)
			status = store_put(worker->store, mine, "x", NULL, err);
		if (status == STATUS_OK)
			status = wait_key(
				worker->store, ping ? "pong/" : "ping/", other, deadline, err);
		if (status == STATUS_OK && !ping)
			status = store_put(worker->store, mine, "x", NULL, err);
		if (status != STATUS_OK)
			break;
		int64_t took = clock_now() - began;
		sum += took;
		longest = took > longest ? took : longest;
		done++;
	}
	json_put_unsigned(answer, "done", done);
	json_put_signed(answer, "mean", done ? sum / (int64_t)done : 0);
	json_put_signed(answer, "longest", longest);
	return status == STATUS_TIMEOUT ? STATUS_OK : status;
}

/* A reader as any other: it sees whether lock file and database belong together. */
enum status doctor_probe(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	const char *url;
	struct store *store = NULL;
	struct store_entry entry = {0};
	(void)worker, (void)answer;
	if (!json_get_text(request, "url", &url))
		return error_set(err, STATUS_DAMAGED, "probe: not understood");
	enum status status =
		store_open(&store, url, STORE_READ_ONLY, clock_after(PROBE_PATIENCE), err);
	if (status == STATUS_OK) {
		store_set_patience(store, PROBE_PATIENCE);
		status = store_get(store, "doctor", &entry, err);
		if (status == STATUS_NO)
			status = STATUS_OK;
		store_entry_release(&entry);
		store_close(store);
	}
	return status;
}

enum status doctor_check_database(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	char path[PATH_MAX];
	const char *name;
	sqlite3 *database = NULL;
	sqlite3_stmt *statement = NULL;
	if (!doctor_name(request, &name))
		return error_set(err, STATUS_DAMAGED, "check: not understood");
	doctor_path(worker, path, sizeof(path), "%s", name);
	/* Nobody writes any more, but this mount may still have pages of various times. */
	cache_drop_path(CACHE_CLIENT, path);
	int code = sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(
			database, "PRAGMA integrity_check(1)", -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		json_put_text(answer, "found", (const char *)sqlite3_column_text(statement, 0));
	else
		json_put_text(answer, "found", sqlite3_errmsg(database));
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return STATUS_OK;
}
