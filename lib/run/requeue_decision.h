/* SPDX-License-Identifier: MIT */
/*
 * Decide whether a job that has ended is to run again. The store shows how the attempts of the run
 * ended (history.h), and the budgets say whether that allows another one (budget.h). The exit code
 * of the launcher is only a hint: srun returns the largest, but ignores tasks that TERM ended.
 */
#ifndef RUN_REQUEUE_DECISION_H
#define RUN_REQUEUE_DECISION_H

#include "run/budget.h"
#include "run/history.h"

struct requeue_question {
	const char *run;
	const char *store;  /* URL */
	const char *launch; /* the launch id of this start of the job (identity.h); "": not known */
	uint64_t before;    /* the newest attempt when the job began; 0: none, or not known */
	int code;	    /* the launcher's exit code; negative: it has not run yet */
	bool noticed;	    /* the batch shell itself got a notice */
	uint64_t guesses; /* how often in a row it was run again without a record of its attempts */
	const struct budget_limits *limits;
	bool record;	  /* write a decision not to run again to the store */
	int64_t deadline; /* for the store */
};

struct requeue_decision {
	struct budget_decision decision;
	bool known;		 /* decided by the record of an attempt of this start of the job */
	struct outcome outcome;	 /* attempt 0: the store shows none of this start */
	bool by_signal;		 /* its notice was a TERM, as schedulers send */
	struct error unrecorded; /* not STATUS_OK: why the decision could not be written */
	/* Exit code: 42 to 44: run again; 93: decided not to; any other is the launcher's own. */
	int code;
};

/* Whether this start of the job has opened the attempt, as far as `before` and `launch` tell. */
bool requeue_is_ours(const struct requeue_question *question, const struct attempt *attempt);

/*
 * The next run of this start of the job, after run `name` ("": the first), beside question->run.
 * STATUS_NO: there is none, or the job's launch id is not known.
 */
enum status requeue_next_run(struct store *store, const struct requeue_question *question,
	char name[129], struct error *err);

/* For all runs of this start. Fails if the store could not be asked: then it is not known whether
 * to run again. */
enum status requeue_decide(const struct requeue_question *question,
	struct requeue_decision *requeue, struct error *err);

/*
 * The same without a record of how the tasks ended: by the exit code and the number of guesses
 * alone. Pure. missing: why there is none: the store could not be asked, or the tasks said no
 * exit code (STATUS_NO); then a failure is run again, too, because the budgets may allow it, unless
 * the store is damaged or refuses the options. NULL: the store was asked, and no task has joined.
 */
void requeue_guess(const struct requeue_question *question, const struct error *missing,
	struct requeue_decision *requeue);

#endif
