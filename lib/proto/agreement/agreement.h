/* SPDX-License-Identifier: MIT */
/*
 * The agreement on the step at which all tasks save: one struct agreement per task, a pure state
 * machine. It is told what happened (agreement_noticed, agreement_saw, ...) and asked what is to be
 * done now (agreement_next). It reads no clock, does no I/O, and allocates nothing.
 *
 * It is level-triggered: agreement_next derives everything wanted from what is known, so that lost
 * answers, repeated events and restarts of the store need no cases of their own. A write that is
 * wanted stays wanted until the view shows it or it was answered.
 *
 * docs/design.md, section 4, has the rules. In short: a task that receives a notice claims; every
 * task holds at its next boundary and reports it; the decision is the largest report; all tasks
 * save there; after the final save each task stays until all have saved, then leaves.
 */
#ifndef PROTO_AGREEMENT_AGREEMENT_H
#define PROTO_AGREEMENT_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/agreement/grace.h"

/* ---- What the store shows (shared by all tasks of one agent) ---- */

enum agreement_then { THEN_EXIT, THEN_CONTINUE, THEN_STOP };

enum agreement_kind {
	KIND_SAVE, /* at S save, report, run on */
	KIND_EXIT, /* at S save, report, stay; then leave */
	KIND_EACH, /* no common S can be reached in time: each at its own next boundary, then leave
		    */
	KIND_NONE, /* no task has started to train: there is nothing to save */
};

enum agreement_reason {
	REASON_NONE,	  /* has not left */
	REASON_COMPLETED, /* its command ended with 0 */
	REASON_SAVED,	  /* preempted, after the agreed save */
	REASON_PREEMPTED, /* preempted, without it */
	REASON_FAILED,	  /* its command failed and no preemption was under way */
	REASON_PEER,	  /* another task failed, died or came back as a new incarnation */
};

struct agreement_peer {
	enum agreement_reason left;
	bool dead;
	/* In the newest round: */
	bool reported;
	bool none;	   /* reported that it has not called preempt_step yet */
	uint64_t step;	   /* finished steps when it reported */
	uint64_t next;	   /* first boundary at which it can surely stop */
	int64_t step_time; /* its longest recent way from one boundary to the next, ms; 0 unknown */
	bool member;	   /* of the decision */
	bool saved;
	uint64_t saved_step;
	bool stands; /* has saved exactly at the view's standing_step */
};

struct agreement_decision {
	enum agreement_kind kind;
	enum agreement_then then;
	uint64_t step; /* of KIND_SAVE and KIND_EXIT */
};

struct agreement_view {
	uint64_t tasks;
	struct agreement_peer *peers; /* [tasks], owned by the caller that fills the view */
	bool claimed;		      /* TERMINATED_WORKER is there */
	enum agreement_then claim_then;
	bool broken; /* sealed by an error, a death or a restart, not by a claim */
	bool error;  /* a task has put its error: this one */
	uint64_t error_task;
	bool closed;
	/*
	 * All on our monotonic clock; CLOCK_NEVER where none is known (agreement_learn_deadline).
	 * deadline is never later than the announced one, deadline_latest never earlier, and
	 * deadline_told is the latest that a reader elsewhere can take it for.
	 */
	int64_t deadline, deadline_latest, deadline_told;
	bool deadline_doubted; /* one was over when it was first seen: save now, give no task up */
	int64_t longest_save;  /* ms, that the store remembers of this run; 0 none */
	/* The newest round; number 0: none was opened. */
	uint64_t round;
	bool round_final; /* opened because the time has come, or after a decision to exit */
	bool decided;
	bool unreadable; /* there is a decision, but not one that we can read: the next round heals
			  */
	struct agreement_decision decision;
	/*
	 * The newest earlier round that decided, after the claim, to save and run on; number 0:
	 * none. Should no final save come about, its checkpoint is the one to resume from.
	 */
	uint64_t standing_round, standing_step;
	uint64_t all_saved;	 /* the newest round known to have no save left to do */
	bool all_saved_complete; /* and every task that must save has */
	/* Whose report, and whose save, of the newest round came last, of those that are seen. */
	uint64_t last_reporter, last_saver;
	/*
	 * How many of the awaited records (reports, then saves) exist that this view does not show,
	 * and how many goodbyes. A task that waits for no more than that reads them.
	 */
	uint64_t unseen, departed;
	int64_t took; /* ms: how long the store took for what it was asked last */
	/* Kept by those that change the view, who make it unknown; NULL: not kept. */
	struct agreement_tally *tally;
};

