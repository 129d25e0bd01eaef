/* SPDX-License-Identifier: MIT */
/* Processes of ours, and their children, the training processes. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

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

static int wait_status_of(int code)
{
	return code > 128 ? code - 128 : code << 8;
}

int kill(pid_t pid, int number)
{
	struct world *w = machine_world;
	struct node *node = machine_current();
	int task = -pid - FIRST_CHILD;
	if (!node || node->ghost || !child_of(w, -pid))
		return 0;
	if (number == SIGTERM && !w->task[task].stopping) {
		check_ending(w, task);
		w->task[task].stopping = true;
		TRACE(w, task, "TERM");
		if (!w->schedule->trainee[task].ignores_term)
			training_end(w, task, 143);
	} else if (number == SIGKILL) {
		training_end(w, task, 137);
	}
	return 0;
}

/* The children of an agent that have ended, as it may know. */
int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct world *w = machine_world;
	const struct node *node = machine_current();
	(void)type, (void)id, (void)options;
	for (int i = 0; node && !node->ghost && i < w->schedule->tasks; i++) {
		if (schedule_agent_of(w->schedule, i) != node->agent ||
			!w->task[i].training.unreaped)
			continue;
		info->si_pid = FIRST_CHILD + i;
		return 0;
	}
	errno = ECHILD;
	return -1;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	struct task *task = child_of(machine_world, pid);
	(void)options;
	if (!task || !task->training.unreaped) {
		errno = ECHILD;
		return -1;
	}
	task->training.unreaped = false;
	if (status)
		*status = wait_status_of(task->training.code);
	return pid;
}

enum status process_start(const struct process_command *command, pid_t *pid, struct error *err)
{
	(void)command, (void)err;
	struct node *node = machine_current();
	struct world *w = node->world;
	int task = node->agent * w->schedule->per_agent + (int)node->commands++;
	*pid = FIRST_CHILD + task;
	if (node->ghost)
		return STATUS_OK;
	training_start(w, task);
	if (node->commands == node->identity.count)
		world_agent_started(w);
	return STATUS_OK;
}
