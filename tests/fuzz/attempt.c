/* SPDX-License-Identifier: MIT */
/*
 * The records of a run: an input is a store, a line "KEY VALUE" for each key, of run "r". What is
 * read of it is decided on: views, the agreement, outcomes, budgets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/remembered.h"
#include "proto/runs.h"
#include "run/attempt.h"
#include "run/history.h"
#include "support/fuzz.h"

#define NOW 1000000000

static bool is_ended(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* What agreement and agent rely on. */
static void check_members(const struct view *view)
{
	const struct agreement_view *a = &view->agreement;
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		const struct agreement_peer *peer = &a->peers[i];
		const struct view_member *member = &view->members[i];
		FUZZ_HOLDS(!peer->reported || peer->none || peer->next > peer->step);
		FUZZ_HOLDS(peer->step_time >= 0);
		FUZZ_HOLDS(member->save_time >= 0);
		FUZZ_HOLDS(member->left_code >= 0 && member->left_code <= 255);
		FUZZ_HOLDS(member->agent.pid >= 0);
		FUZZ_HOLDS(is_ended(member->agent.host, sizeof(member->agent.host)));
	}
	FUZZ_HOLDS(is_ended(view->claim.reason, sizeof(view->claim.reason)));
	FUZZ_HOLDS(is_ended(view->error.line, sizeof(view->error.line)));
	FUZZ_HOLDS(!a->decided || !a->unreadable);
}

/* An outcome that is written into CLOSED is read as the same. */
static void check_outcome(const struct view *view, const struct outcome_finding *finding)
{
	struct outcome outcome, again;
	outcome_of_view(view, finding, &outcome);
	struct json_object *closed = json_object_new_object();
	outcome_write(&outcome, closed);
	const char *line = json_line(closed);
	struct json_object *read = json_parse(line, strlen(line));
	FUZZ_HOLDS(read && outcome_read(read, &again));
	FUZZ_HOLDS(again.cause == outcome.cause && again.lasted == outcome.lasted);
	FUZZ_HOLDS(again.code == outcome.code && strcmp(again.text, outcome.text) == 0);
	FUZZ_HOLDS(again.has_saved == outcome.has_saved && again.saved == outcome.saved);
	FUZZ_HOLDS(again.has_resume == outcome.has_resume && again.resume == outcome.resume);
	json_object_put(read);
	json_object_put(closed);
}

/* A decision that is made now is one that all that reported can reach. */
static void check_decision(const struct view *view, const struct grace_measure *measure)
{
	static const int64_t deadlines[] = {CLOCK_NEVER, NOW, NOW + 30000};
	const struct agreement_view *a = &view->agreement;
	struct agreement_decision decision;
	for (size_t i = 0; i < 3; i++)
		agreement_decide(a, measure, deadlines[i], NOW, &decision);
	for (uint64_t i = 0; i < a->tasks && decision.kind != KIND_NONE; i++)
		FUZZ_HOLDS(!agreement_counts(a, i) || !a->peers[i].reported || a->peers[i].none ||
			   decision.step >= a->peers[i].next);
}

static void check_view(const struct view *view, const struct grace_measure *measure)
{
	const struct outcome_finding finding = {.newer = true, .step = 5};
	struct text missing = {0};
	check_members(view);
	check_outcome(view, NULL);
	check_outcome(view, &finding);
	check_decision(view, measure);
	FUZZ_HOLDS(view_joined(view) <= view->attempt.tasks);
	FUZZ_HOLDS(view_name_missing(view, &missing) <= view->attempt.tasks);
	(void)view_all_through(view);
	(void)view_is_gathered(view);
	(void)attempt_is_superseded(view);
	text_release(&missing);
}

static void check_history(struct store *store)
{
	struct history history = {0};
	struct budget_limits limits = BUDGET_DEFAULTS;
	struct budget_decision decision;
	struct attempt attempt;
	if (history_read(store, "r", 0, &history, NULL) == STATUS_OK)
		budget_decide(history.past, history.count, &limits, 12345, &decision);
	history_release(&history);
	attempt_name(&attempt, "r", 1, 4);
	if (history_decide_next(store, &attempt, &limits, &(uint64_t){9}, &decision, NULL) ==
		STATUS_OK)
		FUZZ_HOLDS(decision.pause >= 0);
}

static void check_runs(struct store *store)
{
	struct run_summary run;
	char after[sizeof(run.name)] = "", name[sizeof(run.name) + 1], former[sizeof(name)] = "";
	/* They come in the order of their keys, "NAME/...", each once. */
	while (runs_next(store, *after ? after : NULL, &run, NULL) == STATUS_OK) {
		snprintf(name, sizeof(name), "%s/", run.name);
		FUZZ_HOLDS(strcmp(name, former) > 0);
		memcpy(former, name, sizeof(former));
		memcpy(after, run.name, sizeof(after));
	}
}

/* "@" in a value stands for the boot of this machine, which a reader compares with its own. */
static struct store *make_store(const uint8_t *data, size_t size)
{
	static struct process_identity self;
	struct text text = {0};
	if (!self.pid)
		FUZZ_HOLDS(process_identify(0, &self, NULL) == STATUS_OK);
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '@')
			text_add(&text, self.boot);
		else
			text_add_bytes(&text, &data[i], 1);
	}
	const char *whole = text_string(&text);
	struct store *store = fuzz_store((const uint8_t *)whole, text.length);
	text_release(&text);
	return store;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store *store = make_store(data, size);
	struct view view = {0};
	struct grace_measure measure = {.longest_save = 3000, .longest_step = 200, .skew = 1};
	struct remembered known;
	if (remembered_read(store, "r", &known, NULL) == STATUS_OK) {
		FUZZ_HOLDS(known.longest_save >= 0);
		measure.longest_save = known.longest_save;
	}
	if (attempt_view(store, "r", 0, &view, NULL) == STATUS_OK)
		check_view(&view, &measure);
	view_release(&view);
	check_history(store);
	check_runs(store);
	store_close(store);
	return 0;
}