#define TOLD_LATE   500	 /* ms by which others may take the claimer's deadline too late */
#define NEARLY_SAME 2500 /* ms between deadlines of tasks that were noticed at the same time */
#define LEAVE_EARLY 2000 /* ms before the deadline at which a task that has saved leaves */

/* A deadline that another task or program has announced, as it was first read. */
struct agreement_sighting {
	int64_t left;	/* ms until the deadline when it was written, as its writer counted */
	int64_t exact;	/* the deadline, where its writer had the same monotonic clock; 0: not */
	int64_t absent; /* an instant at which it was not there yet; 0: none is known */
	int64_t seen;	/* when the reading in which it was there had ended */
};

/*
 * Take it in. It was written between absent and seen, so the deadline lies between absent + left
 * and seen + left. One that may be over when it is first seen is doubted: then the final save is
 * due at once, and no task is given up because of it. A known deadline only moves earlier.
 */
void agreement_learn_deadline(
	struct agreement_view *view, const struct agreement_sighting *sighting);

/* Whether task counts in a decision made now: neither ended nor dead. */
static inline bool agreement_counts(const struct agreement_view *view, uint64_t task)
{
	return view->peers[task].left == REASON_NONE && !view->peers[task].dead;
}

/*
 * Whether ALL_SAVED says that every task that must save in the newest round has. The records of the
 * single saves may be unread then.
 */
static inline bool agreement_all_saved(const struct agreement_view *view)
{
	return view->all_saved == view->round && view->all_saved_complete;
}

/* Asked to stop and not to run again: a task that has not finished leaves with 93, saved or not. */
static inline bool agreement_stops(const struct agreement_view *view)
{
	return view->claimed && view->claim_then == THEN_STOP;
}

/* Whether another task may be saving: an exit of this one, on which a launcher may kill, waits. */
bool agreement_others_save(const struct agreement_view *view, uint64_t task);

/* ---- One task ---- */

/*
 * What the tasks of one agent agree on without the store, if it does not answer after a notice.
 * Zero it, except for peers ([tasks], zeroed, owned by the caller) and the tasks that share it.
 */
struct agreement_alone {
	struct agreement_view view;
	uint64_t first, count;
	bool begun;
};

struct agreement_config {
	uint64_t task;
	struct agreement_alone *alone; /* NULL: the task never saves without the store */
	int64_t report_timeout;	       /* ms of answered silence; 10,000 */
	int64_t report_jitter;	       /* ms, 0 to 1,000, drawn by the caller */
	int64_t save_timeout;	       /* ms; 300,000 */
	int64_t startup;	       /* ms; 600,000 */
	int64_t leave_patience; /* ms to try to say goodbye to a store that does not answer; 10,000
				 */
	bool savers_chief;	/* only task 0 must save */
	bool complete_chief;	/* task 0's save makes the checkpoint complete */
	bool per_task;		/* checkpoints are per task: KIND_EACH counts as saved */
	bool store_loss_ends;	/* --on-store-loss end */
	bool acknowledges;	/* the decision is acknowledged at once, not with the save */
};

enum agreement_order { ORDER_RUN, ORDER_WAIT, ORDER_SAVE, ORDER_EXIT, ORDER_LEAVE };

/* What the board's hold says. */
struct agreement_hold {
	enum agreement_order order;
	uint64_t step; /* ORDER_SAVE, ORDER_EXIT */
	int code;      /* ORDER_LEAVE */
};

enum agreement_write {
	WRITE_CLAIM, /* TERMINATED_WORKER, the seal and the next ROUND, if none of them is there */
	WRITE_DEADLINE,	 /* DEADLINE to the minimum */
	WRITE_ROUND,	 /* ROUND/<round>, if absent; final says which kind */
	WRITE_REPORT,	 /* STEP/<round>/<task> */
	WRITE_DECISION,	 /* if absent, and if those without a report still have none */
	WRITE_ACK,	 /* RECEIVED_SIGNAL_<key>_<task> */
	WRITE_SAVED,	 /* SAVED/<round>/<task> */
	WRITE_ALL_SAVED, /* ALL_SAVED/<round>, if absent */
	WRITE_ERROR,	 /* ERROR and the seal, if not sealed */
	WRITE_LEFT,	 /* LEFT/<task>; a task that finds all gone closes the attempt */
	WRITE_KINDS,
};

