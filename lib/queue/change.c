/* SPDX-License-Identifier: MIT */
/* Cancelling, retrying and forgetting commands; raising the first failure. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/sql.h"

#define OVER_STATES (1u << QUEUE_SUCCEEDED | 1u << QUEUE_FAILED | 1u << QUEUE_CANCELLED)

/* A batch of commands, and what is done with each. */
struct change {
	const uint64_t *ids;
	size_t count;
	enum done {
		CHANGED,
		TOLD,
		REFUSED,
		ABSENT
	} (*one)(struct sql *s, struct change *change, uint64_t id);
	bool by_id;	/* they were selected by their ids */
	int64_t before; /* forget */
	struct parse_numbers *gone;
	size_t gone_before;	      /* in earlier batches */
	struct queue_changed changed; /* of this batch */
};

/* The state of a command. False: there is none. */
static bool find_state(struct sql *s, uint64_t id, enum queue_state *state)
{
	sqlite3_stmt *rows =
		sql_rows(s, "SELECT state FROM command WHERE queue=?1 AND id=?2", SQL(id));
	if (!sql_next(s, rows))
		return false;
	*state = sql_state(rows, 0);
	sqlite3_reset(rows);
	return true;
}

static enum done cancel_one(struct sql *s, struct change *change, uint64_t id)
{
	(void)change;
	enum queue_state state;
	if (!find_state(s, id, &state))
		return ABSENT;
	switch (state) {
	case QUEUE_BLOCKED:
	case QUEUE_WAITING:
	case QUEUE_DAMAGED: sql_over(s, id, QUEUE_CANCELLED, 0, NULL); return CHANGED;
	case QUEUE_RUNNING:
		sql_do(s, "UPDATE command SET asked=coalesce(asked, 0) WHERE queue=?1 AND id=?2",
			SQL(id));
		s->woken[QUEUE_WORK] = true;
		return TOLD;
	case QUEUE_CANCELLED: return CHANGED;
	case QUEUE_SUCCEEDED:
	case QUEUE_FAILED:
	case QUEUE_STATES: break;
	}
	return REFUSED;
}

static enum done retry_one(struct sql *s, struct change *change, uint64_t id)
{
	enum queue_state state;
	if (!find_state(s, id, &state))
		return ABSENT;
	/* As it is to be; perhaps by this call, whose answer was lost. */
	if (state == QUEUE_WAITING || state == QUEUE_BLOCKED)
		return CHANGED;
	bool may = state == QUEUE_FAILED || state == QUEUE_CANCELLED ||
		   (state == QUEUE_SUCCEEDED && change->by_id);
	if (!may)
		return REFUSED;
	if (sql_number(s,
		    "SELECT 1 FROM after a CROSS JOIN command n ON n.queue=?1 AND"
		    " n.id=a.needs WHERE"
		    " a.queue=?1 AND a.id=?2 AND n.state NOT IN"
		    " ('blocked', 'waiting', 'running', 'succeeded')",
		    SQL(id)))
		return REFUSED;
	bool blocked = sql_number(s,
		"SELECT 1 FROM after a CROSS JOIN command n ON n.queue=?1 AND n.id=a.needs WHERE"
		" a.queue=?1 AND a.id=?2 AND n.state<>'succeeded'",
		SQL(id));
	sql_do(s,
		"UPDATE command SET state=?3, attempts=0, transients=0, preempted=0, lost=0,"
		" lost_early=0, refused=0, token=NULL, worker=NULL, since=NULL, asked=NULL,"
		" refused_on=NULL, blamed=NULL, rested=NULL, result=NULL, ended=NULL, because=NULL, over=NULL"
		" WHERE queue=?1 AND id=?2",
		SQL(id), SQL(blocked ? "blocked" : "waiting"));
	s->woken[QUEUE_WORK] = true;
	return CHANGED;
}

