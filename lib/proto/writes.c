/* SPDX-License-Identifier: MIT */
#include "proto/writes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "proto/agreement/facts.h"

#define SILENT_MOST 100 /* missing reports that a decision compares; less than store_operations */

static const char *own_key(struct write *write, const struct view *view, const char *rest)
{
	char key[KEYS_MAX];
	keys_of(&view->attempt, key, "%s", rest);
	return transaction_own(&write->transaction, key);
}

static const char *own_task_key(
	struct write *write, const struct view *view, const char *kind, uint64_t task)
{
	char rest[64];
	snprintf(rest, sizeof(rest), "%s/%llu", kind, (unsigned long long)task);
	return own_key(write, view, rest);
}

static const char *own_round_key(struct write *write, const struct view *view, const char *kind,
	uint64_t round, uint64_t task)
{
	char rest[96];
	snprintf(rest, sizeof(rest), "%s/%llu/%llu", kind, (unsigned long long)round,
		(unsigned long long)task);
	return own_key(write, view, rest);
}

void write_news(struct transaction *t, const struct attempt *attempt, bool news)
{
	char group[KEYS_GROUP];
	keys_group(attempt, group);
	t->group = transaction_own(t, group);
	t->news = news;
}

void write_count(struct write *write, const struct view *view)
{
	const char *prefix[STORE_COUNTS];
	view_request_counts(view, &write->counts);
	view_count_prefixes(&write->counts, prefix);
	for (size_t i = 0; i < STORE_COUNTS; i++)
		write->transaction.count[i] =
			prefix[i] ? transaction_own(&write->transaction, prefix[i]) : NULL;
}

void write_feed(const struct write *write, struct view *view, const struct view_reading *reading)
{
	view_feed_written(view, &write->transaction, write->revision, reading);
	view_feed_counts(view, &write->counts, write->counted, write->revision);
}

static struct json_object *stamped(void)
{
	struct json_object *json = json_object_new_object();
	json_put_signed(json, "utc", clock_utc());
	return json;
}

static struct json_object *seal_value(const char *by, const char *text)
{
	struct json_object *json = stamped();
	json_put_text(json, "by", by);
	json_put_text(json, "text", text);
	return json;
}

static struct json_object *round_value(bool final, uint64_t round_try)
{
	struct json_object *json = stamped();
	json_put_bool(json, "final", final);
	if (round_try > 1)
		json_put_unsigned(json, "try", round_try);
	return json;
}

/* left: for other machines; at: for readers with our monotonic clock; utc: only to be printed. */
static struct json_object *deadline_value(int64_t deadline)
{
	struct json_object *json = json_object_new_object();
	struct process_identity self;
	int64_t left = deadline - clock_now();
	json_put_signed(json, "left", left > 0 ? left : 0);
	json_put_signed(json, "utc", clock_utc() + left);
	if (process_identify(0, &self, NULL) != STATUS_OK)
		return json;
	json_put_text(json, "boot", self.boot);
	json_put_unsigned(json, "timens", self.time_namespace);
	json_put_signed(json, "at", deadline);
	return json;
}

static const char *own_next_round(struct write *write, const struct view *view)
{
	return own_task_key(write, view, "ROUND", view->agreement.round + 1);
}

static void build_claim(
	struct write *write, const struct view *view, const struct write_details *details)
{
	struct json_object *claim = json_object_new_object();
	char host[65] = "", by[128];
	gethostname(host, sizeof(host) - 1);
	if (!details->outside)
		json_put_unsigned(claim, "task", write->task);
	else if (details->pid)
		json_put_unsigned(claim, "pid", details->pid);
	json_put_text(claim, "then", keys_then_word(details->then));
	json_put_text(claim, "host", host);
	json_put_text(claim, "source", details->notice->source);
	json_put_text(claim, "reason", details->notice->reason);
	json_put_signed(claim, "utc", details->notice->received_utc);
	if (details->deadline != CLOCK_NEVER)
		json_put_signed(
			claim, "deadline_utc", clock_utc() + details->deadline - clock_now());
	if (details->outside)
		snprintf(by, sizeof(by), "claimed from outside, on %s", host);
	else
		snprintf(by, sizeof(by), "claimed by task %llu on %s",
			(unsigned long long)write->task, host);
	/* A task that has left must not stop the others. */
	if (!details->outside)
		transaction_require(
			&write->transaction, own_task_key(write, view, "LEFT", write->task), 0);
	transaction_put_new(&write->transaction, own_key(write, view, "TERMINATED_WORKER"), claim);
	transaction_put_new(
		&write->transaction, own_key(write, view, "SEAL"), seal_value("claim", by));
	transaction_put_new(
		&write->transaction, own_next_round(write, view), round_value(false, 1));
	if (details->deadline == CLOCK_NEVER)
		return;
	write->deadline_key = own_key(write, view, "DEADLINE");
	write->deadline = details->deadline;
}