enum agreement_outcome {
	OUTCOME_DONE,	 /* written (or found written by us) */
	OUTCOME_REFUSED, /* a compare failed: look again before deciding */
	OUTCOME_UNKNOWN, /* could not ask, or the answer was lost: look again */
};

/* What is to be done now. Nothing here is done twice by doing it twice. */
struct agreement_plan {
	struct agreement_hold hold; /* what the board's hold must say */
	int64_t read_board;	    /* read step at or after this instant; CLOCK_NEVER: no need */
	/*
	 * Writes to start now, none of which is under way: the round each belongs to (1 for those
	 * that belong to none); 0: not wanted.
	 */
	uint64_t write[WRITE_KINDS];
	bool final; /* of ROUND */
	struct agreement_decision
		decision;    /* of DECISION; members are the tasks that count in the view */
	bool report_none;    /* of REPORT; else step, next and step_time */
	uint64_t step, next; /* of REPORT */
	uint64_t saved_step; /* of SAVED */
	bool complete;	     /* of ALL_SAVED */
	enum agreement_reason reason; /* of LEFT */
	bool end_command;	      /* TERM, then KILL after the caller's patience */
	bool finished;		      /* the agent is done with this task; leave with code */
	int code;
	int64_t look;  /* the store's news are wanted by then, */
	int64_t count; /* from this instant on also the counts of its records, */
	int64_t read;  /* and all records by this one */
	int64_t wake;  /* ask again by then even if nothing happens */
};

struct agreement {
	struct agreement_config config;
	const struct agreement_view *store; /* what the store shows */
	const struct agreement_view *view;  /* what is gone by: that, or config.alone's */

	/* Facts about this task. */
	int64_t started; /* when the command was started */
	bool noticed;	 /* this task has a notice of its own */
	int64_t own_deadline;
	bool ended; /* the command has ended */
	int64_t ended_at;
	int end_code; /* as a shell says it */
	bool called;  /* it has called preempt_step at least once */
	bool lost;    /* its board vanished */
	bool cut_off; /* from the store, for too long */
	bool has_saved;
	uint64_t saved_step; /* newest save that the board shows */
	struct grace_measure measure;

	/* What the board was last told, and since when. */
	struct agreement_hold told;
	int64_t told_at;
	uint64_t saving; /* the round whose S the board was last told; 0: none */
	uint64_t saving_step;

	/* What the board said; `read`: while `wait` stood, in the newest round, and stands still.
	 */
	bool read;
	uint64_t read_step, read_next;
	int64_t read_at;

	/* The newest round. */
	uint64_t round;
	int64_t round_seen;
	uint64_t reports;   /* how many there are, seen or counted */
	int64_t reports_at; /* since when */
	int64_t counted_at; /* when they were counted last */
	int64_t silence;    /* ms in which the store answered from the last report to that count */
	int64_t answering;  /* ms in which it has answered since that count */
	int64_t looked_at;  /* when it answered last */
	int64_t decided_at; /* when the decision was seen; 0: not yet */
	bool skipped;	    /* it is to save at a step that we cannot reach */

	int64_t deadline;    /* as it was last time, */
	int64_t deadline_at; /* and since when it has been that early */

	/* Verdicts: once reached, they stay. */
	bool solo;	   /* no decision came in time: this task follows config.alone */
	bool content;	   /* with the first save after the notice: there is no time for another */
	int64_t parked_at; /* when the final save was seen; 0: not yet */
	int64_t free_at;   /* when it had said goodbye and no other task was saving; 0: not yet */
	bool concluded;
	enum agreement_reason reason;
	int code;
	/* With REASON_SAVED: the agreed step, or its own where each checkpoint is complete by
	 * itself.
	 */
	bool has_complete;
	uint64_t complete_step;

