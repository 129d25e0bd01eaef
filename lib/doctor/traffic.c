/* SPDX-License-Identifier: MIT */
/*
 * Transactions on a store in the scratch directory: how fast they are, whether all acknowledged
 * rows are there, whether each claim has one winner, and how soon other sides notice a change.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "doctor/examine.h"
#include "store/store.h"

/* All in milliseconds. */
#define ALONE_FOR     300
#define CONTEND_FOR   1200
#define QUICK_ALONE   80
#define QUICK_CONTEND 120
#define CLAIM_EVERY   40
#define PATIENCE      10000
#define NOTICE_FOR    2000
#define NOTICE_ROUNDS 4

struct traffic {
	struct examination *examination;
	struct doctor_mode *findings;
	enum lock_mode mode;
	struct store *store;
	struct doctor_side *self;
	size_t index;
};

static enum status open_store(struct traffic *traffic, struct error *err)
{
	const struct examination *examination = traffic->examination;
	const char *assume = examination->wanted.assume;
	char url[PATH_MAX + 64];
	/* The filesystem may be unknown, but we have just seen that its locks exclude. */
	if (!assume && traffic->mode == LOCK_FCNTL && examination->findings->clients > 1 &&
		traffic->findings->lock == DOCTOR_YES)
		assume = "shared";
	snprintf(url, sizeof(url), "sqlite:%s/%s.db?lock=%s%s%s", examination->exchange.scratch,
		lock_mode_name(traffic->mode), lock_mode_name(traffic->mode),
		assume ? "&assume=" : "", assume ? assume : "");
	enum status status = store_open(
		&traffic->store, url, STORE_CREATE | STORE_SCRATCH, clock_after(PATIENCE), err);
	if (status == STATUS_OK)
		store_set_patience(traffic->store, PATIENCE);
	return status;
}

