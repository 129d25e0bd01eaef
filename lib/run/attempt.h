/* SPDX-License-Identifier: MIT */
/*
 * Attempts: the incarnations of a run. The first task opens an attempt, the others join it, the
 * first claim, error or death seals it, and the last task to leave closes it. A new attempt never
 * reads keys of an old one.
 *
 * Calls that get a store block on it: they are made by a program, or by the agent's store thread.
 */
#ifndef RUN_ATTEMPT_H
#define RUN_ATTEMPT_H

#include "proto/view.h"
#include "proto/writes.h"

/* The process that joins. */
struct attempt_entry {
	const char *run;
	uint64_t number; /* only this attempt; 0: the newest, or the next one */
	uint64_t tasks;
	uint64_t first, count; /* tasks first .. first + count - 1 */
	const char *launch;    /* launch id; "": not known */
	struct process_identity agent;
	bool beatless;	  /* it never beats, as TASK/i tells the others */
	int64_t deadline; /* for joining, also while a predecessor's attempt has not closed */
	int cancel;	  /* a descriptor: give up (STATUS_NO) when it is readable; -1: none */
};

/* What the store shows of a task, for the decision to join. */
enum membership {
	MEMBERSHIP_FREE, /* no process has joined as this task */
	MEMBERSHIP_OURS, /* this process has joined as this task */
	MEMBERSHIP_LEFT,
	MEMBERSHIP_DEAD,
	MEMBERSHIP_ALIVE,  /* another process runs as this task */
	MEMBERSHIP_UNKNOWN /* a process on another machine may run as this task */
};
enum launch_order { LAUNCH_SAME, LAUNCH_NEWER, LAUNCH_OLDER, LAUNCH_OTHER };
struct attempt_join_state {
	bool exists, closed, sealed, claimed;
	bool all_through;	  /* all tasks that joined have left or are dead */
	uint64_t tasks;		  /* of the newest attempt */
	enum launch_order launch; /* our launch compared with the attempt's */
	bool same_launch;	  /* both launches are known, and equal */
	/* The worst membership of our tasks: OURS < FREE < LEFT < DEAD < UNKNOWN < ALIVE. */
	enum membership membership;
	enum membership others; /* likewise of all other tasks that joined */
	/* These two do not count a task as dead only because a host of that name has rebooted. */
	bool lost;     /* one of the other tasks is dead */
	bool deserted; /* at least one other task joined, and all have left or are dead */
};

enum attempt_join_decision {
	ATTEMPT_OPEN,		  /* open the next attempt */
	ATTEMPT_JOIN,		  /* join this attempt */
	ATTEMPT_JOINED,		  /* we have joined it already */
	ATTEMPT_WAIT,		  /* until the attempt closes */
	ATTEMPT_DECLARE_DEAD,	  /* our predecessor is dead: seal this one, then open the next */
	ATTEMPT_TOO_LATE,	  /* this launch was preempted: leave with 42, and start nothing */
	ATTEMPT_REFUSE_ALIVE,	  /* another process runs as one of the tasks */
	ATTEMPT_REFUSE_LINGERING, /* the attempt belongs to a newer launch than this process */
	ATTEMPT_REFUSE_TASKS,	  /* the attempt has another number of tasks */
};
enum attempt_join_decision attempt_decide_join(
	const struct attempt_join_state *state, uint64_t tasks);

/*
 * Compare our launch id (identity.h) with another one. Those of one job,
 * "SCHEDULER:JOB:RESTART+...", are ordered by the restart count. An empty id is equal to any.
 */
enum launch_order attempt_compare_launch(const char *ours, const char *theirs);

/*
 * Join, or open and join. STATUS_OK: our tasks have joined; *view shows the attempt; release it.
 * STATUS_USAGE: refused, err says what to do. STATUS_TIMEOUT: the predecessor's attempt did not
 * close in time. STATUS_NO, with err: cancelled, or the attempt is missing from the store, or this
 * launch was preempted before we joined (attempt_is_preempted). A store that does not answer is
 * asked again until the deadline (live/outage.h); then STATUS_TEMPORARY.
 */
enum status attempt_join(struct store *store, const struct attempt_entry *entry, struct view *view,
	struct error *err);

/*
 * Get the number of the newest attempt of a run (0: there is none yet) and the revision of the key
 * that holds it (revision may be NULL).
 */
enum status attempt_newest(struct store *store, const char *run, uint64_t *number,
	store_revision *revision, struct error *err);

/* Find the newest attempt of a run (number 0), or the given one. STATUS_NO: there is none. */
enum status attempt_find(struct store *store, const char *run, uint64_t number,
	struct attempt *attempt, struct error *err);

/* The value of the attempt's key OPEN. */
struct json_object *attempt_open_value(const struct attempt *attempt);

/* STATUS_USAGE: the attempt has no task of this number. */
enum status attempt_check_task(const struct attempt *attempt, uint64_t task, struct error *err);

/* As attempt_find, and read all that the store shows of it. Release it with view_release. */
enum status attempt_view(struct store *store, const char *run, uint64_t number, struct view *view,
	struct error *err);

/*
 * Wait until all tasks have joined, and keep the view up to date. STATUS_TIMEOUT: err names the
 * missing tasks, and the attempt is sealed. STATUS_BROKEN: an error, a death or a restart sealed it
 * (see attempt_is_superseded). STATUS_NO, with err: cancelled, or a claim came first
 * (attempt_is_preempted). STATUS_TEMPORARY: the store did not answer until the deadline.
 */
enum status attempt_gather(
	struct store *store, struct view *view, int64_t deadline, int cancel, struct error *err);

/*
 * Whether a restarted task ended the attempt. A task that still waits for others to join, and has
 * started nothing, then joins the next one.
 */
bool attempt_is_superseded(const struct view *view);

/*
 * After STATUS_NO of attempt_join or attempt_gather: whether a claim came first. If so, leave with
 * 42, and start nothing.
 */
static inline bool attempt_is_preempted(const struct view *view)
{
	return view->agreement.claimed;
}

#define SAY_WAITING 5000 /* ms of waiting after which an agent says for whom or what, once */

/* Write LEFT for a task that never started, or that has no agent. */
enum status attempt_leave(struct store *store, struct view *view, uint64_t task,
	enum agreement_reason reason, int code, struct error *err);

/*
 * Write SEAL, if it is not there: no further task can join, and those that run leave with 44. `by`
 * is the word for the cause, text the line for it.
 */
enum status attempt_seal(struct store *store, const struct attempt *attempt, const char *by,
	const char *text, struct error *err);

/*
 * Close the attempt if each task has left, is dead or can no longer join. If it is closed already,
 * but by now all tasks have completed, correct its state to "completed". finding: what an agent
 * knows of its end (outcome.h), or NULL. STATUS_NO: a task may still run or join.
 */
struct outcome_finding;
enum status attempt_close(struct store *store, struct view *view,
	const struct outcome_finding *finding, struct error *err);
/* The same without a refresh of the view. */
enum status attempt_close_as_seen(struct store *store, const struct view *view,
	const struct outcome_finding *finding, struct error *err);
/*
 * Close the attempt although tasks have not left. Those that still run see the seal, and leave with
 * 44. STATUS_NO: a claim has come since view was read.
 */
enum status attempt_close_by_hand(struct store *store, struct view *view, struct error *err);

#endif
