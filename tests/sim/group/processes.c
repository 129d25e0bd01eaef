/* SPDX-License-Identifier: MIT */
/* Processes of ours, and their children, the training processes. */
#include <signal.h>
#include <sys/wait.h>

#include "base/process/subprocess.h"
#include "sim.h"

/* ---- Ours ---- */

struct node *machine_current(void)
{
	return (struct node *)process_current();
}

struct node *machine_new_node(struct world *w, int agent)
{
	if (w->nodes == MOST_NODES)
		return NULL;
	const struct schedule *s = w->schedule;
	struct node *node = &w->node[w->nodes];
	int machine = agent < 0 ? MOST_TASKS : schedule_machine_of(s, agent);
	*node = (struct node){.world = w, .agent = agent};
	if (!process_new(&node->process, machine, agent < 0 ? 0 : s->clock[machine]))
		return NULL;
	w->nodes++;
	node->process.sees_others = s->watches_peers;
	node->process.has_short_way = agent < 0;
	return node;
}

void machine_kill(struct node *node, const char *why)
{
	struct world *w = node->world;
	if (!node_lives(node))
		return;
	TRACE(w, NOBODY, "process %d of agent %d dies: %s", node->process.who.pid, node->agent,
		why);
	process_kill(&node->process);
	for (int i = 0; i < w->schedule->tasks && node->agent >= 0 && !node->ghost; i++) {
		if (schedule_agent_of(w->schedule, i) != node->agent)
			continue;
		w->task[i].agent_task = NULL;
		training_end(w, i, 137);
	}
	node->self = NULL;
}

/* By its guard the world finds the agent that has it. */
void machine_guarded(struct process *process, struct reaper *reaper)
{
	struct node *node = (struct node *)process;
	struct world *w = node->world;
	if (reaper) {
		node->self = (struct agent *)((char *)reaper - offsetof(struct agent, reaper));
		node->boards = node->commands = 0;
		return;
	}
	for (int i = 0; i < w->schedule->tasks && !node->ghost; i++)
		if (schedule_agent_of(w->schedule, i) == node->agent)
			w->task[i].agent_task = NULL;
	node->self = NULL;
}

/* ---- Their children ---- */

#define FIRST_CHILD 10000 /* the numbers of the training processes */

static struct task *child_of(struct world *w, pid_t pid)
{
	int task = pid - FIRST_CHILD;
	return task >= 0 && task < w->schedule->tasks ? &w->task[task] : NULL;
}

int kill(pid_t pid, int number)
{
	(void)pid, (void)number;
	return 0;
}

void subprocess_signal(const struct subprocess *child, int number)
{
	struct world *w = machine_world;
	struct node *node = machine_current();
	int task = child->pid - FIRST_CHILD;
	if (!node || node->ghost || !child_of(w, child->pid))
		return;
	if (number == SIGTERM && !w->task[task].stopping) {
		check_ending(w, task);
		w->task[task].stopping = true;
		TRACE(w, task, "TERM");
		if (!w->schedule->trainee[task].ignores_term)
			training_end(w, task, 143);
	} else if (number == SIGKILL) {
		training_end(w, task, 137);
	}
}

enum subprocess_state subprocess_check(struct subprocess *child, int64_t now)
{
	const struct node *node = machine_current();
	const struct task *task = child_of(machine_world, child->pid);
	if (!task)
		return SUBPROCESS_NONE;
	if (now >= child->limit) {
		subprocess_signal(child, SIGKILL);
		child->limit = child->end.due = now + 1000;
	}
	if (node->ghost || !task->training.unreaped)
		return SUBPROCESS_RUNS;
	return training_ended(child, task->training.code);
}

void subprocess_reap(struct subprocess *child, bool spare)
{
	(void)spare;
	child_of(machine_world, child->pid)->training.unreaped = false;
	child->pid = 0;
}

enum status subprocess_start(
	struct subprocess *child, const struct subprocess_options *options, struct error *err)
{
	(void)options, (void)err;
	struct node *node = machine_current();
	struct world *w = node->world;
	int task = node->agent * w->schedule->per_agent + (int)node->commands++;
	*child = (struct subprocess){.pid = FIRST_CHILD + task,
		.end = {.descriptor = -1, .due = CLOCK_NEVER},
		.limit = CLOCK_NEVER};
	if (node->ghost)
		return STATUS_OK;
	training_start(w, task);
	if (node->commands == node->identity.count)
		world_agent_started(w);
	return STATUS_OK;
}
