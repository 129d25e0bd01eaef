/* SPDX-License-Identifier: MIT */
/*
 * What the store shows of an attempt, decoded: the part that the agreement decides on, and the part
 * that is only printed. A view takes in entries in any order: all, or only those that changed.
 */
#ifndef PROTO_VIEW_H
#define PROTO_VIEW_H

#include "proto/keys.h"
#include "store/store.h"

/*
 * The records of single tasks; STEP and SAVED are those of the newest round. A view may lack some:
 * they are no news, and only a task that needs them reads them (view_unseen).
 */
enum view_record { RECORD_TASK, RECORD_STEP, RECORD_SAVED, RECORD_LEFT, RECORD_KINDS };

/* Which kinds of records a transaction or a list counts, for view_feed_counts. */
struct view_count_request {
	enum view_record of[STORE_COUNTS];
	uint64_t round;			     /* of STEP and SAVED */
	char prefix[STORE_COUNTS][KEYS_MAX]; /* of the keys to count; "": nothing */
};

/* How many keys of a kind there were at this revision; 0: they were not counted. */
struct view_record_count {
	uint64_t keys;
	store_revision revision;
};

struct view_claim {
	bool outside;	 /* made from outside the job: task is not set */
	bool unreadable; /* damaged, or of another version: treated as an ordinary preemption */
	uint64_t task;
	uint64_t pid; /* only from outside (claim.h); 0: not given */
	char host[65];
	char source[64];
	char reason[256];
	int64_t utc; /* ms: when the notice was received */
};

struct view_error {
	bool present;
	store_revision revision;
	uint64_t task;
	int code; /* as a shell reports it */
	char host[65];
	char line[512]; /* of its stderr: the line that says best why it failed; may be empty */
	char class[64]; /* keys_error_class; "": none */
};

struct view_member {
	bool shown[RECORD_KINDS]; /* the record was seen, even if it cannot be parsed */
	bool acked;		  /* in the newest round */
	bool unreported;	  /* the decision was made without its report */
	int64_t save_time;	  /* ms, of the save in the newest round */
	store_revision
		unreadable; /* of a report in the newest round that cannot be parsed; 0: none */
	int left_code;
	bool beatless;	  /* its record TASK says that it never beats */
	bool left_called; /* when it left, it had called preempt_step, last with left_step */
	bool left_saved;  /* when it left, it had saved, last at left_saved_step */
	uint64_t left_step, left_saved_step;
	int64_t joined_utc, newest_utc; /* ms by its own clock, of TASK; of SAVED or LEFT; or 0 */
	struct process_identity agent;
};

struct view {
	struct attempt attempt;
	/* It shows all up to `revision`, and up to `seen` all but the records of single tasks. */
	store_revision revision, seen;
	int64_t unchanged; /* an instant at which nothing was newer than `seen`; 0: none is known */
	struct view_record_count counted[RECORD_KINDS];
	struct agreement_view agreement;
	struct view_member *members; /* [tasks] */
	struct view_claim claim;
	struct view_error error;
	char seal[32]; /* "", claim, error, death, hung, restart, timeout, closed, unknown */
	char seal_text[256];
	char closed[32];   /* "", completed, preempted, failed, unknown */
	bool resume_known; /* RESUME is there and can be parsed */
	char resume[4096]; /* the checkpoint to resume from; empty: none */
	uint64_t resume_step;
	bool chief_saves;     /* a task that has left tells that only task 0 must save */
	int64_t longest_save; /* ms: of the tasks that have left */
	uint64_t damaged;     /* values that could not be parsed */
	store_revision deadline_revision;
	int64_t deadline_unchanged; /* an instant before any later DEADLINE was written; or 0 */
	store_revision reported_at, saved_at; /* of the newest report and save of the round */
	bool all_joined;
	bool all_there; /* all tasks have joined, although some records TASK may be unread */
	uint64_t shown[RECORD_KINDS];	/* how many records of each kind it shows */
	uint64_t surplus[RECORD_KINDS]; /* how many counted keys are no record of a task */
	uint32_t heard; /* the count of news (store.h) before the last reading; 0: not known */
};

void view_init(struct view *view, const struct attempt *attempt);
void view_release(struct view *view);

/* When entries were read: from began to ended, on our monotonic clock. */
struct view_reading {
	int64_t unchanged; /* the last instant at which the store had nothing newer; 0: not known */
	int64_t began, ended;
};