static void build_report(struct write *write, const struct view *view,
	const struct agreement_plan *plan, const struct write_details *details)
{
	struct json_object *json = stamped();
	json_put_bool(json, "none", plan->report_none);
	if (!plan->report_none) {
		json_put_unsigned(json, "step", plan->step);
		json_put_unsigned(json, "next", plan->next);
		json_put_signed(json, "step_ms", details->step_time);
	}
	/* Overwrite a value that cannot be parsed. */
	const char *key = own_round_key(write, view, "STEP", write->round, write->task);
	transaction_require(&write->transaction, key, view->members[write->task].unreadable);
	transaction_put(&write->transaction, key, json);
	write_count(write, view);
}

static bool counts(const void *context, uint64_t task)
{
	return agreement_counts(context, task);
}

static bool is_missing(const void *context, uint64_t task)
{
	const struct agreement_view *view = context;
	return agreement_counts(view, task) && !view->peers[task].reported;
}

static void build_decision(
	struct write *write, const struct view *view, const struct agreement_plan *plan)
{
	const struct agreement_decision *decision = &plan->decision;
	struct json_object *json = stamped();
	struct text members = {0}, missing = {0};
	char name[64];
	keys_write_set(view->attempt.tasks, counts, &view->agreement, &members);
	keys_write_set(view->attempt.tasks, is_missing, &view->agreement, &missing);
	json_put_text(json, "kind", keys_kind_word(decision->kind));
	json_put_text(json, "then", keys_then_word(decision->then));
	if (decision->kind == KIND_SAVE || decision->kind == KIND_EXIT)
		json_put_unsigned(json, "step", decision->step);
	json_put_text(json, "members", text_string(&members));
	json_put_text(json, "missing", text_string(&missing));
	text_release(&members);
	text_release(&missing);
	keys_decision(write->round, name);
	transaction_put_new(&write->transaction, own_key(write, view, name), json);
	/*
	 * Refuse the decision if a report has arrived that the view does not show: read again
	 * first. Missing reports beyond SILENT_MOST are not compared: if such a task has reported
	 * and cannot follow the decision, it opens the next round.
	 */
	for (uint64_t i = 0, left = SILENT_MOST; i < view->attempt.tasks && left; i++)
		if (is_missing(&view->agreement, i) && left--)
			transaction_require(&write->transaction,
				own_round_key(write, view, "STEP", write->round, i),
				view->members[i].unreadable);
}

static void build_ack(struct write *write, const struct view *view)
{
	char name[64], rest[128];
	keys_decision(write->round, name);
	snprintf(rest, sizeof(rest), "RECEIVED_SIGNAL_%s_%llu", name,
		(unsigned long long)write->task);
	transaction_put(&write->transaction, own_key(write, view, rest), stamped());
}

static void build_saved(struct write *write, const struct view *view,
	const struct agreement_plan *plan, const struct write_details *details)
{
	struct json_object *json = stamped();
	json_put_unsigned(json, "step", plan->saved_step);
	json_put_signed(json, "ms", details->save_time);
	transaction_put(&write->transaction,
		own_round_key(write, view, "SAVED", write->round, write->task), json);
	if (details->acknowledges)
		build_ack(write, view);
	write_count(write, view);
}

static void build_error(
	struct write *write, const struct view *view, const struct write_details *details)
{
	struct json_object *json = stamped();
	char host[65] = "", text[96], class[64];
	gethostname(host, sizeof(host) - 1);
	json_put_unsigned(json, "task", write->task);
	json_put_unsigned(json, "code", (uint64_t)details->code);
	json_put_text(json, "host", host);
	json_put_text(json, "line", details->line ? details->line : "");
	keys_error_class(details->line ? details->line : "", class);
	if (*class)
		json_put_text(json, "class", class);
	/* A task writes ERROR together with the seal. Without a seal this ERROR is not a
	 * task's: overwrite it. */
	const char *key = own_key(write, view, "ERROR");
	transaction_require(&write->transaction, key, *view->seal ? 0 : view->error.revision);
	transaction_put(&write->transaction, key, json);
	snprintf(text, sizeof(text), "task %llu failed", (unsigned long long)write->task);
	transaction_put_new(
		&write->transaction, own_key(write, view, "SEAL"), seal_value("error", text));
}

static void build_all_saved(
	struct write *write, const struct view *view, const struct agreement_plan *plan)
{
	struct json_object *json = stamped();
	if (plan->complete)
		json_put_unsigned(json, "complete", plan->complete_step);
	transaction_put_new(
		&write->transaction, own_task_key(write, view, "ALL_SAVED", write->round), json);
}

