/* SPDX-License-Identifier: MIT */
#include "run/history.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "run/attempt.h"
#include "store/builder.h"

#define BATCH	   50	 /* attempts read in one transaction */
#define ASK_LIMIT  10000 /* ms that saved_ask waits for the store */
#define NOTE_LIMIT 1000	 /* the same for saved_note: a grace period may be nearly over */

#define DECISION(member) JSON_MEMBER(struct budget_decision, member)
static const struct json_field decision_fields[] = {
	{"again", JSON_BOOL, JSON_REQUIRED, DECISION(again)},
	{"pause_ms", JSON_TIME, 0, DECISION(pause)},
	{"why", JSON_TEXT, JSON_REQUIRED, DECISION(why)},
	{0},
};

static bool read_decision(const struct store_entry *entry, struct budget_decision *decision)
{
	*decision = (struct budget_decision){0};
	if (!entry->value || json_read_record(decision_fields, entry->value, entry->length,
				     decision, NULL) == JSON_UNUSABLE)
		return false;
	decision->decided = !decision->again;
	return true;
}

/* Put the decision at key; if revision is not NULL, only if the key has this revision. */
static enum status put_decision(struct store *store, const char *key,
	const store_revision *revision, const struct budget_decision *decision, struct error *err)
{
	struct transaction t = {0};
	const char *owned = transaction_own(&t, key);
	struct json_object *json = json_write_record(decision_fields, decision);
	json_put_signed(json, "utc", clock_utc());
	if (revision)
		transaction_require(&t, owned, *revision);
	transaction_put(&t, owned, json);
	enum status status = transaction_run(&t, store, err);
	transaction_release(&t);
	return status;
}

/* Take in NEXT or REFUSED, if it is a decision not to run again. */
static void read_refusal(const struct store_entry *entry, struct outcome *outcome)
{
	struct budget_decision decision;
	if (!read_decision(entry, &decision) || decision.again)
		return;
	outcome->refused = true;
	snprintf(outcome->why, sizeof(outcome->why), "%.511s", decision.why);
}

