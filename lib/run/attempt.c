/* SPDX-License-Identifier: MIT */
#include "run/attempt.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_fields.h"
#include "proto/remembered.h"
#include "run/history.h"
#include "run/outcome.h"
#include "store/builder.h"

enum status attempt_newest(struct store *store, const char *run, uint64_t *number,
	store_revision *revision, struct error *err)
{
	char key[KEYS_MAX];
	struct store_entry entry = {0};
	snprintf(key, sizeof(key), "run/%s/LAST", run);
	*number = 0;
	if (revision)
		*revision = 0;
	enum status status = store_get(store, key, &entry, err);
	if (status == STATUS_NO)
		return STATUS_OK;
	if (status != STATUS_OK)
		return status;
	struct json_object *json = json_parse(entry.value, entry.length);
	if (!json_get_unsigned(json, "attempt", number) || *number == 0)
		status = error_set(err, STATUS_DAMAGED, "store %s: key %s cannot be read",
			store_where(store), key);
	if (revision)
		*revision = entry.revision;
	json_object_put(json);
	store_entry_release(&entry);
	return status;
}

#define OPEN(member) JSON_MEMBER(struct attempt, member)
static const struct json_field open_fields[] = {
	{"tasks", JSON_UNSIGNED, JSON_REQUIRED, OPEN(tasks), 1, 65536},
	{"launch", JSON_TEXT, JSON_REQUIRED, OPEN(launch)},
	{"life", JSON_TEXT, JSON_REQUIRED, OPEN(life)},
	{0},
};

struct json_object *attempt_open_value(const struct attempt *attempt)
{
	struct json_object *json = json_write_record(open_fields, attempt);
	json_put_signed(json, "utc", clock_utc());
	return json;
}

/* Read tasks, launch id and life from the value of OPEN. open NULL (absent): STATUS_NO. */
static enum status read_open(const struct store *store, struct attempt *attempt,
	const struct store_entry *open, struct error *err)
{
	if (!open)
		return error_set(err, STATUS_NO, "run %s has no attempt %llu", attempt->run,
			(unsigned long long)attempt->number);
	if (json_read_record(open_fields, open->value, open->length, attempt, NULL) == JSON_WELL &&
		life_is_valid(attempt->life))
		return STATUS_OK;
	return error_set(err, STATUS_DAMAGED, "store %s: key %sOPEN cannot be read",
		store_where(store), attempt->prefix);
}

/* Read all keys of an attempt at once, and make a view of them. */
static enum status read_attempt(
	struct store *store, const char *run, uint64_t number, struct view *view, struct error *err)
{
	struct attempt attempt;
	struct store_answer answer = {0};
	const struct store_entry *open = NULL;
	char group[KEYS_GROUP], key[KEYS_MAX];
	attempt_name(&attempt, run, number, 0);
	keys_group(&attempt, group);
	keys_of(&attempt, key, "OPEN");
	struct view_reading reading = {.began = clock_now()};
	uint32_t heard = store_news(store, group);
	enum status status =
		store_list(store, &(struct store_range){.prefix = attempt.prefix}, &answer, err);
	reading.ended = clock_now();
	for (size_t i = 0; status == STATUS_OK && i < answer.count && !open; i++)
		if (!strcmp(answer.entries[i].key, key))
			open = &answer.entries[i];
	if (status == STATUS_OK)
		status = read_open(store, &attempt, open, err);
	if (status == STATUS_OK) {
		view_init(view, &attempt);
		view_feed(view, &answer, &reading);
		view->heard = heard;
	}
	store_answer_release(&answer);
	return status;
}

/* If *number is 0, set it to the newest attempt. STATUS_NO, with err: there is none. */
static enum status choose_number(
	struct store *store, const char *run, uint64_t *number, struct error *err)
{
	enum status status = *number ? STATUS_OK : attempt_newest(store, run, number, NULL, err);
	if (status == STATUS_OK && *number == 0)
		status = error_set(err, STATUS_NO, "run %s has no attempt yet", run);
	return status;
}

enum status attempt_view(
	struct store *store, const char *run, uint64_t number, struct view *view, struct error *err)
{
	enum status status = choose_number(store, run, &number, err);
	return status == STATUS_OK ? read_attempt(store, run, number, view, err) : status;
}

enum status attempt_find(struct store *store, const char *run, uint64_t number,
	struct attempt *attempt, struct error *err)
{
	struct attempt found;
	struct store_entry open = {0};
	char key[KEYS_MAX];
	enum status status = choose_number(store, run, &number, err);
	if (status != STATUS_OK)
		return status;
	attempt_name(&found, run, number, 0);
	keys_of(&found, key, "OPEN");
	status = store_get(store, key, &open, err);
	if (status == STATUS_OK || status == STATUS_NO)
		status = read_open(store, &found, status == STATUS_OK ? &open : NULL, err);
	store_entry_release(&open);
	if (status == STATUS_OK)
		*attempt = found;
	return status;
}

enum status attempt_check_task(const struct attempt *attempt, uint64_t task, struct error *err)
{
	if (task < attempt->tasks)
		return STATUS_OK;
	return error_set(err, STATUS_USAGE, "task %llu, but run %s has %llu tasks",
		(unsigned long long)task, attempt->run, (unsigned long long)attempt->tasks);
}