/* Whether other tasks wait for this task's report or save. */
static bool is_awaited(const struct view *view, uint64_t task)
{
	const struct agreement_view *a = &view->agreement;
	return a->round && !a->broken && !a->closed &&
	       !(is_final(a) && (a->all_saved == a->round || a->peers[task].saved));
}

static void build_left(struct write *write, const struct view *view,
	const struct agreement_plan *plan, const struct write_details *details)
{
	struct json_object *json = stamped();
	json_put_text(json, "reason", keys_reason_word(plan->reason));
	json_put_unsigned(json, "code", (uint64_t)details->code);
	if (details->called)
		json_put_unsigned(json, "step", details->step);
	if (details->saved)
		json_put_unsigned(json, "saved", details->saved_step);
	if (details->complete)
		json_put_unsigned(json, "complete", details->complete_step);
	if (details->chief_saves)
		json_put_bool(json, "chief", true);
	if (details->longest_save > 0)
		json_put_signed(json, "save_ms", details->longest_save);
	transaction_put(&write->transaction, own_task_key(write, view, "LEFT", write->task), json);
	write_count(write, view);
	/*
	 * A goodbye that is no news still reads the count of news, which shows whether this agent
	 * has missed any. In a large job a few tasks count the goodbyes and act for all.
	 */
	bool news = !view_is_large(view) && is_awaited(view, write->task);
	write_news(&write->transaction, &view->attempt, news);
}

void write_build(struct write *write, const struct view *view, enum agreement_write what,
	uint64_t task, const struct agreement_plan *plan, const struct write_details *details)
{
	*write = (struct write){.what = what, .task = task, .round = plan->write[what]};
	switch (what) {
	case WRITE_CLAIM: build_claim(write, view, details); break;
	case WRITE_DEADLINE: {
		const char *key = own_key(write, view, "DEADLINE");
		transaction_require(&write->transaction, key, view->deadline_revision);
		/* The stored deadline may be earlier than ours. */
		int64_t known = view->agreement.deadline;
		write->deadline_key = key;
		write->deadline = clock_earlier(details->deadline, known);
		break;
	}
	case WRITE_ROUND:
		transaction_put_new(&write->transaction,
			own_task_key(write, view, "ROUND", write->round),
			round_value(plan->final, plan->round_try));
		break;
	case WRITE_REPORT: build_report(write, view, plan, details); break;
	case WRITE_DECISION: build_decision(write, view, plan); break;
	case WRITE_ACK: build_ack(write, view); break;
	case WRITE_SAVED: build_saved(write, view, plan, details); break;
	case WRITE_ALL_SAVED: build_all_saved(write, view, plan); break;
	case WRITE_ERROR: build_error(write, view, details); break;
	case WRITE_LEFT: build_left(write, view, plan, details); return;
	case WRITE_KINDS: return;
	}
	if (what != WRITE_REPORT && what != WRITE_ACK && what != WRITE_SAVED)
		write_news(&write->transaction, &view->attempt, true);
	/* A task that was declared dead must not write any more. */
	if (!details->outside)
		transaction_require(
			&write->transaction, own_task_key(write, view, "DEAD", task), 0);
}

/* "task 3 on node7 is dead: no heartbeat since 2026-01-31T12:00:00.000Z, last step 120" */
static void describe_deaths(
	const struct view *view, const struct death *deaths, size_t count, struct text *text)
{
	static const char *const what[] = {"dead: no heartbeat since ", "gone; last seen ",
		"restarted; before that last seen ", "hung: no progress since "};
	const struct death *first = &deaths[0];
	const char *host = view->members[first->task].agent.host;
	bool was = first->cause == DEATH_RESTARTED;
	char since[32];
	clock_format_utc(first->since_utc, since);
	text_addf(text, "task %llu%s%s %s %s%s", (unsigned long long)first->task,
		*host ? " on " : "", host, was ? "was" : "is", what[first->cause], since);
	if (first->has_step)
		text_addf(text, ", last step %llu", (unsigned long long)first->step);
	else
		text_add(text, ", no step known");
	if (count == 1)
		return;
	text_add(text, "; and so are ");
	bool *set = xcalloc(view->attempt.tasks, sizeof(*set));
	for (size_t i = 1; i < count; i++)
		set[deaths[i].task] = true;
	keys_write_marks(view->attempt.tasks, set, text);
	free(set);
}

static struct json_object *death_value(const struct view *view, const struct death *death)
{
	struct json_object *json = stamped();
	json_put_text(json, "by", keys_death_word(death->cause));
	json_put_text(json, "host", view->members[death->task].agent.host);
	json_put_signed(json, "since_utc", death->since_utc);
	if (death->has_step)
		json_put_unsigned(json, "step", death->step);
	return json;
}

