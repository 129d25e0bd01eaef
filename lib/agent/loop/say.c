/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/loop/loop.h"
#include "agent/loop/say.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/message.h"
#include "proto/agreement/tally.h"

static enum announce_by speaks(const struct agent *agent, bool completed)
{
	/* While the agent joins, the view belongs to the store thread. */
	static const struct view none;
	enum announce_by by = announce_by(
		agent->joined ? &agent->group.view : &none, agent->options->identity, completed);
	/* Each agent reports for itself without the store, and when it serves a script, in which
	 * task 0 may have no agent that reports. */
	bool alone = agent->store_away || agent->served >= 0;
	return by == ANNOUNCE_OTHERS && alone ? ANNOUNCE_OWN : by;
}

enum announce_by agent_speaks(const struct agent *agent)
{
	return speaks(agent, false);
}

/* The same; if `own` is true, at least ANNOUNCE_OWN. */
static enum announce_by speaks_or_own(const struct agent *agent, bool own)
{
	enum announce_by by = agent_speaks(agent);
	return by == ANNOUNCE_OTHERS && own ? ANNOUNCE_OWN : by;
}

/*
 * An agent that becomes the speaker because the former speaker was lost repeats what may not have
 * been reported. It repeats nothing if it never saw the former speaker join (an agent of a large
 * job that does not start knows only its own tasks), or if that one has left in order, or has a
 * higher task number: then this agent was the speaker before that one, and was only silent for a
 * while.
 */
static void take_over(struct agent *agent)
{
	const struct view *view = &agent->group.view;
	uint64_t former = agent->speaker;
	agent->speaker = announce_speaker(view, false);
	if (former >= agent->speaker || !agent_has_task(agent, agent->speaker) ||
		agent_has_task(agent, former) || !view_has_joined(view, former) ||
		view->agreement.peers[former].left != REASON_NONE)
		return;
	agent->said_claim = agent->said_broken = false;
	agent->said_decision = agent->said_all_saved = agent->said_dead = 0;
}

void agent_say_joined(const struct agent *agent)
{
	const struct view *view = &agent->group.view;
	const unsigned long long number = view->attempt.number, tasks = view->attempt.tasks;
	struct json_object *fields = json_object_new_object();
	json_put_unsigned(fields, "count", tasks);
	if (number == 1) {
		announce(agent->options->on_event, ANNOUNCE_JOINED, agent_speaks(agent), fields,
			"run %s attempt 1: all %llu have joined", view->attempt.run, tasks);
		return;
	}
	const char *slash = strrchr(view->resume, '/');
	char from[4200] = "";
	if (slash)
		snprintf(from, sizeof(from), ", from step %llu in %.*s",
			(unsigned long long)view->resume_step, (int)(slash - view->resume),
			view->resume);
	announce(agent->options->on_event, ANNOUNCE_REJOINED, agent_speaks(agent), fields,
		"attempt %llu: %llu task%s%s", number, tasks, tasks == 1 ? "" : "s", from);
}

void agent_say_notice(struct agent *agent, enum announce_by by)
{
	const struct notice *notice = &agent->group.notice;
	if (agent->said_notice)
		return;
	agent->said_notice = by != ANNOUNCE_OTHERS;
	struct json_object *fields = json_object_new_object();
	json_put_text(fields, "source", notice->source);
	json_put_text(fields, "reason", notice->reason);
	announce(agent->options->on_event, ANNOUNCE_NOTICE, by, fields, "notice: %s%s%s",
		notice->source, *notice->reason ? ": " : "", notice->reason);
}

static void say_claim(struct agent *agent)
{
	const struct view *view = &agent->group.view;
	const struct view_claim *claim = &view->claim;
	char by[96] = "from outside";
	if (agent->said_claim || !view->agreement.claimed)
		return;
	agent->said_claim = true;
	if (claim->unreadable)
		message_error(
			"run %s attempt %llu: the claim cannot be read, it is damaged or of another "
			"version: treated as a preemption, save and leave",
			view->attempt.run, (unsigned long long)view->attempt.number);
	struct json_object *fields = json_object_new_object();
	if (!claim->outside) {
		snprintf(by, sizeof(by), "by task %llu", (unsigned long long)claim->task);
		json_put_unsigned(fields, "task", claim->task);
	}
	json_put_text(fields, "host", claim->host);
	json_put_text(fields, "source", claim->source);
	json_put_text(fields, "reason", claim->reason);
	announce(agent->options->on_event, ANNOUNCE_CLAIM, agent_speaks(agent), fields,
		"run %s attempt %llu: claimed %s on %s (%s%s%s)", view->attempt.run,
		(unsigned long long)view->attempt.number, by, claim->host, claim->source,
		*claim->reason ? ": " : "", claim->reason);
}

