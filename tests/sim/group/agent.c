/* SPDX-License-Identifier: MIT */
/* What the processes of the world run: agents, and programs beside them. */
#include <string.h>

#include "proto/claim.h"
#include "sim.h"

#define STORE	     "shim:memory:run"
#define RUN	     "sim"
#define JOIN_TIMEOUT 30000 /* ms */

/* ---- Agents ---- */

static void exit_process(struct node *node)
{
	struct world *w = node->world;
	process_exit(&node->process);
	TRACE(w, NOBODY, "process %d of agent %d exits with %d", node->process.who.pid, node->agent,
		node->code);
	for (int i = 0; i < w->schedule->tasks && !node->ghost; i++)
		if (schedule_agent_of(w->schedule, i) == node->agent)
			training_end(w, i, 137);
	if (w->exits_begun || node->ghost)
		return;
	w->exits_begun = true;
	if (w->schedule->launcher_kills)
		world_at(w, kernel.now + random_in(&kernel.random, 0, 50 * MS), EVENT_LAUNCHER,
			node->agent, 0);
}

static void *run_agent(void *context)
{
	struct node *node = context;
	node->code = agent_run(&node->options, NULL);
	exit_process(node);
	return NULL;
}

void agent_begin(struct node *node)
{
	const struct schedule *s = node->world->schedule;
	uint64_t first = (uint64_t)(node->agent * s->per_agent), tasks = (uint64_t)s->tasks;
	uint64_t count =
		(uint64_t)s->per_agent < tasks - first ? (uint64_t)s->per_agent : tasks - first;
	static char name[] = "train", *const command[] = {name, NULL};
	node->identity = (struct identity){
		.run = RUN, .is_task = true, .task = first, .count = count, .tasks = tasks};
	if (s->launched)
		snprintf(node->identity.launch, sizeof(node->identity.launch), "slurm:7:0");
	node->options = (struct agent_options){.identity = &node->identity,
		.store = STORE,
		.command = command,
		.grace = -1,
		.exit_code = CODE_SAVED,
		.join_timeout = JOIN_TIMEOUT,
		.kill_after = s->kill_after,
		.agreement = {.report_timeout = s->report_timeout,
			.save_timeout = s->save_timeout,
			.startup = s->startup,
			.savers_chief = s->savers_chief,
			.complete_chief = s->complete_chief,
			.per_task = s->per_task,
			.store_loss_ends = s->store_loss_ends}};
	if (s->beat_period)
		node->options.beats = (struct heartbeat_rules){.period = s->beat_period,
			.timeout = heartbeat_timeout(s->beat_period),
			.limit = HEARTBEAT_LIMIT,
			.first = JOIN_TIMEOUT};
	node->options.progress_timeout = s->progress_timeout;
	process_new_thread(&node->process, run_agent, node);
}

static void finish_task(struct world *w, int task, const struct agent_task *agent_task)
{
	struct task *t = &w->task[task];
	t->finished = true;
	t->code = agent_task->code;
	t->finished_at = kernel.now;
	TRACE(w, task, "finished with %d", t->code);
	check_exit(w, task);
}

void agent_inspect(struct node *node)
{
	struct world *w = node->world;
	const struct agent *self = node->self;
	if (!self || node->ghost || self->group.view.attempt.number != w->keys.attempt)
		return;
	for (int i = 0; i < w->schedule->tasks; i++) {
		struct task *t = &w->task[i];
		const struct agent_task *agent_task = t->agent_task;
		if (schedule_agent_of(w->schedule, i) != node->agent || !agent_task ||
			!agent_task->agreement.view)
			continue;
		const struct agreement_view *view = agent_task->agreement.view;
		int64_t own = agent_task->agreement.own_deadline;
		t->deadline_latest = clock_to_world(
			w, node->agent, own < view->deadline_latest ? own : view->deadline_latest);
		t->solo = agent_task->agreement.solo;
		check_believed(w, i);
		if (agent_task->finished && !t->finished)
			finish_task(w, i, agent_task);
	}
	if (self->group.view.members) {
		check_claimer(w, node);
		check_deadline_seen(w, node);
	}
	node->deadline_seen = self->group.view.deadline_revision;
	node->has_read = self->group.view.unchanged;
}

/* ---- Programs ---- */

static void claim_from_outside(struct store *store, struct view *view, const struct act *act)
{
	struct claim claim = {.outside = true, .pid = 1, .then = act->then};
	struct error err;
	if (act->deed == ON_DEMAND)
		claim.then = THEN_CONTINUE;
	if (act->deed == MOVE_DEADLINE && !view->agreement.claimed)
		return;
	notice_set(&claim.notice, "command", "fate", notice_time(), act->amount);
	(void)claim_make(store, view, &claim, clock_after(20000), &err);
}

static void declare_dead(struct store *store, struct view *view, int task)
{
	struct death death = {
		.task = (uint64_t)task, .cause = DEATH_SILENT, .since_utc = clock_utc()};
	struct error err;
	for (int i = 0; i < 20; i++) {
		enum agreement_outcome outcome =
			write_deaths(store, view, BY_NO_TASK, &death, 1, &err);
		if (outcome == OUTCOME_DONE || view_refresh(view, store, &err) != STATUS_OK ||
			!agreement_counts(&view->agreement, death.task))
			return;
	}
}

static void *run_program(void *context)
{
	struct node *node = context;
	struct store *store = NULL;
	struct view view = {0};
	struct error err;
	if (store_open(&store, STORE, 0, clock_after(10000), &err) == STATUS_OK &&
		attempt_view(store, RUN, 0, &view, &err) == STATUS_OK) {
		if (node->act->deed == DECLARE_DEAD)
			declare_dead(store, &view, node->about);
		else
			claim_from_outside(store, &view, node->act);
		view_release(&view);
	}
	store_close(store);
	process_exit(&node->process);
	return NULL;
}

void agent_program(struct world *w, const struct act *act, int task)
{
	struct node *node = machine_new_node(w, NOBODY);
	if (!node)
		return;
	node->act = act;
	node->about = task;
	process_new_thread(&node->process, run_program, node);
}
