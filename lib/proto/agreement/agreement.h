/* SPDX-License-Identifier: MIT */
/*
 * The agreement on the step at which all tasks save: one struct agreement per task, a pure state
 * machine. Its caller reports what happened (agreement_noticed, agreement_saw, ...) and asks what
 * is to be done now (agreement_next). The machine reads no clock, does no I/O, and allocates
 * nothing.
 *
 * It is level-triggered: agreement_next derives everything wanted from what is known, so that lost
 * answers, repeated events and restarts of the store need no cases of their own. A write that is
 * wanted stays wanted until it is answered or the view shows it.
 *
 * docs/design.md, section 4, has the rules. In short: a task that receives a notice claims; every
 * task holds at its next boundary and reports it; the decision is the largest report; each task
 * saves at its first boundary at or after that step; after the final save each task stays until all
 * have saved, then leaves. The checkpoint is complete if all that must save have saved at one step.
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
	KIND_SAVE, /* save at the first boundary at or after the step, report, run on */
	KIND_EXIT, /* the same, but stay; then leave */
	KIND_EACH, /* no common step is in reach: each saves at its own next boundary; then leave */
	KIND_NONE, /* no task has started to train: there is nothing to save */
};

enum agreement_reason {
	REASON_NONE,	  /* has not left */
	REASON_COMPLETED, /* its command ended with 0 */
	REASON_SAVED,	  /* preempted, after the agreed save */
	REASON_PREEMPTED, /* preempted, without an agreed save */
	REASON_FAILED,	  /* its command failed and no preemption was under way */
	REASON_PEER,	  /* another task failed, died or came back as a new incarnation */
	REASON_LEFT,	  /* how its command ended is not known (preempt-store leave) */
};

struct agreement_peer {
	enum agreement_reason left;
	bool dead;
	/* In the newest round: */
	bool reported;
	bool none;	   /* reported that it has not called preempt_step yet */
	uint64_t step;	   /* finished steps when it reported */
	uint64_t next;	   /* first boundary at which it can surely stop */
	int64_t step_time; /* ms: the longest recent time between two boundaries; 0: unknown */
	bool member;	   /* the decision is for it */
	bool saved;
	uint64_t saved_step;
	bool stood; /* saved in the view's standing_round, at stood_step */
	uint64_t stood_step;
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
	bool error;  /* there is an ERROR, written by error_task */
	uint64_t error_task;
	bool closed;
	/*
	 * The announced deadline on our monotonic clock (agreement_learn_deadline); CLOCK_NEVER:
	 * none. deadline is never later than the true one, deadline_latest never earlier, and
	 * deadline_told is the latest that another machine can derive.
	 */
	int64_t deadline, deadline_latest, deadline_told;
	bool deadline_doubted; /* perhaps over when first seen: save now, give up no task */
	int64_t longest_save;  /* ms, as the store remembers of this run; 0: unknown */
	/* The newest round; number 0: none was opened. */
	uint64_t round;
	bool round_final; /* opened because the grace period ends, or after a decision to exit */
	/* 1; more if the round was opened because a task cannot save at the step of the one before.
	 */
	uint64_t round_try;
	bool decided;
	bool unreadable; /* the decision cannot be parsed: the next round replaces it */
	struct agreement_decision decision;
	/*
	 * The newest earlier round that decided, after the claim, to save and run on; 0: none. If
	 * no final save is completed, its checkpoint is the one to resume from.
	 */
	uint64_t standing_round;
	uint64_t all_saved;	 /* the newest round that has ALL_SAVED */
	bool all_saved_complete; /* ALL_SAVED says that every task that must save has saved */
	/* The newest complete checkpoint since the claim that a record tells: ALL_SAVED, LEFT. */
	bool has_complete;
	uint64_t complete_step;
	/* The tasks whose report and whose save of the newest round were seen last. */
	uint64_t last_reporter, last_saver;
	/*
	 * How many awaited records (reports, then saves) and how many goodbyes were counted that
	 * this view does not show. A task that waits only for these reads them.
	 */
	uint64_t unseen, departed;
	int64_t took; /* ms that the store took for its last answer */
	/* Cached sums; code that changes the view clears tally->known. NULL: none are cached. */
	struct agreement_tally *tally;
};