/* The fields of a decision: how many tasks save, and at which step. */
static struct json_object *decision_fields(const struct agreement_view *view)
{
	struct json_object *fields = json_object_new_object();
	json_put_unsigned(fields, "count", agreement_count_saves(view).members);
	if (view->decision.kind == KIND_SAVE || view->decision.kind == KIND_EXIT)
		json_put_unsigned(fields, "step", view->decision.step);
	return fields;
}

/* "all 4"; of one task only "all". */
static const char *all_of(uint64_t count, char text[64])
{
	snprintf(text, 64, count == 1 ? "all" : "all %llu", (unsigned long long)count);
	return text;
}

/* What happens if no task has called preempt_step, so that no step can be agreed on. */
static void describe_none(const struct agent_options *options, char what[128])
{
	if (options->notice_signal)
		snprintf(what, 128,
			"no task calls preempt_step; --on-notice sends %s to the "
			"commands, which save by themselves",
			sigabbrev_np(options->notice_signal));
	else if (options->notice_command)
		snprintf(what, 128, "no task calls preempt_step; the command of --on-notice runs");
	else
		snprintf(what, 128, "no task has begun, there is nothing to save");
}

static void say_decision(struct agent *agent)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	unsigned long long count = agreement_count_saves(view).members, step = view->decision.step;
	char what[128], name[64];
	if (!view->decided || agent->said_decision == view->round)
		return;
	agent->said_decision = view->round;
	if (view->decision.kind == KIND_NONE)
		describe_none(agent->options, what);
	else if (view->decision.kind == KIND_EACH)
		snprintf(what, sizeof(what),
			"no common step was found in time; each of %llu tasks saves at its own "
			"next boundary, then leaves",
			count);
	else
		snprintf(what, sizeof(what), "%s save at step %llu%s", all_of(count, name), step,
			view->decision.kind == KIND_SAVE ? " and run on" : ", then leave");
	announce(agent->options->on_event, ANNOUNCE_AGREED, agent_speaks(agent),
		decision_fields(view), "agreed: %s", what);
}

/* "0.31 s", "0.31 to 0.35 s"; times in ms. */
static void format_times(int64_t least, int64_t most, char text[64])
{
	if (least == most)
		snprintf(text, 64, "%.2f s", (double)most / 1000);
	else
		snprintf(text, 64, "%.2f to %.2f s", (double)least / 1000, (double)most / 1000);
}

/*
 * Each task saves at its first boundary at or after the agreed step: say where they have saved. The
 * view of a large job may lack records of saves, and show only that all tasks have saved.
 */
static void say_all_saved(struct agent *agent)
{
	const struct view *view = &agent->group.view;
	const struct agreement_view *a = &view->agreement;
	int64_t least = INT64_MAX, most = 0;
	struct agreement_saves saves = agreement_count_saves(a);
	char times[64] = "", text[64], name[64];
	if (!a->decided || agent->said_all_saved == a->round ||
		(a->decision.kind != KIND_SAVE && a->decision.kind != KIND_EXIT) ||
		(saves.saved < saves.members && !agreement_all_saved(a)))
		return;
	agent->said_all_saved = a->round;
	/* In a large attempt ALL_SAVED alone may say it. */
	const bool seen = saves.saved && saves.saved == saves.members;
	if (!seen)
		saves.low = saves.high = a->complete_step;
	for (uint64_t i = 0; seen && i < a->tasks; i++) {
		if (!a->peers[i].member)
			continue;
		least = clock_earlier(least, view->members[i].save_time);
		most = clock_later(most, view->members[i].save_time);
	}
	if (seen) {
		format_times(least, most, text);
		snprintf(times, sizeof(times), " in %.50s", text);
	}
	snprintf(text, sizeof(text), saves.low == saves.high ? "step %llu" : "steps %llu to %llu",
		(unsigned long long)saves.low, (unsigned long long)saves.high);
	struct json_object *fields = json_object_new_object();
	json_put_unsigned(fields, "count", saves.members);
	json_put_unsigned(fields, "step", saves.high);
	announce(agent->options->on_event, ANNOUNCE_ALL_SAVED, agent_speaks(agent), fields,
		"%s have saved %s%s", all_of(saves.members, name), text, times);
	/* If all tasks are here, this line says what say_saves would. */
	for (size_t i = 0; i < agent->task_count && agent->task_count == a->tasks; i++)
		agent->tasks[i].said_saved = a->round;
}