size_t write_find_gone(const struct view *view, bool (*asked)(const void *context, uint64_t task),
	const void *context, struct death *deaths, size_t most)
{
	size_t count = 0;
	for (uint64_t i = 0; i < view->attempt.tasks && count < most; i++)
		if (view->members[i].shown[RECORD_TASK] && agreement_counts(&view->agreement, i) &&
			(!asked || asked(context, i)) &&
			process_check(&view->members[i].agent) == PROCESS_GONE)
			deaths[count++] = (struct death){
				.task = i, .cause = DEATH_GONE, .since_utc = clock_utc()};
	return count;
}

void write_build_deaths(struct write *write, const struct view *view, uint64_t by,
	const struct death *deaths, size_t count)
{
	struct text text = {0};
	*write = (struct write){.what = WRITE_KINDS, .task = deaths[0].task};
	struct transaction *t = &write->transaction;
	bool own = false;
	for (size_t i = 0; i < count; i++) {
		/* Refused if the task has left, which the view may not show yet. */
		transaction_require(t, own_task_key(write, view, "LEFT", deaths[i].task), 0);
		transaction_put_new(t, own_task_key(write, view, "DEAD", deaths[i].task),
			death_value(view, &deaths[i]));
		own |= deaths[i].task == by;
	}
	write_news(t, &view->attempt, true);
	if (!own && by != BY_NO_TASK)
		transaction_require(t, own_task_key(write, view, "DEAD", by), 0);
	if (*view->seal)
		return;
	describe_deaths(view, deaths, count, &text);
	transaction_put_new(t, own_key(write, view, "SEAL"),
		seal_value(deaths[0].cause == DEATH_HUNG ? "hung" : "death", text_string(&text)));
	text_release(&text);
}

enum agreement_outcome write_deaths(struct store *store, const struct view *view, uint64_t by,
	const struct death *deaths, size_t count, struct error *err)
{
	struct write write;
	write_build_deaths(&write, view, by, deaths, count);
	enum agreement_outcome outcome = write_carry_out(&write, store, err);
	write_release(&write);
	return outcome;
}

void write_build_demand(struct write *write, const struct view *view)
{
	*write = (struct write){.what = WRITE_ROUND, .round = view->agreement.round + 1};
	transaction_put_new(
		&write->transaction, own_next_round(write, view), round_value(false, 1));
	transaction_require(&write->transaction, own_key(write, view, "SEAL"), 0);
	write_news(&write->transaction, &view->attempt, true);
}

void write_release(struct write *write)
{
	transaction_release(&write->transaction);
}

/* Compute the remaining time as late as possible. */
static void put_deadline(struct write *write)
{
	if (write->deadline_key)
		transaction_put(
			&write->transaction, write->deadline_key, deadline_value(write->deadline));
	write->deadline_key = NULL;
}

static enum agreement_outcome run(const struct transaction *t, struct store *store,
	struct store_answer *answer, struct error *err)
{
	enum status status = transaction_ask(t, store, answer, err);
	enum agreement_outcome outcome = status != STATUS_OK ? OUTCOME_UNKNOWN
					 : answer->held	     ? OUTCOME_DONE
							     : OUTCOME_REFUSED;
	/* Free the entries only: the caller reads the revision and the counts. */
	store_answer_release(
		&(struct store_answer){.entries = answer->entries, .count = answer->count});
	answer->entries = NULL;
	answer->count = 0;
	return outcome;
}

enum agreement_outcome write_carry_out(struct write *write, struct store *store, struct error *err)
{
	struct store_answer answer;
	put_deadline(write);
	enum agreement_outcome outcome = run(&write->transaction, store, &answer, err);
	write->revision = answer.revision;
	write->news = answer.news;
	memcpy(write->counted, answer.counted, sizeof(write->counted));
	return outcome;
}

bool write_carry_out_all(
	struct write *const writes[], size_t count, struct store *store, struct error *err)
{
	struct transaction all = {0};
	struct store_answer answer;
	for (size_t i = 0; i < count; i++) {
		put_deadline(writes[i]);
		transaction_add(&all, &writes[i]->transaction);
	}
	enum agreement_outcome outcome = OUTCOME_REFUSED;
	if (all.op_count <= store_operations(store) && all.compare_count <= store_operations(store))
		outcome = run(&all, store, &answer, err);
	for (size_t i = 0; i < count && outcome == OUTCOME_DONE; i++) {
		writes[i]->revision = answer.revision;
		writes[i]->news = answer.news;
		for (size_t k = 0; k < STORE_COUNTS; k++)
			if (writes[i]->transaction.count[k] &&
				!strcmp(writes[i]->transaction.count[k], all.count[k]))
				writes[i]->counted[k] = answer.counted[k];
	}
	transaction_release(&all);
	return outcome == OUTCOME_DONE;
}
