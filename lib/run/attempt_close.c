/* SPDX-License-Identifier: MIT */
/* Leaving an attempt, and closing it. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "proto/remembered.h"
#include "run/attempt.h"
#include "run/outcome.h"
#include "store/builder.h"

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

/* For those who only want to know roughly. */
static const char *state_of(enum outcome_cause cause, bool claimed)
{
	return cause == CAUSE_COMPLETED ? "completed" : claimed ? "preempted" : "failed";
}

enum status attempt_close(struct store *store, struct view *view, bool forced,
	const struct outcome_finding *finding, struct error *err)
{
	enum status status = view_refresh(view, store, err);
	return status == STATUS_OK ? attempt_close_as_seen(store, view, forced, finding, err)
				   : status;
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
		outcome.cause = CAUSE_LOST; /* closed by hand, or nobody said why */
	json_put_text(json, "state", state_of(outcome.cause, view->agreement.claimed));
	if (view->agreement.decided && view->agreement.decision.kind != KIND_NONE)
		json_put_unsigned(json, "step", view->agreement.decision.step);
	outcome_write(&outcome, json);
	json_put_signed(json, "utc", clock_utc());
	keys_of(&view->attempt, key, "CLOSED");
	if (!corrects)
		transaction_require(&t, transaction_own(&t, key), 0);
	transaction_put(&t, transaction_own(&t, key), json);
	write_news(&t, &view->attempt, true);
	if (known)
		remembered_put(known, view->attempt.run, view->longest_save, &view->learned, &t);
	enum status status = transaction_run(&t, store, err);
	transaction_release(&t);
	return status;
}

enum status attempt_close_as_seen(struct store *store, const struct view *view, bool forced,
	const struct outcome_finding *finding, struct error *err)
{
	struct remembered known;
	bool learned = view->longest_save > 0 || view->learned.count > 0;
	/* A task that was declared dead may have come back since and reported that it finished. */
	bool corrects = view->agreement.closed && strcmp(view->closed, "completed") != 0 &&
			view_all_completed(view);
	if (view->agreement.closed && !corrects)
		return STATUS_OK;
	if (!forced && !view_all_through(view))
		return error_set(
			err, STATUS_NO, "run %s: some tasks have not left yet", view->attempt.run);
	learned = learned && remembered_read(store, view->attempt.run, &known, NULL) == STATUS_OK;
	enum status status =
		put_closed(store, view, corrects, finding, learned ? &known : NULL, err);
	/* Somebody has closed it, or remembered something since. */
	if (status == STATUS_NO && learned)
		status = put_closed(store, view, corrects, finding, NULL, err);
	return status == STATUS_NO ? STATUS_OK : status;
}
