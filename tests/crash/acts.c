/* SPDX-License-Identifier: MIT */
#include "acts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static enum status transact(
	struct store *store, const struct store_request *request, struct outcome *outcome)
{
	struct store_answer answer = {0};
	enum status status = store_txn(store, request, &answer, &outcome->err);
	outcome->known = answer.known;
	if (status == STATUS_OK) {
		int used = snprintf(outcome->answer, sizeof(outcome->answer), "%d %" PRId64,
			answer.held, answer.revision);
		for (size_t i = 0; i < answer.count; i++)
			used += snprintf(outcome->answer + used,
				sizeof(outcome->answer) - (size_t)used, " %s@%" PRId64 "(%zu)",
				answer.entries[i].key, answer.entries[i].revision,
				answer.entries[i].length);
		if (!answer.held)
			status = STATUS_NO;
	}
	store_answer_release(&answer);
	return status;
}

static enum status put(struct store *store, struct outcome *outcome)
{
	struct store_op op = {STORE_PUT, "run/r/007", "seven", 5};
	struct store_request request = {.then = &op, .then_count = 1};
	return transact(store, &request, outcome);
}

static enum status put_many(struct store *store, struct outcome *outcome)
{
	return fixture_change(store, &outcome->known, &outcome->err);
}

static enum status put_if_absent(struct store *store, struct outcome *outcome)
{
	struct store_compare absent = {.key = "run/TERMINATED_WORKER"};
	struct store_op op = {STORE_PUT, absent.key, "3", 1};
	struct store_op get = {.kind = STORE_GET, .key = absent.key};
	struct store_request request = {&absent, 1, &op, 1, &get, 1, NULL, false, {NULL}};
	return transact(store, &request, outcome);
}

static enum status lose(struct store *store, struct outcome *outcome)
{
	struct store_compare absent = {.key = "run/r/001"};
	struct store_op op = {STORE_PUT, absent.key, "3", 1};
	struct store_op get = {.kind = STORE_GET, .key = absent.key};
	struct store_request request = {&absent, 1, &op, 1, &get, 1, NULL, false, {NULL}};
	return transact(store, &request, outcome);
}

static enum status claim(struct store *store, struct outcome *outcome)
{
	struct store_compare compares[] = {{"run/claim", 0}, {"run/r/001", 2}};
	struct store_op ops[] = {{STORE_PUT, "run/claim", "mine", 4},
		{STORE_PUT, "run/notice", "TERM", 4}, {.kind = STORE_GET, .key = "run/r/001"}};
	struct store_op get = {.kind = STORE_GET, .key = "run/claim"};
	struct store_request request = {compares, 2, ops, 3, &get, 1, NULL, false, {NULL}};
	return transact(store, &request, outcome);
}

static enum status delete (struct store *store, struct outcome *outcome) {
	struct store_op op = {.kind = STORE_DELETE, .key = "large"};
	struct store_request request = {.then = &op, .then_count = 1};
	return transact(store, &request, outcome);
}

static enum status get(struct store *store, struct outcome *outcome)
{
	struct store_op ops[] = {{.kind = STORE_GET, .key = "large"},
		{.kind = STORE_GET, .key = "run/r/020"}, {.kind = STORE_GET, .key = "none"}};
	struct store_request request = {.then = ops, .then_count = 3};
	return transact(store, &request, outcome);
}

static enum status list(struct store *store, struct outcome *outcome)
{
	struct store_range range = {.prefix = "run/", .since = 11};
	struct store_answer answer = {0};
	enum status status = store_list(store, &range, &answer, &outcome->err);
	if (status == STATUS_OK)
		snprintf(outcome->answer, sizeof(outcome->answer), "%zu %s", answer.count,
			answer.count ? answer.entries[answer.count - 1].key : "");
	store_answer_release(&answer);
	return status;
}

static enum status wait_for(struct store *store, store_revision since, struct outcome *outcome)
{
	enum status status = store_wait(store, "run/", &since, clock_after(20), -1, &outcome->err);
	if (status == STATUS_OK)
		snprintf(outcome->answer, sizeof(outcome->answer), "%" PRId64, since);
	return status;
}

