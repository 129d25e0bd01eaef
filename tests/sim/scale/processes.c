/* SPDX-License-Identifier: MIT */
/* The children of the agents: the training processes. */
#include <signal.h>
#include <sys/wait.h>

#include "base/process/subprocess.h"
#include "scale.h"

#define FIRST_CHILD 10000000 /* the number of the training process of task 0 */

static struct task *child_of(pid_t pid)
{
	int task = pid - FIRST_CHILD;
	return task >= 0 && task < scale_world.tasks ? &scale_world.task[task] : NULL;
}

int kill(pid_t pid, int number)
{
	(void)pid, (void)number;
	return 0;
}

void subprocess_signal(const struct subprocess *child, int number)
{
	if (child_of(child->pid) && (number == SIGTERM || number == SIGKILL))
		training_end(child->pid - FIRST_CHILD, 128 + number);
}

enum subprocess_state subprocess_check(struct subprocess *child, int64_t now)
{
	const struct task *task = child_of(child->pid);
	(void)now;
	if (!task)
		return SUBPROCESS_NONE;
	if (!task->unreaped)
		return SUBPROCESS_RUNS;
	return training_ended(child, task->code);
}

void subprocess_reap(struct subprocess *child, bool spare)
{
	(void)spare;
	child_of(child->pid)->unreaped = false;
	child->pid = 0;
}

enum status subprocess_start(
	struct subprocess *child, const struct subprocess_options *options, struct error *err)
{
	struct node *node = (struct node *)process_current();
	int task = (int)node->identity.task + (int)node->commands++;
	(void)options, (void)err;
	*child = (struct subprocess){.pid = FIRST_CHILD + task, .end.descriptor = -1};
	training_start(task);
	world_commands_started();
	return STATUS_OK;
}