static enum done forget_one(struct sql *s, struct change *change, uint64_t id)
{
	enum queue_state state = QUEUE_CANCELLED;
	/* It was there when it was selected: perhaps this call has removed it, and the answer was
	 * lost. Its files are still to be removed. */
	bool there = find_state(s, id, &state);
	if (state <= QUEUE_RUNNING ||
		(there && sql_number(s, "SELECT ended>=?3 FROM command WHERE queue=?1 AND id=?2",
				  SQL(id), SQL(change->before))))
		return REFUSED;
	sql_ids_add(change->gone, id);
	sql_do(s, "DELETE FROM after WHERE queue=?1 AND id=?2", SQL(id));
	sql_do(s, "DELETE FROM after WHERE queue=?1 AND needs=?2", SQL(id));
	sql_do(s, "DELETE FROM command WHERE queue=?1 AND id=?2", SQL(id));
	s->woken[QUEUE_OVER] = true;
	return CHANGED;
}

/* Forget which calls have scheduled commands: of those that may still be repeated, keep them. */
static void forget_calls(struct sql *s)
{
	sql_do(s,
		"DELETE FROM once WHERE queue=?1 AND key>'call ' AND key<'call!'"
		" AND id+?2<?3",
		SQL(QUEUE_LIMIT), SQL(s->now.next));
}

static void note(struct queue_changed *changed, uint64_t id, enum done done)
{
	switch (done) {
	case CHANGED: changed->changed++; return;
	case TOLD: changed->told++; return;
	case REFUSED:
		changed->first_refused = changed->refused++ ? changed->first_refused : id;
		return;
	case ABSENT: changed->first_absent = changed->absent++ ? changed->first_absent : id; return;
	}
}

static enum status change_batch(struct sql *s, void *context, struct error *err)
{
	struct change *x = context;
	if (x->gone)
		x->gone->count = x->gone_before;
	x->changed = (struct queue_changed){0};
	if (x->one == retry_one && s->now.failure)
		return error_set(
			err, STATUS_BROKEN, "a command has failed, and nobody was told yet");
	if (x->one == forget_one)
		forget_calls(s);
	for (size_t i = 0; i < x->count; i++)
		note(&x->changed, x->ids[i], x->one(s, x, x->ids[i]));
	return STATUS_OK;
}

static void add(struct queue_changed *to, const struct queue_changed *more)
{
	if (!to->refused)
		to->first_refused = more->first_refused;
	if (!to->absent)
		to->first_absent = more->first_absent;
	to->changed += more->changed;
	to->told += more->told;
	to->refused += more->refused;
	to->absent += more->absent;
}

static enum status change(struct queue *queue, struct change *x, const struct queue_selection *set,
	unsigned states, struct queue_changed *changed, struct error *err)
{
	/* One that is given by its id, and is in another state, is counted as refused. */
	struct queue_selection narrowed = *set;
	if (!set->ids && !set->states)
		narrowed.states = states;
	struct sql_selected selected = {.set = &narrowed};
	enum status status = sql_select(queue, &selected, err);
	*changed = (struct queue_changed){
		.absent = selected.absent, .first_absent = selected.first_absent};
	for (size_t done = 0; done < selected.ids.count && status == STATUS_OK; done += x->count) {
		size_t left = selected.ids.count - done;
		x->ids = selected.ids.items + done;
		x->count = left < QUEUE_BATCH ? left : QUEUE_BATCH;
		status = sql_call(queue, true, change_batch, x, err);
		if (status != STATUS_OK)
			break;
		add(changed, &x->changed);
		x->gone_before = x->gone ? x->gone->count : 0;
	}
	if (x->gone)
		x->gone->count = x->gone_before;
	free(selected.ids.items);
	return status;
}

enum status queue_cancel(struct queue *queue, const struct queue_selection *set,
	struct queue_changed *changed, struct error *err)
{
	struct change x = {.one = cancel_one};
	unsigned open = 1u << QUEUE_BLOCKED | 1u << QUEUE_WAITING | 1u << QUEUE_RUNNING;
	return change(queue, &x, set, open, changed, err);
}