/* In one transaction, put a row of our own, and a claim (-1: none) if no other side has it. */
static enum status put_once(struct traffic *traffic, int64_t claim, struct error *err)
{
	struct doctor_side *self = traffic->self;
	char name[64], row[64], value[24];
	snprintf(value, sizeof(value), "%zu", traffic->index);
	snprintf(name, sizeof(name), "claim/%06" PRId64, claim);
	snprintf(row, sizeof(row), "row/%zu/%06" PRIu64, traffic->index, self->rows);
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
	enum status status = store_txn(traffic->store, &request, &answer, err);
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
static enum status put_for(struct traffic *traffic, int64_t limit, bool claims, struct error *err)
{
	struct doctor_side *self = traffic->self;
	int64_t began = clock_now(), last = -1;
	uint64_t before = self->rows;
	enum status status = STATUS_OK;
	for (int64_t now = began; now - began < limit && status == STATUS_OK; now = clock_now()) {
		int64_t claim = (now - began) / CLAIM_EVERY;
		status = put_once(traffic, claims && claim != last ? claim : -1, err);
		last = claim;
		int64_t took = clock_now() - now;
		self->longest = took > self->longest ? took : self->longest;
		self->took = clock_now() - began;
		if (self->took < limit / 2)
			self->fast = self->rows - before;
		else if (claims)
			wait_a_moment(traffic->store, clock_jitter(2 * (took < 25 ? took : 25)));
	}
	return status;
}

/* Count the acknowledged rows and claims of all sides. */
static enum status count(struct traffic *traffic, struct error *err)
{
	static const char *const prefixes[] = {"row/", "claim/"};
	const struct doctor_findings *findings = traffic->examination->findings;
	uint64_t side, number, taken[DOCTOR_SIDES_MAX] = {0};
	enum status status = STATUS_OK;
	for (size_t p = 0; p < 2 && status == STATUS_OK; p++) {
		struct store_answer found = {0};
		struct store_range range = {.prefix = prefixes[p]};
		status = store_list(traffic->store, &range, &found, err);
		for (size_t i = 0; status == STATUS_OK && i < found.count; i++) {
			const struct store_entry *entry = &found.entries[i];
			if (sscanf(entry->key, "row/%" SCNu64 "/%" SCNu64, &side, &number) == 2 &&
				side < findings->count)
				traffic->self->present += number < findings->sides[side].rows;
			else if (p == 1 && sscanf(entry->value, "%" SCNu64, &side) == 1 &&
				 side < findings->count)
				taken[side]++;
		}
		store_answer_release(&found);
	}
	/* A side that lost an answer may have more claims than were acknowledged; ignore those. */
	for (size_t k = 0; k < findings->count; k++) {
		uint64_t won = findings->sides[k].won;
		traffic->self->taken += taken[k] < won ? taken[k] : won;
	}
	return status;
}

/* ---- How soon other sides notice a change ---- */

static enum status wait_key(
	struct store *store, const char *key, int64_t deadline, struct error *err)
{
	store_revision seen = 0;
	for (;;) {
		struct store_entry entry = {0};
		enum status status = store_get(store, key, &entry, err);
		store_entry_release(&entry);
		if (status != STATUS_NO)
			return status;
		status = store_wait(store, "ping/", &seen, deadline, -1, err);
		if (status != STATUS_OK)
			return status;
	}
}

/* Side 0 puts a key and waits for the last side's answer; half of the time is one notice. */
static enum status ping(struct traffic *traffic, struct error *err)
{
	struct doctor_side *self = traffic->self;
	bool leads = traffic->index == 0;
	int64_t deadline = clock_after(NOTICE_FOR), sum = 0;
	enum status status = STATUS_OK;
	if (!leads && traffic->index != traffic->examination->findings->count - 1)
		return STATUS_OK;
	for (int64_t round = 0; round < NOTICE_ROUNDS && status == STATUS_OK; round++) {
		int64_t began = clock_now();
		char mine[32], other[32];
		snprintf(mine, sizeof(mine), "ping/%" PRId64 "/%d", round, leads);
		snprintf(other, sizeof(other), "ping/%" PRId64 "/%d", round, !leads);
		if (leads)
			status = store_put(traffic->store, mine, "x", NULL, err);
		if (status == STATUS_OK)
			status = wait_key(traffic->store, other, deadline, err);
		if (status == STATUS_OK && !leads)
			status = store_put(traffic->store, mine, "x", NULL, err);
		if (status != STATUS_OK)
			break;
		int64_t took = (clock_now() - began) / 2;
		sum += took;
		self->noticed = sum / (round + 1);
		self->noticed_longest = took > self->noticed_longest ? took : self->noticed_longest;
	}
	return status == STATUS_TIMEOUT ? STATUS_OK : status;
}

/* ---- In order ---- */

/* An error of the store on any side ends this mode, but not the examination. */
static bool went_well(struct traffic *traffic, enum status status, int64_t takes, struct error *err)
{
	const struct doctor_findings *findings = traffic->examination->findings;
	struct doctor_mode *mode = traffic->findings;
	traffic->self->result = (int)status;
	snprintf(traffic->self->why, sizeof(traffic->self->why), "%s",
		status == STATUS_OK ? "" : err->text);
	if (!doctor_step(traffic->examination, STATUS_OK, takes, err))
		return false;
	for (size_t k = 0; k < findings->count && mode->load == DOCTOR_SKIPPED; k++) {
		if (findings->sides[k].result == STATUS_OK)
			continue;
		mode->load_status = (enum status)findings->sides[k].result;
		mode->load = mode->load_status == STATUS_DAMAGED ? DOCTOR_NO : DOCTOR_FAILED;
		snprintf(mode->load_why, sizeof(mode->load_why), "%s", findings->sides[k].why);
	}
	return mode->load == DOCTOR_SKIPPED;
}

static void run(struct traffic *traffic)
{
	struct doctor_findings *findings = traffic->examination->findings;
	struct doctor_mode *mode = traffic->findings;
	struct doctor_side *self = traffic->self, *sides = findings->sides;
	bool first = traffic->index == 0;
	int64_t alone = findings->quick ? QUICK_ALONE : ALONE_FOR;
	int64_t limit = findings->quick ? QUICK_CONTEND : CONTEND_FOR;
	struct error err = {0};
	/* Side 0 makes the store, and first uses it alone. */
	if (!went_well(traffic, first ? open_store(traffic, &err) : STATUS_OK, PATIENCE, &err) ||
		!went_well(
			traffic, first ? STATUS_OK : open_store(traffic, &err), PATIENCE, &err) ||
		!went_well(traffic, first ? put_for(traffic, alone, false, &err) : STATUS_OK,
			alone + PATIENCE, &err))
		return;
	if (sides[0].took > 0)
		mode->alone = (double)sides[0].rows * 1000 / (double)sides[0].took;
	self->fast = 0;
	self->longest = 0;
	(void)went_well(traffic, put_for(traffic, limit, true, &err), limit + PATIENCE, &err);
	if (findings->trouble != STATUS_OK)
		return;
	for (size_t k = 0; k < findings->count; k++)
		mode->contended += (double)sides[k].fast * 2000 / (double)limit;
	/* Count even if a side could not go on: acknowledged rows must be there. */
	(void)went_well(traffic, count(traffic, &err), PATIENCE, &err);
	if (findings->trouble == STATUS_OK)
		doctor_sum_load(findings, mode);
	if (mode->load != DOCTOR_SKIPPED)
		return;
	if (!findings->quick && traffic->mode == findings->mode) {
		if (!went_well(traffic, ping(traffic, &err), NOTICE_FOR + PATIENCE, &err))
			return;
		findings->noticed = sides[0].noticed;
		findings->noticed_longest = sides[0].noticed_longest;
	}
	mode->load = DOCTOR_YES;
}

bool doctor_measure_load(struct examination *examination, enum lock_mode mode)
{
	struct doctor_side *self = examination->self;
	struct traffic traffic = {.examination = examination,
		.findings = &examination->findings->modes[mode],
		.mode = mode,
		.self = self,
		.index = examination->exchange.index};
	self->rows = self->won = self->lost = self->fast = self->present = self->taken = 0;
	self->took = self->longest = 0;
	self->noticed = self->noticed_longest = -1;
	run(&traffic);
	store_close(traffic.store);
	return examination->findings->trouble == STATUS_OK;
}
