/* SPDX-License-Identifier: MIT */
/*
 * The smallest training in C that saves and stops together with the other tasks, and resumes from
 * there:
 *
 *   cc -o loop examples/loop.c $(pkg-config --cflags --libs preempt)
 *   preempt-run --run loop -n 2 --checkpoints ck -- ./loop ck 1000
 */
#include <preempt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Each task has its own directory in the checkpoint, which is complete when the last task has
 * committed. Returns 0 or 1. */
static int save(const char *top, unsigned long step, unsigned long state)
{
	char command[4096];
	snprintf(command, sizeof command,
		"d=$(ckpt-rotate begin '%s' %lu --sharded) && echo %lu %lu >\"$d/state\" && "
		"ckpt-rotate commit '%s' %lu --sharded >/dev/null",
		top, step, step, state, top, step);
	return system(command) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s CHECKPOINTS STEPS\n", argv[0]);
		return 2;
	}
	unsigned long step = 0, state = 0, newest = -1UL, steps = strtoul(argv[2], NULL, 10);
	const char *resume = getenv("PREEMPT_RESUME"), *task = getenv("PREEMPT_TASK");
	if (resume && *resume) {
		char path[4096];
		snprintf(path, sizeof path, "%s/task-%s/state", resume, task);
		FILE *file = fopen(path, "r");
		if (!file || fscanf(file, "%lu %lu", &step, &state) != 2)
			return 1;
		fclose(file);
		newest = step; /* the step of the newest checkpoint */
	}
	for (; step < steps; step++) { /* step: the number of finished steps */
		if (preempt_step(step) == PREEMPT_SAVE) {
			if (step != newest && save(argv[1], step, state) != 0)
				return 1;
			int code = preempt_saved(step);
			if (code)
				return code;
		}
		state = (state * 31 + step) % 1000003;
		usleep(10000);
	}
	printf("task %s: %lu\n", task ? task : "0", state);
	return 0;
}
