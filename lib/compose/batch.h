/* SPDX-License-Identifier: MIT */
/*
 * The batch script's side of a job: start its launcher, wait for its end, and meanwhile announce
 * the notices that only the batch shell gets (sbatch --signal=B:...) to all tasks, by a claim in
 * the store. A launcher is not the way: srun, sent a TERM, kills its tasks at once.
 */
#ifndef COMPOSE_BATCH_H
#define COMPOSE_BATCH_H

#include "base/subprocess.h"
#include "notice/notice.h"
#include "notice/source_set.h"
#include "run/requeue_decision.h"

struct batch {
	struct requeue_question *question;
	const char *slurm_job; /* asked for the deadline when a notice comes; NULL: not in Slurm */
	struct source_set watch;
	int signals;		   /* signalfd: CHLD, and what ends us by hand */
	struct subprocess command; /* the launcher */
	struct notice notice;	   /* the first, */
	unsigned notices;	   /* of so many */
	bool told;		   /* the tasks know, or cannot be told */
	int64_t tell_at;	   /* try (again) then */
	int64_t forward_at;	   /* then the launcher is sent a signal instead */
	int ended_by;		   /* INT, HUP or QUIT came; 0 */
};

/* Zero the rest, and release it with batch_close. Blocks the signals of its sources. */
enum status batch_open(struct batch *batch, const char *const *sources, size_t count, int64_t grace,
	struct error *err);

/*
 * Run command until it has ended: question->code and ->noticed. INT, HUP and QUIT that a process
 * sent are passed on to it; those of the terminal it gets by itself.
 */
enum status batch_run(struct batch *batch, char *const *command, struct error *err);

/* Wait until deadline; false: ended early, by a notice or a signal. */
bool batch_wait(struct batch *batch, int64_t deadline);

void batch_close(struct batch *batch);

#endif
