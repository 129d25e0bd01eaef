/* SPDX-License-Identifier: MIT */
#include "status/table.h"

#include <json-c/json.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

static void put_time(struct json_object *json, const char *member, int64_t utc)
{
	if (utc)
		json_put_signed(json, member, utc);
}

static struct json_object *claim_of(const struct view_claim *claim)
{
	struct json_object *json = json_object_new_object();
	if (!claim->outside)
		json_put_unsigned(json, "task", claim->task);
	json_put_text(json, "host", claim->host);
	json_put_text(json, "source", claim->source);
	json_put_text(json, "reason", claim->reason);
	put_time(json, "utc", claim->utc);
	return json;
}

static struct json_object *round_of(const struct agreement_view *a)
{
	struct json_object *json = json_object_new_object();
	json_put_unsigned(json, "number", a->round);
	json_put_bool(json, "decided", a->decided);
	if (a->decided)
		json_put_text(json, "kind", keys_kind_word(a->decision.kind));
	if (a->decided && a->decision.kind != KIND_NONE && a->decision.kind != KIND_EACH)
		json_put_unsigned(json, "step", a->decision.step);
	return json;
}

static struct json_object *task_of(const struct run_status *status, uint64_t i)
{
	const struct run_task *task = &status->tasks[i];
	struct json_object *json = json_object_new_object();
	json_put_unsigned(json, "task", i);
	json_put_text(json, "host", status->view.members[i].agent.host);
	json_put_text(json, "state", task_state_word(task->state));
	if (task->has_step)
		json_put_unsigned(json, "step", task->step);
	if (task->rate > 0)
		json_object_object_add(
			json, "steps_per_second", json_object_new_double(task->rate));
	if (task->silent >= 0)
		json_put_signed(json, "silent_ms", task->silent);
	put_time(json, "joined_utc", task->joined);
	put_time(json, "held_utc", task->reported);
	put_time(json, "acked_utc", task->acked);
	put_time(json, "saved_utc", task->saved);
	if (task->saved)
		json_put_signed(json, "save_ms", task->took);
	put_time(json, "left_utc", task->left);
	return json;
}

static struct json_object *past_of(const struct outcome *past)
{
	struct json_object *json = json_object_new_object();
	json_put_unsigned(json, "attempt", past->attempt);
	json_put_text(json, "ended", outcome_word(past->cause));
	if (past->has_saved)
		json_put_unsigned(json, "saved", past->saved);
	if (past->lasted >= 0)
		json_put_signed(json, "lasted_ms", past->lasted);
	if (*past->text)
		json_put_text(json, "text", past->text);
	return json;
}

void table_add_json(
	struct text *text, const struct run_status *status, const struct table_style *style)
{
	const struct view *view = &status->view;
	struct json_object *json = json_object_new_object(), *tasks = json_object_new_array(),
			   *past = json_object_new_array();
	json_put_text(json, "run", view->attempt.run);
	json_put_unsigned(json, "attempt", view->attempt.number);
	json_put_text(json, "state", run_status_word(status));
	json_put_signed(json, "code", run_status_code(status));
	put_time(json, "opened_utc", status->opened);
	if (view->agreement.closed && status->outcome.lasted >= 0)
		json_put_signed(json, "lasted_ms", status->outcome.lasted);
	if (status->outcome.has_saved)
		json_put_unsigned(json, "saved", status->outcome.saved);
	if (view->agreement.claimed)
		json_object_object_add(json, "claim", claim_of(&view->claim));
	put_time(json, "deadline_utc", status->deadline_utc);
	if (view->agreement.round)
		json_object_object_add(json, "round", round_of(&view->agreement));
	if (*view->seal && strcmp(view->seal, "claim") != 0)
		json_put_text(json, "broken", view->seal_text);
	if (status->outcome.refused)
		json_put_text(json, "refused", status->outcome.why);
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		json_object_array_add(tasks, task_of(status, i));
	json_object_object_add(json, "tasks", tasks);
	for (size_t i = 0; i < status->history.count; i++)
		json_object_array_add(past, past_of(&status->history.past[i]));
	json_object_object_add(json, "past", past);
	json_put_signed(json, "utc", style->utc);
	json_add_line(json, text);
	text_add(text, "\n");
	json_object_put(json);
}
