/* SPDX-License-Identifier: MIT
 *
 * libpreempt: one board per process, for all of its threads (preempt.h).
 */
#include "client/preempt.h"

#include "client/board.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static struct preempt_board board = {.name = "preempt"};
static pid_t attached_by; /* this process, or the one it was forked from; 0: not attached */
static bool boardless;	  /* PREEMPT_DIR is not set, and that was reported */
static bool watched;	  /* `forked` is registered to run after a fork */

/* `using` guards the variables above and is held only briefly; `asking` lets one thread at a time
 * through preempt_ask, which may wait. preempt_saved does not take `asking`. */
static pthread_mutex_t using = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

/* A forked child has one thread, which holds neither lock. */
static void forked(void)
{
	using = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	asking = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Attach the board, once. 1: it is attached; 0: there is none; else PREEMPT_LEAVE + code. */
static int ready(void)
{
	pid_t self = getpid();
	int answer = 1;
	pthread_mutex_lock(&using);
	if (boardless) {
		answer = 0;
	} else if (attached_by != self) {
		/* A forked child is another process: it can own the board only after its parent. */
		preempt_board_release(&board);
		if (!watched)
			watched = pthread_atfork(NULL, NULL, forked) == 0;
		answer = preempt_board_attach(&board, self);
		attached_by = answer == 1 ? self : 0;
		if (answer == 0) {
			boardless = true;
			preempt_board_say(board.name, BOARD_NONE);
		}
	}
	pthread_mutex_unlock(&using);
	return answer;
}

int preempt_ask(uint64_t finished, uint64_t next)
{
	bool held = false;
	int answer = ready();
	if (answer != 1)
		return answer;
	pthread_mutex_lock(&asking);
	answer = preempt_board_step(&board, finished, next, &held);
	if (held) {
		answer = preempt_board_answer(&board, finished);
		preempt_board_shelter(answer == PREEMPT_SAVE);
	}
	pthread_mutex_unlock(&asking);
	return answer;
}

int preempt_saved(uint64_t step)
{
	bool held = false;
	int answer = ready();
	if (answer == 1)
		answer = preempt_board_saved(&board, step, &held);
	preempt_board_shelter(false);
	if (held)
		answer = preempt_board_barrier(&board, step);
	return answer >= PREEMPT_LEAVE ? answer - PREEMPT_LEAVE : answer;
}

/* Do not call fflush(NULL): it would wait for a thread that reads stdin. exit flushes. */
static int leave_if_asked(int answer)
{
	if (answer >= PREEMPT_LEAVE)
		exit(answer - PREEMPT_LEAVE);
	return answer;
}

int preempt_step_next(uint64_t finished, uint64_t next)
{
	return leave_if_asked(preempt_ask(finished, next));
}

int preempt_step(uint64_t finished)
{
	return preempt_step_next(finished, finished + 1);
}
