/* SPDX-License-Identifier: MIT
 *
 * preempt.h: all tasks of a group stop at the same step, each with a complete checkpoint. Training
 * code calls this library.
 *
 * A training process that runs under an agent (preempt-run, for example) finds its board, a
 * directory, in $PREEMPT_DIR and asks at every step boundary whether it should save:
 *
 *	// cc train.c $(pkg-config --cflags --libs preempt)
 *	#include <preempt.h>
 *
 *	for (uint64_t s = start; s < total; s++) { // s steps are finished
 *		if (preempt_step(s) == PREEMPT_SAVE) {
 *			// save returns true when the checkpoint is complete and durable
 *			int code = save(s) ? preempt_saved(s) : EXIT_FAILURE;
 *			if (code != 0)
 *				exit(code);
 *		}
 *		train(s);
 *	}
 *
 * Report periodic saves with preempt_saved too: the agent measures how long a save takes.
 *
 * Two forms: preempt_ask and preempt_saved always return, so a program can end its threads or its
 *   other processes before it leaves. preempt_step and preempt_step_next do the same as
 *   preempt_ask, but call exit(code) where that returns PREEMPT_LEAVE + code.
 * Units: a step number is the number of finished steps, 0 to 999,999,999,999,999,999. It never
 *   falls within one process; only preempt_saved may name an earlier step. Exit codes are 1 to 255.
 * Errors: a call that fails writes one line to stderr, which says what to do, and answers with
 *	2	wrong use: two writers on one board, a falling or impossible step number, a
 *		board or an agent that cannot be seen from this process (in a container, for
 *		example)
 *	43	the agent or the board is gone: the process must leave, no save can be reported
 *   Any other code is the agent's. errno is not part of the interface. Without $PREEMPT_DIR every
 *   call does nothing and returns 0; the first call says so on stderr.
 * Owns: two or three descriptors, from 400 up if possible and close-on-exec, until the process
 *   ends. The process becomes the board's only writer. No function returns memory, keeps a pointer
 *   to an argument, starts a thread or uses another library.
 * Costs: three short system calls per step and no waiting, unless the agent asks for it.
 * Threads: one thread asks at step boundaries; preempt_saved may be called later and from another
 *   thread (an asynchronous saver). The asking thread then asks again with the same number, until
 *   the answer is no longer PREEMPT_SAVE, before it goes on. Only the asking thread may call exit.
 *   After fork the child is another process: it is refused (2) as long as the process that called
 *   first lives.
 * Signals: the first call makes a handler that does nothing for the notice signals
 *   ($PREEMPT_SIGNALS, default TERM) that have their default action: schedulers signal whole
 *   process trees, and a trainer that dies of the notice cannot save. A program that is executed
 *   has the default again, except between PREEMPT_SAVE and preempt_saved, when they are ignored.
 *   Handlers of the program are never replaced.
 */
#ifndef PREEMPT_H
#define PREEMPT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PREEMPT_API __attribute__((visibility("default")))
#else
#define PREEMPT_API
#endif

/* Save a checkpoint now. */
#define PREEMPT_SAVE 10
/* Added to the code with which the process must leave: answer - PREEMPT_LEAVE is 1 to 255. */
#define PREEMPT_LEAVE 0x100
/* The agent's usual code for "saved, run me again". Leave with the code that was returned, not with
 * this one: the agent may have been told to use another. */
#define PREEMPT_EXIT 42

/* Report that `finished` steps are done and the next one has not begun, and that the program will
 * ask again at step `next`, which is greater (finished + 1 in most loops). Returns
 *	0			run the next step
 *	PREEMPT_SAVE		save this state, call preempt_saved, act on its answer
 *	PREEMPT_LEAVE + code	leave with the code: the agent says so, or an error (above)
 * Waits, polling every 10 to 50 ms, while the group agrees on a step, which is rare and short.
 * Asking again with the same number is allowed, and is progress for preempt-run
 * --progress-timeout: so a long evaluation may do. After PREEMPT_SAVE, the next answer is 0 if the
 * training may go on during the save. If the save is the final one, the call waits until the
 * process must leave; if no save is reported for 2 s, it returns PREEMPT_SAVE again. */
PREEMPT_API int preempt_ask(uint64_t finished, uint64_t next);

/* The same, but calls exit(code) instead of returning PREEMPT_LEAVE + code. preempt_step(finished)
 * is preempt_step_next(finished, finished + 1). */
PREEMPT_API int preempt_step(uint64_t finished);
PREEMPT_API int preempt_step_next(uint64_t finished, uint64_t next);

/* Report that the checkpoint of `step` is complete and durable. Returns 0: run on; or the code to
 * leave with, the agent's or that of an error. After the final save it first waits until every
 * other task has saved as well. */
PREEMPT_API int preempt_saved(uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