#define TOLD_LATE   500	 /* ms that the deadline of our claim, as others read it, may be late */
#define NEARLY_SAME 2500 /* ms: announce our deadline only if it is earlier by more than this */
#define LEAVE_EARLY 2000 /* ms before the deadline at which a task that has saved leaves */

/* A deadline that another task or program has announced, as it was first read. */
struct agreement_sighting {
	int64_t left;	/* ms until the deadline when it was written, as its writer counted */
	int64_t exact;	/* the deadline, if its writer had the same monotonic clock; else 0 */
	int64_t absent; /* an instant at which it was not there yet; 0: none is known */
	int64_t seen;	/* when the first reading that shows it had ended */
};

/*
 * Take in a deadline. It was written between absent and seen, so it lies between absent + left and
 * seen + left. If it may have been over at `seen`, it is doubted: then the final save is due at
 * once, and no task is given up because of it. A known deadline only moves earlier.
 */
void agreement_learn_deadline(
	struct agreement_view *view, const struct agreement_sighting *sighting);

/*
 * Whether to announce this deadline after a claim: none is known yet, or it is clearly earlier than
 * the known one. ours: the claim is ours; if it waited for the store, others read its deadline as
 * too late.
 */
bool agreement_moves_deadline(const struct agreement_view *view, int64_t deadline, bool ours);

/* Whether task counts in a decision made now: it has neither left nor died. */
static inline bool agreement_counts(const struct agreement_view *view, uint64_t task)
{
	return view->peers[task].left == REASON_NONE && !view->peers[task].dead;
}

/*
 * Whether ALL_SAVED says that every task that must save in the newest round has saved. The view may
 * then lack the records of the single saves.
 */
static inline bool agreement_all_saved(const struct agreement_view *view)
{
	return view->all_saved == view->round && view->all_saved_complete;
}

/* Whether the run is to stop, not to run again: tasks that have not completed leave with 93. */
static inline bool agreement_stops(const struct agreement_view *view)
{
	return view->claimed && view->claim_then == THEN_STOP;
}

/* Whether another task may be saving. If so, do not exit: a launcher may then kill all tasks. */
bool agreement_others_save(const struct agreement_view *view, uint64_t task);

/* ---- One task ---- */

/*
 * The agreement of the tasks of one agent if the store does not answer after a notice. The caller
 * sets view.peers ([tasks], zeroed, owned by the caller), and first and count (which tasks are of
 * this agent), and zeroes the rest.
 */
struct agreement_alone {
	struct agreement_view view;
	uint64_t first, count;
	bool begun;
	bool goes_on; /* in the round of the store, which had a final decision */
};

/* So many rounds in a row look for a step at which all can save; then each saves where it stands.
 */
#define AGREEMENT_TRIES 4

/* Defaults of struct agreement_config, in ms. */
#define AGREEMENT_REPORT_TIMEOUT 10000
#define AGREEMENT_SAVE_TIMEOUT	 300000
#define AGREEMENT_STARTUP	 600000
/* ms for which an ended task tries to write to a store that does not answer; or save_timeout, if
 * that is less. */
#define AGREEMENT_LEAVE_PATIENCE 10000

struct agreement_config {
	uint64_t task;
	struct agreement_alone *alone; /* NULL: the task never saves without the store */
	int64_t report_timeout;	       /* ms without a further report while the store answers */
	int64_t report_jitter;	       /* ms, 0 to 1,000, drawn by the caller */
	int64_t save_timeout;	       /* ms that a save may take if no deadline is known */
	int64_t startup;	       /* ms after the start in which a task need not train yet */
	bool savers_chief;	       /* only task 0 must save */
	bool complete_chief;	       /* task 0's save makes the checkpoint complete */
	bool per_task;		       /* checkpoints are per task: KIND_EACH counts as saved */
	bool store_loss_ends;	       /* --on-store-loss end */
	bool acknowledges;	       /* acknowledge the decision at once, not with the save */
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
	WRITE_DEADLINE,	 /* DEADLINE: the earlier of ours and the known one */
	WRITE_ROUND,	 /* ROUND/<round>, if absent; final says which kind */
	WRITE_REPORT,	 /* STEP/<round>/<task> */
	WRITE_DECISION,	 /* if absent, and if the tasks without a report still have none */
	WRITE_ACK,	 /* RECEIVED_SIGNAL_<decision>_<task> */
	WRITE_SAVED,	 /* SAVED/<round>/<task> */
	WRITE_ALL_SAVED, /* ALL_SAVED/<round>, if absent */
	WRITE_ERROR,	 /* ERROR and the seal, if not sealed */
	WRITE_LEFT,	 /* LEFT/<task>; an agent that finds all gone closes the attempt */
	WRITE_KINDS,
};

