/* SPDX-License-Identifier: MIT
 *
 * preempt.h: stop together, at one step, with a complete checkpoint. What training code calls.
 *
 * A training process that runs under an agent (preempt-run, say) finds its board in $PREEMPT_DIR
 * and asks it at every step boundary whether it should save. The whole use of this library is:
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
 * Report periodic saves with preempt_saved too: that is how the tools know how long a save takes.
 * A step number says how many steps are finished: 0 to 999,999,999,999,999,999; in one
 * process it never falls.
 *
 * Owns: two descriptors on the board; the process is the one writer of the board.
 *   Nothing is handed out or needs to be freed; no thread is started; no other library is used.
 * Costs: three short system calls per step and no waiting, unless the agent asks for it.
 * Threads: preempt_step is called by one thread; preempt_saved may be called later and from
 *   another thread (an asynchronous saver). After fork, a child is another process: it is refused
 *   for as long as the process lives that called first.
 * Signals: the first call ignores the notice signals ($PREEMPT_SIGNALS, default TERM) where nothing
 *   else was set up for them: schedulers signal whole process trees, and a trainer that dies of
 *   the notice cannot save. A handler of yours is never replaced.
 * Fails: by leaving the process, exit(code), after one line on stderr, with
 *	2	wrong use: two writers on one board, a falling or impossible step number, a board
 *		or an agent that cannot be seen from here (a container, say); the line names the
 *		cure
 *	43	the agent or the board is gone: no process is left to report a save to.
 *		preempt_saved returns this one
 *   and, asked to by the agent, with the agent's code while preempt_step waits.
 * Without $PREEMPT_DIR every call does nothing and returns 0; the first one says so on stderr.
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

/* preempt_step: save a checkpoint now. */
#define PREEMPT_SAVE 10
/* preempt_saved: saved, leave, run me again. The usual code; the agent may be configured to return
 * another one: leave with the code that was returned. Never 0. */
#define PREEMPT_EXIT 42

/* `finished` steps are done and the next one has not begun. Returns 0: run the next step; or
 * PREEMPT_SAVE: save this state, call preempt_saved, act on its answer.
 * Waits (polling, 10 ms) while the group agrees on a step, which is rare and short.
 * Calling it again with the same number is right, and is answered with PREEMPT_SAVE only once. */
PREEMPT_API int preempt_step(uint64_t finished);

/* The same for a loop that does not ask at every step: `next`, greater than `finished`, is the step
 * at which it will ask again. */
PREEMPT_API int preempt_step_next(uint64_t finished, uint64_t next);

/* The checkpoint of `step` is complete and durable. Returns 0: run on; or the code to leave with.
 * After the final save it first waits until every other task has saved as well. */
PREEMPT_API int preempt_saved(uint64_t step);

/* What this task is at from now on: "eval", "save", any name of 1 to 31 letters, digits or _.:@+-.
 * A section may have a limit of its own for the time without progress (preempt-run --section);
 * being named again counts as progress. "step" is the training itself, where preempt_step says how
 * far it is; "setup" is what comes before its first call. Returns 0. */
PREEMPT_API int preempt_section(const char *name);

#ifdef __cplusplus
}
#endif
#endif
