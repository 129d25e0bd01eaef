/* SPDX-License-Identifier: MIT */
/*
 * After a whole job has ended: whether it is to run again, by what the store shows of its last
 * attempt, by the budgets, and only as a hint by the exit code of its launcher (srun answers the
 * largest, and leaves out tasks that were ended by TERM).
 */
#ifndef RUN_REQUEUE_DECISION_H
#define RUN_REQUEUE_DECISION_H

#include "run/budget.h"
#include "run/history.h"

struct requeue_question {
	const char *run;
	const char *store;  /* URL */
	const char *launch; /* of this start of the job (identity.h); "": not known */
	uint64_t before;    /* the newest attempt when the job began; 0: none, or not known */
	int code;	    /* of the launcher; negative: not known (still to run) */
	bool noticed;	    /* the batch shell itself got a notice */
	uint64_t restarts;  /* how often the scheduler has run the job again, if it says so */
	const struct budget_limits *limits;
	int64_t deadline; /* for the store */
};

struct requeue_decision {
	struct budget_decision decision;
	bool known;		/* the store shows an attempt of this start of the job: */
	struct outcome outcome; /* how it ended, */
	struct attempt attempt; /* and which it is */
	bool by_signal;		/* its notice was a TERM, as schedulers send */
	/*
	 * The exit code: 42 to 44 again, 93 decided against; else that of the launcher, which is
	 * left as it is.
	 */
	int code;
};

/* Fails where the store could not be asked: then nothing is known, which is not "no". */
enum status requeue_decide(const struct requeue_question *question,
	struct requeue_decision *requeue, struct error *err);

/*
 * The same without an attempt in the store: by the exit code and the scheduler's own count alone.
 * Pure. unasked: why the store could not be asked, then a failure is run again, too, since it may
 * be one that is forgiven; NULL: it was, and no task has joined.
 */
void requeue_guess(const struct requeue_question *question, const struct error *unasked,
	struct requeue_decision *requeue);

/* Keep a decision against running again, for whoever asks later. */
enum status requeue_record(const struct requeue_question *question,
	const struct requeue_decision *requeue, struct error *err);

#endif
