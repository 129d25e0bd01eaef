/* SPDX-License-Identifier: MIT */
/*
 * Transactions on a trial store in the scratch directory: how fast they are, whether all
 * acknowledged rows are there, whether each claim has one winner, and how soon other sides notice a
 * change.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "doctor/side.h"
#include "store/store.h"

/* All in milliseconds. */
#define PUT_FOR	      1200
#define PUT_QUICKLY   120
#define CLAIM_EVERY   40
#define PATIENCE      10000
#define NOTICE_FOR    2000
#define NOTICE_ROUNDS 4

static enum status open_store(struct examination *examination, struct error *err)
{
	struct doctor_side *self = examination->self;
	const struct store_url *url = &examination->url;
	char database[PATH_MAX + 32];
	struct text text = {0};
	snprintf(database, sizeof(database), "%s/try.db", examination->meeting.scratch);
	text_addf(&text, "sqlite:%s", database);
	/* The parameters of the store's own URL, but those about what is there already. */
	for (size_t i = 0, n = 0; i < url->count; i++) {
		const char *name = url->parameters[i].name, *value = url->parameters[i].value;
		if (strcmp(name, "must-exist") && strcmp(name, "shared-group"))
			text_addf(&text, "%c%s%s%s", n++ ? '&' : '?', name, value ? "=" : "",
				value ? value : "");
	}
	enum status status = store_open_patient(&examination->store, text_string(&text),
		STORE_CREATE | STORE_SCRATCH, PATIENCE, err);
	text_release(&text);
	if (status != STATUS_OK)
		return status;
	self->local = store_is_local(examination->store);
	doctor_name_lock(database, self->lock, sizeof(self->lock));
	return STATUS_OK;
}

/* In one transaction, put a row of our own, and a claim (-1: none) if no other side has it. */
static enum status put_once(struct examination *examination, int64_t claim, struct error *err)
{
	struct doctor_side *self = examination->self;
	size_t index = examination->meeting.index;
	char name[64], row[64], value[24];
	snprintf(value, sizeof(value), "%zu", index);
	snprintf(name, sizeof(name), "claim/%06" PRId64, claim);
	snprintf(row, sizeof(row), "row/%zu/%06" PRIu64, index, self->rows);
	struct store_compare absent = {.key = name};
	struct store_op both[] = {
		{STORE_PUT, row, "x", 1}, {STORE_PUT, name, value, strlen(value)}};
	struct store_request request = {.compares = &absent,
		.compare_count = claim >= 0,
		.then = both,
		.then_count = claim >= 0 ? 2 : 1,
		.otherwise = both,
		.otherwise_count = 1};
	struct store_answer answer = {0};
	enum status status = store_txn(examination->store, &request, &answer, err);
	if (status != STATUS_OK)
		return status;
	self->rows++;
	self->won += claim >= 0 && answer.held;
	self->lost += claim >= 0 && !answer.held;
	store_answer_release(&answer);
	return STATUS_OK;
}

/*
 * Wait, and read the file without the lock, as a waiting agent does. This fills the caches of the
 * filesystem's client with content that is soon out of date.
 */
static void wait_a_moment(struct store *store, int64_t milliseconds)
{
	store_revision since = INT64_MAX;
	int64_t until = clock_after(milliseconds);
	while (clock_now() < until &&
		store_wait(store, "nothing/", &since, until, -1, NULL) == STATUS_OK)
		;
	clock_sleep_until(until);
}

/*
 * In the first half of the time, put rows without pauses. Then pause after each transaction, so
 * that the holder of the lock changes often. The claim depends on the time, so all sides want the
 * same.
 */
static enum status put_for(struct examination *examination, int64_t limit, struct error *err)
{
	struct doctor_side *self = examination->self;
	int64_t began = clock_now(), last = -1;
	enum status status = STATUS_OK;
	for (int64_t now = began; now - began < limit && status == STATUS_OK; now = clock_now()) {
		int64_t claim = (now - began) / CLAIM_EVERY;
		status = put_once(examination, claim != last ? claim : -1, err);
		last = claim;
		int64_t took = clock_now() - now;
		self->longest = clock_later(self->longest, took);
		if (clock_now() - began < limit / 2)
			self->fast = self->rows;
		else
			wait_a_moment(
				examination->store, clock_jitter(2 * clock_earlier(took, 25)));
	}
	return status;
}

