/* SPDX-License-Identifier: MIT */
/*
 * The batch script's side of a job: start its launcher, wait for its end, and until then announce
 * the notices that only the batch shell gets (sbatch --signal=B:...) to all tasks, by a claim in
 * the store. The launcher cannot pass them on: srun kills its tasks at once when it gets a TERM.
 */
#ifndef COMPOSE_BATCH_H
#define COMPOSE_BATCH_H

#include "base/process/subprocess.h"
#include "notice/notice.h"
#include "notice/source_set.h"
#include "run/requeue_decision.h"

struct batch {
	struct requeue_question *question;
	const char *slurm_job; /* to ask Slurm for the deadline when a notice comes; NULL: no job */
	struct source_set watch;
	struct loop loop;	   /* the sources, CHLD, INT, HUP and QUIT */
	struct subprocess command; /* the launcher */
	struct notice notice;	   /* the first one, or a later one with an earlier deadline */
	unsigned notices;	   /* how many have come */
	int64_t tell_at;	   /* when to try (again) to notify them */
	int64_t forward_at;	   /* when to send the launcher a signal instead */
	int ended_by;		   /* INT, HUP or QUIT, if one has come; 0: none */
};

/* Call it with loop = LOOP_CLOSED and all else zero; call batch_close later, even if it fails. */
enum status batch_open(struct batch *batch, const char *const *sources, size_t count, int64_t grace,
	struct error *err);

/*
 * Run command until it has ended, and set question->code and ->noticed. INT, HUP and QUIT that a
 * process sent are passed on to it; those of the terminal reach it without us.
 */
enum status batch_run(struct batch *batch, char *const *command, struct error *err);

/* Wait until deadline. False: a notice or a signal has ended the wait. */
bool batch_wait(struct batch *batch, int64_t deadline);

void batch_close(struct batch *batch);

#endif