/* Take in one entry; an entry of another attempt is ignored. */
void view_feed_entry(
	struct view *view, const struct store_entry *entry, const struct view_reading *when);

/* Take in all entries that are newer than view->revision. */
void view_feed(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading);

/*
 * Take in all entries that are newer than view->seen, except the records of single tasks and the
 * acknowledgements, which were not read (view_records).
 */
void view_feed_news(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading);
extern const char *const view_records[]; /* what to skip, for struct store_range */

/* Request to count LEFT and, if any are outstanding, the awaited records (view_awaited_kind). */
void view_request_counts(const struct view *view, struct view_count_request *request);
/* Fill `count` of struct store_range or a transaction. The strings belong to the request. */
void view_count_prefixes(const struct view_count_request *request, const char *count[STORE_COUNTS]);
/* Take in what was counted (answer->counted) at this revision. */
void view_feed_counts(struct view *view, const struct view_count_request *request,
	const uint64_t counted[STORE_COUNTS], store_revision revision);

/*
 * Take in what this process wrote itself, from reading->began to ->ended, without reading it back.
 * revision: of the store after this transaction.
 */
struct transaction;
void view_feed_written(struct view *view, const struct transaction *written,
	store_revision revision, const struct view_reading *reading);

/* The kind of records that tasks wait for: TASK, in a round STEP, and after the decision SAVED. */
enum view_record view_awaited_kind(const struct view *view);
/* How many records of this kind were counted that the view does not show. */
uint64_t view_unseen(const struct view *view, enum view_record kind);

/* Read what changed since the last time and take it in. */
enum status view_refresh(struct view *view, struct store *store, struct error *err);
/* The same without the records of single tasks; those that are awaited are counted. */
enum status view_refresh_news(struct view *view, struct store *store, struct error *err);
/* Wait until a key of the attempt is newer than the view. Answers as store_wait does. */
enum status view_wait(const struct view *view, struct store *store, int64_t deadline, int wake,
	struct error *err);
/* Wait until there are news that the view does not show. Answers as store_await_news does. */
enum status view_wait_for_news(
	struct view *view, struct store *store, int64_t deadline, int wake, struct error *err);

/* Read the records TASK and LEFT of this task, which the view may lack. */
enum status view_read_task(
	struct view *view, struct store *store, uint64_t task, struct error *err);

#define VIEW_EVERY  200	 /* ms between looks for news where the filesystem does not notify us */
#define VIEW_SELDOM 1000 /* the same while no news are awaited */
/*
 * For struct store_awaited: how old, in ms, store_unchanged may be if each look is a request. It is
 * known only to within this time when a deadline was written: it may be read as that much earlier.
 */
int64_t view_news_age(uint64_t tasks);

/*
 * In a large attempt an agent reads only the news and those records of single tasks that it needs:
 * if all agents read all records, the cost would grow with the square of the number of tasks.
 */
static inline bool view_is_large(const struct view *view)
{
	return view->attempt.tasks > 256;
}

static inline bool view_has_joined(const struct view *view, uint64_t task)
{
	return view->all_there || view->members[task].shown[RECORD_TASK];
}

/* How many tasks have joined, as the view shows or counts them. */
uint64_t view_joined(const struct view *view);
/* Whether each task has left, is dead, or can no longer join. */
bool view_all_through(const struct view *view);
/*
 * Whether all tasks may have left: the goodbyes that were counted but not read are at least as many
 * as the tasks that seem to be there. False: a task that leaves later will close the attempt.
 */
bool view_may_be_through(const struct view *view);
/* When to leave at the latest: LEAVE_EARLY before the claim's deadline, or CLOCK_NEVER. */
int64_t view_leave_by(const struct view *view);
/* Why a sealed attempt takes no further task: one line. */
const char *view_why(const struct view *view);
/* Whether the command of every task ended with 0, even if it was declared dead before. */
bool view_all_completed(const struct view *view);

/* Whether a task that joined is certainly dead: it was declared dead, or its process ran on
 * this machine and is gone. */
bool view_is_surely_dead(const struct view *view, uint64_t task);

/*
 * Whether every task has joined. A task that is surely dead and has not left is missing again: its
 * successor is to join. A process of another machine cannot be checked: its beats show its death.
 */
bool view_is_gathered(const struct view *view);
/* The missing tasks as "2, 5-7"; returns how many. */
uint64_t view_name_missing(const struct view *view, struct text *text);

#endif
