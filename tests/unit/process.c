/* SPDX-License-Identifier: MIT */
/*
 * Asking the kernel before /proc took one in sixty processes that had ended for alive.
# asan: no (forks are slow with it)
 */
#include "base/process/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "unit.h"

#define ENDS	 400
#define PATIENCE 60000 /* ms */

/* Reap the process as soon as it has ended, awake together with who looks at it. */
static void *reap(void *pidfd)
{
	(void)descriptor_wait(*(int *)pidfd, clock_after(PATIENCE));
	waitid(P_PIDFD, (id_t) * (int *)pidfd, NULL, WEXITED);
	return NULL;
}

/* Whether a process that has ended is gone, while its parent reaps it. */
static bool is_gone_when_it_ended(void)
{
	struct process_identity child;
	pthread_t reaper;
	int hold[2];
	if (pipe(hold) < 0)
		abort();
	pid_t pid = fork();
	if (pid == 0) {
		close(hold[1]);
		_exit((int)read(hold[0], &(char){0}, 1));
	}
	int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
	if (pidfd < 0 || pthread_create(&reaper, NULL, reap, &pidfd) != 0)
		abort();
	bool well = process_identify(pid, &child, NULL) == STATUS_OK &&
		    process_check(&child) == PROCESS_ALIVE;
	close(hold[0]);
	close(hold[1]);
	well &= descriptor_wait(pidfd, clock_after(PATIENCE));
	for (int i = 0; i < 5; i++)
		well &= process_check(&child) == PROCESS_GONE;
	pthread_join(reaper, NULL);
	close(pidfd);
	return well;
}

int main(void)
{
	int well = 0;
	for (int i = 0; i < ENDS; i++)
		well += is_gone_when_it_ended();
	CHECK_EQ(well, ENDS);
	return unit_end();
}