/* Report what the tasks here have agreed on without the store. */
static void say_alone(struct agent *agent)
{
	const struct agreement_view *view = &agent->group.alone.view;
	char what[96] = "have not begun to train, and leave";
	if (!agent->group.alone.begun || !view->decided || agent->said_alone == view->round)
		return;
	agent->said_alone = view->round;
	if (agent->group.noticed)
		agent_say_notice(agent, ANNOUNCE_OWN);
	if (view->decision.kind == KIND_EXIT)
		snprintf(what, sizeof(what), "save at step %llu by themselves, then leave",
			(unsigned long long)view->decision.step);
	else if (view->decision.kind == KIND_EACH)
		snprintf(what, sizeof(what), "save at their own next boundaries, then leave");
	announce(agent->options->on_event, ANNOUNCE_ALONE, ANNOUNCE_OWN, decision_fields(view),
		"the store does not answer in time: %llu task(s) of this agent %s",
		(unsigned long long)agreement_count_saves(view).members, what);
}

/* Whether this agent declared tasks dead, or a task of its own was declared dead. */
static bool has_part_in_death(const struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++)
		if (agent->group.view.agreement.peers[agent->tasks[i].number].dead)
			return true;
	return agent->declared;
}

/* The agent of the task that failed or died, and the one that declared it dead, report it in any
 * case. */
static void say_broken(struct agent *agent)
{
	const struct view *view = &agent->group.view;
	const struct view_error *error = &view->error;
	if (agent->said_broken || !view->agreement.broken || view->agreement.claimed)
		return;
	agent->said_broken = true;
	bool own = error->present ? agent_has_task(agent, error->task) : has_part_in_death(agent);
	enum announce_by by = speaks_or_own(agent, own);
	struct json_object *fields = json_object_new_object();
	if (!error->present) {
		announce(agent->options->on_event, ANNOUNCE_BROKEN, by, fields,
			"run %s attempt %llu is broken: %s", view->attempt.run,
			(unsigned long long)view->attempt.number, view_why(view));
		return;
	}
	json_put_unsigned(fields, "task", error->task);
	json_put_text(fields, "host", error->host);
	json_put_signed(fields, "code", error->code);
	if (*error->class)
		json_put_text(fields, "class", error->class);
	announce(agent->options->on_event, ANNOUNCE_BROKEN, by, fields,
		"task %llu failed on %s with %d%s%s", (unsigned long long)error->task, error->host,
		error->code, *error->line ? ": " : "", error->line);
}

static bool is_dead(const void *context, uint64_t task)
{
	const struct agreement_view *view = context;
	return view->peers[task].dead;
}

/* Report deaths only in a preemption, in which the others go on; else say_broken does it. */
static void say_deaths(struct agent *agent)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	struct text names = {0};
	uint64_t dead = 0;
	for (uint64_t i = 0; i < view->tasks; i++)
		dead += view->peers[i].dead;
	if (dead == agent->said_dead || !view->claimed)
		return;
	agent->said_dead = dead;
	keys_write_set(view->tasks, is_dead, view, &names);
	struct json_object *fields = json_object_new_object();
	json_put_text(fields, "dead", text_string(&names));
	announce(agent->options->on_event, ANNOUNCE_DEAD,
		speaks_or_own(agent, has_part_in_death(agent)), fields,
		"declared dead: task %s; the others go on", text_string(&names));
	text_release(&names);
}

/* preempt-ack without --serve reports nothing but its answer. */
static bool is_quiet(const struct agent *agent)
{
	return agent->group.one_stage;
}

void agent_say_news(struct agent *agent)
{
	if (is_quiet(agent))
		return;
	take_over(agent);
	say_claim(agent);
	say_deaths(agent);
	say_decision(agent);
	say_all_saved(agent);
	say_broken(agent);
}

/* Whether the newest round waits for the report or the save of this task. */
static bool is_waited_for(const void *context, uint64_t task)
{
	const struct agreement_view *view = context;
	const struct agreement_peer *peer = &view->peers[task];
	return agreement_counts(view, task) &&
	       (view->decided ? peer->member && !peer->saved : !peer->reported);
}

