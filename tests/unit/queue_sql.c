/* SPDX-License-Identifier: MIT */
/* The queue's transactions on a store in a file, case by case (all orders: tests/sim). */
#include <inttypes.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/rules.h"
#include "queue/spec.h"
#include "queue/template.h"
#include "scratch_queue.h"
#include "unit.h"

static const struct queue_selection everything;

/* ---- Short forms ---- */

static struct queue_item item_of(const char *word)
{
	struct queue_item item = {.argv = xcalloc(2, sizeof(char *)), .max_transient = 3};
	item.argv[0] = xstrdup(word);
	return item;
}

/* Schedule a command, after others if their ids are not 0. Returns its id; 0: not scheduled. */
static uint64_t add(struct queue_item item, uint64_t after, uint64_t other)
{
	const uint64_t ids[] = {after, other};
	struct queue_schedule how = {
		.after = ids, .after_count = (after ? 1u : 0u) + (other ? 1u : 0u)};
	enum status status = queue_schedule(&queue, &item, 1, &how, &err);
	uint64_t id = status == STATUS_OK ? item.id : 0;
	queue_item_release(&item);
	return id;
}

static uint64_t add_plain(void)
{
	return add(item_of("true"), 0, 0);
}

static struct queue_worker register_worker(const char *host)
{
	struct queue_worker worker = {.index = UINT64_MAX, .slots = 1, .period = 1000, .limit = 3};
	snprintf(worker.name, sizeof(worker.name), "w-%s", host);
	CHECK_EQ(queue_register(&queue, &worker, &err), STATUS_OK);
	/* All processes here have the same host; the engine looks at this column. */
	char path[128], sql[256];
	sqlite3 *database;
	snprintf(path, sizeof(path), "%s", store_where(store));
	sqlite3_open(path, &database);
	snprintf(sql, sizeof(sql), "UPDATE worker SET host='%s' WHERE token='%s'", host,
		worker.token);
	CHECK_EQ(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
	return worker;
}

/* Take one command. Returns its id; 0: none. */
static uint64_t take(const struct queue_worker *worker, char token[QUEUE_TOKEN])
{
	struct queue_exchange x = {.worker = worker->token, .want = 1, .left = CLOCK_NEVER};
	CHECK_EQ(queue_exchange(&queue, &x, &err), STATUS_OK);
	uint64_t id = x.taken_count ? x.taken[0].item.id : 0;
	if (id)
		memcpy(token, x.taken[0].token, QUEUE_TOKEN);
	queue_exchange_release(&x);
	return id;
}

/* Hand in one end. Returns the state; QUEUE_STATES: refused. */
static enum queue_state finish(const struct queue_worker *worker, uint64_t id, const char *token,
	enum queue_ending_kind kind, int code)
{
	struct queue_ended ended = {.id = id,
		.token = token,
		.result = {.ending = {.kind = kind, .code = code}, .ended = clock_utc()}};
	struct queue_exchange x = {
		.worker = worker->token, .ended = &ended, .ended_count = 1, .left = CLOCK_NEVER};
	enum status status = queue_exchange(&queue, &x, &err);
	queue_exchange_release(&x);
	return status == STATUS_OK && ended.accepted ? ended.state : QUEUE_STATES;
}

/* Take the next one and end it so. */
static enum queue_state run_next(
	const struct queue_worker *worker, enum queue_ending_kind kind, int code)
{
	char token[QUEUE_TOKEN];
	uint64_t id = take(worker, token);
	return id ? finish(worker, id, token, kind, code) : QUEUE_STATES;
}

static const char *state_of(uint64_t id)
{
	struct queue_view view;
	if (queue_inspect(&queue, id, &view, &err) != STATUS_OK)
		return "absent";
	const char *word = queue_state_word(view.state);
	queue_view_release(&view);
	return word;
}

static struct queue_changed change_one(
	enum status (*how)(struct queue *, const struct queue_selection *, struct queue_changed *,
		struct error *),
	uint64_t id)
{
	struct queue_changed changed = {0};
	const struct queue_selection set = {.ids = &id, .count = 1};
	CHECK_EQ(how(&queue, &set, &changed, &err), STATUS_OK);
	return changed;
}

static void alter(const char *sql)
{
	sqlite3 *database;
	sqlite3_open(store_where(store), &database);
	CHECK_EQ(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
}

/* ---- Cases ---- */

static void machines(void)
{
	reopen("machines.db");
	TEST("one that refused it takes it where the other machine has left")
	{
		struct queue_worker a = register_worker("a"), b = register_worker("b");
		add_plain();
		CHECK_EQ(run_next(&a, ENDING_MACHINE, 1), QUEUE_WAITING);
		CHECK_EQ(queue_leave(&queue, b.token, &err), STATUS_OK);
		CHECK_EQ(run_next(&a, ENDING_EXITED, 0), QUEUE_STATES);
		alter("UPDATE command SET rest=0");
		CHECK_EQ(run_next(&a, ENDING_EXITED, 0), QUEUE_SUCCEEDED);
		CHECK_EQ(queue_leave(&queue, a.token, &err), STATUS_OK);
	}
	TEST("time that is left decides, and what fits nowhere is named")
	{
		struct queue_worker a = register_worker("a");
		struct queue_item item = item_of("long");
		item.needs = 10000;
		item.priority = 1;
		uint64_t needs = add(item, 0, 0), other = add_plain();
		struct queue_exchange x = {.worker = a.token, .left = 3000, .want = 2};
		CHECK_EQ(queue_exchange(&queue, &x, &err), STATUS_OK);
		CHECK_EQ(x.taken_count, 1);
		CHECK_EQ(x.taken[0].item.id, other);
		CHECK_EQ(x.unfit, needs);
		CHECK_EQ(finish(&a, other, x.taken[0].token, ENDING_EXITED, 0), QUEUE_SUCCEEDED);
		queue_exchange_release(&x);
		struct queue_outcome outcome = {0};
		const struct queue_selection all = {0};
		CHECK_EQ(queue_outcome(&queue, &all, &outcome, &err), STATUS_OK);
		CHECK_EQ(outcome.unfit, 0);
		alter("UPDATE worker SET life=3000");
		CHECK_EQ(queue_outcome(&queue, &all, &outcome, &err), STATUS_OK);
		CHECK_EQ(outcome.unfit, needs);
		CHECK_EQ(change_one(queue_cancel, needs).changed, 1);
		CHECK_EQ(queue_leave(&queue, a.token, &err), STATUS_OK);
	}
	close_all();
}

static void failures(void)
{
	struct queue_failure failure = {0};
	char token[QUEUE_TOKEN], other[QUEUE_TOKEN];
	reopen("failures.db");
	struct queue_worker a = register_worker("a");
	TEST("what a call took whose answer was lost is had, also if a failure came between")
	{
		struct queue_item item = item_of("bad");
		item.halt = HALT_SOON;
		uint64_t bad = add(item, 0, 0), good = add_plain();
		CHECK_EQ(take(&a, token), bad);
		struct queue_exchange x = {.worker = a.token, .want = 1, .left = CLOCK_NEVER};
		queue_draw_token(x.nonce);
		memcpy(other, x.nonce, sizeof(other));
		CHECK_EQ(queue_exchange(&queue, &x, &err), STATUS_OK);
		CHECK_EQ(finish(&a, bad, token, ENDING_EXITED, 3), QUEUE_FAILED);
		memcpy(x.nonce, other, sizeof(other));
		CHECK_EQ(queue_exchange(&queue, &x, &err), STATUS_OK);
		CHECK_EQ(x.failure, bad);
		CHECK(x.taken_count == 1 && x.taken[0].item.id == good);
		queue_exchange_release(&x);
		CHECK_EQ(finish(&a, good, other, ENDING_EXITED, 0), QUEUE_SUCCEEDED);
		CHECK_EQ(queue_raise(&queue, &failure, &err), STATUS_BROKEN);
	}
	close_all();
}

static enum status sum(void *context, const struct queue_view *view)
{
	*(uint64_t *)context += view->item.id;
	return STATUS_OK;
}

static void damage(void)
{
	reopen("damage.db");
	TEST("a row that was written wrongly is named and stepped over")
	{
		char token[QUEUE_TOKEN];
		struct queue_worker a = register_worker("a");
		for (int i = 0; i < 6; i++)
			add_plain();
		uint64_t blocked = add(item_of("x"), 6, 0);
		alter("UPDATE command SET spec='{' WHERE id=1;"
		      "UPDATE command SET state='sleeping' WHERE id=2;"
		      "UPDATE command SET state='running', worker='nobody', token='t', since=0"
		      " WHERE id=3;"
		      "UPDATE command SET state='running' WHERE id=4;"
		      "UPDATE command SET priority='high', needs='long', tag=7, starts=-1 WHERE id=5;"
		      "UPDATE command SET state='?' WHERE id=6;");
		uint64_t seen = 0;
		const struct queue_selection all = {0};
		CHECK_EQ(queue_visit(&queue, &all, sum, &seen, &err), STATUS_OK);
		CHECK_EQ(seen, 1 + 2 + 3 + 4 + 5 + 6 + blocked);
		CHECK_TEXT(state_of(2), "damaged");
		struct queue_exchange x = {.worker = a.token, .left = CLOCK_NEVER, .want = 1};
		for (int calls = 0; calls < 50 && !x.drained; calls++) {
			CHECK_EQ(queue_exchange(&queue, &x, &err), STATUS_OK);
			for (size_t i = 0; i < x.taken_count; i++)
				finish(&a, x.taken[i].item.id, x.taken[i].token, ENDING_EXITED, 0);
		}
		queue_exchange_release(&x);
		CHECK_TEXT(state_of(1), "failed");
		CHECK_TEXT(state_of(3), "succeeded");
		CHECK_TEXT(state_of(4), "succeeded");
		CHECK_TEXT(state_of(5), "succeeded");
		CHECK_TEXT(state_of(blocked), "cancelled");
		CHECK_EQ(take(&a, token), 0);
		struct queue_changed changed;
		struct parse_numbers gone = {0};
		CHECK_EQ(queue_forget(&queue, &all, INT64_MAX, &gone, &changed, &err), STATUS_OK);
		CHECK_EQ(changed.changed, 5);
		CHECK_EQ(gone.count, 5);
		parse_numbers_release(&gone);
	}
	TEST("0.1.0 cannot use a queue of ours, and what it has put there does no harm")
	{
		struct queue_outcome count = {0};
		struct store_entry entry = {.length = 1};
		CHECK_EQ(store_get(store, "queue/q/count/@next", &entry, &err), STATUS_OK);
		CHECK_EQ(entry.length, 0);
		store_entry_release(&entry);
		CHECK_EQ(store_put(store, "queue/q/worker/1", "{}", NULL, &err), STATUS_OK);
		CHECK_EQ(queue_outcome(&queue, &everything, &count, &err), STATUS_OK);
	}
	TEST("who opened the store for reading only can look, and change nothing")
	{
		struct store *reader;
		struct queue other;
		struct queue_outcome count = {0};
		struct queue_failure failure = {0};
		CHECK_EQ(store_open(&reader, store_where(store), STORE_READ_ONLY,
				 clock_after(60000), &err),
			STATUS_OK);
		CHECK_EQ(queue_open(&other, reader, "q", NULL, &err), STATUS_OK);
		CHECK_EQ(queue_outcome(&other, &everything, &count, &err), STATUS_OK);
		CHECK_EQ(count.scheduled, 7);
		CHECK_EQ(queue_raise(&other, &failure, &err), STATUS_USAGE);
		queue_release(&other);
		store_close(reader);
	}
	TEST("those who wait are woken by what concerns them")
	{
		store_revision since = queue.revision, over = since;
		CHECK_EQ(queue_wait(&queue, QUEUE_WORK, &since, clock_now(), -1, &err),
			STATUS_TIMEOUT);
		add_plain();
		CHECK_EQ(queue_wait(&queue, QUEUE_WORK, &since, clock_now(), -1, &err), STATUS_OK);
		CHECK_EQ(queue_wait(&queue, QUEUE_OVER, &over, clock_now(), -1, &err),
			STATUS_TIMEOUT);
	}
	close_all();
}

static enum status count_over(void *context, const struct queue_view *view)
{
	*(uint64_t *)context += view->over > 0;
	return STATUS_OK;
}

static void chain(uint64_t length)
{
	/* So little stack that no recursion comes through. */
	struct rlimit limit;
	CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
	limit.rlim_cur = 512 << 10;
	CHECK(setrlimit(RLIMIT_STACK, &limit) == 0);
	reopen("chain.db");
	store_set_patience(store, 300000);
	/* One transaction for each would take many syncs. */
	struct queue_worker a = register_worker("a");
	CHECK_EQ(add_plain(), 1);
	char sql[512];
	snprintf(sql, sizeof(sql),
		"WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i<%" PRIu64
		") INSERT INTO command(queue, id, state, priority, needs, halt, spec)"
		" SELECT 1, i, 'blocked', 0, 0, 'never', (SELECT spec FROM command) FROM n;"
		"INSERT INTO after SELECT 1, id-1, id FROM command WHERE id>1;"
		"UPDATE queue SET next=%" PRIu64 "+1",
		length, length);
	alter(sql);
	TEST("a chain of 5,000 is cancelled with its first command")
	{
		struct queue_outcome count = {0};
		int64_t began = clock_now();
		CHECK_EQ(run_next(&a, ENDING_EXITED, 1), QUEUE_FAILED);
		printf("# cancelled in %d ms\n", (int)(clock_now() - began));
		CHECK_EQ(queue_outcome(&queue, &everything, &count, &err), STATUS_OK);
		CHECK_EQ(count.in[QUEUE_CANCELLED], length - 1);
		uint64_t over = 1, seen = 0;
		const struct queue_selection ended = {.beyond = &over};
		CHECK_EQ(queue_visit(&queue, &ended, count_over, &seen, &err), STATUS_OK);
		CHECK_EQ(seen, length - 1);
	}
	TEST("... and is retried, and goes on link by link")
	{
		struct queue_changed changed;
		struct queue_outcome count = {0};
		const struct queue_selection all = {0};
		CHECK_EQ(queue_retry(&queue, &all, &changed, &err), STATUS_OK);
		CHECK_EQ(changed.changed, length);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(run_next(&a, ENDING_EXITED, 0), QUEUE_SUCCEEDED);
		CHECK_EQ(queue_outcome(&queue, &everything, &count, &err), STATUS_OK);
		CHECK_EQ(count.in[QUEUE_WAITING], 1);
		CHECK_EQ(count.in[QUEUE_SUCCEEDED], 3);
	}
	close_all();
}

int main(void)
{
	scratch_in_memory();
	scratch_make();
	machines();
	failures();
	damage();
	chain(5000);
	scratch_remove();
	return unit_end();
}