enum agreement_outcome {
	OUTCOME_DONE,	 /* written (or found written by us) */
	OUTCOME_REFUSED, /* a compare failed: look again before deciding */
	OUTCOME_UNKNOWN, /* the store was not reached, or its answer was lost: look again */
};

/* What is to be done now. Carrying out a plan twice has the effect of doing it once. */
struct agreement_plan {
	struct agreement_hold hold; /* what the board's hold must say */
	int64_t read_board;	    /* read step at or after this instant; CLOCK_NEVER: no need */
	/*
	 * For each write that is to start now, the round it belongs to (1 if it belongs to none);
	 * 0: the write is not wanted, or is under way.
	 */
	uint64_t write[WRITE_KINDS];
	bool final; /* of ROUND, as try */
	uint64_t round_try;
	struct agreement_decision
		decision;    /* of DECISION; members are the tasks that count in the view */
	bool report_none;    /* of REPORT; else step, next and step_time */
	uint64_t step, next; /* of REPORT */
	uint64_t saved_step; /* of SAVED */
	bool complete;	     /* of ALL_SAVED: all have saved at complete_step */
	uint64_t complete_step;
	enum agreement_reason reason; /* of LEFT */
	bool end_command;	      /* TERM, then KILL after the caller's patience */
	bool finished;		      /* the agent is done with this task; leave with code */
	int code;
	int64_t look;  /* read the store's news by then */
	int64_t count; /* from then on also count the store's records with each look */
	int64_t read;  /* read all records by then */
	int64_t wake;  /* ask again by then even if nothing happens */
};

struct agreement {
	struct agreement_config config;
	const struct agreement_view *store; /* what the store shows */
	const struct agreement_view *view;  /* what the rules use: store, or config.alone's view */

	/* Facts about this task. */
	int64_t started; /* when the command was started */
	bool noticed;	 /* this task has a notice of its own */
	int64_t own_deadline;
	bool ended; /* the command has ended */
	int64_t ended_at;
	int end_code; /* as a shell reports it */
	bool called;  /* it has called preempt_step at least once */
	bool lost;    /* its board vanished */
	bool cut_off; /* from the store, for too long */
	bool has_saved;
	uint64_t saved_step; /* newest save that the board shows */
	struct grace_measure measure;

	/* What the board was last told, and since when. */
	struct agreement_hold told;
	int64_t told_at;
	uint64_t saving; /* the round whose save the board was last told of; 0: none */
	uint64_t saving_step;
	/* The earlier round whose save was under way when the board was told of `saving`; 0: none.
	 */
	uint64_t before, before_step;

	/* The board's last reading. read: it was made under a `wait` that still stands, so the task
	 * stops at read_next. */
	bool read;
	uint64_t read_step, read_next;
	int64_t read_at;

	/* The newest round. */
	uint64_t round;
	int64_t round_seen;
	uint64_t reports;   /* how many reports there are, seen or counted */
	int64_t reports_at; /* since when there are that many */
	int64_t counted_at; /* when reports were counted last */
	int64_t silence;    /* ms in which the store answered between reports_at and counted_at */
	int64_t answering;  /* ms in which the store has answered since counted_at */
	int64_t looked_at;  /* when answering was last added to */
	int64_t decided_at; /* when the decision was seen; 0: not yet */

	int64_t deadline;    /* as it was in the last agreement_next */
	int64_t deadline_at; /* since when it has been that early */

	/* Conclusions: once reached, they stay. */
	bool solo;	   /* no decision came in time: this task follows config.alone */
	bool content;	   /* it leaves with the first save after the notice: no time for another */
	int64_t parked_at; /* when the final save was seen; 0: not yet */
	int64_t free_at; /* when its goodbye was written and no other task was saving; 0: not yet */
	bool concluded;
	enum agreement_reason reason;
	int code;
	/* With REASON_SAVED: the step of the checkpoint that is complete for this task. */
	bool has_complete;
	uint64_t complete_step;

