/* SPDX-License-Identifier: MIT */
/*
 * What preempt-status shows of a run: one attempt as the store has it, the beats of its tasks, and
 * how the attempts before it ended. It is read, never written.
 *
 * Times in the records are UTC milliseconds, each by the clock of the machine that wrote it: they
 * are shown, and nothing is decided by them. How long a task has been silent is counted on our own
 * monotonic clock, from one reading to the next; a first reading can only compare how many beats
 * each task has written.
 */
#ifndef STATUS_RUN_STATUS_H
#define STATUS_RUN_STATUS_H

#include "proto/view.h"
#include "run/history.h"
#include "store/store.h"

enum mark_kind {
	MARK_JOINED,
	MARK_CLAIM,
	MARK_ROUND,
	MARK_REPORT, /* the task was held, and has reported its next boundary */
	MARK_DECISION,
	MARK_ACK,
	MARK_SAVED,
	MARK_ALL_SAVED,
	MARK_DEAD,
	MARK_LEFT,
	MARK_SEAL,
	MARK_CLOSED,
	MARK_KINDS,
};
#define MARK_OF_RUN UINT64_MAX /* the task of a mark that is of the whole run */

/* One event of the attempt. */
struct run_mark {
	enum mark_kind kind;
	int64_t utc;
	uint64_t task;	/* MARK_OF_RUN: of no task */
	uint64_t round; /* 0: of none */
	uint64_t step;	/* of REPORT, DECISION, SAVED; else 0 */
	int64_t took;	/* ms: of SAVED how long the save took; else 0 */
};

enum task_state {
	TASK_MISSING, /* has not joined */
	TASK_JOINED,  /* waits for the others to join */
	TASK_RUNNING,
	TASK_HELD,   /* has reported, and waits for the decision */
	TASK_SAVING, /* is to save at the agreed step */
	TASK_SAVED,  /* has saved, and stays until all have */
	TASK_SILENT, /* its beats have not been seen to change for too long */
	TASK_DEAD,   /* was declared dead */
	TASK_FINISHED,
	TASK_LEFT_SAVED,
	TASK_LEFT_UNSAVED, /* preempted, without the agreed save */
	TASK_FAILED,
	TASK_ENDED, /* because another task failed or was lost */
	TASK_STATES,
};
const char *task_state_word(enum task_state state);
/* A state that a user should look at. */
bool task_state_is_bad(enum task_state state);

struct run_task {
	enum task_state state;
	int64_t joined, left, dead;	/* UTC; 0: not */
	int64_t reported, acked, saved; /* in the newest round */
	int64_t took;			/* ms: its save in the newest round; 0 */
	/* Of its beats: */
	bool beats; /* one was read */
	struct store_beat beat;
	bool proved;	 /* seen to change since the first reading */
	int64_t changed; /* when it was seen to change, on our monotonic clock; 0: only once read */
	int64_t silent;	 /* ms without a beat, as far as is known; -1: not known */
	bool has_step;
	uint64_t step; /* the newest known */
	double rate;   /* steps per second in this attempt; 0: not known */
};

struct run_status {
	struct view view;
	struct outcome outcome;	      /* of this attempt; CAUSE_OPEN: it runs */
	struct history history;	      /* of the attempts before it */
	int64_t opened, deadline_utc; /* UTC; 0: not known */
	int64_t round_opened;	      /* of the newest round, UTC; 0: there is none */
	struct run_task *tasks;	      /* [view.attempt.tasks] */
	struct run_mark *marks;	      /* in the order of their times */
	size_t mark_count;
};

/*
 * Read an attempt of a run (0: the newest). before (may be NULL) is an earlier reading, with which
 * the beats are compared. STATUS_NO: there is no such run or attempt. Others: could not be asked.
 */
enum status run_status_read(struct store *store, const char *run, uint64_t number,
	const struct run_status *before, struct run_status *status, struct error *err);
/* Only the beats again, which no transaction is needed for. */
void run_status_read_beats(struct store *store, struct run_status *status);
void run_status_release(struct run_status *status);

/*
 * Pure: take in the entries of the attempt, whose view has been initialized. Sets view, marks and
 * tasks without their beats.
 */
void run_status_feed(struct run_status *status, const struct store_answer *answer, int64_t now);
/* Pure: what beats[tasks], read at now, say. before: an earlier reading, or status itself; NULL. */
void run_status_judge(struct run_status *status, const struct run_status *before,
	const struct store_beat_reading *beats, int64_t now);

/* Pure: whether all tasks have joined. One that is alone does not write ALL_JOINED. */
bool run_status_has_joined(const struct run_status *status);
/*
 * Pure: whether it is known of each task that should beat that it does, or that it is silent. Until
 * then a run whose tasks have all stopped together looks alive.
 */
bool run_status_is_proved(const struct run_status *status);

/* "running", "preempted", ...: how the attempt stands, in one word. */
const char *run_status_word(const struct run_status *status);
/*
 * For monitoring: 0 while it runs or when it has finished, and 42, 43, 44 and 93 (base/exit_code.h)
 * as the attempt ended, 44 also when a task of a running one is silent or dead.
 */
int run_status_code(const struct run_status *status);

#endif
