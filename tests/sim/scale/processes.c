/* SPDX-License-Identifier: MIT */
/* The children of the agents: the training processes. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "scale.h"

#define FIRST_CHILD 10000000 /* the number of the training process of task 0 */

static struct task *child_of(pid_t pid)
{
	int task = pid - FIRST_CHILD;
	return task >= 0 && task < scale_world.tasks ? &scale_world.task[task] : NULL;
}

int kill(pid_t pid, int number)
{
	if (child_of(-pid) && (number == SIGTERM || number == SIGKILL))
		training_end(-pid - FIRST_CHILD, 128 + number);
	return 0;
}

/* The children of an agent that have ended. */
int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	const struct node *node = (const struct node *)process_current();
	(void)type, (void)id, (void)options;
	for (uint64_t i = 0; node && i < node->identity.count; i++) {
		if (!scale_world.task[node->identity.task + i].unreaped)
			continue;
		info->si_pid = FIRST_CHILD + (pid_t)(node->identity.task + i);
		return 0;
	}
	errno = ECHILD;
	return -1;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	struct task *t = child_of(pid);
	(void)options;
	if (!t || !t->unreaped) {
		errno = ECHILD;
		return -1;
	}
	t->unreaped = false;
	if (status)
		*status = t->code > 128 ? t->code - 128 : t->code << 8;
	return pid;
}

enum status process_start(const struct process_command *command, pid_t *pid, struct error *err)
{
	struct node *node = (struct node *)process_current();
	int task = (int)node->identity.task + (int)node->commands++;
	(void)command, (void)err;
	*pid = FIRST_CHILD + task;
	training_start(task);
	world_commands_started();
	return STATUS_OK;
}