/* ---- Leaving, and closing ---- */

enum status attempt_leave(struct store *store, struct view *view, uint64_t task,
	enum agreement_reason reason, int code, struct error *err)
{
	struct write write;
	struct agreement_plan plan = {.reason = reason};
	plan.write[WRITE_LEFT] = 1;
	write_build(&write, view, WRITE_LEFT, task, &plan, &(struct write_details){.code = code});
	enum agreement_outcome outcome = write_carry_out(&write, store, err);
	write_release(&write);
	return outcome == OUTCOME_UNKNOWN ? STATUS_TEMPORARY : STATUS_OK;
}

/* The word for "state" in CLOSED. */
static const char *state_of(enum outcome_cause cause, bool claimed)
{
	return cause == CAUSE_COMPLETED ? "completed"
	       : cause == CAUSE_LEFT	? "left"
	       : claimed		? "preempted"
					: "failed";
}

enum status attempt_seal(struct store *store, const struct attempt *attempt, const char *by,
	const char *text, struct error *err)
{
	struct transaction t = {0};
	char key[KEYS_MAX];
	struct json_object *json = json_object_new_object();
	json_put_text(json, "by", by);
	json_put_text(json, "text", text);
	json_put_signed(json, "utc", clock_utc());
	keys_of(attempt, key, "SEAL");
	transaction_require(&t, transaction_own(&t, key), 0);
	transaction_put(&t, transaction_own(&t, key), json);
	write_news(&t, attempt, true);
	enum status status = transaction_run(&t, store, err);
	transaction_release(&t);
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status put_closed(struct store *store, const struct view *view, bool corrects,
	const struct outcome_finding *finding, const struct remembered *known, struct error *err)
{
	struct transaction t = {0};
	char key[KEYS_MAX];
	struct outcome outcome;
	struct json_object *json = json_object_new_object();
	outcome_of_view(view, finding, &outcome);
	if (outcome.cause == CAUSE_OPEN)
		outcome.cause = CAUSE_LOST; /* no record says why */
	json_put_text(json, "state", state_of(outcome.cause, view->agreement.claimed));
	if (outcome.has_saved)
		json_put_unsigned(json, "step", outcome.saved);
	outcome_write(&outcome, json);
	json_put_signed(json, "utc", clock_utc());
	keys_of(&view->attempt, key, "CLOSED");
	if (!corrects)
		transaction_require(&t, transaction_own(&t, key), 0);
	transaction_put(&t, transaction_own(&t, key), json);
	write_news(&t, &view->attempt, true);
	/* After a correction, a newer attempt may have saved already. */
	if (!corrects)
		saved_put_outcome(view->attempt.run, &outcome, finding, &t);
	if (known)
		remembered_put(known, view->attempt.run, view->longest_save, &t);
	enum status status = transaction_run(&t, store, err);
	transaction_release(&t);
	return status;
}

static enum status close_now(struct store *store, const struct view *view,
	const struct outcome_finding *finding, struct error *err)
{
	struct remembered known;
	/* A task that was declared dead may have come back since and reported that it finished. */
	bool corrects = view->agreement.closed && strcmp(view->closed, "completed") != 0 &&
			view_all_completed(view);
	if (view->agreement.closed && !corrects)
		return STATUS_OK;
	bool measured = view->longest_save > 0 &&
			remembered_read(store, view->attempt.run, &known, NULL) == STATUS_OK;
	enum status status =
		put_closed(store, view, corrects, finding, measured ? &known : NULL, err);
	/* Another process has closed it or changed MEASURE: try without. */
	if (status == STATUS_NO && measured)
		status = put_closed(store, view, corrects, finding, NULL, err);
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status attempt_close_as_seen(struct store *store, const struct view *view,
	const struct outcome_finding *finding, struct error *err)
{
	if (!view->agreement.closed && !view_all_through(view))
		return error_set(
			err, STATUS_NO, "run %s: some tasks have not left yet", view->attempt.run);
	return close_now(store, view, finding, err);
}

enum status attempt_close(struct store *store, struct view *view,
	const struct outcome_finding *finding, struct error *err)
{
	enum status status = view_refresh(view, store, err);
	return status == STATUS_OK ? attempt_close_as_seen(store, view, finding, err) : status;
}

enum status attempt_close_by_hand(struct store *store, struct view *view, struct error *err)
{
	enum status status = STATUS_OK;
	bool claimed = view->agreement.claimed;
	if (!view->agreement.closed && !view_all_through(view)) {
		status = attempt_seal(store, &view->attempt, "closed",
			"it was closed by preempt-store close", err);
		if (status == STATUS_OK)
			status = view_refresh(view, store, err);
	}
	if (status == STATUS_OK && view->agreement.claimed != claimed)
		return error_set(err, STATUS_NO, "run %s: attempt %llu is being preempted",
			view->attempt.run, (unsigned long long)view->attempt.number);
	return status == STATUS_OK ? close_now(store, view, NULL, err) : status;
}