static enum status wait_seen(struct store *store, struct outcome *outcome)
{
	return wait_for(store, 3, outcome);
}

static enum status wait_in_vain(struct store *store, struct outcome *outcome)
{
	return wait_for(store, 1000, outcome);
}

static enum status beats_make(struct store *store, struct outcome *outcome)
{
	return store_beats_prepare(store, "r/1", 3, &outcome->err);
}

static enum status beat(struct store *store, struct outcome *outcome)
{
	struct store_beat mine = {.token = 7, .sequence = 5, .step = 100};
	return store_beat(store, "r/1", 1, &mine, &outcome->err);
}

static enum status beat_read(struct store *store, struct outcome *outcome)
{
	struct store_beat mine = {0};
	enum status status = store_beat_read(store, "r/1", 0, &mine, &outcome->err);
	snprintf(outcome->answer, sizeof(outcome->answer), "%" PRIu64, mine.sequence);
	return status;
}

static enum status beats_remove(struct store *store, struct outcome *outcome)
{
	return store_beats_remove(store, "r", &outcome->err);
}

static enum status purge(struct store *store, struct outcome *outcome)
{
	struct store_compare compare = {.key = "run/r/001", .revision = 2};
	return store_purge(store, "run/r/", &compare, 1, &outcome->err);
}

void act_play(const struct act *act, const char *url, int64_t patience, struct store **store,
	struct outcome *outcome)
{
	int64_t began = clock_now();
	enum status status =
		store_open(store, url, act->flags, clock_after(patience), &outcome->err);
	if (status == STATUS_OK)
		store_set_patience(*store, patience);
	if (status == STATUS_OK && act->run)
		status = act->run(*store, outcome);
	else
		outcome->known = false;
	outcome->status = status;
	outcome->milliseconds = clock_now() - began;
	outcome->finished = true;
}

const struct act acts[] = {
	{"make", STATE_NOTHING, EFFECT_PARTS, STORE_CREATE, false, false, NULL},
	{"make-and-put", STATE_NOTHING, EFFECT_PARTS, STORE_CREATE, false, false, put},
	{"put", STATE_FULL, EFFECT_WHOLE, STORE_CREATE, false, false, put},
	{"put-many", STATE_FULL, EFFECT_WHOLE, STORE_CREATE, false, false, put_many},
	{"put-if-absent", STATE_FULL, EFFECT_WHOLE, STORE_CREATE, false, false, put_if_absent},
	{"put-too-late", STATE_FULL, EFFECT_NONE, STORE_CREATE, false, false, lose},
	{"claim", STATE_FULL, EFFECT_WHOLE, STORE_CREATE, false, false, claim},
	{"delete", STATE_FULL, EFFECT_WHOLE, 0, false, false, delete},
	{"get", STATE_FULL, EFFECT_NONE, STORE_READ_ONLY, false, false, get},
	{"list", STATE_FULL, EFFECT_NONE, STORE_READ_ONLY, false, false, list},
	{"wait-seen", STATE_FULL, EFFECT_NONE, 0, false, true, wait_seen},
	{"wait-in-vain", STATE_FULL, EFFECT_NONE, 0, false, true, wait_in_vain},
	{"beats-make", STATE_FULL, EFFECT_PARTS, 0, false, false, beats_make},
	{"beat", STATE_FULL, EFFECT_PARTS, 0, true, false, beat},
	{"beat-read", STATE_FULL, EFFECT_NONE, STORE_READ_ONLY, true, false, beat_read},
	{"beats-remove", STATE_FULL, EFFECT_PARTS, 0, true, false, beats_remove},
	{"purge", STATE_FULL, EFFECT_WHOLE, 0, false, false, purge},
	{"roll-back-and-get", STATE_HOT, EFFECT_NONE, 0, false, false, get},
	{"roll-back-and-put", STATE_HOT, EFFECT_WHOLE, STORE_CREATE, false, false, put},
};
const size_t act_count = sizeof(acts) / sizeof(*acts);
