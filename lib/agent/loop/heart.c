/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "agent/loop/heart.h"
#include "agent/loop/loop.h"
#include "base/clock.h"
#include "base/xalloc.h"

#define DEATHS_EVERY 1000 /* ms between looks for processes that are gone */
#define NEIGHBOURS   4	  /* agents of a machine that take part in these looks, at most */

enum status agent_start_pulse(
	const struct agent_options *options, struct pulse **pulse, struct error *err)
{
	struct process_identity self;
	struct pulse_options how = {.store = options->store,
		.rules = options->beats,
		.first = options->identity->task,
		.count = options->identity->count,
		.who = &self};
	if (options->beats.period == 0)
		return STATUS_OK;
	enum status status = process_identify(0, &self, err);
	return status == STATUS_OK ? pulse_start(pulse, &how, err) : status;
}

static bool is_answered(const struct agent *agent)
{
	const struct pulse *pulse = agent->group.pulse;
	return pulse ? pulse_is_answered(pulse) : !agent->store_away;
}

/*
 * Whether this moment counts towards the hang limit of a task: its command runs and was not asked
 * to pause, save or end. A task may wait for a store that does not answer, so such time counts only
 * once the store has not answered for as long as it takes the others to declare this task dead.
 */
static bool time_counts(const struct agent *agent, const struct agent_task *task)
{
	bool cut_off = agent->group.pulse &&
		       agent->cut_off.lasted >= cut_off_given_up(&agent->options->beats);
	return (is_answered(agent) || cut_off) && task->command->process.pid &&
	       !task->command->ending && task->agreement.told.order == ORDER_RUN && !task->finished;
}

void agent_declare(struct group *group, uint64_t by, const struct death *deaths, size_t count)
{
	struct write write;
	write_build_deaths(&write, &group->view, by, deaths, count);
	store_thread_write(group->store_thread, &write);
	group->deaths_asked++;
}

/*
 * Deaths are written again only after everything was read, which may show them, or that these tasks
 * have left. Otherwise a slow store would get write after write, and no reading in between.
 */
static bool may_write_deaths(const struct group *group)
{
	return !group->deaths_asked && !group->deaths_unseen;
}

/* Whether another agent has a task in the attempt: it declares ours dead if it can. */
static bool is_watched(const struct agent *agent)
{
	const struct view *view = &agent->group.view;
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		if (!agent_has_task(agent, i) && view_has_joined(view, i) &&
			agreement_counts(&view->agreement, i))
			return true;
	return false;
}

/*
 * End all tasks of this agent, once. If the store answers after all, the other tasks learn of it
 * from the same keys with which they would declare these dead.
 */
static void end_cut_off(struct agent *agent)
{
	struct group *group = &agent->group;
	struct death *deaths = xcalloc(agent->task_count, sizeof(*deaths));
	size_t count = 0;
	agent->cut_off_ended = true;
	for (size_t i = 0; i < agent->task_count; i++) {
		agreement_cut_off(&agent->tasks[i].agreement);
		if (!agent->tasks[i].finished)
			deaths[count++] = (struct death){.task = agent->tasks[i].number,
				.cause = agent->tasks[i].hung ? DEATH_HUNG : DEATH_SILENT,
				.since_utc = clock_utc() - agent->cut_off.lasted,
				.has_step = agent->tasks[i].interval.seen,
				.step = agent->tasks[i].interval.step};
	}
	if (count)
		agent_declare(group, deaths[0].task, deaths, count);
	free(deaths);
}

/* Whether a preemption has begun: then --on-store-loss decides what to do without the store. */
static bool is_preempted(const struct group *group)
{
	return group->noticed || group->view.agreement.claimed;
}

static void look_at_store(struct agent *agent, int64_t now)
{
	const struct group *group = &agent->group;
	int64_t limit = agent->options->beats.cut_off;
	if (!group->pulse)
		return;
	cut_off_update(&agent->cut_off, pulse_is_answered(group->pulse), now);
	if (!limit || agent->cut_off.lasted < limit || agent->cut_off_ended ||
		is_preempted(group) || !is_watched(agent))
		return;
	announce(agent->options->on_event, ANNOUNCE_CUT_OFF, ANNOUNCE_OWN, NULL,
		"run %s attempt %llu: the store has taken no beat for %lld s, so the other tasks "
		"must have given up the tasks of this agent, which are ended now (--cut-off)",
		group->view.attempt.run, (unsigned long long)group->view.attempt.number,
		(long long)agent->cut_off.lasted / 1000);
	end_cut_off(agent);
}