void agent_say_waiting(struct agent *agent, int64_t now)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	const uint64_t stage = 2 * view->round + view->decided;
	struct text names = {0};
	uint64_t count = 0;
	if (stage != agent->stage)
		agent->stage_at = now;
	agent->stage = stage;
	if (!agent->stage_at || now - agent->stage_at < SAY_WAITING)
		return;
	agent->stage_at = 0;
	for (uint64_t i = 0; i < view->tasks; i++)
		count += is_waited_for(view, i);
	if (!view->round || view->closed || is_quiet(agent) || agreement_all_saved(view) ||
		(view->decided && view->decision.kind == KIND_NONE) || count <= view->unseen)
		return;
	if (view->unseen)
		text_addf(&names, "%llu tasks", (unsigned long long)(count - view->unseen));
	else
		text_addf(&names, "task%s ", count == 1 ? "" : "s");
	if (!view->unseen)
		keys_write_set(view->tasks, is_waited_for, view, &names);
	announce(NULL, ANNOUNCE_WAITING, agent_speaks(agent), NULL, "waiting for %s to %s",
		text_string(&names), view->decided ? "save" : "report");
	text_release(&names);
}

void agent_say_silence(struct agent *agent, int64_t now)
{
	int64_t asked = store_thread_asked_at(agent->group.store_thread);
	char utc[32];
	if (!asked || now - asked < SAY_WAITING || agent->store_away || agent->said_silence)
		return;
	agent->said_silence = true;
	clock_format_utc(clock_utc() - (now - asked), utc);
	message_error("store %s has not answered since %s; waiting", agent->options->store, utc);
}

static bool is_to_be_said(const struct agent_task *task)
{
	return agreement_saved_reported(&task->agreement) &&
	       task->said_saved != task->agreement.saving;
}

/*
 * Report in one line which tasks of this agent have saved, once all of them have. `rest`: do not
 * wait for the others.
 */
static void say_saves(struct agent *agent, bool rest)
{
	int64_t least = INT64_MAX, slowest = 0;
	uint64_t first = UINT64_MAX, last = 0, low = UINT64_MAX, high = 0, count = 0;
	char name[64], steps[64], times[64];
	for (size_t i = 0; i < agent->task_count; i++) {
		const struct agent_task *task = &agent->tasks[i];
		if (!is_to_be_said(task)) {
			if (!rest && !task->finished && task->agreement.saving &&
				!agreement_saved_reported(&task->agreement))
				return;
			continue;
		}
		count++;
		first = first < task->number ? first : task->number;
		last = task->number;
		low = low < task->agreement.saved_step ? low : task->agreement.saved_step;
		high = high > task->agreement.saved_step ? high : task->agreement.saved_step;
		least = clock_earlier(least, task->save_time);
		slowest = clock_later(slowest, task->save_time);
	}
	if (count == 0)
		return;
	if (count == last - first + 1)
		announce_name_tasks(first, count, name);
	else
		snprintf(name, sizeof(name), "%llu-%llu (%llu of them)", (unsigned long long)first,
			(unsigned long long)last, (unsigned long long)count);
	snprintf(steps, sizeof(steps), low == high ? "step %llu" : "steps %llu to %llu",
		(unsigned long long)low, (unsigned long long)high);
	format_times(least, slowest, times);
	struct json_object *fields = json_object_new_object();
	json_put_unsigned(fields, "step", high);
	json_put_signed(fields, "longest_ms", slowest);
	bool said = agent_speaks(agent) != ANNOUNCE_OTHERS;
	announce(NULL, ANNOUNCE_SAVED, said ? ANNOUNCE_OWN : ANNOUNCE_OTHERS, fields,
		"task%s %s: saved %s in %s", count > 1 ? "s" : "", name, steps, times);
	for (size_t i = 0; i < agent->task_count; i++)
		if (is_to_be_said(&agent->tasks[i]))
			agent->tasks[i].said_saved = agent->tasks[i].agreement.saving;
}

void agent_say_saves(struct agent *agent)
{
	if (is_quiet(agent))
		return;
	say_alone(agent);
	say_saves(agent, false);
}

/* A task that has saved and knows of a complete checkpoint; NULL: none does. */
static const struct agent_task *complete_task(const struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++)
		if (agent->tasks[i].code == CODE_SAVED && agent->tasks[i].has_complete)
			return &agent->tasks[i];
	return NULL;
}