	/* The store: writes under way and done, and what has to be read first: all, or the news. */
	bool pending[WRITE_KINDS];
	uint64_t done[WRITE_KINDS]; /* the round (or 1) in which it was done; 0 never */
	int64_t deadline_written;   /* own_deadline as it was when its writing began */
	bool read_first, look_first;
	/* All records that this task waits for are there: when it reads them; 0: they are not. */
	int64_t records_due;
	int64_t departed_at;   /* when it was counted that others have left; 0: none has */
	bool stands_in;	       /* it has read in place of the agent that wrote the last of them */
	bool wrote;	       /* what the view shows newly, this agent has written */
	int64_t answered_at;   /* when the store last answered */
	int64_t saw_at;	       /* when the whole view was read last */
	bool awaits;	       /* news, or what was asked of the store; */
	int64_t awaits_at;     /* since then */
	int64_t unanswered_at; /* when the first write began that it has not answered since; 0 */
	int64_t now;	       /* of the last agreement_next */

	int64_t due;	       /* when we wanted to be asked again */
	int64_t stopped_until; /* we came much later than that: no task is blamed for the time
				  before */
};

/*
 * view, and what config points to, must stay valid; started is when the command was (or is)
 * started.
 */
void agreement_init(struct agreement *a, const struct agreement_config *config,
	const struct agreement_view *view, int64_t started);

/* A notice of this task's own; deadline CLOCK_NEVER where it is not known. */
void agreement_noticed(struct agreement *a, int64_t deadline);
/* The view was read whole (the reading began after the last write was answered). */
void agreement_saw(struct agreement *a, int64_t now);
/* The news were read; counted: and the awaited records counted. */
void agreement_looked(struct agreement *a, bool counted, int64_t now);
/* The view shows what this agent wrote itself. */
void agreement_took_in(struct agreement *a, int64_t now);
/* hold now says what the plan asked for. */
void agreement_told(struct agreement *a, const struct agreement_hold *hold, int64_t now);
/* What `step` said; started false: empty, it has not called yet. */
void agreement_read(struct agreement *a, bool started, uint64_t step, uint64_t next, int64_t now);
void agreement_board_lost(struct agreement *a);
/*
 * The store has not been heard of for so long that the others must have given this task up: it ends
 * with 44, unless there is a notice.
 */
void agreement_cut_off(struct agreement *a);
void agreement_saved(struct agreement *a, uint64_t step);
/*
 * The training process was started again below its command and may have gone back to a checkpoint:
 * what was read of the former one is void, except its final save.
 */
void agreement_restarted(struct agreement *a);
/* What was measured here so far; its skew is not looked at. */
void agreement_measured(struct agreement *a, const struct grace_measure *measure);
void agreement_ended(struct agreement *a, int code, int64_t now);
void agreement_writing(struct agreement *a, enum agreement_write what);
/* news: the view does not show all that concerns every task. */
void agreement_wrote(struct agreement *a, enum agreement_write what, uint64_t round,
	enum agreement_outcome outcome, bool news, int64_t now);

/* What is to be done at now. */
void agreement_next(struct agreement *a, int64_t now, struct agreement_plan *plan);

/* Whether a training at `step` stands still as it was told: it waits, or saves there, or leaves. */
static inline bool agreement_stands_still(const struct agreement_hold *told, uint64_t step)
{
	bool trains_until = told->order == ORDER_SAVE || told->order == ORDER_EXIT;
	return told->order != ORDER_RUN && !(trains_until && step < told->step);
}

/* The save of the round that the board was last told of is reported and acknowledged. */
static inline bool agreement_saved_reported(const struct agreement *a)
{
	return a->saving && a->done[WRITE_SAVED] == a->saving;
}

/* ---- The decision's value (step.c) ---- */

/* How many steps lie between two boundaries of a task that reported. */
uint64_t agreement_stride(const struct agreement_peer *peer);

/*
 * The smallest step, not below any report, that is a boundary of every task that reported, given
 * that boundaries go on as next, next + stride, ... (stride = next - step). Where there is none
 * within a reasonable distance: the largest report. false: no task reported a step.
 */
bool agreement_choose_step(const struct agreement_view *view, uint64_t *step);

/* The whole decision for the newest round as the view shows it. */
void agreement_decide(const struct agreement_view *view, const struct grace_measure *measure,
	int64_t deadline, int64_t now, struct agreement_decision *decision);

#endif