static void declare_hung(struct agent *agent, struct agent_task *task)
{
	struct group *group = &agent->group;
	const struct progress *p = &task->progress;
	struct death death = {.task = task->number,
		.cause = DEATH_HUNG,
		.since_utc = clock_utc() - p->standing,
		.has_step = p->started,
		.step = p->step};
	if (!task->hung)
		announce(agent->options->on_event, ANNOUNCE_HANGS, ANNOUNCE_OWN, NULL,
			"task %llu: hangs: no progress for %lld s, the limit is %lld s",
			(unsigned long long)task->number, (long long)p->standing / 1000,
			(long long)agent->options->progress_timeout / 1000);
	task->hung = true;
	if (!is_answered(agent)) { /* the other tasks cannot be told */
		if (!is_preempted(group) && !agent->cut_off_ended)
			end_cut_off(agent);
		return;
	}
	if (may_write_deaths(group))
		agent_declare(group, task->number, &death, 1);
}

static void look_at_progress(struct agent *agent, struct agent_task *task, int64_t now)
{
	struct progress_reading look = {.now = now,
		.counts = time_counts(agent, task),
		.started = task->interval.seen,
		.step = task->interval.step,
		.written = task->step_written};
	bool dead = agent->group.view.agreement.peers[task->number].dead;
	if (progress_observe(&task->progress, agent->options->progress_timeout, &look) && !dead &&
		look.counts)
		declare_hung(agent, task);
}

void agent_check_progress(struct agent *agent, int64_t now)
{
	look_at_store(agent, now);
	for (size_t i = 0; i < agent->task_count; i++) {
		struct agent_task *task = &agent->tasks[i];
		if (task->interval.seen)
			pulse_tell_step(agent->group.pulse, i, task->interval.step);
		if (!task->agreement.ended)
			look_at_progress(agent, task, now);
	}
}

static bool is_of_another(const void *context, uint64_t task)
{
	return !agent_has_task(context, task);
}

/* Whether the round waits for the report or the save of this task, which is of another agent. */
static bool is_awaited(const void *context, uint64_t task)
{
	const struct agent *agent = context;
	const struct agreement_view *view = &agent->group.view.agreement;
	const struct agreement_peer *peer = &view->peers[task];
	if (!view->round || agent_has_task(agent, task))
		return false;
	return view->decided ? peer->member && !peer->saved : !peer->reported;
}

/*
 * The number of live agents of this machine with lower task numbers, counted up to NEIGHBOURS. Only
 * the first few agents check whether processes are gone: if each agent checked all others, the cost
 * would grow with the square of their number.
 */
static size_t rank_on_machine(const struct agent *agent)
{
	const struct view *view = &agent->group.view;
	const struct process_identity *last = NULL;
	size_t rank = 0;
	for (uint64_t i = 0; i < view->attempt.tasks && rank < NEIGHBOURS; i++) {
		const struct process_identity *who = &view->members[i].agent;
		if (agent_has_task(agent, i))
			break;
		if (!view->members[i].shown[RECORD_TASK] ||
			!agreement_counts(&view->agreement, i) ||
			(last && last->pid == who->pid && last->start == who->start) ||
			process_check(who) != PROCESS_ALIVE)
			continue;
		last = who;
		rank++;
	}
	return rank;
}

void agent_check_gone(struct agent *agent, int64_t now)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	if (!view->round || now < agent->deaths_at || !may_write_deaths(&agent->group))
		return;
	/* The view has only our own processes: there is no other to look for. */
	if (agent->group.view.shown[RECORD_TASK] <= agent->task_count)
		return;
	size_t rank = rank_on_machine(agent);
	agent->deaths_at = now + DEATHS_EVERY * (int64_t)(1 + rank);
	/* Each live agent before this one delays its check; NEIGHBOURS of them make it needless. */
	bool first_time = view->round != agent->deaths_round;
	agent->deaths_round = view->round;
	if (rank >= NEIGHBOURS || (rank > 0 && first_time))
		return;
	(void)agent_declare_gone(agent, true);
}

bool agent_declare_gone(struct agent *agent, bool awaited_only)
{
	struct group *group = &agent->group;
	const struct view *view = &group->view;
	if (!may_write_deaths(group))
		return false;
	struct death *deaths = xcalloc(view->attempt.tasks, sizeof(*deaths));
	size_t count = write_find_gone(
		view, awaited_only ? is_awaited : is_of_another, agent, deaths, DEATHS_MOST);
	bool certain = !view->agreement.unseen && !view->agreement.departed;
	if (count && awaited_only && !certain) {
		/* Such a task may have written what is awaited, or LEFT: first read everything. */
		group->deaths_unseen = true;
		agent->deaths_at = 0;
	} else if (count) {
		agent->declared = true;
		agent_declare(group, agent->options->identity->task, deaths, count);
	}
	free(deaths);
	return count > 0;
}
