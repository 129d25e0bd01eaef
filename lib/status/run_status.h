/* SPDX-License-Identifier: MIT */
/*
 * What preempt-status shows of a run: an attempt with its tasks and their beats, and how the
 * attempts before it ended. Nothing here writes to the store.
 *
 * Times in the records are UTC milliseconds, each by the clock of the machine that wrote it: they
 * are shown, but no decision depends on them. How long a task has been silent is measured on our
 * own monotonic clock, from one reading to the next; a first reading can only compare how many
 * beats each task has written.
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
	MARK_REPORT, /* the task was told to wait, and has reported its next boundary */
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
#define MARK_OF_RUN UINT64_MAX /* instead of a task: an event of the whole run */

/* One event of the attempt. */
struct run_mark {
	enum mark_kind kind;
	int64_t utc;
	uint64_t task;	/* MARK_OF_RUN: none */
	uint64_t round; /* 0: the event belongs to no round */
	uint64_t step;	/* of MARK_REPORT (the next boundary), MARK_DECISION, MARK_SAVED; else 0 */
	int64_t took;	/* of MARK_SAVED: ms that the save took; else 0 */
};

enum task_state {
	TASK_MISSING, /* has not joined */
	TASK_JOINED,  /* waits for the others to join */
	TASK_RUNNING,
	TASK_HELD,   /* has reported, and waits for the decision */
	TASK_SAVING, /* is to save at the agreed step */
	TASK_SAVED,  /* has saved, and stays until all have */
	TASK_SILENT, /* its beats have not changed for too long */
	TASK_DEAD,   /* was declared dead */
	TASK_FINISHED,
	TASK_LEFT_SAVED,
	TASK_LEFT_UNSAVED, /* was preempted, without the agreed save */
	TASK_FAILED,
	TASK_ENDED, /* has ended because another task failed or was lost */
	TASK_STATES,
};
const char *task_state_word(enum task_state state);
/* Whether a user should look at a task in this state. */
bool task_state_is_bad(enum task_state state);

struct run_task {
	enum task_state state;
	int64_t joined, left, dead;	/* UTC; 0: it has not */
	int64_t reported, acked, saved; /* UTC, in the newest round; 0: it has not */
	int64_t took;			/* ms that its save in the newest round took; 0: unknown */
	bool beats; /* a beat was read; the members from here to silent are about beats */
	struct store_beat beat;
	bool proved;	 /* a beat was seen to change */
	int64_t changed; /* when this beat, or none, was first seen, on our monotonic clock */
	int64_t silent;	 /* ms without a beat; -1: not known */
	bool has_step;
	uint64_t step; /* the newest known one */
	double rate;   /* average steps per second in this attempt; 0: not known */
};

struct run_status {
	struct view view;
	struct outcome outcome;	      /* of this attempt; CAUSE_OPEN: it still runs */
	struct history history;	      /* of the attempts before it */
	int64_t opened, deadline_utc; /* UTC; 0: not known */
	int64_t round_opened;	      /* of the newest round, UTC; 0: there is none */
	struct run_task *tasks;	      /* [view.attempt.tasks] */
	struct run_mark *marks;	      /* sorted by time */
	size_t mark_count;
};

/*
 * Read an attempt of a run (0: the newest). before (may be NULL): an earlier reading; the beats are
 * compared with it. STATUS_NO: there is no such run or attempt. Else: the store cannot be read.
 */
enum status run_status_read(struct store *store, const char *run, uint64_t number,
	const struct run_status *before, struct run_status *status, struct error *err);
/* Read only the beats again. This takes no transaction. If it fails, status stays as it was. */
enum status run_status_read_beats(
	struct store *store, struct run_status *status, struct error *err);
void run_status_release(struct run_status *status);

/*
 * Pure: read the entries of the attempt. status->view must be initialized. Sets view, marks, and
 * tasks without what their beats show.
 */
void run_status_feed(struct run_status *status, const struct store_answer *answer, int64_t now);
/* Pure: add beats[tasks], read at now. before: an earlier reading, status itself or NULL. */
void run_status_take_beats(struct run_status *status, const struct run_status *before,
	const struct store_beat_reading *beats, int64_t now);

/* Pure: true if all tasks have joined. (In a run of one task, ALL_JOINED is not written.) */
bool run_status_has_joined(const struct run_status *status);
/*
 * Pure: true if each task that should beat is known to beat or to be silent. Until then, a run
 * whose tasks all stopped at the same time looks alive.
 */
bool run_status_is_proved(const struct run_status *status);

/* The state of the attempt in one word: "running", "preempted", ... */
const char *run_status_word(const struct run_status *status);
/*
 * For monitoring: 0 if it runs or has finished; 44 if it runs and a task is silent or dead; else
 * 42, 43, 44 or 93 (base/exit_code.h), as it ended, or, if it breaks or is to stop, as it will end.
 */
int run_status_code(const struct run_status *status);

#endif
