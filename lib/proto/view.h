/* SPDX-License-Identifier: MIT */
/*
 * What the store shows of an attempt, decoded: the part that the agreement decides on, and the part
 * that is only printed. It is fed with entries in any order, whole or only what changed.
 */
#ifndef PROTO_VIEW_H
#define PROTO_VIEW_H

#include "live/progress.h"
#include "proto/keys.h"
#include "store/store.h"

struct view_claim {
	bool outside; /* made from outside the job: task is not set */
	uint64_t task;
	uint64_t pid; /* of one from outside, claim.h; 0: not told */
	char host[65];
	char source[64];
	char reason[256];
	int64_t utc; /* ms: when the notice was received */
};

struct view_error {
	bool present;
	store_revision revision;
	uint64_t task;
	int code; /* as a shell says it */
	char host[65];
	char line[512]; /* the last line it wrote to stderr; may be empty */
};

struct view_member {
	bool joined;
	bool acked;		   /* in the newest round */
	bool unreported;	   /* it was decided without its report */
	int64_t save_time;	   /* ms, of the save in the newest round */
	store_revision unreadable; /* of a report in the newest round that cannot be read; 0 */
	int left_code;
	bool beatless;		/* it has joined, and said that it will never beat */
	enum death_cause death; /* of a task that was declared dead */
	bool left_called;	/* it had called preempt_step, */
	bool left_saved;	/* and had saved, when it left: */
	uint64_t left_saved_step;
	int64_t joined_utc, newest_utc; /* ms by its own clock: what it wrote first and last; 0 */
	struct process_identity agent;
};

struct view {
	struct attempt attempt;
	store_revision revision; /* the store's, when it was last fed */
	int64_t unchanged;	 /* an instant at which nothing was newer than that; 0: none */
	struct agreement_view agreement;
	struct view_member *members; /* [tasks] */
	struct view_claim claim;
	struct view_error error;
	char seal[32]; /* "", claim, error, death, hung, restart, timeout, close */
	char seal_text[256];
	char closed[32];   /* "", completed, preempted, failed, superseded */
	bool resume_known; /* RESUME is there */
	char resume[4096]; /* the checkpoint to resume from; empty: none */
	uint64_t resume_step;
	/* What the tasks that have left had learned: the longest save (ms), and the pace. */
	int64_t longest_save;
	struct progress_rules learned;
	uint64_t damaged; /* values that could not be read */
	store_revision deadline_revision;
	int64_t deadline_unchanged; /* an instant before the next one was written; 0: none is known
				     */
	store_revision reported_at, saved_at; /* of the newest report and save of the round */
	store_revision all_saved_at;	      /* of the newest ALL_SAVED that others wrote */
	bool all_joined;
	/* The revisions with which the newest task joined, and we did (0: not by this view). */
	store_revision joined_at, joined_by_us;
	/*
	 * The store's revision as far as we know; that of the newest stage: all have joined, a
	 * round was opened, or decided; and how many changes since that and the last reading
	 * are ours.
	 */
	store_revision store, stage;
	uint64_t written, written_all; /* the latter of all since the last reading */
	store_revision written_at;     /* the newest of them */
	uint32_t heard; /* the count of news (store.h) before it was read; 0: not known */
};

void view_init(struct view *view, const struct attempt *attempt);
void view_release(struct view *view);

/* When entries were read, on our monotonic clock. */
struct view_reading {
	int64_t unchanged; /* when it was last known that nothing had changed; 0: not known */
	int64_t began, ended;
};

/* Take in one entry; one of another attempt is ignored. */
void view_feed_entry(
	struct view *view, const struct store_entry *entry, const struct view_reading *when);

/* Take in entries of this attempt (others are ignored), all that are newer than its revision. */
void view_feed(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading);

/*
 * As view_feed, but the entries were read without the records that concern only a task that waits
 * for all (TASK, STEP, SAVED, acknowledgements; see keys.h). Those records count as unseen.
 */
void view_feed_news(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading);
extern const char *const view_records[]; /* to be skipped (struct store_range) */

/*
 * Take in what this process has written itself, from began to ended, without reading it again.
 * revision is the store's after it.
 */
struct transaction;
void view_feed_written(struct view *view, const struct transaction *written,
	store_revision revision, const struct view_reading *reading);

/*
 * How many changes others have made in this stage that it does not show, as far as is known: none
 * of what came before is a record of this stage.
 */
uint64_t view_unseen(const struct view *view);
/* How many changes others have made, of all stages, since it was read whole, as far as is known. */
uint64_t view_unread(const struct view *view);
/* How many records of single tasks these may be, at most. */
uint64_t view_unseen_records(const struct view *view);
/* Whether it shows all that is known to be there, of all stages. */
bool view_is_whole(const struct view *view);

/* Read what changed since the last time and take it in. */
enum status view_refresh(struct view *view, struct store *store, struct error *err);

/* ms between two looks for news where the filesystem does not tell: while some is awaited, or not
 */
#define VIEW_EVERY  200
#define VIEW_SELDOM 1000
/* Wait until there is news since then; as store_await_news. */
enum status view_await(
	struct view *view, struct store *store, int64_t deadline, int wake, struct error *err);

/* How many have joined; whether all have left, are dead, or can no longer join. */
uint64_t view_joined(const struct view *view);
bool view_all_through(const struct view *view);
/*
 * Whether all tasks may have left: the view shows it, or there are as many unread changes as
 * missing LEFT keys. False: not yet, and a task that leaves later will close the attempt.
 */
bool view_may_be_through(const struct view *view);
/* Why a sealed attempt takes no further task: one line. */
const char *view_why(const struct view *view);
/* Whether every task has said that its command ended with 0, also one declared dead before. */
bool view_all_completed(const struct view *view);

/* Whether a task that joined is certainly dead: it was declared dead, or its process ran on
 * this machine and is gone. */
bool view_is_surely_dead(const struct view *view, uint64_t task);

/*
 * Whether every task has joined. One that is surely dead, and has not left, is missing again: its
 * successor is to join. One of another machine cannot be looked at: its heartbeat is missed later.
 */
bool view_is_gathered(const struct view *view);
/* The missing tasks as "2, 5-7"; returns how many. */
uint64_t view_name_missing(const struct view *view, struct text *text);

#endif
