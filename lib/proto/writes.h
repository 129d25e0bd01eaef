/* SPDX-License-Identifier: MIT */
/*
 * What the agreement wants written, as transactions on the store. Each is built whole (keys,
 * values, compares) where the plan is known, and carried out by another thread, perhaps more than
 * once. That is safe: it is put-if-absent, guarded by a revision, or of a key that one task writes.
 */
#ifndef PROTO_WRITES_H
#define PROTO_WRITES_H

#include "notice/notice.h"
#include "proto/view.h"
#include "store/builder.h"

struct write {
	enum agreement_write what; /* WRITE_KINDS: deaths, which no plan contains */
	uint64_t task, round;
	struct transaction transaction;
	const char *deadline_key; /* where to put the time left when it is carried out; or NULL */
	int64_t deadline;
	struct view_count_request counts; /* which records it also counts */
	/* Once it was carried out: the store's revision then, and the counts of news (store.h) and
	 * of those records. */
	store_revision revision;
	uint32_t news;
	uint64_t counted[STORE_COUNTS];
};

/* What only the agent knows of its task. */
struct write_details {
	const struct notice *notice; /* of WRITE_CLAIM */
	enum agreement_then then;    /* of WRITE_CLAIM */
	bool outside;		     /* of WRITE_CLAIM: not made by a task */
	uint64_t pid;		     /* of WRITE_CLAIM from outside: the process, or 0 (claim.h) */
	int64_t deadline;	     /* of WRITE_CLAIM, WRITE_DEADLINE; CLOCK_NEVER */
	int64_t step_time;	     /* of WRITE_REPORT, ms */
	int64_t save_time;	     /* of WRITE_SAVED, ms */
	bool acknowledges;	     /* of WRITE_SAVED: acknowledge the decision, too */
	int code;		     /* of WRITE_ERROR, WRITE_LEFT */
	const char *line;	     /* of WRITE_ERROR */
	/* Of WRITE_LEFT: for the next attempt, and how far the task has come. */
	int64_t longest_save; /* ms; 0: unknown */
	bool called, saved;   /* whether it has called preempt_step, and saved */
	bool complete, chief_saves;
	uint64_t step, saved_step, complete_step;
};

/* Build what plan->write[what] asks `task` to write. Release it with write_release. */
void write_build(struct write *write, const struct view *view, enum agreement_write what,
	uint64_t task, const struct agreement_plan *plan, const struct write_details *details);

/* A task that is to be declared dead. */
struct death {
	uint64_t task;
	enum death_cause cause;
	int64_t since_utc; /* ms: the last sign of life or progress */
	bool has_step;
	uint64_t step; /* the last one known */
};

#define DEATHS_MOST 60 /* in one transaction, with two compares each; the rest in later ones */
/*
 * Fill deaths (at most `most`) with the tasks that have neither left nor died, but whose process
 * ran on this machine and is gone; asked, if not NULL, chooses among them. Returns how many.
 */
size_t write_find_gone(const struct view *view, bool (*asked)(const void *context, uint64_t task),
	const void *context, struct death *deaths, size_t most);

#define BY_NO_TASK UINT64_MAX /* concluded by a process that speaks for no task */

/*
 * Build one transaction with DEAD/i of one or more tasks, and the seal if there is none, as
 * concluded by task `by` (which may be one of them: a hung task, by its own agent), or by
 * BY_NO_TASK. Refused if task `by` was declared dead before. The seal is "death", or "hung" if that
 * is the cause of the first death; its text is the line that is printed.
 */
void write_build_deaths(struct write *write, const struct view *view, uint64_t by,
	const struct death *deaths, size_t count);
/* Build it and carry it out. */
enum agreement_outcome write_deaths(struct store *store, const struct view *view, uint64_t by,
	const struct death *deaths, size_t count, struct error *err);

/* Build the request for an on-demand checkpoint: the next round, without a claim. */
void write_build_demand(struct write *write, const struct view *view);

/* Let the transaction read the attempt's count of news; news: also add 1 to this count. */
void write_news(struct transaction *t, const struct attempt *attempt, bool news);

/* Let the write count the records that are awaited: it may add the last one. */
void write_count(struct write *write, const struct view *view);
/* Take in what was written (view_feed_written) and counted. */
void write_feed(const struct write *write, struct view *view, const struct view_reading *reading);

void write_release(struct write *write);

/*
 * Carry out several writes, no two of one kind and task, in one transaction. False: refused, or the
 * outcome is unknown; carry out each by itself.
 */
bool write_carry_out_all(
	struct write *const writes[], size_t count, struct store *store, struct error *err);

/* Carry it out. err says why for OUTCOME_UNKNOWN. */
enum agreement_outcome write_carry_out(struct write *write, struct store *store, struct error *err);

#endif