/* Count the acknowledged rows and claims of all sides. */
static enum status count(struct examination *examination, struct error *err)
{
	static const char *const prefixes[] = {"row/", "claim/"};
	const struct doctor_findings *findings = examination->findings;
	struct doctor_side *self = examination->self;
	uint64_t side, number, taken[DOCTOR_SIDES_MAX] = {0};
	enum status status = STATUS_OK;
	for (size_t p = 0; p < 2 && status == STATUS_OK; p++) {
		struct store_answer found = {0};
		struct store_range range = {.prefix = prefixes[p]};
		status = store_list(examination->store, &range, &found, err);
		for (size_t i = 0; status == STATUS_OK && i < found.count; i++) {
			const struct store_entry *entry = &found.entries[i];
			if (sscanf(entry->key, "row/%" SCNu64 "/%" SCNu64, &side, &number) == 2 &&
				side < findings->count)
				self->present += number < findings->sides[side].rows;
			else if (p == 1 && sscanf(entry->value, "%" SCNu64, &side) == 1 &&
				 side < findings->count)
				taken[side]++;
		}
		store_answer_release(&found);
	}
	/* A side that lost an answer may have more claims than were acknowledged; ignore those. */
	for (size_t k = 0; k < findings->count; k++) {
		uint64_t won = findings->sides[k].won;
		self->taken += taken[k] < won ? taken[k] : won;
	}
	return status;
}

static enum status wait_key(
	struct store *store, const char *key, int64_t deadline, struct error *err)
{
	store_revision seen = 0;
	for (;;) {
		struct store_entry entry = {0};
		enum status status = store_get(store, key, &entry, err);
		store_entry_release(&entry);
		if (status == STATUS_NO)
			status = store_wait(store, "ping/", &seen, deadline, -1, err);
		else
			return status;
		if (status != STATUS_OK)
			return status;
	}
}

/* Side 0 puts a key and waits for the last side's answer; half of the time is one notice. */
static enum status ping(struct examination *examination, struct error *err)
{
	struct doctor_side *self = examination->self;
	bool leads = examination->meeting.index == 0;
	int64_t deadline = clock_after(NOTICE_FOR), sum = 0;
	enum status status = STATUS_OK;
	if (!leads && examination->meeting.index != examination->meeting.count - 1)
		return STATUS_OK;
	for (int64_t round = 0; round < NOTICE_ROUNDS && status == STATUS_OK; round++) {
		int64_t began = clock_now();
		char mine[32], other[32];
		snprintf(mine, sizeof(mine), "ping/%" PRId64 "/%d", round, leads);
		snprintf(other, sizeof(other), "ping/%" PRId64 "/%d", round, !leads);
		if (leads)
			status = store_put(examination->store, mine, "x", NULL, err);
		if (status == STATUS_OK)
			status = wait_key(examination->store, other, deadline, err);
		if (status == STATUS_OK && !leads)
			status = store_put(examination->store, mine, "x", NULL, err);
		if (status != STATUS_OK)
			break;
		int64_t took = (clock_now() - began) / 2;
		sum += took;
		self->pinged = true;
		self->noticed = sum / (round + 1);
		self->noticed_longest = clock_later(self->noticed_longest, took);
	}
	return status == STATUS_TIMEOUT ? STATUS_OK : status;
}

/* End a step. An error of the store on any side ends the trial, but not the examination. */
static bool went_well(
	struct examination *examination, enum status status, int64_t takes, struct error *err)
{
	struct doctor_findings *findings = examination->findings;
	status = meeting_step(&examination->meeting, status, takes, err);
	if (status != STATUS_OK)
		doctor_trouble(findings, status, err->text);
	for (size_t k = 0; k < findings->count && status == STATUS_OK; k++) {
		const struct doctor_side *side = &findings->sides[k];
		if (side->status == STATUS_OK || findings->trial != STATUS_OK)
			continue;
		findings->trial = (enum status)side->status;
		snprintf(findings->trial_why, sizeof(findings->trial_why), "%s%s%s",
			findings->request->nodes ? side->host : "",
			findings->request->nodes ? ": " : "", side->why);
	}
	return findings->trouble == STATUS_OK && findings->trial == STATUS_OK;
}

static void try(struct examination *examination)
{
	struct doctor_findings *findings = examination->findings;
	bool first = examination->meeting.index == 0;
	int64_t limit = findings->request->quick ? PUT_QUICKLY : PUT_FOR;
	struct error err = {0};
	/* Side 0 makes the store. */
	if (!went_well(examination, first ? open_store(examination, &err) : STATUS_OK, PATIENCE,
		    &err) ||
		!went_well(examination, first ? STATUS_OK : open_store(examination, &err), PATIENCE,
			&err))
		return;
	(void)went_well(examination, put_for(examination, limit, &err), limit + PATIENCE, &err);
	if (findings->trouble != STATUS_OK)
		return;
	/* Count even if a side could not go on: acknowledged rows must be there. */
	(void)went_well(examination, count(examination, &err), PATIENCE, &err);
	if (findings->trouble != STATUS_OK)
		return;
	doctor_sum(findings, limit);
	if (findings->trial == STATUS_OK && !findings->request->quick)
		(void)went_well(examination, ping(examination, &err), NOTICE_FOR + PATIENCE, &err);
}

void doctor_try(struct examination *examination)
{
	try(examination);
	store_close(examination->store);
}