enum status queue_retry(struct queue *queue, const struct queue_selection *set,
	struct queue_changed *changed, struct error *err)
{
	struct change x = {.one = retry_one, .by_id = set->ids != NULL};
	return change(queue, &x, set, 1u << QUEUE_FAILED | 1u << QUEUE_CANCELLED, changed, err);
}

enum status queue_forget(struct queue *queue, const struct queue_selection *set, int64_t before,
	struct parse_numbers *gone, struct queue_changed *changed, struct error *err)
{
	struct change x = {.one = forget_one, .before = before, .gone = gone};
	return change(queue, &x, set, OVER_STATES, changed, err);
}

/* ---- The first failure ---- */

/* The answer that an earlier call has got, or has lost. */
static bool was_told(struct sql *s, struct queue_failure *failure)
{
	sqlite3_stmt *rows =
		sql_rows(s, "SELECT told_id, told_cancelled FROM queue WHERE number=?1 AND told=?2",
			SQL(failure->nonce));
	if (!sql_next(s, rows))
		return false;
	failure->id = sql_unsigned(rows, 0);
	failure->cancelled = sql_unsigned(rows, 1);
	sqlite3_reset(rows);
	return true;
}

/* Cancel all commands that wait. */
static void cancel_waiting(struct sql *s, uint64_t because)
{
	struct parse_numbers ids = {0};
	sql_ids_read(s,
		sql_rows(s, "SELECT id FROM command WHERE queue=?1"
			    " AND state IN ('waiting', 'blocked')"),
		&ids);
	for (size_t i = 0; i < ids.count; i++) {
		enum queue_state state;
		/* Not those that were cancelled with one that they come after. */
		if (find_state(s, ids.items[i], &state) && state != QUEUE_CANCELLED)
			sql_over(s, ids.items[i], QUEUE_CANCELLED, because, NULL);
	}
	free(ids.items);
}

static enum status say(struct queue_failure *failure, struct sql *s, struct error *err)
{
	if (!was_told(s, failure))
		return STATUS_NO;
	return error_set(err, STATUS_BROKEN,
		"command %" PRIu64 " has failed; %" PRIu64 " others were cancelled for it",
		failure->id, failure->cancelled);
}

static enum status raise_failure(struct sql *s, void *context, struct error *err)
{
	struct queue_failure *failure = context;
	if (say(failure, s, err) == STATUS_BROKEN)
		return STATUS_BROKEN;
	uint64_t id = s->now.failure;
	failure->id = id;
	if (!id)
		return STATUS_NO;
	int64_t told = sql_do(s,
		"UPDATE command INDEXED BY command_state SET asked=?2 WHERE queue=?1 AND"
		" state='running' AND asked IS NULL"
		" AND (SELECT halt FROM command WHERE queue=?1 AND id=?2)='now'",
		SQL(id));
	s->woken[QUEUE_WORK] |= told > 0;
	if (sql_number(s, "SELECT 1 FROM command WHERE queue=?1 AND state='running'"))
		return error_set(err, STATUS_TIMEOUT,
			"command %" PRIu64 " has failed, and others still run", id);
	cancel_waiting(s, id);
	sql_do(s,
		"UPDATE queue SET told=?2, told_id=?3, told_cancelled=(SELECT"
		" count(*)"
		" FROM command INDEXED BY command_state WHERE queue=?1 AND state='cancelled'"
		" AND because=?3) WHERE number=?1",
		SQL(failure->nonce), SQL(id));
	s->now.failure = 0;
	s->woken[QUEUE_OVER] = true;
	return say(failure, s, err);
}

enum status queue_raise(struct queue *queue, struct queue_failure *failure, struct error *err)
{
	if (!*failure->nonce)
		queue_draw_token(failure->nonce);
	enum status status = sql_call(queue, true, raise_failure, failure, err);
	if (!status_is_error(status) || status == STATUS_TIMEOUT)
		*failure->nonce = '\0';
	return status;
}