	/* The store: writes under way and done. */
	bool pending[WRITE_KINDS];
	uint64_t done[WRITE_KINDS];  /* the round (or 1) in which it was done; 0 never */
	int64_t deadline_written;    /* own_deadline as it was when its writing began */
	bool read_first, look_first; /* before the next write read all records, or only the news */
	/* When to read the records that this task waits for; 0: not all of them are there. */
	int64_t records_due;
	int64_t departed_at;   /* when others were first counted to have left; 0: none has */
	bool stands_in;	       /* it acts in place of the agent that wrote the last record */
	bool wrote;	       /* the newest change in the view was written by this agent */
	int64_t answered_at;   /* when the store last answered */
	int64_t saw_at;	       /* when the whole view was read last */
	bool awaits;	       /* the last plan waits for a reading of the store */
	int64_t awaits_at;     /* since when */
	int64_t unanswered_at; /* when the first of the unanswered writes began; 0: there is none */
	int64_t now;	       /* of the last agreement_next */

	int64_t due; /* when the last plan asked for the next agreement_next */
	/* When agreement_next last came much later than due: until then this process was stopped,
	 * and that time counts as silence neither of the store nor of other tasks. */
	int64_t stopped_until;
};

/*
 * The view and config->alone must stay valid. started: the instant at which the command was or will
 * be started.
 */
void agreement_init(struct agreement *a, const struct agreement_config *config,
	const struct agreement_view *view, int64_t started);

/* A notice of this task's own; deadline CLOCK_NEVER: it is not known. */
void agreement_noticed(struct agreement *a, int64_t deadline);
/* The view was read whole (the reading began after the last write was answered). */
void agreement_saw(struct agreement *a, int64_t now);
/* The news was read; counted: the awaited records were counted, too. */
void agreement_looked(struct agreement *a, bool counted, int64_t now);
/* The view was changed by what this agent wrote itself. */
void agreement_took_in(struct agreement *a, int64_t now);
/* The board's hold now says this. */
void agreement_told(struct agreement *a, const struct agreement_hold *hold, int64_t now);
/* The board's step was read; started false: it is empty, preempt_step was not called yet. */
void agreement_read(struct agreement *a, bool started, uint64_t step, uint64_t next, int64_t now);
void agreement_board_lost(struct agreement *a);
/*
 * The store has not answered for so long that the others must have given this task up: it ends with
 * 44, unless there is a notice.
 */
void agreement_cut_off(struct agreement *a);
void agreement_saved(struct agreement *a, uint64_t step);
/*
 * The training process was started again below its command and may have gone back to a checkpoint:
 * what was read of the former process no longer counts, except its final save.
 */
void agreement_restarted(struct agreement *a);
/* What was measured here so far; its skew is ignored. */
void agreement_measured(struct agreement *a, const struct grace_measure *measure);
void agreement_ended(struct agreement *a, int code, int64_t now);
void agreement_writing(struct agreement *a, enum agreement_write what);
/* news: the store has news that the view does not show. */
void agreement_wrote(struct agreement *a, enum agreement_write what, uint64_t round,
	enum agreement_outcome outcome, bool news, int64_t now);

/* The exit code of a task that has concluded, by what is known now: the last save may come late. */
int agreement_choose_code(struct agreement *a);

/* Fill plan with what is to be done at the instant `now`. */
void agreement_next(struct agreement *a, int64_t now, struct agreement_plan *plan);

/* Whether the hold makes a training at `step` stand still: it waits, saves there, or leaves. */
static inline bool agreement_stands_still(const struct agreement_hold *told, uint64_t step)
{
	bool trains_until = told->order == ORDER_SAVE || told->order == ORDER_EXIT;
	return told->order != ORDER_RUN && !(trains_until && step < told->step);
}

/* Whether SAVED is written for the round whose save the board was last told of. */
static inline bool agreement_saved_reported(const struct agreement *a)
{
	return a->saving && a->done[WRITE_SAVED] == a->saving;
}

/* ---- The decision's value (step.c) ---- */

/* How many steps are between two boundaries of a task that reported. */
uint64_t agreement_stride(const struct agreement_peer *peer);

/* Make the whole decision for the newest round, as the view shows it. */
void agreement_decide(const struct agreement_view *view, const struct grace_measure *measure,
	int64_t deadline, int64_t now, struct agreement_decision *decision);

#endif
