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

/*
 * The records of single tasks: those of a round, STEP and SAVED, are of the newest one. A view may
 * lack them: they are no news, and only a task that needs them reads them (view_unseen).
 */
enum view_record { RECORD_TASK, RECORD_STEP, RECORD_SAVED, RECORD_LEFT, RECORD_KINDS };

/* Which records a transaction or a list counts along the way, for view_feed_counts. */
struct view_counts {
	enum view_record of[STORE_COUNTS];
	uint64_t round;
	char prefix[STORE_COUNTS][KEYS_MAX]; /* for the store's count */
};

struct view_count {
	uint64_t keys;		 /* so many were there, */
	store_revision revision; /* at this revision; 0: not counted */
};

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
	bool shown[RECORD_KINDS];  /* the view shows it, also one that cannot be read */
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
	/* The store's revisions up to which it shows everything, and all but the records of tasks.
	 */
	store_revision revision, seen;
	int64_t unchanged; /* an instant at which nothing was newer than seen; 0: none */
	struct view_count counted[RECORD_KINDS];
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
	bool all_there; /* every place is taken, although the view may not show by which agent */
	uint64_t shown[RECORD_KINDS];	/* how many of each it shows */
	uint64_t surplus[RECORD_KINDS]; /* and how many keys beside them are no record of a task */
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
 * As view_feed, but the entries were read without the records of single tasks and the
 * acknowledgements (keys.h): the view then shows the rest up to there.
 */
void view_feed_news(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading);
extern const char *const view_records[]; /* to be skipped (struct store_range) */

/* What is awaited (view_awaited), and who has left. */
void view_counts_awaited(const struct view *view, struct view_counts *counts);
/* For struct store_range and transactions: the prefixes, which live as long as counts. */
void view_count_along(const struct view_counts *counts, const char *count[STORE_COUNTS]);
/* Take in what was counted (answer->counted) at this revision. */
void view_feed_counts(struct view *view, const struct view_counts *counts,
	const uint64_t counted[STORE_COUNTS], store_revision revision);

/*
 * Take in what this process has written itself, from began to ended, without reading it again.
 * revision is the store's after it.
 */
struct transaction;
void view_feed_written(struct view *view, const struct transaction *written,
	store_revision revision, const struct view_reading *reading);

/* The records that its tasks wait for: TASK, in a round STEP, and after the decision SAVED. */
enum view_record view_awaited(const struct view *view);
/* How many records of this kind were counted that it does not show. */
uint64_t view_unseen(const struct view *view, enum view_record kind);

/* Read what changed since the last time and take it in. */
enum status view_refresh(struct view *view, struct store *store, struct error *err);

/* Wait until a key of the attempt is newer than the view. Answers as store_wait does. */
enum status view_wait(const struct view *view, struct store *store, int64_t deadline, int wake,
	struct error *err);
/* The same without the records of single tasks; those that are awaited are counted. */
enum status view_refresh_news(struct view *view, struct store *store, struct error *err);

/* The records TASK and LEFT of this task, which the view may lack. */
enum status view_read_task(
	struct view *view, struct store *store, uint64_t task, struct error *err);

/* ms between two looks for news where the filesystem does not tell: while some is awaited, or not
 */
#define VIEW_EVERY  200
#define VIEW_SELDOM 1000
/*
 * ms by which a deadline may seem earlier than it is, because it is not known when it was written:
 * longer in a large job, whose tasks all ask the store so often.
 */
int64_t view_news_age(uint64_t tasks);
/* Wait until there is news since then; as store_await_news. */
enum status view_await(
	struct view *view, struct store *store, int64_t deadline, int wake, struct error *err);

/*
 * In a large attempt each agent reads the news, and of the records of single tasks only those that
 * it needs: else the cost would grow with the square of the job.
 */
static inline bool view_is_large(const struct view *view)
{
	return view->attempt.tasks > 256;
}

static inline bool view_has_joined(const struct view *view, uint64_t task)
{
	return view->all_there || view->members[task].shown[RECORD_TASK];
}

/* How many have joined, as the view shows or counts them. */
uint64_t view_joined(const struct view *view);
/* Whether all have left, are dead, or can no longer join. */
bool view_all_through(const struct view *view);
/*
 * Whether all may have: as many goodbyes were counted, and are not read yet, as tasks seem to be
 * there. False: not yet, and a task that leaves later will close the attempt.
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