/* Whether a task has saved. The exit code does not show it: a failed command may exit with it. */
static bool one_is_saved(const struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++)
		if (agent->tasks[i].code == CODE_SAVED)
			return true;
	return false;
}

/* Say which checkpoint is complete, and nothing beyond that. */
static void describe_saved(
	const struct agent *agent, const struct agent_task *saved, struct agent_end *end)
{
	bool same = true;
	for (size_t i = 0; saved && i < agent->task_count; i++)
		same &= !agent->tasks[i].has_complete ||
			agent->tasks[i].complete_step == saved->complete_step;
	if (!saved)
		snprintf(end->text, sizeof(end->text),
			"no task had begun to train: nothing was saved, and nothing is lost; run "
			"me again");
	else if (!same)
		snprintf(end->text, sizeof(end->text),
			"each task's own checkpoint is saved and complete: run me again");
	else
		snprintf(end->text, sizeof(end->text),
			"step %llu is saved and complete: run me again",
			(unsigned long long)saved->complete_step);
}

/* The run will not be started again, so say clearly whether a checkpoint is missing. */
static void describe_stopped(const struct agent *agent, struct agent_end *end)
{
	const struct agent_task *complete = NULL;
	bool lost = false;
	for (size_t i = 0; i < agent->task_count; i++) {
		const struct agent_task *task = &agent->tasks[i];
		complete = task->has_complete ? task : complete;
		/* A program that saves on a signal ends with 0 even if it has not finished. */
		bool unfinished =
			task->agreement.reason == REASON_COMPLETED && task->code == CODE_DECIDED;
		lost |= !task->has_complete &&
			(unfinished || task->agreement.reason == REASON_PREEMPTED);
	}
	if (complete && !lost)
		snprintf(end->text, sizeof(end->text),
			"step %llu is saved and complete; asked to stop: do not run me again",
			(unsigned long long)complete->complete_step);
	else
		snprintf(end->text, sizeof(end->text), "asked to stop%s: do not run me again",
			lost ? ", without a new complete checkpoint" : "");
}

static void describe_end(const struct agent *agent, int code, struct agent_end *end)
{
	if (code == agent->options->exit_code && one_is_saved(agent))
		describe_saved(agent, complete_task(agent), end);
	else if (code == CODE_PREEMPTED)
		snprintf(end->text, sizeof(end->text),
			"stopped without a new complete checkpoint: run me again");
	else if (code == CODE_BROKEN)
		snprintf(end->text, sizeof(end->text), "%s: run me again",
			agent->cut_off_ended ? "cut off from the store" : "another task broke");
	else if (code == CODE_DECIDED)
		describe_stopped(agent, end);
	else
		snprintf(end->text, sizeof(end->text), code == STATUS_OK ? "finished" : "failed");
	size_t used = strlen(end->text);
	snprintf(end->text + used, sizeof(end->text) - used, " (%d)", code);
	end->code = code;
}

/* Whether a task here that had begun to train was preempted and did not save. */
static bool one_is_unsaved(const struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++) {
		const struct agreement *a = &agent->tasks[i].agreement;
		if (a->reason == REASON_PREEMPTED && a->called && !agreement_saved_reported(a))
			return true;
	}
	return false;
}

/* Whether the code says something about the tasks here that the other agents do not say. */
static bool is_own_end(const struct agent *agent, int code)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	if (code == STATUS_OK)
		return false;
	if (code == CODE_BROKEN)
		return agent->cut_off_ended || !view->broken;
	if (!view->claimed || one_is_unsaved(agent))
		return true;
	if (code == agent->options->exit_code)
		return false;
	return code == CODE_PREEMPTED ? agreement_all_saved(view) : code != CODE_DECIDED;
}

void agent_say_end(struct agent *agent, int code, struct agent_end *end)
{
	say_saves(agent, true);
	end->by = speaks(agent, code == STATUS_OK);
	if (end->by == ANNOUNCE_OTHERS && is_own_end(agent, code))
		end->by = ANNOUNCE_OWN;
	if (agent->group.noticed && end->by == ANNOUNCE_OWN)
		agent_say_notice(agent, ANNOUNCE_OWN);
	describe_end(agent, code, end);
	for (size_t i = 0; i < agent->task_count; i++)
		if (agent->tasks[i].interval.seen && agent->tasks[i].interval.step >= end->step) {
			end->trained = true;
			end->step = agent->tasks[i].interval.step;
		}
	end->lost = agent->lost + (agent->lost_since ? clock_now() - agent->lost_since : 0);
}