/* Conclude the outcome from all keys of an attempt, because CLOSED does not contain it. */
static enum status read_whole(struct store *store, const char *run, uint64_t number,
	struct outcome *outcome, struct error *err)
{
	struct view view = {0};
	enum status status = attempt_view(store, run, number, &view, err);
	if (status == STATUS_OK)
		outcome_of_view(&view, NULL, outcome);
	else if (status == STATUS_NO)
		*outcome = (struct outcome){.cause = CAUSE_LOST, .lasted = -1};
	view_release(&view);
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status take_one(struct store *store, const char *run, uint64_t number,
	const struct store_entry entries[3], struct outcome *outcome, struct error *err)
{
	const struct store_entry *closed = &entries[0];
	enum status status = STATUS_OK;
	struct json_object *json = closed->value ? json_parse(closed->value, closed->length) : NULL;
	if (!outcome_read(json, outcome))
		status = read_whole(store, run, number, outcome, err);
	json_object_put(json);
	outcome->attempt = number;
	read_refusal(&entries[1], outcome);
	read_refusal(&entries[2], outcome);
	return status;
}

/* Read CLOSED, NEXT and REFUSED of count attempts from first on, in one transaction. */
static enum status read_batch(struct store *store, const char *run, uint64_t first, size_t count,
	struct outcome *past, struct error *err)
{
	static const char *const names[] = {"CLOSED", "NEXT", "REFUSED"};
	struct transaction t = {0};
	struct store_answer answer = {0};
	for (size_t i = 0; i < 3 * count; i++) {
		char key[KEYS_MAX];
		struct attempt attempt;
		attempt_name(&attempt, run, first + i / 3, 0);
		keys_of(&attempt, key, "%s", names[i % 3]);
		transaction_get(&t, transaction_own(&t, key));
	}
	enum status status = transaction_ask(&t, store, &answer, err);
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		status = take_one(store, run, first + i, &answer.entries[3 * i], &past[i], err);
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

enum status history_read(struct store *store, const char *run, uint64_t number,
	struct history *history, struct error *err)
{
	struct history found = {0};
	enum status status = STATUS_OK;
	if (number == 0)
		status = attempt_newest(store, run, &number, NULL, err);
	if (status != STATUS_OK)
		return status;
	if (number == 0)
		return error_set(err, STATUS_NO, "run %s has no attempt yet", run);
	found.count = number < HISTORY_MAX ? (size_t)number : HISTORY_MAX;
	found.past = xcalloc(found.count, sizeof(*found.past));
	uint64_t first = number - found.count + 1;
	for (size_t i = 0; i < found.count && status == STATUS_OK; i += BATCH) {
		size_t count = found.count - i < BATCH ? found.count - i : BATCH;
		status = read_batch(store, run, first + i, count, &found.past[i], err);
	}
	if (status == STATUS_OK)
		*history = found;
	else
		history_release(&found);
	return status;
}

void history_release(struct history *history)
{
	free(history->past);
	*history = (struct history){0};
}

/* STATUS_NO: there is no NEXT, or it cannot be parsed. */
static enum status read_next(struct store *store, const char *key, struct budget_decision *decision,
	store_revision *revision, struct error *err)
{
	struct store_entry entry = {0};
	*revision = 0;
	enum status status = store_get(store, key, &entry, err);
	if (status != STATUS_OK)
		return status;
	*revision = entry.revision;
	bool right = read_decision(&entry, decision);
	store_entry_release(&entry);
	return right ? STATUS_OK : STATUS_NO;
}

enum status history_decide_next(struct store *store, const struct attempt *attempt,
	const struct budget_limits *limits, const uint64_t *resume,
	struct budget_decision *decision, struct error *err)
{
	char key[KEYS_MAX];
	struct history history = {0};
	struct budget_decision ours;
	keys_of(attempt, key, "NEXT");
	for (;;) {
		store_revision revision;
		enum status status = read_next(store, key, decision, &revision, err);
		if (status != STATUS_NO)
			return status;
		status = history_read(store, attempt->run, attempt->number, &history, err);
		if (status != STATUS_OK)
			return status;
		struct outcome *last = &history.past[history.count - 1];
		if (resume && (!last->has_saved || *resume > last->saved)) {
			last->measured = last->has_saved = true;
			last->saved = *resume;
		}
		budget_decide(history.past, history.count, limits,
			(uint64_t)clock_jitter(INT64_MAX / 2), &ours);
		history_release(&history);
		if (!ours.again && !ours.decided) { /* the run has finished: record nothing */
			*decision = ours;
			return STATUS_OK;
		}
		status = put_decision(store, key, &revision, &ours, err);
		if (status == STATUS_OK)
			*decision = ours;
		if (status != STATUS_NO) /* another agent was first: follow its decision */
			return status;
	}
}

enum status history_refuse(
	struct store *store, const struct attempt *attempt, const char *why, struct error *err)
{
	char key[KEYS_MAX];
	struct budget_decision decision = {0};
	snprintf(decision.why, sizeof(decision.why), "%s", why);
	keys_of(attempt, key, "REFUSED");
	return put_decision(store, key, NULL, &decision, err);
}

/* ---- What the run has saved ---- */

#define SAVED(member) JSON_MEMBER(struct saved, member)
static const struct json_field saved_fields[] = {
	{"step", JSON_UNSIGNED, JSON_REQUIRED, SAVED(step)},
	{"attempt", JSON_UNSIGNED, JSON_REQUIRED, SAVED(attempt)},
	{"where", JSON_TEXT, 0, SAVED(where)},
	{"layout", JSON_TEXT, 0, SAVED(layout)},
	{"host", JSON_TEXT, 0, SAVED(host)},
	{0},
};

static void name_saved(const char *run, char key[KEYS_MAX])
{
	snprintf(key, KEYS_MAX, "saved/%s", run);
}

enum status saved_read(struct store *store, const char *run, struct saved *saved, struct error *err)
{
	char key[KEYS_MAX];
	struct store_entry entry = {0};
	struct saved found = {.kind = SAVED_STEP};
	name_saved(run, key);
	*saved = (struct saved){.kind = SAVED_UNKNOWN};
	enum status status = store_get(store, key, &entry, err);
	if (status == STATUS_NO) {
		saved->kind = SAVED_NEVER;
		return STATUS_OK;
	}
	if (status != STATUS_OK)
		return status;
	if (json_read_record(saved_fields, entry.value, entry.length, &found, NULL) !=
		JSON_UNUSABLE)
		*saved = found;
	else
		status = error_set(err, STATUS_DAMAGED, "store %s: key %s cannot be read",
			store_where(store), key);
	store_entry_release(&entry);
	return status;
}

/* Open the store of this process's run. STATUS_NO: none is named, or it was not made yet. */
static enum status open_own(
	const char **run, unsigned flags, int64_t limit, struct store **store, struct error *err)
{
	const char *url = getenv("PREEMPT_STORE");
	*run = getenv("PREEMPT_RUN");
	if (!*run || !**run || !url || !*url)
		return STATUS_NO;
	return store_open_patient(store, url, flags, limit, err);
}

enum status saved_ask(const char **run, struct saved *saved, struct error *err)
{
	struct store *store = NULL;
	*saved = (struct saved){.kind = SAVED_UNKNOWN};
	enum status status = open_own(run, STORE_READ_ONLY, ASK_LIMIT, &store, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	status = saved_read(store, *run, saved, err);
	store_close(store);
	return status;
}

void saved_set_where(char where[4096], const char *directory)
{
	char real[PATH_MAX];
	snprintf(where, 4096, "%s", realpath(directory, real) ? real : directory);
}

void saved_put(const char *run, const struct saved *saved, struct transaction *t)
{
	char key[KEYS_MAX];
	struct saved here = *saved;
	name_saved(run, key);
	gethostname(here.host, sizeof(here.host) - 1);
	struct json_object *json = json_write_record(saved_fields, &here);
	json_put_signed(json, "utc", clock_utc());
	transaction_put(t, transaction_own(t, key), json);
}

void saved_put_outcome(const char *run, const struct outcome *outcome,
	const struct outcome_finding *finding, struct transaction *t)
{
	char key[KEYS_MAX];
	struct saved saved = {.step = outcome->saved, .attempt = outcome->attempt};
	name_saved(run, key);
	if (finding) {
		snprintf(saved.where, sizeof(saved.where), "%s", finding->where);
		snprintf(saved.layout, sizeof(saved.layout), "%s", finding->layout);
	}
	if (outcome->cause == CAUSE_COMPLETED)
		transaction_delete(t, transaction_own(t, key));
	else if (outcome->has_saved)
		saved_put(run, &saved, t);
}

enum status saved_note(uint64_t step, const char *directory, struct error *err)
{
	struct store *store = NULL;
	struct transaction t = {0};
	struct saved saved = {.step = step, .layout = "native"};
	const char *run, *attempt = getenv("PREEMPT_ATTEMPT");
	if (!attempt || !parse_decimal(attempt, &saved.attempt))
		return STATUS_OK;
	enum status status = open_own(&run, 0, NOTE_LIMIT, &store, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	saved_set_where(saved.where, directory);
	saved_put(run, &saved, &t);
	status = transaction_run(&t, store, err);
	transaction_release(&t);
	store_close(store);
	return status;
}

enum status saved_forget(struct store *store, const char *run, struct error *err)
{
	char key[KEYS_MAX];
	name_saved(run, key);
	return store_delete(store, key, err);
}

enum saved_start saved_decide(const struct saved *saved, const struct saved_search *search)
{
	bool known = saved->kind == SAVED_STEP;
	switch (search->status) {
	case STATUS_OK: return known && search->step < saved->step ? START_OLDER : START_FOUND;
	case STATUS_NO: return known ? START_REFUSED : START_FRESH;
	default: return START_UNASKED;
	}
}

enum status saved_judge(const struct saved *saved, const char *run,
	const struct saved_search *search, struct error *err)
{
	struct text text = {0};
	enum status status = search->status;
	enum saved_start start = saved_decide(saved, search);
	if (start != START_REFUSED && (start != START_OLDER || !search->path))
		return status;
	text_addf(&text, "run %s has saved step %llu in attempt %llu", run,
		(unsigned long long)saved->step, (unsigned long long)saved->attempt);
	if (*saved->where)
		text_addf(&text, ", in %s", saved->where);
	if (*saved->host)
		text_addf(&text, " (host %s)", saved->host);
	if (start == START_OLDER)
		message_error("%s, but the newest complete checkpoint here is %s, of step %llu: it "
			      "is used",
			text_string(&text), search->path, (unsigned long long)search->step);
	else
		status = error_set(err, STATUS_TEMPORARY,
			"%s, but there is no complete checkpoint in %s: is its filesystem mounted, "
			"and its name right? To start this run over: preempt-run --anew, or "
			"preempt-store anew --run %s",
			text_string(&text), search->places, run);
	text_release(&text);
	return status;
}
