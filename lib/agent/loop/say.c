/* SPDX-License-Identifier: MIT */
/* What people are told of a run, each thing once. */
#include <stdio.h>

#include "agent/loop/loop.h"
#include "agent/loop/say.h"
#include "base/message.h"

static void say_claim(struct agent *agent)
{
	const struct view *view = &agent->group.view;
	const struct view_claim *claim = &view->claim;
	char by[96] = "from outside";
	if (agent->said_claim || !view->agreement.claimed)
		return;
	agent->said_claim = true;
	if (!claim->outside)
		snprintf(by, sizeof(by), "by task %llu", (unsigned long long)claim->task);
	message_info("run %s attempt %llu: preemption claimed %s on %s (%s%s%s)", view->attempt.run,
		(unsigned long long)view->attempt.number, by, claim->host, claim->source,
		*claim->reason ? ": " : "", claim->reason);
}

static void say_decision(struct agent *agent)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	uint64_t members = 0;
	if (!view->decided || agent->said_decision == view->round)
		return;
	agent->said_decision = view->round;
	for (uint64_t i = 0; i < view->tasks; i++)
		members += view->peers[i].member;
	unsigned long long step = view->decision.step, count = members;
	switch (view->decision.kind) {
	case KIND_SAVE:
		message_info("agreed: all %llu save at step %llu and run on", count, step);
		break;
	case KIND_EXIT:
		message_info("agreed: all %llu save at step %llu, then leave", count, step);
		break;
	case KIND_EACH:
		message_info("agreed: no common step can be reached in time; each of %llu saves at "
			     "its own next boundary, then leaves",
			count);
		break;
	case KIND_NONE: message_info("agreed: no task has begun, there is nothing to save"); break;
	}
}

/* What the tasks here have agreed on without the store. */
static void say_alone(struct agent *agent)
{
	const struct agreement_view *view = &agent->group.alone.view;
	unsigned long long members = 0;
	if (!agent->group.alone.begun || !view->decided || agent->said_alone == view->round)
		return;
	agent->said_alone = view->round;
	for (uint64_t i = 0; i < view->tasks; i++)
		members += view->peers[i].member;
	if (view->decision.kind == KIND_EXIT)
		message_error(
			"the store does not answer in time: %llu task(s) of this agent save at "
			"step %llu by themselves, then leave",
			members, (unsigned long long)view->decision.step);
	else
		message_error("the store does not answer in time: %llu task(s) of this agent %s",
			members,
			view->decision.kind == KIND_EACH
				? "save at their own next boundaries, then leave"
				: "have not begun to train, and leave");
}

static void say_broken(struct agent *agent)
{
	const struct view *view = &agent->group.view;
	if (agent->said_broken || !view->agreement.broken || view->agreement.claimed)
		return;
	agent->said_broken = true;
	if (view->error.present)
		message_error("task %llu failed on %s with %d%s%s",
			(unsigned long long)view->error.task, view->error.host, view->error.code,
			*view->error.line ? ": " : "", view->error.line);
	else
		message_error("run %s attempt %llu is broken: %s", view->attempt.run,
			(unsigned long long)view->attempt.number, view_why(view));
}

static bool is_dead(const void *context, uint64_t task)
{
	const struct agreement_view *view = context;
	return view->peers[task].dead;
}

/* With a preemption under way the others go on without them; else the seal says it. */
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
	message_error("declared dead: task %s; the others go on without", text_string(&names));
	text_release(&names);
}

/* What one stage of preempt-ack has to say is its answer. */
static bool is_quiet(const struct agent *agent)
{
	return agent->group.one_stage;
}

void agent_say_news(struct agent *agent)
{
	if (is_quiet(agent))
		return;
	say_claim(agent);
	say_deaths(agent);
	say_decision(agent);
	say_broken(agent);
}

void agent_say_saves(struct agent *agent)
{
	if (is_quiet(agent))
		return;
	say_alone(agent);
	for (size_t i = 0; i < agent->task_count; i++) {
		struct agent_task *task = &agent->tasks[i];
		const struct agreement *a = &task->agreement;
		if (!agreement_saved_reported(a) || task->said_saved == a->saving)
			continue;
		task->said_saved = a->saving;
		message_info("task %llu: saved step %llu in %.2f s",
			(unsigned long long)task->number, (unsigned long long)a->saved_step,
			(double)task->save_time / 1000);
	}
}

/* The tasks of one machine stop together: the first stands for all. */
static void say_grace_account(const struct agent *agent)
{
	struct text text = {0};
	if (agent->group.view.agreement.claimed &&
		grace_account_describe(&agent->tasks[0].account, &text))
		message_info("%s", text_string(&text));
	text_release(&text);
}

/* A task that knows of a complete checkpoint; NULL: none does. */
static const struct agent_task *complete_task(const struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++)
		if (agent->tasks[i].code == CODE_SAVED && agent->tasks[i].has_complete)
			return &agent->tasks[i];
	return NULL;
}

/* Whether a task was preempted and lost nothing: a command may have failed with the same code. */
static bool one_is_saved(const struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++)
		if (agent->tasks[i].code == CODE_SAVED)
			return true;
	return false;
}

/* What is complete, and only that. */
static void say_saved(const struct agent *agent, const struct agent_task *saved, int code)
{
	bool same = true;
	for (size_t i = 0; saved && i < agent->task_count; i++)
		same &= !agent->tasks[i].has_complete ||
			agent->tasks[i].complete_step == saved->complete_step;
	if (!saved)
		message_info(
			"no task had begun to train: nothing was saved, and nothing is lost; run "
			"me again (%d)",
			code);
	else if (!same)
		message_info("each task's own checkpoint is saved and complete: run me again (%d)",
			code);
	else
		message_info("step %llu is saved and complete: run me again (%d)",
			(unsigned long long)saved->complete_step, code);
}

/* The run will not be started again, so say clearly whether a checkpoint is missing. */
static void say_stopped(const struct agent *agent, int code)
{
	const struct agent_task *complete = NULL;
	bool lost = false;
	for (size_t i = 0; i < agent->task_count; i++) {
		const struct agent_task *task = &agent->tasks[i];
		complete = task->has_complete ? task : complete;
		lost |= !task->has_complete && task->agreement.reason == REASON_PREEMPTED;
	}
	if (complete && !lost)
		message_info("step %llu is saved and complete; asked to stop: do not run me again "
			     "(%d)",
			(unsigned long long)complete->complete_step, code);
	else
		message_info("asked to stop%s: do not run me again (%d)",
			lost ? ", without a new complete checkpoint" : "", code);
}

void agent_say_end(const struct agent *agent, int code)
{
	const struct agent_task *saved = complete_task(agent);
	say_grace_account(agent);
	if (code == agent->options->exit_code && one_is_saved(agent))
		say_saved(agent, saved, code);
	else if (code == CODE_PREEMPTED)
		message_info(
			"preempted without a new complete checkpoint: run me again (%d)", code);
	else if (code == CODE_BROKEN)
		message_info("%s: run me again (%d)",
			agent->cut_off_ended ? "cut off from the store" : "another task broke",
			code);
	else if (code == CODE_DECIDED)
		say_stopped(agent, code);
}
